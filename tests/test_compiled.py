"""Compiled modules: each loads where there is a compiler, and each imports names that exist, which no type check sees."""

import importlib
import re
from pathlib import Path

import pytest

from gatewayfilter.compiled import MODULES, in_use, is_forbidden, why_not
from tests.case_tables import all_cases

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^from (gatewayfilter[\w.]*) c?import (\([^)]*\)|[^\n(#]+)", re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_a_compiled_module_loads(name: str) -> None:
    if is_forbidden() or set(in_use().values()) == {"not built"}:
        pytest.skip("Python does the work: no compiler, nothing built yet, or GATEWAYFILTER_PURE is set")
    assert why_not(name) == ""


def is_there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


@all_cases("name", MODULES)
def test_what_a_compiled_module_imports_is_there(name: str) -> None:
    source = (ROOT / name.replace(".", "/")).with_suffix(".pyx").read_text(encoding="utf-8")
    for module, names in IMPORT.findall(source):
        wanted = [item.split()[0] for item in names.strip("()").split(",") if item.strip()]
        assert [name for name in wanted if not is_there(module, name)] == [], module


def test_imports_are_read() -> None:
    assert IMPORT.findall(
        "import re\nfrom gatewayfilter.urls import (\n    a,\n    b,\n)\nfrom gatewayfilter.model import C, D  # why\n"
    ) == [
        ("gatewayfilter.urls", "(\n    a,\n    b,\n)"),
        ("gatewayfilter.model", "C, D  "),
    ]
