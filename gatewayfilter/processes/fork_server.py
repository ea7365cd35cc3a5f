"""The process that imports mitmproxy and the rest once, and from which the children are forked.

See docs/decisions/0002-forkserver.md.
"""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from typing import Final

from gatewayfilter.processes.entry_points import PRELOAD

_log = logging.getLogger(__name__)

_START_AGAIN_S: Final = 0.5
"""The shortest time between two starts: one that ends at once is not started in a loop."""


def start_fork_server(preload: Sequence[str] = PRELOAD) -> ForkServerContext:
    """Starts the fork server, which imports what the children need while this process goes on.

    Args:
        preload: the modules that it imports, in this order.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    _ensure_running()
    return context


class WatchedForkServer:
    """The fork server that runs, watched by its pidfd, and replaced without blocking the process that supervises.

    Its children do not show its end: after a replacement they may all be those of an earlier one. multiprocessing starts another
    one with the next child, and blocks until its imports are done, which takes seconds. Here a thread waits for them.

    Args:
        context: of the fork server, which was started.
    """

    def __init__(self, context: ForkServerContext) -> None:
        self._context = context
        self._probe: threading.Thread | None = None
        self._descriptor = _open_pidfd()
        self._started_at = time.monotonic()
        self._ended = False

    @property
    def sentinels(self) -> tuple[int, ...]:
        """A descriptor that is ready when the fork server ends; empty after its end was found, and where there are no pidfds."""
        return (self._descriptor,) if self._descriptor >= 0 else ()

    @property
    def ready(self) -> bool:
        """Whether children can be forked at once."""
        return not self._ended and not self._probing and not wait(self.sentinels, 0)

    def replace_if_ended(self) -> bool:
        """Starts another fork server where the last one has ended. Returns whether this call found its end."""
        found = bool(wait(self.sentinels, 0))
        if found:
            self._ended = True
            os.close(self._descriptor)
            self._descriptor = -1
        if self._ended and not self._probing and time.monotonic() >= self._started_at + _START_AGAIN_S:
            self._replace()
        return found

    @property
    def _probing(self) -> bool:
        return self._probe is not None and self._probe.is_alive()

    def _replace(self) -> None:
        self._started_at = time.monotonic()
        try:
            _ensure_running()
        except OSError as error:  # no memory, no descriptors
            _log.error("no fork server could be started: %s", error)
            return
        self._descriptor = _open_pidfd()
        self._ended = False
        self._probe = threading.Thread(target=self._await_imports, name="fork-server-probe", daemon=True)
        self._probe.start()

    def _await_imports(self) -> None:
        process = self._context.Process(target=_do_nothing, name="fork-server-probe")
        try:
            process.start()
        except (OSError, EOFError):  # it has ended again, which its pidfd shows
            return
        process.join()
        process.close()
        _log.info("the fork server is ready again")


def _do_nothing() -> None:
    """The entry of a process that ends at once."""


def _ensure_running() -> None:
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: Ctrl-C is the supervisor's alone to answer
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, interrupt)


def _open_pidfd() -> int:
    """Returns a pidfd of the fork server, -1 where there is none."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # noqa: SLF001  no public name for it
    try:
        return os.pidfd_open(pid)
    except (AttributeError, TypeError, OSError):  # not on Linux, not allowed, or not started
        return -1
