"""The process that keeps rules, policies and sources in step with the gateways that share `sync.url`. The proxy does not wait."""

import logging
import signal
import socket
import threading
import time
from contextlib import closing, suppress
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StartupError, StoreError
from gatewayfilter.processes.low_priority import low_priority
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.wiring import open_store
from gatewayfilter.wiring.gateway_sync import gateway_sync

_log = logging.getLogger(__name__)

POLL_S: Final = 0.2
"""Between two reads of the stream and of the local change feed: a change is in force elsewhere within a second."""
BEAT_S: Final = 2.0
DEAD_AFTER_S: Final = 15.0
"""Without a heartbeat, by the clock of Redis, before a gateway counts as gone."""
WHOLE_EVERY_S: Final = 300.0
"""Between two comparisons of everything: a fail-over of Redis may lose its newest changes."""
TICK_S: Final = 1.0
AGAIN_S: Final = 1.0


def run_sync(settings: Settings) -> None:
    """Runs the process until SIGTERM. Exits with 2 when it cannot start."""
    begin_child(settings)
    with ending_with_a_sentence():
        _Sync(settings).run()


class _Sync:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counters = Counters()
        self._status = StatusFile(settings.data_dir / "run", "sync")
        self._stop = threading.Event()
        self._name = f"{socket.gethostname()}:{settings.data_dir}"
        self._fault = ""
        self._gateways: list[str] = []
        self._place = 0
        self._size = 0

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stop.set())
        telling = threading.Thread(target=self._tell, name="sync-status", daemon=True)
        telling.start()
        try:
            while not self._stop.is_set():
                try:
                    self._follow()
                except StartupError:
                    raise
                except GatewayFilterError as error:
                    self._failed(str(error), is_here=isinstance(error, StoreError))
                self._stop.wait(AGAIN_S)
        finally:
            self._stop.set()
            telling.join(TICK_S + 1)
            self._status.remove()

    def _follow(self) -> None:
        with closing(open_store(self._settings)) as store, low_priority():
            synchronizer, gateways = gateway_sync(self._settings, store, self._counters)
            beat_at = whole_at = 0.0
            while not self._stop.is_set():
                now = time.monotonic()
                try:
                    if now >= beat_at:
                        gateways.beat(self._name, time.time())  # in place of this time, that of Redis counts
                        self._gateways = gateways.alive(time.time() - DEAD_AFTER_S)
                        beat_at = now + BEAT_S
                    synchronizer.step(whole=now >= whole_at)
                except GatewayFilterError as error:
                    self._failed(str(error), is_here=isinstance(error, StoreError))
                    self._stop.wait(AGAIN_S)
                    continue
                whole_at = now + WHOLE_EVERY_S if now >= whole_at else whole_at
                self._fault, self._place, self._size = "", synchronizer.place.number, synchronizer.size
                self._stop.wait(POLL_S)
            with suppress(GatewayFilterError):
                gateways.leave(self._name)

    def _failed(self, reason: str, *, is_here: bool) -> None:
        """Notes a failure; one of Redis has a line in the log of its own (`CircuitBreaker`)."""
        if not self._fault and is_here:
            _log.warning("not in step with other gateways (%s); filtering goes on with what is here", reason)
        self._fault = reason
        self._counters.add("sync_away")

    def _tell(self) -> None:
        while not self._stop.is_set():
            self._status.write(
                state="away" if self._fault else "in step",
                fault=self._fault,
                gateways=self._gateways,
                place=self._place,
                shared=self._size,
                counters=self._counters.as_dict(),
            )
            self._stop.wait(TICK_S)
