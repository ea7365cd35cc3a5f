"""The process that sends the filter's own decisions to Kafka. It reads the decision log; the proxy does not take part."""

import logging
import signal
import threading
import time
from contextlib import closing
from typing import Final

from gatewayfilter.config import LogPrivacy, Settings
from gatewayfilter.errors import ConfigError, GatewayFilterError
from gatewayfilter.processes.low_priority import low_priority
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.wiring import open_store
from gatewayfilter.wiring.shared import decision_feed

_log = logging.getLogger(__name__)

POLL_S: Final = 0.5
"""Between two reads of a log that had nothing new."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
TICK_S: Final = 1.0


def run_decisions(settings: Settings) -> None:
    """Runs the process until SIGTERM. Exits with 2 when it cannot start."""
    begin_child(settings)
    with ending_with_a_sentence():
        _Decisions(settings).run()


class _Decisions:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counters = Counters()
        self._status = StatusFile(settings.data_dir / "run", "decisions")
        self._stop = threading.Event()
        self._fault = ""
        self._away_since = 0.0

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stop.set())
        if self._settings.log.privacy is LogPrivacy.OFF:
            _log.warning("kafka.decisions gets nothing: there is no decision log (log.privacy = off)")
        telling = threading.Thread(target=self._tell, name="decisions-status", daemon=True)
        telling.start()
        try:
            while not self._stop.is_set():
                try:
                    self._follow()
                except ConfigError:
                    raise
                except GatewayFilterError as error:  # the database is away
                    self._failed(str(error))
                    self._stop.wait(FIRST_PAUSE_S)
        finally:
            self._stop.set()
            telling.join(TICK_S + 1)
            self._status.remove()

    def _follow(self) -> None:
        pause_s = FIRST_PAUSE_S
        with closing(open_store(self._settings)) as store, low_priority():
            feed = decision_feed(self._settings, store, self._counters)
            while not self._stop.is_set():
                try:
                    sent = feed.step()
                except ConfigError:
                    raise
                except GatewayFilterError as error:
                    self._failed(str(error))
                    self._stop.wait(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                    continue
                self._succeeded()
                pause_s = FIRST_PAUSE_S
                if not sent:
                    self._stop.wait(POLL_S)

    def _failed(self, reason: str) -> None:
        if not self._fault:
            self._away_since = time.monotonic()
            _log.warning("decisions are not sent to Kafka (%s); they wait in the log, and it is tried again", reason)
        self._fault = reason
        self._counters.add("decisions_away")

    def _succeeded(self) -> None:
        if self._fault:
            _log.warning("decisions are sent to Kafka again after %.1f s", time.monotonic() - self._away_since)
        self._fault = ""

    def _tell(self) -> None:
        while not self._stop.is_set():
            self._status.write(state="away" if self._fault else "sending", fault=self._fault, counters=self._counters.as_dict())
            self._stop.wait(TICK_S)
