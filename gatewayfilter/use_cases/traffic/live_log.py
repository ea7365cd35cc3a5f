"""The live log: the newest records, read from the database once for all readers of a process."""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gatewayfilter.interfaces import DecisionLog
from gatewayfilter.model import LogQuery, LogRecord

KEPT: Final = 2_000
FIRST: Final = 200
"""Records of the first read: a reader that has just come wants the newest ones soon."""
EVERY_S: Final = 0.25
"""Interval between two reads of the database."""
_ALL: Final = LogQuery()


@dataclass(frozen=True, slots=True)
class LiveBatch:
    """Records that were made since a reader's last batch.

    Attributes:
        records: pairs of id and record, the oldest first.
        reached: the id to continue after.
        skipped: number of older records that are not kept here any more; they are in the log.
    """

    records: tuple[tuple[int, LogRecord], ...]
    reached: int
    skipped: int = 0


class LiveLog:
    """Keeps the newest records. Threads may share it.

    The database is read only while somebody reads, and not more than once in `every_s`, however many readers there are.

    Args:
        log: the decision log.
        clock: seconds that never go back.
        kept: the most records.
        every_s: interval between two reads of the database.
    """

    def __init__(
        self, log: DecisionLog, clock: Callable[[], float] = time.monotonic, *, kept: int = KEPT, every_s: float = EVERY_S
    ) -> None:
        self._log = log
        self._clock = clock
        self._kept = kept
        self._every_s = every_s
        self._lock = threading.Lock()
        self._records: deque[tuple[int, LogRecord]] = deque(maxlen=kept)
        self._newest = 0
        self._read_at = float("-inf")

    def newest(self) -> int:
        """Returns the id of the newest record, 0 for an empty log: where a new reader starts.

        Raises:
            StoreError: the database refuses.
        """
        with self._lock:
            self._read()
            return self._newest

    def after(self, number: int, query: LogQuery = _ALL, most: int = 500) -> LiveBatch:
        """Returns records with higher ids.

        Args:
            number: the id that the reader has reached.
            query: the conditions.
            most: of all records that are looked at.

        Raises:
            StoreError: the database refuses.
        """
        with self._lock:
            self._read()
            first = bisect_right(self._records, number, key=_id_of)
            rows = list(islice(self._records, first, first + most))
            newest = self._newest
        if not rows:  # a number that is higher than the newest one is of another database
            return LiveBatch((), newest)
        skipped = rows[0][0] - number - 1 if first == 0 else 0
        return LiveBatch(tuple(row for row in rows if query.matches(row[1])), rows[-1][0], skipped)

    def clear(self) -> None:
        """Forgets all records: after a removal from the log."""
        with self._lock:
            self._records.clear()
            self._newest = 0
            self._read_at = float("-inf")

    def _read(self) -> None:
        if (now := self._clock()) < self._read_at + self._every_s:
            return
        is_first = self._read_at == float("-inf")
        self._read_at = now
        newest = self._log.newest()
        if newest < self._newest:  # emptied, or another database
            self._records.clear()
            self._newest = 0
        if newest > self._newest:
            rows = self._log.tail(min(self._kept, FIRST) if is_first else self._kept, self._newest)
            self._records.extend(row for row in rows if row[0] <= newest)
            self._newest = newest


def _id_of(row: tuple[int, LogRecord]) -> int:
    return row[0]
