"""The fail-open watchdog: lets web traffic bypass the filter while no worker listens or answers."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.control import Gateway
from gatewayfilter.gateway.netlink_monitor import NetlinkMonitor
from gatewayfilter.gateway.nft import Kernel
from gatewayfilter.gateway.runtime_state import RuntimeStateFile

_log = logging.getLogger(__name__)

POLL_S: Final = 0.5
OPEN_AFTER: Final = 4
"""Consecutive probes without a listener: a crashed worker is back before that (its first restart comes after 0.2 s)."""
ASK_EVERY: Final = 4
"""Polls between two liveness probes, two seconds; after a failed probe every poll probes again."""
UNANSWERED: Final = 3
"""Consecutive probes without an answer, each with a timeout of four seconds: a filter under heavy load answers sooner."""
RESTORE_EVERY: Final = 6
"""Polls between two checks of the rules, three seconds; the kernel's notifications, where available, come at once."""


class Watchdog:
    """Watches a gateway: opens the bypass if `fail_open` is set, and reloads removed rules if `restoring` is set.

    Args:
        gateway: to be opened and closed.
        kernel: for the listening ports.
        memory: runtime state: whether the gateway is up and fails open.
        port: the filter's.
        restoring: whether rules removed without a `gateway down`, as by `nft flush ruleset`, are loaded again.
        answers: probes the filter, and returns whether it answered.
    """

    def __init__(
        self,
        gateway: Gateway,
        kernel: Kernel,
        memory: RuntimeStateFile,
        port: int,
        *,
        restoring: bool = False,
        answers: Callable[[], bool] = lambda: True,
    ) -> None:
        self._gateway = gateway
        self._kernel = kernel
        self._memory = memory
        self._port = port
        self._restoring = restoring
        self._answers = answers
        self._missed = 0
        self._unanswered = 0
        self._looks = 0

    def restore(self) -> bool:
        """Reloads the rules if they were removed without a `gateway down`. Returns whether it did."""
        try:
            if not self._restoring or not self._gateway.restore():
                return False
        except GatewayError as error:
            _log.warning("%s", error)
            return False
        _log.error("the rules were gone without a gateway down: they are loaded again")
        return True

    def look(self) -> bool:
        """Polls once and acts. Returns whether there is anything left to watch."""
        memory = self._memory.read()
        if memory is None:
            return False
        if self._looks % RESTORE_EVERY == 0:
            self.restore()
        self._looks += 1
        if not memory.fail_open:
            return self._restoring
        self._missed = 0 if self._kernel.listens(self._port) else self._missed + 1
        if not self._missed and (self._unanswered or self._looks % ASK_EVERY == 0):
            self._unanswered = 0 if self._answers() else self._unanswered + 1
        try:
            self._open_or_close(opened=memory.opened)
        except GatewayError as error:  # taken down meanwhile, or retried at the next poll
            _log.warning("%s", error)
        return True

    def _open_or_close(self, *, opened: bool) -> None:
        if opened and not self._missed and not self._unanswered:
            self._gateway.close_way()
            _log.warning("the filter serves again: web traffic goes through it")
        elif not opened and self._missed >= OPEN_AFTER:
            self._gateway.open_way()
            _log.error("nothing listens on port %d: web traffic goes past the filter", self._port)
        elif not opened and self._unanswered >= UNANSWERED:
            self._gateway.open_way()
            _log.error("no worker answers on port %d: web traffic goes past the filter", self._port)

    def run(self, stop: threading.Event) -> bool:
        """Polls twice a second until `stop` or until the gateway is down. Returns whether it was the only watchdog."""
        with self._memory.watching() as only, NetlinkMonitor() as changes:
            while only and not stop.is_set() and self.look():
                self._wait(changes, stop)
            return only

    def _wait(self, changes: NetlinkMonitor, stop: threading.Event) -> None:
        """Waits for the next poll, and reloads rules that are removed meanwhile."""
        until = time.monotonic() + POLL_S
        while not stop.is_set() and (left_s := until - time.monotonic()) > 0:
            if changes.wait(left_s):
                self.restore()


def until_terminated(work: Callable[[threading.Event], bool]) -> bool:
    """Runs `work` with an event that SIGTERM and Ctrl-C set."""
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    previous = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return work(stop)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
