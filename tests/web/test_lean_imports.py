"""Modules that are imported without their docstrings do the same."""

import pickle
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from gatewayfilter.web.lean_imports import UNUSED, LeanFinder, LeanLoader, import_lean, run_lean

SOURCE = '''"""Of a module."""

class Fixed(type):
    def __setattr__(cls, name, value):
        raise TypeError(name)

class Forbidding(metaclass=Fixed):
    """Kept."""

class Named:
    """Of a class."""

    label = "label"

    def method(self):
        """Of a method."""
        return (lambda: "a constant")()

def same():
    """both"""
    return "both"

def bare(values):
    return [text for text in values if text != "first"], [f"{one}!" for one in ("first",)]

def outer():
    """Of a function."""

    def inner():
        """Of an inner one."""
        return "inner"

    return inner

async def waiting():
    """Of a coroutine."""
    return "waited"
'''


@pytest.fixture
def lean(tmp_path: Path) -> ModuleType:
    file = tmp_path / "lean_example.py"
    file.write_text(SOURCE)
    spec = spec_from_file_location("lean_example", file, loader=LeanLoader("lean_example", str(file)))
    assert spec is not None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def test_docstrings_are_dropped_and_nothing_else(lean: ModuleType) -> None:
    named = lean.Named()
    owners = (lean, lean.Named, named.method, lean.outer, lean.outer(), lean.waiting)
    assert ({owner.__doc__ for owner in owners}, lean.Forbidding.__doc__) == ({None}, "Kept.")
    assert (named.label, named.method(), lean.outer()(), lean.same()) == ("label", "a constant", "inner", "both")
    assert lean.bare(["first", "second"]) == (["second"], ["first!"])
    with pytest.raises(StopIteration, match="waited"):
        lean.waiting().send(None)


def test_it_finds_what_python_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    for name in UNUSED:
        sys.modules.pop(name, None)
    import_lean()
    import_lean()
    assert finders.count(LeanFinder) == 1
    assert {name: sys.modules[name] for name in UNUSED} == dict.fromkeys(UNUSED)
    (tmp_path / "lean_found.py").touch()
    found = LeanFinder.find_spec("lean_found", [str(tmp_path)])
    assert found is not None
    assert isinstance(found.loader, LeanLoader)
    assert isinstance(found.loader, SourceFileLoader)
    with pytest.raises(SystemExit, match="ran"):
        run_lean(pickle.dumps((sys.exit, "ran")))
    assert LeanFinder.find_spec("lean_found_nowhere", [str(tmp_path)]) is None
