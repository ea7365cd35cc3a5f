"""Mutation testing: random small faults, one at a time, in a copy of the checkout, against the tests of their room.

`make mutants ARGS="engine proxy --sample 40 --minutes 15 --seed 7"`. A mutant is killed when a test fails that passes without it,
or never ends. All quick tests of the room, and the test files that name a module with a mutant, run once without a mutant; those
that fail are named and left out. That run notes which functions each test calls (`called_functions.py`), and what it noted is
kept in `.cache/mutants/` for tests whose file and called modules stay as they are, until a helper of the tests changes.

Then each mutant meets the tests that call the function it is in, or, where imports alone call it, those of files that name its
module, in the order of `mutant_order.py`. A test that fails or does not end is run once more without the mutant, in the same
way: where it does so again, it is named and left out, and the mutant goes on to the next. Survivors are listed with file, line
and change: each is a missing test, or code whose change cannot be seen. A function that is called in other processes alone counts
as one that no test calls, and its mutants survive, as do those whose tests did not all run in their time.

Tests are collected once; each mutant is put into a fork of that process (`mutant_server.py`), and into the file, for processes
that tests start. A new process reads it where it changes what imports call. Which faults there are: `mutant_faults.py`.
"""

import argparse
import hashlib
import json
import marshal
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from threading import Lock, local

from scripts.called_functions import Place
from scripts.mutant_faults import ROOT, Mutant, choose
from scripts.mutant_order import callers, in_turn
from scripts.mutant_server import DESCRIPTOR, REPORT, TEST_LIMIT_S, Collected, Job, Outcome, followed

ROOMS = ("engine", "proxy", "crawl", "store", "web")
_QUICK = "not real and not slow and not services"
_WITH_SERVICES = "not real and not slow"
"""Further ones that need a library or a small server of the extra services, and no real one."""
_MOST_S_OF_ALL = 3_600.0
"""Time limit of all tests of a room without a mutant, which are many times those of one mutant."""
_MOST_S_OF_ONE = 10.0 * TEST_LIMIT_S
"""Time limit of a test that is run once more without the mutant."""
_LEFT_OUT = frozenset({".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache", "build", "dist"})

type Noted = dict[str, tuple[float, list[Place]]]
"""Test → seconds, and the functions that it calls."""


class Copy:
    """A copy of the checkout, and a process in it that has collected tests.

    Args:
        folder: does not exist yet.
        files: test files, below the checkout.
        which: tests that count, by their marks.
    """

    def __init__(self, folder: Path, files: Sequence[str], which: str) -> None:
        self._folder = folder
        self._which = which
        self._root = folder / "checkout"
        self._scratch = folder / "scratch"
        self._root.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name in _LEFT_OUT:
                continue
            if path.is_dir():
                shutil.copytree(path, self._root / path.name, symlinks=True)
            else:
                shutil.copy(path, self._root)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                self._pytest(files, "--continue-on-collection-errors", "-p", "scripts.mutant_server"),
                cwd=self._root,
                env=self._environment() | {DESCRIPTOR: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=(folder / "output").open("wb"),
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
            )
        self._asked = Connection(ours.detach())
        try:
            self.collected: Collected = self._asked.recv()
        except EOFError:
            raise SystemExit(f"the tests cannot be collected:\n{(folder / 'output').read_text()}") from None

    def run(self, job: Job) -> Outcome:
        """Runs tests in a fork."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir()
        self._asked.send(job)
        outcome: Outcome = self._asked.recv()
        return outcome

    def run_with(self, mutant: Mutant, tests: Sequence[str], most_s: float) -> Outcome:
        """Runs tests with a mutant, up to the first that fails."""
        place = self._root / mutant.path
        good, status = place.read_text(), place.stat()
        codes = marshal.dumps(compile(good, str(mutant.path), "exec", dont_inherit=True)), marshal.dumps(mutant.code)
        place.write_text(mutant.source)
        try:
            if (str(mutant.path), mutant.function) in self.collected.called:
                outcome = Outcome(cold=True)
            else:
                outcome = self.run(Job(tests, most_s, codes, str(mutant.path)))
            return self.run_anew(tests, most_s) if outcome.cold else outcome
        finally:
            place.write_text(good)
            os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run_anew(self, tests: Sequence[str], most_s: float) -> Outcome:
        """Runs tests in a new process, up to the first that fails."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir()
        told, tells = Pipe(duplex=False)
        with told:
            with tells:
                process = subprocess.Popen(
                    self._pytest(tests, "-x", "-p", "scripts.mutant_server"),
                    cwd=self._root,
                    env=self._environment() | {REPORT: str(tells.fileno())},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[tells.fileno()],
                    start_new_session=True,
                )
            try:
                outcome = followed(told, most_s)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        outcome.cold = True
        return outcome

    def _pytest(self, tests: Sequence[str], *options: str) -> list[str]:
        listed = self._folder / "tests"
        listed.write_text("\n".join(tests))
        return [
            *(sys.executable, "-B", "-m", "pytest", "-q", "-m", self._which, "--tb=no", f"--timeout={TEST_LIMIT_S}"),
            *("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", f"--basetemp={self._scratch / 'pytest'}"),
            *(*options, f"@{listed}"),
        ]

    def _environment(self) -> dict[str, str]:
        own = {"TMPDIR": str(self._scratch), "HYPOTHESIS_STORAGE_DIRECTORY": str(self._scratch / "hypothesis")}
        return {**os.environ, "PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": "1", **own}

    def close(self) -> None:
        """Ends the process."""
        self._asked.close()
        self._process.wait()


TOO_LATE = "late"


def noticed(outcome: Outcome, tests: Sequence[str]) -> tuple[str, str]:
    """Returns the test that noticed a mutant, or the file that could not be read, and what is told of it; both may be empty."""
    if outcome.failed:
        return outcome.failed[0], outcome.failed[0]
    if outcome.hung:
        test = outcome.last or tests[0]
        return test, f"the end of {test}"
    return "", f"{TOO_LATE} after {outcome.begun} of {len(tests)} tests" if outcome.late else ""


class Trial:
    """Runs tests against mutants, each thread in a copy of the checkout of its own.

    Args:
        folder: for the copies.
        mutants: all that will be tried.
        most_s: how long the tests of one mutant may take.
        which: tests that count, by their marks.
    """

    def __init__(self, folder: Path, mutants: Sequence[Mutant], most_s: float, which: str = _QUICK) -> None:
        self._folder = folder
        self._files = sorted({test for path in {mutant.path for mutant in mutants} for some in suites_of(path) for test in some})
        self._most_s = most_s
        self._which = which
        self._own = local()
        self._lock = Lock()
        self._copies: list[Copy] = []
        self._callers: dict[Place, list[str]] = {}
        self._green: list[str] = []
        self.red: set[str] = set()

    def prepare(self, noted: Noted) -> Noted:
        """Runs the tests without a mutant of which nothing is noted. Returns what is noted of all; `red` has what fails."""
        copy = self._copy()
        tests = [test for test in copy.collected.tests if test not in noted]
        while (outcome := copy.run(Job(tests, _MOST_S_OF_ALL, all=True)) if tests else Outcome()).hung:
            self.red.add(tests.pop(max(outcome.begun - 1, 0)))  # it ended the process: once more without it
        if outcome.late:
            raise SystemExit(f"all tests without a mutant take more than {_MOST_S_OF_ALL:,.0f} s")
        self.red |= {*outcome.failed, *copy.collected.failed}
        found = {test: noted.get(test) or outcome.calls[test] for test in copy.collected.tests if test not in self.red}
        self._callers, self._green = callers(found), sorted(found, key=lambda test: found[test][0])
        return {test: noted[test] for test in noted if test not in self.red} | found

    def killed_by(self, mutant: Mutant) -> str:
        """Returns what noticed the mutant; nothing did where that is an empty string or begins with `TOO_LATE`."""
        copy = self._copy()
        tests = self._tests_of(mutant)
        until = time.monotonic() + self._most_s
        while tests and (left_s := until - time.monotonic()) > 0:
            outcome = copy.run_with(mutant, tests, left_s)
            test, told = noticed(outcome, tests)
            if not test:
                return told
            run = copy.run_anew([test], _MOST_S_OF_ONE) if outcome.cold else copy.run(Job([test], _MOST_S_OF_ONE))
            if not (run.failed or run.hung or run.late):
                return told
            self.red.add(test)
            if outcome.cold:  # pytest has an order of its own
                tests = [each for each in tests if each != test and not each.startswith(f"{test}::")]
            else:
                tests = tests[tests.index(test) + 1 :]
        return TOO_LATE if tests else ""

    def _tests_of(self, mutant: Mutant) -> list[str]:
        near, _ = suites_of(mutant.path)
        found = self._callers.get((str(mutant.path), mutant.function), [])
        if not found and (str(mutant.path), mutant.function) in self._copy().collected.called:
            found = [test for test in self._green if test.partition("::")[0] in near]
        return in_turn([test for test in found if test not in self.red], near)

    def _copy(self) -> Copy:
        if (copy := getattr(self._own, "copy", None)) is None:
            with self._lock:
                folder = self._folder / f"copy{len(self._copies)}"
                copy = Copy(folder, self._files, self._which)
                self._copies.append(copy)
            self._own.copy = copy
        found: Copy = copy
        return found

    def close(self) -> None:
        """Ends the copies' processes."""
        for copy in self._copies:
            copy.close()


def suites_of(path: Path) -> tuple[list[str], list[str]]:
    """Returns the test files that name a module, and the other ones of its room.

    A room without a folder of tests has those that name it.
    """
    dotted = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    parent, _, name = dotted.rpartition(".")
    texts = _texts(ROOT / "tests")
    near = [test for test, text in texts.items() if dotted in text or f"from {parent} import {name}" in text]
    near.sort(key=lambda test: test.stem != f"test_{path.stem}")
    of = path.parts[1].removesuffix(".py")
    folder = ROOT / "tests" / of
    named = [test for test, text in texts.items() if f"gatewayfilter.{of}" in text] if not folder.is_dir() else []
    room = [test for test in named or texts if (named or test.is_relative_to(folder)) and test not in near]
    return [str(test.relative_to(ROOT)) for test in near], [str(test.relative_to(ROOT)) for test in room]


@cache
def _texts(folder: Path) -> dict[Path, str]:
    """Returns the texts of the test files, read once."""
    return {test: test.read_text() for test in sorted(folder.rglob("test_*.py"))}


class Notes:
    """What is known of a room's tests from earlier runs.

    It holds for a test while its file stays as it is, and every module of which it calls a function, in whatever room. A module
    that has constants alone is no such module.

    Args:
        file: where it is kept.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        tests = {*(ROOT / "tests").rglob("*.py")}
        helpers = {path for path in tests if not path.name.startswith("test_")}
        self._helpers = _digest(*sorted(helpers), ROOT / "scripts" / "called_functions.py")
        self._digests = {
            str(path.relative_to(ROOT)): _digest(path) for path in tests.union((ROOT / "gatewayfilter").rglob("*.py"))
        }

    def read(self) -> Noted:
        """Returns what is noted of tests that run as they did."""
        kept = json.loads(self._file.read_text()) if self._file.is_file() else {}
        if kept.get("helpers") != self._helpers:
            return {}
        changed = {file for file, digest in kept["files"].items() if self._digests.get(file) != digest}
        return {test: noted for test, noted in kept["tests"].items() if changed.isdisjoint(_files_of(test, noted[1]))}

    def write(self, noted: Noted) -> None:
        """Keeps what is noted; files are those of the time when this object was made."""
        files = {file for test, (_, called) in noted.items() for file in _files_of(test, called)}
        kept = {"helpers": self._helpers, "files": {file: self._digests.get(file, "") for file in files}, "tests": noted}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(kept))


def _files_of(test: str, called: Iterable[Place]) -> set[str]:
    return {test.partition("::")[0], *(path for path, _ in called)}


def _digest(*paths: Path) -> str:
    return hashlib.blake2b(b"".join(path.read_bytes() for path in paths)).hexdigest()


def run_room(room: str, options: argparse.Namespace) -> tuple[int, list[Mutant]]:
    """Tries the mutants of a room. Returns how many were tried, and those that survived."""
    mutants = choose(room, options.sample, options.seed)
    tried, survivors = 0, []
    notes = Notes(ROOT / ".cache" / "mutants" / f"{room}{'-services' * options.services}.json")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ThreadPoolExecutor(options.jobs) as pool:
        trial = Trial(Path(folder), mutants, options.most_s, _WITH_SERVICES if options.services else _QUICK)
        try:
            notes.write(pool.submit(trial.prepare, notes.read()).result())
            deadline = time.monotonic() + options.minutes * 60

            def one(mutant: Mutant) -> str | None:
                return trial.killed_by(mutant) if time.monotonic() < deadline else None

            for mutant, killer in zip(mutants, pool.map(one, mutants), strict=True):
                if killer is None:
                    continue
                tried += 1
                survived = not killer or killer.startswith(TOO_LATE)
                if survived:
                    survivors.append(mutant)
                if options.verbose or survived:
                    end = f"SURVIVED {killer}".rstrip() if survived else f"killed by {killer}"
                    print(f"{mutant.path}:{mutant.line}: {mutant.before}  →  {mutant.after}: {end}", flush=True)
        finally:
            trial.close()
    for test in sorted(trial.red):
        print(f"{room}: left out, as it fails without a mutant: {test}", flush=True)
    return tried, survivors


def main() -> int:
    """Tries the rooms that are named and prints a table. Returns 1 where fewer than 95 % of the mutants of a room were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=ROOMS)
    parser.add_argument("--sample", type=int, default=40, help="mutants of each room")
    parser.add_argument(
        "--minutes", type=float, default=15.0, help="most time for each room; mutants that remain are not counted"
    )
    parser.add_argument(
        "--most-s",
        type=float,
        default=600.0,
        help=f"time limit of the tests of one mutant, in seconds; below {2 * TEST_LIMIT_S}, a test that hangs may kill none",
    )
    parser.add_argument(
        "--services", action="store_true", help="count quick tests of services, too: the extra of that name must be installed"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at once")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--verbose", action="store_true", help="print killed mutants, too")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    rows = []
    for room in options.rooms:
        tried, survivors = run_room(room, options)
        rows.append((room, tried, tried - len(survivors)))
        print(f"{room}: {tried - len(survivors)} of {tried} killed", flush=True)
    print("| room | mutants | killed | % |\n|---|---|---|---|")
    for room, tried, killed in rows:
        print(f"| {room} | {tried} | {killed} | {100 * killed / max(tried, 1):.0f} |")
    return int(any(killed < 0.95 * tried for _, tried, killed in rows))


if __name__ == "__main__":
    sys.exit(main())
