"""Compiled modules: each loads where there is a compiler and imports names that exist; why one is not in use."""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter import compiled
from gatewayfilter.compiled import MODULES, in_use, is_forbidden, load, why_not
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


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that can be imported, as `a_twin`; its source may stand beside it."""
    monkeypatch.delenv("GATEWAYFILTER_PURE", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "a_twin.py"
    file.write_text("made = 1\n")
    os.utime(file, (2_000, 2_000))
    yield file
    sys.modules.pop("a_twin", None)


@pytest.mark.parametrize(("value", "is_used"), [(None, True), ("", True), ("0", True), ("1", False), ("yes", False)])
def test_the_environment_may_ask_for_python_alone(
    value: str | None, built: Path, monkeypatch: pytest.MonkeyPatch, *, is_used: bool
) -> None:
    del built
    if value is not None:
        monkeypatch.setenv("GATEWAYFILTER_PURE", value)
    found = load("a_twin")
    assert (found.made if found else None) == (1 if is_used else None)
    assert is_forbidden() is not is_used
    assert why_not("a_twin") == ("" if is_used else "GATEWAYFILTER_PURE is set")


@pytest.mark.parametrize(("changed_s", "why"), [(1_999, ""), (2_000, ""), (2_001, "older than its source")])
def test_a_module_that_is_older_than_its_source_is_not_used(changed_s: int, why: str, built: Path) -> None:
    source = built.with_suffix(".pyx")
    source.touch()
    os.utime(source, (changed_s, changed_s))
    assert why_not("a_twin") == why
    assert (load("a_twin") is None) is bool(why)


def test_a_module_that_was_not_built_or_fails_is_not_used(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built.write_text("raise SystemError('of another version')\n")
    (tmp_path / "a_folder").mkdir()
    reasons = {
        "a_twin": "not loadable: of another version",
        "a_folder": "not built",
        "no_twin": "not built",
        "no_package.twin": "not loadable: No module named 'no_package'",
        "json": "",
    }
    assert {name: why_not(name) for name in reasons} == reasons
    assert [name for name in reasons if load(name) is not None] == ["json"]
    monkeypatch.setattr(compiled, "MODULES", tuple(reasons))
    assert in_use() == reasons
