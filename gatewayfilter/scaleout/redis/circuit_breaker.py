"""The circuit breaker of a remote service: after a failure calls are refused at once until a retry is due."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0


class CircuitBreaker:
    """Closed while the service answers; open for a pause after each failure. Thread-safe.

    While it is open one caller at a time may try, after the pause; the pause doubles up to `LONGEST_PAUSE_S`. One line is logged
    when the service fails, and one when it answers again.

    Args:
        name: of the service, for the log.
        without: what happens meanwhile, for the log.
        clock: monotonic seconds.
    """

    def __init__(self, name: str, without: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._without = without
        self._clock = clock
        self._lock = threading.Lock()
        self._pause_s = 0.0
        self._retry_at = 0.0
        self._failed_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the last call failed."""
        return self._pause_s > 0

    def admits(self) -> bool:
        """Returns whether a call may be made now. Costs 0.1 µs while closed."""
        if not self._pause_s:
            return True
        with self._lock:
            now = self._clock()
            if now < self._retry_at:
                return False
            self._retry_at = now + self._pause_s  # others wait for the outcome of this try
            return True

    def succeeded(self) -> bool:
        """Closes the breaker. Returns whether it was open."""
        if not self._pause_s:
            return False
        with self._lock:
            away_s, self._pause_s = self._clock() - self._failed_at, 0.0
        _log.warning("%s answers again after %.1f s", self._name, away_s)
        return True

    def failed(self, reason: str) -> None:
        """Opens the breaker, or keeps it open."""
        with self._lock:
            now = self._clock()
            first = not self._pause_s
            self._pause_s = FIRST_PAUSE_S if first else min(2 * self._pause_s, LONGEST_PAUSE_S)
            self._retry_at = now + self._pause_s
            if first:
                self._failed_at = now
        if first:
            _log.warning("%s does not answer (%s): %s", self._name, reason, self._without)
