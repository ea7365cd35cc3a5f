"""A process that imports a test's module once, and forks for each call of one of its functions: for tests that kill many."""

import inspect
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

_CHECKOUT = Path(__file__).parents[1]
_PROGRAM = "from tests.forking_process import serve; from {module} import {name}; serve({name})"


class ForkingProcess:
    """Calls a function in a process of its own each time, without its imports.

    Args:
        function: of a module; takes what JSON holds.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        path = Path(inspect.getfile(function)).relative_to(_CHECKOUT).with_suffix("")  # pytest gives modules names of their own
        program = _PROGRAM.format(module=".".join(path.parts), name=function.__name__)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_CHECKOUT
        )

    def begin(self, *arguments: object) -> int:
        """Begins a call. Returns the id of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(arguments)}\n")
        self._process.stdin.flush()
        return self._number()

    def end(self) -> int:
        """Waits for the end of a call. Returns its exit code, negative for a signal."""
        return self._number()

    def call(self, *arguments: object) -> int:
        """Begins a call and waits for its end."""
        self.begin(*arguments)
        return self.end()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def serve(function: Callable[..., Any]) -> None:
    """Forks for each line of the standard input; prints the process id, and later the exit code."""
    while line := sys.stdin.readline():
        arguments = json.loads(line)
        if pid := os.fork():
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
            sys.stdout.flush()
            continue
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            function(*arguments)
        except BaseException:  # noqa: BLE001  of the function
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
