"""The package's source files as the tests of the tree's shape see them."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gatewayfilter"
MIGRATIONS = PACKAGE / "store" / "migrations" / "versions"
"""One module a step, of which none changes after its release: no limit of size holds for them."""


@cache
def modules() -> tuple[Path, ...]:
    """Python modules of the package, migrations left out."""
    return tuple(path for path in sorted(PACKAGE.rglob("*.py")) if MIGRATIONS not in path.parents)


@cache
def text_of(path: Path) -> str:
    """Content of a module."""
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    """Path within the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def functions(path: Path) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Functions and methods of a module, nested ones too."""
    found = ast.walk(ast.parse(text_of(path)))
    return tuple(node for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def sub_packages() -> list[str]:
    """Dotted names of all packages below the packages of `gatewayfilter`, such as `gatewayfilter.proxy.listener`."""
    found = (path.parent.relative_to(ROOT) for path in PACKAGE.glob("*/*/**/__init__.py") if path.parent != MIGRATIONS)
    return sorted(".".join(path.parts) for path in found)
