"""The heartbeat of a child: one byte a second from its event loop to the supervisor. A loop that hangs sends none."""

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

_MOST: Final = 4096


class Heartbeat:
    """The child's end.

    Args:
        line: the end of a pipe to write to.
    """

    def __init__(self, line: Connection) -> None:
        self._line = line  # kept: it closes with its last owner
        os.set_blocking(line.fileno(), False)

    def beat(self) -> None:
        """Sends a heartbeat. Never waits and never fails: the supervisor may be stopped or dead."""
        with suppress(OSError):
            os.write(self._line.fileno(), b".")


def heard(line: Connection) -> bool:
    """Returns whether a heartbeat came since the last call; takes what came."""
    os.set_blocking(line.fileno(), False)
    came = False
    with suppress(OSError):
        while os.read(line.fileno(), _MOST):
            came = True
    return came
