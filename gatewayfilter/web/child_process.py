"""A child process for work that loads the classifier or reads hostile pages: bounded time and memory, started when needed.

The web process stays small, and survives whatever a page does to the libraries that read it.
"""

import multiprocessing
import os
import resource
import signal
import threading
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final

from gatewayfilter.errors import ClassifyError, GatewayFilterError

START_S: Final = 20.0
"""How long the child may take to start, on a busy machine, beyond the time for its work."""
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
        self._child: SpawnProcess | None = None
        self._channel: Connection | None = None
        self._idle: threading.Timer | None = None

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

    def _exchange(self, work: object) -> tuple[bool, Any]:
        fresh = self._child is None or not self._child.is_alive()
        if fresh:
            self._stop()
            self._start()
        channel = self._channel
        if channel is None:
            raise AssertionError("a child that was started has a channel")
        channel.send(work)
        if not channel.poll(self._timeout_s + (START_S if fresh else 1.0)):
            raise EOFError
        answer: tuple[bool, Any] = channel.recv()
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs, self._timeout_s, self._memory), name="classifier", daemon=True)
        self._child.start()
        theirs.close()

    def _stop(self) -> None:
        child, self._child = self._child, None
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        if child is not None:
            child.kill()
            child.join()

    def _start_timer(self) -> None:
        if self._child is not None:
            self._idle = threading.Timer(self._idle_s, self.close)
            self._idle.daemon = True
            self._idle.start()

    def _stop_timer(self) -> None:
        timer, self._idle = self._idle, None
        if timer is not None:
            timer.cancel()


def _serve(channel: Connection, timeout_s: float, memory: int) -> None:
    """Works until the other end is closed. An alarm whose default action ends the process stands over each piece of work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's matter
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    while True:
        try:
            job, values, named = channel.recv()
        except EOFError:
            return
        module, _, name = job.partition(":")
        work = getattr(import_module(module), name)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        answer = _answer(work, values, named)
        signal.setitimer(signal.ITIMER_REAL, 0)
        channel.send(answer)


def _answer(work: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, work(*values, **named)
    except GatewayFilterError as error:
        return False, type(error)(str(error))
    except Exception as error:  # noqa: BLE001  the outermost boundary of one piece of work
        return False, f"this cannot be done: {type(error).__name__}"
