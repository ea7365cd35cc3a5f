"""The faults that `make mutants` puts into the code: each changes something, and nothing that runs alike is changed."""

import ast
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from scripts.called_functions import FILE
from scripts.mutants import ROOT, Trial, callers, mutate, places, run_room, suites_of


@pytest.mark.parametrize(
    ("body", "mutants"),
    [
        ("return a < b", {"return None", "return a <= b"}),
        ("if not a:\n        pass", {"if not (not a):\n        pass", "if a:\n        pass"}),
        ("return a and b in c", {"return None", "return a or b in c", "return a and b not in c"}),
        ("for a in b:\n        break", {"for a in b:\n        continue"}),
        ("b(1)", {"pass", "b(2)"}),
        ("a += 1", {"pass", "a += 2"}),
        ("return None", set()),
        ("'a docstring'\n    _log.info('a', 1)\n    raise A('b' + c)", set()),
        ("a: Literal[1] = b - c", {"a: Literal[1] = b + c"}),
    ],
)
def test_each_fault_is_made_once(body: str, mutants: set[str]) -> None:
    source = f"LIMIT = 5\n\ndef ask(a, b, c):\n    {body}"
    count = len(list(places(ast.parse(source))))
    made = [mutate(Path("gatewayfilter/urls.py"), source, number) for number in range(count)]
    found = {mutant.source for mutant in made if mutant is not None}
    assert found == {ast.unparse(ast.parse(f"LIMIT = 5\n\ndef ask(a, b, c):\n    {mutant}")) for mutant in mutants}
    assert (mutate(Path("gatewayfilter/urls.py"), source, 0) is None) == (not mutants)


def test_tests_that_name_the_module_come_first() -> None:
    near, room = suites_of(Path("gatewayfilter/engine/tables/bloom.py"))
    assert near[0].startswith("tests/engine/tables/")
    assert room
    assert not set(near) & set(room)


def test_a_mutant_is_in_the_function_that_starts_with_its_decorators() -> None:
    source = "class A:\n    @cached\n    def ask(a):\n        def inner():\n            return a + 1\n        return inner\n"
    count = len(list(places(ast.parse(source))))
    made = [mutate(Path("gatewayfilter/urls.py"), source, number) for number in range(count)]
    assert {(mutant.line, mutant.function) for mutant in made if mutant is not None} == {(5, 4), (6, 2)}


def test_the_quickest_tests_of_a_function_come_first() -> None:
    noted = {"slow": (2.0, [("a.py", 1), ("b.py", 7)]), "quick": (1.0, [("a.py", 1)])}
    assert callers(noted) == {("a.py", 1): ["quick", "slow"], ("b.py", 7): ["slow"]}


@pytest.mark.slow
def test_calls_are_noted_for_each_test_and_those_of_shared_fixtures_for_all_of_theirs(tmp_path: Path) -> None:
    (tmp_path / "gatewayfilter").mkdir()
    (tmp_path / "gatewayfilter" / "__init__.py").write_text(
        "def one():\n    pass\n\ndef two():\n    pass\n\ndef three():\n    one()\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom gatewayfilter import one, two, three\n"
        "@pytest.fixture(scope='module')\ndef shared():\n    two()\n"
        "def test_first(shared):\n    one()\n"
        "def test_second(shared):\n    pass\n"
        "def test_third():\n    three()\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "-p",
        "called_functions",
        "-p",
        "no:xdist",
    ]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'scripts'}{os.pathsep}{tmp_path}", FILE: str(tmp_path / "called.json")}
    subprocess.run([*command, "test_it.py"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    noted = json.loads((tmp_path / "called.json").read_text())
    found = {test.partition("::")[2]: sorted(line for _, line in called) for test, (_, called) in noted.items()}
    assert found == {"test_first": [1, 4], "test_second": [4], "test_third": [1, 7]}


def test_nothing_is_tried_where_the_tests_fail_already(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def fails(_: Trial, __: Path, tests: Sequence[str], ___: Mapping[str, str], most_s: float) -> str:
        assert most_s > 60  # all tests take longer than those of one mutant
        asked.append(tests)
        return "FAILED tests/x.py"

    monkeypatch.setattr(Trial, "_fails", fails)
    monkeypatch.setattr(Trial, "_copy", lambda _: ROOT)
    with pytest.raises(SystemExit, match="crawl: the tests fail without a mutant: FAILED"):
        run_room("crawl", Namespace(sample=2, seed=1, minutes=1.0, most_s=1.0, jobs=1))
    assert len(asked) == 1
    assert {Path(test).parts[0] for test in asked[0]} == {"tests"}
