"""The faults that `make mutants` puts into the code: each changes something, and nothing that runs alike is changed."""

import ast
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from scripts import mutant_server, mutants
from scripts.mutant_faults import ROOT, Mutant, mutate, places
from scripts.mutant_order import callers, in_turn
from scripts.mutant_server import TEST_LIMIT_S, Job, Outcome, followed, pairs
from scripts.mutants import TOO_LATE, Notes, Trial, suites_of


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ("return a < b", {"return None", "return a <= b"}),
        ("if not a:\n        pass", {"if not (not a):\n        pass", "if a:\n        pass"}),
        ("return a and b in c", {"return None", "return a or b in c", "return a and b not in c"}),
        ("for a in b:\n        break", {"for a in b:\n        continue"}),
        ("b(1)", {"pass", "b(2)"}),
        ("a += 1", {"pass", "a += 2"}),
        ("return None", set()),
        ("'a docstring'\n    _log.info('a', 1)\n    self.log('b', 2)\n    raise A('b' + c)", set()),
        ("a: Literal[1] = b - c", {"a: Literal[1] = b + c"}),
    ],
)
def test_each_fault_is_made_once(body: str, faults: set[str]) -> None:
    source = f"LIMIT = 5\n\ndef ask(a, b, c):\n    {body}"
    count = len(list(places(ast.parse(source))))
    made = [mutate(Path("gatewayfilter/urls.py"), source, number) for number in range(count)]
    found = {mutant.source for mutant in made if mutant is not None}
    assert found == {ast.unparse(ast.parse(f"LIMIT = 5\n\ndef ask(a, b, c):\n    {mutant}")) for mutant in faults}
    assert (mutate(Path("gatewayfilter/urls.py"), source, 0) is None) == (not faults)


def test_tests_that_name_the_module_come_first() -> None:
    near, room = suites_of(Path("gatewayfilter/engine/tables/bloom.py"))
    assert near[0].startswith("tests/engine/tables/")
    assert room
    assert not set(near) & set(room)


def test_a_room_of_one_module_has_the_tests_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    texts = {"urls/test_near.py": "from gatewayfilter.urls import a", "urls/test_room.py": "", "web/test_other.py": ""}
    for name, text in texts.items():
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)
    assert suites_of(Path("gatewayfilter/urls.py")) == (["tests/urls/test_near.py"], ["tests/urls/test_room.py"])
    (tmp_path / "tests" / "urls" / "test_room.py").unlink()
    assert suites_of(Path("gatewayfilter/urls.py"))[1]  # files are read once


def test_a_mutant_is_in_the_function_that_starts_with_its_decorators() -> None:
    source = "class A:\n    @cached\n    def ask(a):\n        def inner():\n            return a + 1\n        return inner\n"
    count = len(list(places(ast.parse(source))))
    made = [mutate(Path("gatewayfilter/urls.py"), source, number) for number in range(count)]
    assert {(mutant.line, mutant.function) for mutant in made if mutant is not None} == {(5, 4), (6, 2)}


def test_a_mutant_meets_one_test_of_each_file_before_the_rest() -> None:
    tests = ["a.py::2", "near.py::1", "b.py::1", "a.py::1", "near.py::2", "nearer.py::1", "b.py::2", "a.py::3"]
    assert in_turn(tests, ["nearer.py", "near.py"]) == [
        *("nearer.py::1", "near.py::1", "near.py::2"),
        *("a.py::2", "b.py::1"),
        *("a.py::1", "a.py::3", "b.py::2"),
    ]


def test_the_quickest_tests_of_a_function_come_first() -> None:
    noted = {"slow": (2.0, [("a.py", 1), ("b.py", 7)]), "quick": (1.0, [("a.py", 1)])}
    assert callers(noted) == {("a.py", 1): ["quick", "slow"], ("b.py", 7): ["slow"]}


MODULE = "gatewayfilter/room/thing.py"
FILE = "tests/room/test_thing.py"
CODE = """
TABLE = []

def one(a=1):
    return a

def two():
    pass

def three():
    return one(5)

def built():
    TABLE.append(1)
    return len(TABLE)

BUILT = built()
"""
TESTS = """
import pytest
from gatewayfilter.room.thing import BUILT, one, three, two

@pytest.fixture(scope='module')
def shared():
    two()

def test_first(shared):
    assert one() == 1

def test_second(shared):
    pass

def test_third():
    assert three() == 5

def test_red():
    assert three() == 6

def test_built():
    assert BUILT == 1
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout that the tool takes for its own."""
    root = tmp_path / "root"
    (root / MODULE).parent.mkdir(parents=True)
    (root / MODULE).write_text(CODE)
    for folder in (root / "gatewayfilter", (root / MODULE).parent):
        (folder / "__init__.py").touch()
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text(TESTS)
    (root / "scripts").mkdir()
    for name in ("called_functions", "mutant_faults", "mutant_server"):
        (root / "scripts" / f"{name}.py").write_bytes((ROOT / "scripts" / f"{name}.py").read_bytes())
    (root / "pytest.ini").write_text("[pytest]\nmarkers = real\n  slow\n  services\n")
    monkeypatch.setattr(mutants, "ROOT", root)
    return root


def _mutants(*wanted: str) -> list[Mutant]:
    count = len(list(places(ast.parse(CODE))))
    made = [mutate(Path(MODULE), CODE, number) for number in range(count)]
    found = {f"{mutant.before} {mutant.after}": mutant for mutant in made if mutant is not None}
    return [found[each] for each in wanted]


@pytest.mark.slow
def test_mutants_meet_the_tests_that_call_their_function(checkout: Path, tmp_path: Path) -> None:
    chosen = _mutants("return a return None", "5 6", "TABLE.append(1) pass", "return one(5) return None")
    trial = Trial(tmp_path / "trial", chosen, 60.0)
    try:
        noted = trial.prepare({})
        called = {test.partition("::")[2]: {line for _, line in functions} for test, (_, functions) in noted.items()}
        assert called == {"test_first": {4, 7}, "test_second": {7}, "test_third": {4, 10}, "test_built": set()}
        assert trial.red == {f"{FILE}::test_red"}
        killers = [trial.killed_by(mutant).partition("::")[2] for mutant in chosen]
        assert set(killers[:1]) <= {"test_first", "test_third"}
        assert killers[1:] == ["test_third", "test_built", "test_third"]  # the third in a process of its own
        assert not trial.killed_by(_mutants("1 2")[0])
        assert (trial._copy()._root / MODULE).read_text() == CODE
        assert trial.prepare(noted).keys() == noted.keys()  # and runs the one that failed alone
    finally:
        trial.close()


@pytest.mark.slow
def test_a_test_that_fails_by_itself_kills_nothing(checkout: Path, tmp_path: Path) -> None:
    (checkout / FILE).write_text(
        "import os\nfrom pathlib import Path\nfrom gatewayfilter.room.thing import one\n"
        f"def test_once():\n    one()\n    Path({str(tmp_path)!r}, 'ran').touch(exist_ok=False)\n"
    )
    trial = Trial(tmp_path / "trial", _mutants("return a return None"), 60.0)
    try:
        trial.prepare({})
        assert not trial.red
        assert not trial.killed_by(_mutants("return a return None")[0])
        assert trial.red == {f"{FILE}::test_once"}
    finally:
        trial.close()


@pytest.mark.slow
def test_what_a_process_of_its_own_tells(checkout: Path, tmp_path: Path) -> None:
    """Its tests are named as they are, an end is one of a test, and its memory is bounded."""
    (checkout / FILE).write_text(
        "import os, pytest, resource\nfrom gatewayfilter.room.thing import BUILT\n"
        "@pytest.mark.parametrize('text', ['a - b'])\ndef test_named(text):\n    assert BUILT == 1\n"
        "def test_end():\n    BUILT == 1 or os._exit(0)\n"
        "def test_bound():\n    assert (resource.getrlimit(resource.RLIMIT_DATA)[0] > 0) == (BUILT == 1)\n"
    )
    (mutant,) = _mutants("TABLE.append(1) pass")
    trial = Trial(tmp_path / "trial", [mutant], 60.0)
    try:
        trial.prepare({})
        assert not trial.red
        named, end, bound = (f"{FILE}::{name}" for name in ("test_named[a - b]", "test_end", "test_bound"))
        copy = trial._copy()
        for tests, failed, hung in (([named], [named], False), ([end, bound], [], True), ([bound], [bound], False)):
            outcome = copy.run_with(mutant, tests, 60.0)
            assert (outcome.failed, outcome.hung, outcome.last, outcome.cold) == (failed, hung, tests[0], True)
        assert copy.run_anew([named, end, bound], 60.0) == Outcome(begun=3, last=bound, cold=True)
        outcome = copy.run_anew([f"{FILE}::test_none"], 60.0)
        assert (outcome.failed, outcome.hung, outcome.begun) == ([], True, 0)
        assert copy.run_anew([named], 0.0).late
    finally:
        trial.close()


class FakeCopy:
    """Each test has an end with a mutant, and one without it."""

    def __init__(self, ends: dict[str, str], again: dict[str, str], *, cold: bool) -> None:
        self._ends, self._again, self._cold = ends, again, cold
        self.collected = SimpleNamespace(called=set())
        self.ran: list[str] = []

    def run_with(self, _mutant: Mutant, tests: Sequence[str], _most_s: float) -> Outcome:
        return self._outcome(tests, self._ends, cold=self._cold)

    def run(self, job: Job) -> Outcome:
        self.ran += ["fork", *job.tests]
        return self._outcome(job.tests, self._again, cold=False)

    def run_anew(self, tests: Sequence[str], _most_s: float) -> Outcome:
        self.ran += ["process", *tests]
        return self._outcome(tests, self._again, cold=True)

    @staticmethod
    def _outcome(tests: Iterable[str], ends: dict[str, str], *, cold: bool) -> Outcome:
        outcome = Outcome(cold=cold)
        for test in tests:
            outcome.begun, outcome.last = outcome.begun + 1, test
            end = ends.get(test, "")
            if end:
                outcome.failed = [test] if end == "failed" else []
                outcome.hung, outcome.late = end == "hung", end == "late"
                break
        return outcome


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    ("ends", "again", "killer", "red"),
    [
        ({}, {}, "", ""),
        ({"b": "failed"}, {}, "b", ""),
        ({"b": "hung"}, {}, "the end of b", ""),
        ({"b": "late"}, {}, f"{TOO_LATE} after 2 of 3 tests", ""),
        ({"b": "failed"}, {"b": "failed"}, "", "b"),
        ({"b": "failed"}, {"b": "hung"}, "", "b"),
        ({"b": "failed"}, {"b": "late"}, "", "b"),
        ({"b": "hung"}, {"b": "hung"}, "", "b"),
        ({"b": "hung", "c": "failed"}, {"b": "late"}, "c", "b"),
        ({"a": "hung", "b": "failed", "c": "hung"}, {"a": "failed", "b": "hung"}, "the end of c", "ab"),
        ({"a": "hung", "b": "failed", "c": "hung"}, {"a": "hung", "b": "hung", "c": "late"}, "", "abc"),
    ],
)
def test_what_ends_alike_without_the_mutant_kills_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ends: dict[str, str],
    again: dict[str, str],
    killer: str,
    red: str,
    cold: bool,
) -> None:
    copy = FakeCopy(ends, again, cold=cold)
    monkeypatch.setattr(Trial, "_copy", lambda _: copy)
    monkeypatch.setattr(Trial, "_tests_of", lambda _, __: ["a", "b", "c"])
    trial = Trial(tmp_path, [], 60.0)
    assert trial.killed_by(_mutants("5 6")[0]) == killer
    assert trial.red == {*red}
    assert {*copy.ran} & {"fork", "process"} <= {"process" if cold else "fork"}  # in the same way


def test_a_mutant_without_time_for_its_tests_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "_copy", lambda _: FakeCopy({"a": "failed"}, {}, cold=False))
    monkeypatch.setattr(Trial, "_tests_of", lambda _, __: ["a"])
    assert Trial(tmp_path, [], 0.0).killed_by(_mutants("5 6")[0]) == TOO_LATE


@pytest.mark.parametrize(
    ("told", "silent_s", "outcome"),
    [
        ([], 0.0, Outcome(late=True)),
        (["a", "b"], 0.0, Outcome(begun=2, last="b", late=True)),
        (["a"], 2.0 * TEST_LIMIT_S + 1, Outcome(begun=1, last="a", late=True, hung=True)),
        (["a", None], 0.0, Outcome(begun=1, last="a", hung=True)),
        ([None], 0.0, Outcome(hung=True)),
        (["a", "b", Outcome(failed=["b"])], 0.0, Outcome(failed=["b"], begun=2, last="b")),
    ],
)
def test_what_tests_tell_of_themselves(
    monkeypatch: pytest.MonkeyPatch, told: list[object], silent_s: float, outcome: Outcome
) -> None:
    ours, theirs = Pipe(duplex=False)
    with ours, theirs:
        for message in told:
            if message is None:
                theirs.close()  # the process ended
            else:
                theirs.send(message)
        now = [1_000.0]
        poll = ours.poll

        class Line:
            @staticmethod
            def poll(timeout: float) -> bool:
                if not (found := poll(0)):
                    now[0] += silent_s or timeout
                return found

            recv = ours.recv

        monkeypatch.setattr(mutant_server, "time", SimpleNamespace(monotonic=lambda: now[0]))
        assert followed(cast("Connection", Line), 60.0) == outcome


def test_what_is_noted_holds_until_files_change(checkout: Path) -> None:
    file, other, unseen = checkout / "room.json", "gatewayfilter/room/other.py", checkout / "gatewayfilter" / "unseen.py"
    first, second = f"{FILE}::test_first", f"{FILE}::test_second"
    (checkout / other).write_text("")
    Notes(file).write({first: (1.0, [(MODULE, 4), (other, 1)]), second: (1.0, [(MODULE, 4)])})
    unseen.write_text("")
    for path, left in ((FILE, []), (MODULE, []), ("tests/fakes.py", []), ("scripts/called_functions.py", []), (other, [second])):
        before = (checkout / path).read_text() if (checkout / path).exists() else None
        (checkout / path).write_text(f"{before}\n")
        assert [*Notes(file).read()] == left, path
        if before is None:
            (checkout / path).unlink()
        else:
            (checkout / path).write_text(before)
        assert [*Notes(file).read()] == [first, second]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("def one():\n    return 1\ndef two():\n    pass", "def one():\n    return 2\ndef two():\n    pass", {"<module>", "one"}),
        (
            "def one():\n    def two():\n        return 1\n    return two",
            "def one():\n    def two():\n        return 2\n    return two",
            {"<module>", "one", "one.<locals>.two"},
        ),
        ("def one():\n    return [a for a in b]", "def one():\n    return [a for a in b]", set()),
    ],
)
def test_what_a_fault_changes(before: str, after: str, changed: set[str]) -> None:
    found = pairs(compile(before, "a.py", "exec"), compile(after, "a.py", "exec"))
    assert {code.co_qualname for code, _ in found} == changed


def test_a_function_that_is_lost_has_no_other() -> None:
    before, after = "def one():\n    b(lambda: (lambda: 1))\n    c(lambda: 2)", "def one():\n    pass\n    c(lambda: 2)"
    found = pairs(compile(before, "a.py", "exec"), compile(after, "a.py", "exec"))
    lost = [code.co_qualname for code, other in found if other is None]
    assert sorted(lost) == [*["one.<locals>.<lambda>"] * 2, "one.<locals>.<lambda>.<locals>.<lambda>"]


def test_what_compiles_to_the_same_is_left_alone() -> None:
    source = "def ask():\n    if 0:\n        a = 1 + b\n"
    count = len(list(places(ast.parse(source))))
    made = [mutate(Path("gatewayfilter/urls.py"), source, number) for number in range(count)]
    assert [mutant.after for mutant in made if mutant is not None] == ["if not 0: a = 1 + b", "1"]


def test_what_fails_already_is_left_out_and_all_tests_have_longer_than_those_of_one_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (MODULE, 4)
    jobs: list[Job] = []

    def run(job: Job) -> Outcome:
        jobs.append(job)
        if "hangs" in job.tests:
            return Outcome(begun=2, hung=True)
        calls = {"right": (0.1, [place]), "wrong": (0.2, [place])}
        return Outcome(failed=[test for test in job.tests if test == "wrong"], calls={test: calls[test] for test in job.tests})

    collected = SimpleNamespace(tests=["right", "hangs", "wrong"], failed=["unread"], called=set())
    copy = SimpleNamespace(collected=collected, run=run)
    monkeypatch.setattr(Trial, "_copy", lambda _: copy)
    trial = Trial(tmp_path, [], 1.0)
    assert trial.prepare({}) == {"right": (0.1, [place])}
    assert trial.red == {"hangs", "wrong", "unread"}
    assert all(job.most_s > 60 for job in jobs)  # all tests take longer than those of one mutant
    assert (len(jobs), list(jobs[-1].tests)) == (2, ["right", "wrong"])
