"""A child process for work that loads the classifier or reads hostile pages: bounded time and memory, started when needed.

The web process stays small, and survives whatever a page does to the libraries that read it.
"""

import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any, Final

from gatewayfilter.errors import ClassifyError, GatewayFilterError

START_S: Final = 60.0
"""How long the child may take to start or to load a module, on a busy machine, beyond the time for its work."""
CHILD: Final = "gatewayfilter.web.child_main"
"""The module that the child runs."""
TIMEOUT_S: Final = 10.0
MEMORY: Final = 2 << 30
"""Bytes of address space that the child may have."""
IDLE_S: Final = 300.0
"""The child ends when it had no work for so long: it takes 150 MB."""


class ChildProcess:
    """Does one piece of work at a time in a child. Threads may share one.

    Args:
        timeout_s: longest time of a piece of work.
        memory: bytes of address space.
        idle_s: how long an idle child is kept.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S, memory: int = MEMORY, idle_s: float = IDLE_S) -> None:
        self._timeout_s = timeout_s
        self._memory = memory
        self._idle_s = idle_s
        self._one = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._channel: Connection | None = None
        self._idle: threading.Timer | None = None
        self._loaded: set[str] = set()

    @property
    def running(self) -> bool:
        """Whether there is a child."""
        return self._child is not None

    def run(self, job: str, *values: Any, **named: Any) -> Any:
        """Returns the result of a function.

        Args:
            job: `module:function`, whose arguments and result are plain values.
            values: its arguments.
            named: its keyword arguments.

        Raises:
            GatewayFilterError: raised by the function.
            ClassifyError: it took too long, or more memory than the child may have.
        """
        with self._one:
            self._stop_timer()
            try:
                done, result = self._exchange((job, values, named))
            except (OSError, EOFError) as error:
                self._stop()
                raise ClassifyError(f"this took longer than {self._timeout_s:g} s or too much memory") from error
            finally:
                self._start_timer()
        if not done:
            raise result if isinstance(result, GatewayFilterError) else ClassifyError(str(result))
        return result

    def close(self) -> None:
        """Ends the child."""
        with self._one:
            self._stop_timer()
            self._stop()

    def _exchange(self, work: tuple[str, object, object]) -> tuple[bool, Any]:
        if self._child is None or self._child.poll() is not None:
            self._stop()
            self._start()
        module = work[0].partition(":")[0]
        fresh = module not in self._loaded  # the time for loading it is not the work's
        channel = self._channel
        if channel is None:
            raise AssertionError("a child that was started has a channel")
        channel.send(work)
        if not channel.poll(self._timeout_s + (START_S if fresh else 1.0)):
            raise EOFError
        answer: tuple[bool, Any] = channel.recv()
        self._loaded.add(module)
        return answer

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", CHILD, str(theirs.fileno()), str(self._timeout_s), str(self._memory)]
        with theirs:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])  # noqa: S603  our own
        self._channel = Connection(ours.detach())
        self._loaded.clear()

    def _stop(self) -> None:
        child, self._child = self._child, None
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        if child is not None:
            child.kill()
            child.wait()

    def _start_timer(self) -> None:
        if self._child is not None:
            self._idle = threading.Timer(self._idle_s, self.close)
            self._idle.daemon = True
            self._idle.start()

    def _stop_timer(self) -> None:
        timer, self._idle = self._idle, None
        if timer is not None:
            timer.cancel()
