"""Events of the live log that its readers share."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Protocol

from gatewayfilter.model import LogQuery
from gatewayfilter.use_cases.traffic.live_log import LiveBatch, LiveLog

MOST_KEPT: Final = 8
"""Batches that are kept for further readers: some 0.1 MB each at 500 decisions a second."""
_NOTHING: Final = b": \n\n"
"""A comment of the stream, by which a connection that is gone is noticed."""


class BatchWriter(Protocol):
    """Writes batches of the live log in one form."""

    @property
    def form(self) -> Hashable:
        """What the text depends on beside the batch; writers with the same form write the same."""
        ...

    def write(self, batch: LiveBatch) -> str:
        """Returns the event of a batch."""
        ...


class SharedBatches:
    """The events of the live log's newest batches, written once for all readers with the same conditions. Thread-safe.

    Args:
        log: the live log.
        most: number of events that are kept.
    """

    def __init__(self, log: LiveLog, most: int = MOST_KEPT) -> None:
        self._log = log
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[int, bytes]] = OrderedDict()

    def after(self, reached: int, query: LogQuery, writer: BatchWriter) -> tuple[int, bytes]:
        """Returns the number of the decision that a reader has reached then, and what is sent to it.

        Args:
            reached: the number that it has reached before.
            query: its conditions.
            writer: writes the event where no other reader has had it.

        Raises:
            StoreError: the database refuses.
        """
        newest = self._log.newest()
        if reached >= newest:
            return newest, _NOTHING
        key = (writer.form, query, reached, newest)
        with self._lock:
            if (found := self._kept.get(key)) is None:
                batch = self._log.after(reached, query)
                is_empty = not batch.records and not batch.skipped
                found = batch.reached, _NOTHING if is_empty else writer.write(batch).encode()
                self._kept[key] = found
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return found

    def start(self) -> int:
        """Returns the number of the newest decision: where a new reader begins.

        Raises:
            StoreError: the database refuses.
        """
        return self._log.newest()
