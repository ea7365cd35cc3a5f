"""The process behind `child_process.ChildProcess`: receives a function's name and its arguments, works, and sends the result.

An alarm whose default action ends the process stands over each piece of work: it works inside C code too.
"""

import os
import resource
import signal
import sys
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from gatewayfilter.errors import GatewayFilterError


def serve(channel: Connection, timeout_s: float, memory: int) -> None:
    """Works until the other end is closed.

    Args:
        channel: to the parent.
        timeout_s: longest time of a piece of work; then the process ends.
        memory: bytes of address space.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's matter
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    while True:
        try:
            job, values, named = channel.recv()
        except (EOFError, ConnectionResetError):
            return
        module, _, name = job.partition(":")
        work = getattr(import_module(module), name)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        answer = _answer(work, values, named)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            channel.send(answer)
        except (BrokenPipeError, ConnectionResetError):  # the parent has ended meanwhile
            return


def _answer(work: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, work(*values, **named)
    except GatewayFilterError as error:
        return False, type(error)(str(error))
    except Exception as error:  # noqa: BLE001  the outermost boundary of one piece of work
        return False, f"this cannot be done: {type(error).__name__}"


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), float(sys.argv[2]), int(sys.argv[3]))
