"""The heartbeat of a child: one byte a second from its event loop to the supervisor. A loop that hangs sends none."""

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

SERVING: Final = b"!"
"""The heartbeat of a worker that serves."""
_STARTING: Final = b"."
_MOST: Final = 4096


class Heartbeat:
    """The child's end.

    Args:
        line: the end of a pipe to write to.
    """

    def __init__(self, line: Connection) -> None:
        self._line = line  # kept: it closes with its last owner
        self._byte = _STARTING
        os.set_blocking(line.fileno(), False)

    def beat(self) -> None:
        """Sends a heartbeat. Never waits and never fails: the supervisor may be stopped or dead."""
        with suppress(OSError):
            os.write(self._line.fileno(), self._byte)

    def serving(self) -> None:
        """Reports that the worker serves, now and with every later heartbeat."""
        self._byte = SERVING
        self.beat()


def heard(line: Connection) -> bytes:
    """Returns the heartbeats that came since the last call, `b""` for none."""
    os.set_blocking(line.fileno(), False)
    came = b""
    with suppress(OSError):
        while more := os.read(line.fileno(), _MOST):
            came = came[-1:] + more
    return came
