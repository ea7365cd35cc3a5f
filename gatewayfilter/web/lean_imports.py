"""Imports of a process that must stay small: without docstrings, and without a library that the program does not use.

Byte code files stay as they are. What is dropped is what `python -OO` drops too, assertions excepted.
"""

import pickle
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from inspect import CO_NEWLOCALS
from opcode import opmap
from types import CodeType, ModuleType
from typing import Final, cast

UNUSED: Final = ("pydantic.v1", "pydantic.color")
"""Modules that FastAPI imports where they exist, to refuse their models or to write their colours: 2.3 and 1 MB.

Source: fastapi/_compat/shared.py, fastapi/encoders.py.
"""
_CONSTANT_OPS: Final = frozenset(opmap[name] for name in ("LOAD_CONST", "RETURN_CONST") if name in opmap)


def run_lean(pickled: bytes) -> None:
    """Runs a function in a process that was just started, with lean imports of everything that it needs.

    Args:
        pickled: a function and its one argument, of this program; unpickling imports both, and their libraries.
    """
    import_lean()
    run, value = pickle.loads(pickled)  # noqa: S301  from the parent process
    run(value)


def import_lean() -> None:
    """Has every module that is imported from now on imported without its docstrings, and none of `UNUSED`."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    for name in UNUSED:
        modules.setdefault(name, None)  # the import raises ImportError
    finders = cast("list[object]", sys.meta_path)
    if PathFinder in finders:
        finders[finders.index(PathFinder)] = LeanFinder


class LeanFinder(PathFinder):
    """Finds modules as Python does; those with source get a `LeanLoader`."""

    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the spec of a module, `None` where there is none."""
        spec = super().find_spec(fullname, path, target)  # type: ignore[arg-type]
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = LeanLoader(spec.loader.name, spec.loader.path)
        return spec


class LeanLoader(SourceFileLoader):
    """Loads a module from its byte code without docstrings."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Returns the code of a module, without the docstrings of its functions."""
        code = super().get_code(fullname)
        return None if code is None else without_docstrings(code)

    def exec_module(self, module: ModuleType) -> None:
        """Runs a module, then drops the docstrings of its classes and its own."""
        super().exec_module(module)
        for member in list(vars(module).values()):
            if isinstance(member, type) and member.__module__ == module.__name__ and isinstance(vars(member).get("__doc__"), str):
                with suppress(AttributeError, TypeError):  # a class that forbids it keeps its own
                    member.__doc__ = None
        module.__doc__ = None


def without_docstrings(code: CodeType) -> CodeType:
    """Returns code whose functions have no docstrings; what has none is returned as it is."""
    constants = tuple(without_docstrings(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    if _has_docstring(code):
        constants = (None, *constants[1:])
    return code if constants == code.co_consts else code.replace(co_consts=constants)


def _has_docstring(code: CodeType) -> bool:
    """Returns whether the first constant is a docstring and nothing else. Source: `codegen_function` of CPython."""
    units = code.co_code
    return (
        bool(code.co_flags & CO_NEWLOCALS)
        and not code.co_name.startswith("<")
        and isinstance(next(iter(code.co_consts), None), str)
        and not any(units[at] in _CONSTANT_OPS and units[at + 1] == 0 for at in range(0, len(units), 2))
    )
