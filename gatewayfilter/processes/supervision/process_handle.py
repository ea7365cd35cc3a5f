"""A handle of a running child process: its pidfd, which depends on no other process.

The sentinel of multiprocessing is a pipe whose other end the fork server holds. If the fork server is killed, the sentinels of
all its children become readable although they run, and no exit code arrives any more.
"""

import os
import signal
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess, SpawnProcess
from typing import Final

_EXIT_CODE_WAIT_S: Final = 1.0
"""The fork server reaps a process after its pidfd became readable."""

_NO_CODE: Final = 255
"""What multiprocessing returns when the fork server ended first."""


class ProcessHandle:
    """A process, started by the constructor.

    Args:
        process: not started yet.

    Attributes:
        pid: its process id.

    Raises:
        OSError, EOFError: it could not be started: the fork server ended meanwhile.
    """

    def __init__(self, process: ForkServerProcess | SpawnProcess) -> None:
        process.start()
        assert process.pid is not None
        self.pid = process.pid
        self._process = process
        self._gone = False
        self._descriptor = -1
        try:
            self._descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self._gone = True  # it has ended, and was reaped
        except (AttributeError, OSError):  # not on Linux, or not allowed: the pipe must do
            return

    @property
    def sentinel(self) -> int:
        """A descriptor that is ready when the process ends."""
        return self._descriptor if self._descriptor >= 0 else self._process.sentinel

    def is_alive(self) -> bool:
        """Returns whether the process runs."""
        if self._gone:
            return False
        return not wait([self.sentinel], 0)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._signal(signal.SIGKILL)

    def join(self, timeout_s: float) -> None:
        """Waits for the end."""
        if not self._gone:
            wait([self.sentinel], timeout_s)

    def close(self) -> int | None:
        """Releases the descriptors of a process that has ended.

        Returns:
            The exit code, `None` if the fork server took it along.
        """
        self._process.join(_EXIT_CODE_WAIT_S)
        code = self._process.exitcode
        if code == _NO_CODE and isinstance(self._process, ForkServerProcess):
            code = None
        if self._descriptor >= 0:
            if code is None:  # an orphan of the fork server is a child of this process where this is the first of a container
                with suppress(ChildProcessError):
                    os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
            os.close(self._descriptor)
            self._descriptor = -1
        with suppress(ValueError):  # multiprocessing has not seen its end; the descriptors are closed with the last reference
            self._process.close()
        return code

    def _signal(self, number: signal.Signals) -> None:
        if self._gone:
            return
        with suppress(ProcessLookupError):
            if self._descriptor >= 0:
                signal.pidfd_send_signal(self._descriptor, number)
            else:
                os.kill(self.pid, number)
