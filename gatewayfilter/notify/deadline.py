"""A deadline for exchanges over sockets, whose own time-outs begin again with each byte."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Deadline:
    """Shuts sockets down after a time. A context manager.

    Args:
        limit_s: after which the sockets are shut down.
    """

    def __init__(self, limit_s: float) -> None:
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(limit_s, self._pass)
        self._timer.daemon = True
        self.passed = False

    def watch(self, found: socket.socket) -> None:
        """Has a socket shut down at the deadline; at once if it has passed."""
        self._sockets.append(found)
        if self.passed:
            self._pass()

    def _pass(self) -> None:
        self.passed = True
        for found in list(self._sockets):
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._timer.cancel()
