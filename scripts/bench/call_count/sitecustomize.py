"""Counts what the event loop's thread executes, in a process that has this folder on its PYTHONPATH.

SIGUSR2 begins counting, a second one ends it and writes `{"instructions": …, "calls": …, "functions": {NAME: instructions}}` to
`PID.json` in the folder `KEPT_ALIVE_COUNTS`. Functions go by their qualified names without their modules, so that moved ones are
found again. Python imports a module of this name when it starts; forked processes keep the handler.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

_EVENTS = sys.monitoring.events
_TOOL = sys.monitoring.PROFILER_ID


class _Counter:
    """Bytecode instructions, and calls of Python and C functions, of the main thread."""

    def __init__(self) -> None:
        self._instructions: dict[CodeType, int] = {}
        self._calls = 0
        self._main = 0

    def toggle(self, _signal: int, _frame: FrameType | None) -> None:
        """Begins, or ends and writes the counts. A signal handler, which Python runs in the main thread."""
        if not self._main:
            self._main = threading.get_ident()
            self._instructions, self._calls = {}, 0
            sys.monitoring.use_tool_id(_TOOL, "kept-alive")
            sys.monitoring.register_callback(_TOOL, _EVENTS.INSTRUCTION, self._instruction)
            sys.monitoring.register_callback(_TOOL, _EVENTS.CALL, self._call)
            sys.monitoring.set_events(_TOOL, _EVENTS.INSTRUCTION | _EVENTS.CALL)
            return
        sys.monitoring.set_events(_TOOL, 0)
        sys.monitoring.free_tool_id(_TOOL)
        self._main = 0
        functions: dict[str, int] = {}
        for code, count in self._instructions.items():
            functions[code.co_qualname] = functions.get(code.co_qualname, 0) + count
        counts = json.dumps({"instructions": sum(functions.values()), "calls": self._calls, "functions": functions})
        unfinished = Path(os.environ["KEPT_ALIVE_COUNTS"], f"{os.getpid()}.new")
        unfinished.write_text(counts, encoding="utf-8")
        unfinished.replace(unfinished.with_suffix(".json"))

    def _instruction(self, code: CodeType, _offset: int) -> None:
        if threading.get_ident() == self._main:
            self._instructions[code] = self._instructions.get(code, 0) + 1

    def _call(self, _code: CodeType, _offset: int, _callable: object, _argument: object) -> None:
        if threading.get_ident() == self._main:
            self._calls += 1


if "KEPT_ALIVE_COUNTS" in os.environ:
    signal.signal(signal.SIGUSR2, _Counter().toggle)
