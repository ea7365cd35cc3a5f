"""The process that imports mitmproxy and the rest once, and from which the children are forked.

See docs/decisions/0002-forkserver.md.
"""

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from typing import Final

from gatewayfilter.processes.entry_points import PRELOAD

_log = logging.getLogger(__name__)

_PROBE_AGAIN_S: Final = 0.5


def start_fork_server(preload: Sequence[str] = PRELOAD) -> ForkServerContext:
    """Starts the fork server, which imports what the children need while this process goes on.

    Args:
        preload: the modules that it imports, in this order.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    _ensure_running()
    return context


class ForkServerReplacement:
    """Starts another fork server after one has ended, without blocking the process that supervises.

    Forking waits until the imports are done, which takes seconds: a thread waits for that.

    Args:
        context: of the fork server.
    """

    def __init__(self, context: ForkServerContext) -> None:
        self._context = context
        self._probe: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        """Whether children can be forked at once."""
        return self._probe is None or not self._probe.is_alive()

    def begin(self) -> None:
        """Starts another fork server where the last one has ended, unless that is under way."""
        if not self.ready:
            return
        _ensure_running()
        self._probe = threading.Thread(target=self._await_imports, name="fork-server-probe", daemon=True)
        self._probe.start()

    def _await_imports(self) -> None:
        while True:
            process = self._context.Process(target=_do_nothing, name="fork-server-probe")
            try:
                process.start()
            except (OSError, EOFError):  # it was killed again
                time.sleep(_PROBE_AGAIN_S)
                continue
            process.join()
            process.close()
            _log.info("the fork server is ready again")
            return


def _do_nothing() -> None:
    """The entry of a process that ends at once."""


def _ensure_running() -> None:
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: Ctrl-C is the supervisor's alone to answer
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, interrupt)
