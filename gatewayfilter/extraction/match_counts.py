"""Counts of the pages that extraction rules read, held in memory until they are written together."""

import threading
import time
from collections.abc import Callable, Mapping

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import RuleMatches

_NONE = RuleMatches()


class MatchCounts:
    """Counts pages by rule. Thread-safe.

    Args:
        write: adds the counts to those that are stored.
        clock: Unix seconds.
    """

    def __init__(self, write: Callable[[Mapping[str, RuleMatches]], None], clock: Callable[[], float] = time.time) -> None:
        self._write = write
        self._clock = clock
        self._one = threading.Lock()
        self._counts: dict[str, RuleMatches] = {}

    def count(self, name: str, *, empty: bool) -> None:
        """Counts a page that a rule has read; `empty` where it found nothing in it."""
        self._add({name: RuleMatches(1, int(empty), self._clock())})

    def flush(self) -> None:
        """Writes what was counted since the last time.

        Raises:
            StoreError: the database refuses; the counts are kept for the next time.
        """
        with self._one:
            counts, self._counts = self._counts, {}
        if not counts:
            return
        try:
            self._write(counts)
        except StoreError:
            self._add(counts)
            raise

    def _add(self, counts: Mapping[str, RuleMatches]) -> None:
        with self._one:
            for name, more in counts.items():
                self._counts[name] = self._counts.get(name, _NONE).plus(more)
