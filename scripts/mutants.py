"""Mutation testing: random small faults, one at a time, in a copy of the checkout, against the tests of their room.

`make mutants ARGS="engine proxy --sample 40 --minutes 15 --seed 7"`. A mutant is killed when a test fails, or when the tests do
not end in time. All quick tests of the room, and the test files that name a module with a mutant, run once without a mutant, and
nothing is tried where one fails. That run notes which functions each test calls (`called_functions.py`). Then each mutant meets
the tests that call the function it is in: first those of files that name its module, in each file the quickest first. Survivors
are listed with file, line and change: each is a missing test, or code whose change cannot be seen. A function that is called in
other processes alone counts as one that no test calls, and its mutants survive.

Left alone: annotations, docstrings, log calls, module-level constants (bounds and time limits), `__repr__`, and modules that are
compiled where there is a compiler, of which the tests run the compiled half.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, local

from scripts import called_functions

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("engine", "proxy", "crawl", "store", "web")
_QUICK = "not real and not slow and not services"
_MOST_S_OF_ALL = 3_600.0
"""Time limit of all tests of a room without a mutant, which are many times those of one mutant."""
_LEFT_OUT = frozenset({".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "build", "dist"})
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        path: of the module, below the checkout.
        line: where it is.
        function: first line of the function that it is in, decorators included.
        before: the code that is changed.
        after: what takes its place.
        source: the whole module with the fault.
    """

    path: Path
    line: int
    function: int
    before: str
    after: str
    source: str


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, int]]:
    """Yields the nodes inside functions that can be changed, each with the first line of its function."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "__repr__":
            first = min(node.lineno for node in (function, *function.decorator_list))
            for statement in function.body:
                for node in _inside(statement):
                    yield node, first


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or _is_inert(node):
        return  # functions inside are walked on their own
    if change(deepcopy(node)) is not None:
        yield node
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _is_inert(node: ast.AST) -> bool:
    """Returns whether a statement is a docstring, a log call or an import."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Raise):
        return True
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Call) and ast.unparse(value.func).startswith(("_log.", "self._log."))
    )


def change(node: ast.AST) -> ast.AST | None:  # noqa: C901  one case for each kind of fault
    """Returns the node with a fault, which may be the node itself, changed; none where there is no fault of this kind."""
    match node:
        case ast.Compare(ops=[only]) if type(only) in _SWAPPED:
            node.ops = [_SWAPPED[type(only)]()]  # type: ignore[list-item]
        case ast.BoolOp(op=op):
            node.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
        case ast.BinOp(op=op) if type(op) in _SWAPPED and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            node.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            node.value = ast.Constant(None)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            return ast.Pass()
        case ast.Break() | ast.Continue():
            return _SWAPPED[type(node)]()
        case _:
            return None
    return node


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


def mutate(path: Path, source: str, number: int) -> Mutant | None:
    """Returns mutant number `number` of a module, counted around; none where nothing can be changed."""
    tree = ast.parse(source)
    found = list(places(tree))
    if not found:
        return None
    node, function = found[number % len(found)]
    before = ast.unparse(node)
    changed = change(deepcopy(node))
    assert changed is not None
    mutated = ast.fix_missing_locations(_Replace(node, changed).visit(tree))
    return Mutant(path, getattr(node, "lineno", 0), function, _brief(before), _brief(ast.unparse(changed)), ast.unparse(mutated))


def _brief(code: str) -> str:
    return " ".join(code.split())[:100]


def choose(room: str, sample: int, seed: int) -> list[Mutant]:
    """Returns mutants of a room, each place as likely as any other."""
    chosen = random.Random(f"{seed} {room}")
    files = [
        path
        for path in sorted((ROOT / "gatewayfilter" / room).rglob("*.py"))
        if "migrations" not in path.parts
        and not path.with_suffix(".pyx").exists()
        and not path.with_name(f"_{path.stem}.pyx").exists()
    ]
    weights = [len(list(places(ast.parse(path.read_text())))) for path in files]
    picked = chosen.choices(files, weights, k=sample)
    made = (mutate(path.relative_to(ROOT), path.read_text(), chosen.randrange(1 << 30)) for path in picked)
    return [mutant for mutant in made if mutant is not None]


class Trial:
    """Runs tests against mutants, each thread in a copy of the checkout of its own.

    Args:
        folder: for the copies.
        most_s: how long the tests of one mutant may take.
    """

    def __init__(self, folder: Path, most_s: float) -> None:
        self._folder = folder
        self._most_s = most_s
        self._own = local()
        self._lock = Lock()
        self._copies = 0
        self._callers: dict[tuple[str, int], list[str]] = {}

    def killed_by(self, mutant: Mutant) -> str:
        """Returns what noticed the mutant, or an empty string where nothing did; `red` comes first."""
        copy = self._copy()
        place = copy / mutant.path
        good = place.read_text()
        place.write_text(mutant.source)
        try:
            return self._fails(copy, self._tests_of(mutant, copy))
        finally:
            place.write_text(good)

    def red(self, mutants: Sequence[Mutant]) -> str:
        """Returns what fails without a mutant, among the tests that mutants are tried against; else an empty string."""
        copy = self._copy()
        tests = sorted({test for mutant in mutants for some in suites_of(mutant.path, copy) for test in some})
        noted = self._folder / "called.json"
        failed = self._fails(copy, tests, {called_functions.FILE: str(noted)}, _MOST_S_OF_ALL)
        if not failed:
            self._callers = callers(json.loads(noted.read_text()))
        return failed

    def _tests_of(self, mutant: Mutant, copy: Path) -> list[str]:
        near, _ = suites_of(mutant.path, copy)
        found = self._callers.get((str(mutant.path), mutant.function), [])
        files = list(dict.fromkeys([*near, *(test.partition("::")[0] for test in found)]))
        return sorted(found, key=lambda test: files.index(test.partition("::")[0]))

    def _copy(self) -> Path:
        if (copy := getattr(self._own, "copy", None)) is None:
            with self._lock:
                copy = self._folder / f"copy{self._copies}"
                self._copies += 1
            copy.mkdir()
            for path in ROOT.iterdir():
                if path.name in _LEFT_OUT:
                    continue
                if path.is_dir():
                    shutil.copytree(path, copy / path.name, symlinks=True)
                else:
                    shutil.copy(path, copy)
            self._own.copy = copy
        return Path(copy)

    def _fails(
        self, copy: Path, tests: Sequence[str], environment: Mapping[str, str] | None = None, most_s: float | None = None
    ) -> str:
        if not tests:
            return ""
        listed = copy.with_name(f"{copy.name}.tests")
        listed.write_text("\n".join(tests))
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-m", _QUICK, "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "no:randomly", "-p", "scripts.called_functions", "--timeout=60", f"@{listed}"]
        process = subprocess.Popen(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            told, _ = process.communicate(timeout=most_s or self._most_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return "time limit"
        if process.returncode in {0, 5}:
            return ""
        failed = [line for line in told.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return failed[0][:120] if failed else f"exit code {process.returncode}"


def callers(noted: Mapping[str, tuple[float, Sequence[tuple[str, int]]]]) -> dict[tuple[str, int], list[str]]:
    """Returns, for each function, the tests that call it, the quickest first; `noted` is what `called_functions` wrote."""
    found: dict[tuple[str, int], list[str]] = {}
    for test, (_, called) in sorted(noted.items(), key=lambda item: item[1][0]):
        for path, line in called:
            found.setdefault((path, line), []).append(test)
    return found


def suites_of(path: Path, root: Path = ROOT) -> tuple[list[str], list[str]]:
    """Returns the test files that name a module, and the other ones of its room; `root` is the checkout or a copy of it."""
    dotted = ".".join(path.with_suffix("").parts)
    parent, _, name = dotted.rpartition(".")
    every = sorted((root / "tests").rglob("test_*.py"))
    near = [test for test in every if dotted in (text := test.read_text()) or f"from {parent} import {name}" in text]
    near.sort(key=lambda test: test.stem != f"test_{path.stem}")
    room = [test for test in every if test.is_relative_to(root / "tests" / path.parts[1]) and test not in near]
    return [str(test.relative_to(root)) for test in near], [str(test.relative_to(root)) for test in room]


def run_room(room: str, options: argparse.Namespace) -> tuple[int, list[Mutant]]:
    """Tries the mutants of a room. Returns how many were tried, and those that survived.

    Raises:
        SystemExit: the tests fail without a mutant: each would count as killed.
    """
    mutants = choose(room, options.sample, options.seed)
    tried, survivors = 0, []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trial = Trial(Path(folder), options.most_s)
        if failed := pool.submit(trial.red, mutants).result():
            raise SystemExit(f"{room}: the tests fail without a mutant: {failed}")
        deadline = time.monotonic() + options.minutes * 60

        def one(mutant: Mutant) -> str | None:
            return trial.killed_by(mutant) if time.monotonic() < deadline else None

        for mutant, killer in zip(mutants, pool.map(one, mutants), strict=True):
            if killer is None:
                continue
            tried += 1
            if not killer:
                survivors.append(mutant)
            if options.verbose or not killer:
                end = f"killed by {killer}" if killer else "SURVIVED"
                print(f"{mutant.path}:{mutant.line}: {mutant.before}  →  {mutant.after}: {end}", flush=True)
    return tried, survivors


def main() -> int:
    """Tries the rooms that are named and prints a table. Returns 1 where fewer than 95 % of the mutants of a room were killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=ROOMS)
    parser.add_argument("--sample", type=int, default=40, help="mutants of each room")
    parser.add_argument(
        "--minutes", type=float, default=15.0, help="most time for each room; mutants that remain are not counted"
    )
    parser.add_argument("--most-s", type=float, default=600.0, help="time limit of the tests of one mutant, in seconds")
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
