"""Limits of size: of a module, a function, a folder."""

from collections import Counter

import pytest

from tests.structure.source_tree import PACKAGE, functions, modules, name_of, text_of

MODULE_LINES = 400
FUNCTION_LINES = 60
FOLDER_MODULES = 15


def test_modules_are_short() -> None:
    lines = {name_of(path): len(text_of(path).splitlines()) for path in modules()}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES} == {}


@pytest.mark.slow
def test_functions_are_short() -> None:
    long = {
        f"{name_of(path)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in modules()
        for node in functions(path)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= FUNCTION_LINES
    }
    assert long == {}


def test_folders_hold_few_modules() -> None:
    """Compiled sources count; `__init__.py` and data do not."""
    sources = [*modules(), *PACKAGE.rglob("*.pyx")]
    counts = Counter(name_of(path.parent) for path in sources if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > FOLDER_MODULES} == {}


@pytest.mark.slow
def test_the_limits_see_the_tree() -> None:
    assert len(modules()) > 300
    assert sum(1 for path in modules() for _ in functions(path)) > 2000
