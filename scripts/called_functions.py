"""Which functions of the package each test calls, for `make mutants`; used by `mutant_server.py`, a plug-in of pytest.

What fixtures of a wider scope call counts for every test that uses them. Functions that are called in other processes are not
seen. A function costs one event of `sys.monitoring` a test.
"""

import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Final

import pytest

_TOOL: Final = sys.monitoring.COVERAGE_ID

type Place = tuple[str, int]
"""A function: the path of its module below the checkout, and its first line, decorators included."""


class CalledFunctions:
    """Notes which functions are called; as a plug-in of pytest, for each test.

    Args:
        root: the checkout, or a copy of it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._package = f"{root / 'gatewayfilter'}{os.sep}"
        self._now: set[CodeType] = set()
        self._by_fixture: dict[str, set[CodeType]] = {}
        self._by_test: dict[str, tuple[float, set[CodeType]]] = {}

    def start(self) -> None:
        """Begins to note calls."""
        sys.monitoring.use_tool_id(_TOOL, "called functions")
        sys.monitoring.register_callback(_TOOL, sys.monitoring.events.PY_START, self._note)
        sys.monitoring.set_events(_TOOL, sys.monitoring.events.PY_START)

    def stop(self) -> set[Place]:
        """Ends that. Returns what was called since the last test, or since `start`."""
        sys.monitoring.set_events(_TOOL, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(_TOOL)
        return self._places(self._now)

    @property
    def by_test(self) -> dict[str, tuple[float, list[Place]]]:
        """Test → seconds, and the functions that it calls."""
        return {test: (seconds, sorted(self._places(called))) for test, (seconds, called) in self._by_test.items()}

    def _places(self, called: set[CodeType]) -> set[Place]:
        return {(str(Path(code.co_filename).relative_to(self._root)), code.co_firstlineno) for code in called}

    def _note(self, code: CodeType, _: int) -> object:
        if code.co_filename.startswith(self._package):
            self._now.add(code)
        return sys.monitoring.DISABLE  # until `_begin`

    def _begin(self) -> set[CodeType]:
        before, self._now = self._now, set()
        sys.monitoring.restart_events()
        return before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Notes what a test calls."""
        self._begin()
        began = time.monotonic()
        result = yield
        called = self._now.union(*(self._by_fixture.get(name, ()) for name in getattr(item, "fixturenames", ())))
        self._by_test[item.nodeid] = time.monotonic() - began, called
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Notes what a fixture calls that other tests use as well."""
        if fixturedef.scope == "function":
            return (yield)
        before = self._begin()
        result = yield
        self._by_fixture.setdefault(fixturedef.argname, set()).update(self._now)
        self._now |= before
        return result
