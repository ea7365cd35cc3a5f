"""The faults that `make mutants` puts into the code: one small change inside a function.

Left alone: annotations, docstrings, log calls, module-level constants (bounds and time limits), `__repr__`, modules that are
compiled where there is a compiler, of which the tests run the compiled half, and, as it has no effect, what Python compiles to
the same instructions as before.
"""

import ast
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[1]
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
        code: the same, compiled, with the lines of the module without it.
    """

    path: Path
    line: int
    function: int
    before: str
    after: str
    source: str
    code: CodeType


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
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.Constant)
    called = ast.unparse(value.func)
    return called == "self.log" or called.startswith(("_log.", "self._log."))


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
    """Returns mutant number `number` of a module, counted around; none where nothing is changed."""
    tree = ast.parse(source)
    found = list(places(tree))
    if not found:
        return None
    node, function = found[number % len(found)]
    before = ast.unparse(node)
    changed = change(deepcopy(node))
    assert changed is not None
    line = getattr(node, "lineno", 0)
    mutated = ast.fix_missing_locations(_Replace(node, ast.copy_location(changed, node)).visit(tree))
    code = compile(mutated, str(path), "exec", dont_inherit=True)
    if _instructions(code) == _instructions(compile(source, str(path), "exec", dont_inherit=True)):
        return None
    return Mutant(path, line, function, _brief(before), _brief(ast.unparse(changed)), ast.unparse(mutated), code)


def _instructions(code: CodeType) -> tuple[object, ...]:
    """Returns what a module does, without the lines on which it does it."""
    inner = tuple(_instructions(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_exceptiontable, inner


def _brief(code: str) -> str:
    return " ".join(code.split())[:100]


def choose(room: str, sample: int, seed: int) -> list[Mutant]:
    """Returns mutants of a room, each place as likely as any other."""
    chosen = random.Random(f"{seed} {room}")
    package = ROOT / "gatewayfilter"
    files = [
        path
        for path in [package / f"{room}.py"] * (package / f"{room}.py").is_file() + sorted((package / room).rglob("*.py"))
        if "migrations" not in path.parts
        and not path.with_suffix(".pyx").exists()
        and not path.with_name(f"_{path.stem}.pyx").exists()
    ]
    weights = [len(list(places(ast.parse(path.read_text())))) for path in files]
    picked = chosen.choices(files, weights, k=sample)
    made = (mutate(path.relative_to(ROOT), path.read_text(), chosen.randrange(1 << 30)) for path in picked)
    return [mutant for mutant in made if mutant is not None]
