"""The faults that `make mutants` puts into the code: each changes something, and nothing that runs alike is changed."""

import ast
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.mutants import ROOT, Trial, mutate, places, run_room, suites_of


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


def test_nothing_is_tried_where_the_tests_fail_already(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def fails(_: Trial, __: Path, tests: Sequence[str]) -> str:
        asked.append(tests)
        return "FAILED tests/x.py"

    monkeypatch.setattr(Trial, "_fails", fails)
    monkeypatch.setattr(Trial, "_copy", lambda _: ROOT)
    with pytest.raises(SystemExit, match="crawl: the tests fail without a mutant: FAILED"):
        run_room("crawl", Namespace(sample=2, seed=1, minutes=1.0, most_s=1.0, jobs=1))
    assert len(asked) == 1
    assert {Path(test).parts[0] for test in asked[0]} == {"tests"}
