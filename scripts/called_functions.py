"""A plug-in of pytest for `make mutants`: which functions of the package each test calls. `-p scripts.called_functions`.

It writes JSON to the file that `CALLED_FUNCTIONS_FILE` names: test → seconds, and the functions as `[path, first line]`, the path
relative to the working directory. What fixtures of a wider scope call counts for every test that uses them. Functions that are
called in other processes are not seen. A function costs one event of `sys.monitoring` a test.
"""

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Final

import pytest

FILE: Final = "CALLED_FUNCTIONS_FILE"
_TOOL: Final = sys.monitoring.COVERAGE_ID
_PACKAGE: Final = f"{Path.cwd() / 'gatewayfilter'}{os.sep}"


class CalledFunctions:
    """Notes the calls of a run of tests.

    Args:
        file: where they are written at the end.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._now: set[CodeType] = set()
        self._by_fixture: dict[str, set[CodeType]] = {}
        self._by_test: dict[str, tuple[float, set[CodeType]]] = {}
        sys.monitoring.use_tool_id(_TOOL, "called functions")
        sys.monitoring.register_callback(_TOOL, sys.monitoring.events.PY_START, self._note)
        sys.monitoring.set_events(_TOOL, sys.monitoring.events.PY_START)

    def _note(self, code: CodeType, _: int) -> object:
        if code.co_filename.startswith(_PACKAGE):
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

    def pytest_sessionfinish(self) -> None:
        """Writes what was noted."""
        sys.monitoring.free_tool_id(_TOOL)
        here = Path.cwd()
        found = {
            test: (seconds, [[str(Path(code.co_filename).relative_to(here)), code.co_firstlineno] for code in called])
            for test, (seconds, called) in self._by_test.items()
        }
        self._file.write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    """Takes part where a file is named."""
    if FILE in os.environ:
        config.pluginmanager.register(CalledFunctions(Path(os.environ[FILE])))
