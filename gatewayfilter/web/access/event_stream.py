"""Server-sent events: their format, the bounds of a stream, and batches of the live log that its readers share."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Final, Protocol

from fastapi import Request

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogQuery
from gatewayfilter.use_cases.traffic.live_log import LiveBatch, LiveLog

EVERY_S: Final = 0.5
"""Interval between two batches."""
LONGEST_S: Final = 600.0
"""A stream ends after this time, and the browser connects again: a session that has ended sees nothing more."""
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
MOST_KEPT: Final = 8
"""Batches that are kept for further readers: some 0.1 MB each at 500 decisions a second."""
_STATE_EVERY: Final = 20
"""Rounds between two events of the state."""
_BEGIN: Final = b"retry: 2000\n\n"
_NOTHING: Final = b": \n\n"
_AWAY: Final = b": the database does not answer\n\n"


def event(name: str, data: str, number: int | None = None) -> str:
    """Returns an event. Line breaks in `data` are kept.

    Args:
        name: its type.
        data: one text.
        number: its id, with which the browser continues after a pause.
    """
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    identity = f"id: {number}\n" if number is not None else ""
    return f"{identity}event: {name}\n{lines}\n"


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


async def stream(
    request: Request,
    batches: SharedBatches,
    query: LogQuery,
    writer: BatchWriter,
    start: int,
    state: Callable[[], str] | None = None,
) -> AsyncIterator[bytes]:
    """Yields a live log until the time of a stream is over or the client is gone; the client connects again by itself.

    Args:
        request: the client's.
        batches: of the process.
        query: which decisions.
        writer: in which form.
        start: number of the decision after which it begins, 0 for now.
        state: makes a further event, which is sent first and then every ten seconds.
    """
    yield _BEGIN
    reached = start
    for number in range(int(LONGEST_S / EVERY_S)):
        if await request.is_disconnected():
            return
        try:
            if state is not None and number % _STATE_EVERY == 0:
                yield (await asyncio.to_thread(state)).encode()
            if not reached:
                reached = await asyncio.to_thread(batches.start)
            reached, sent = await asyncio.to_thread(batches.after, reached, query, writer)
        except StoreError:
            sent = _AWAY
        yield sent
        del sent
        await asyncio.sleep(EVERY_S)


def first_number(last_event_id: str) -> int:
    """Returns the decision after which a stream continues, 0 for now.

    Args:
        last_event_id: of the header of that name.
    """
    return int(last_event_id) if last_event_id.isdecimal() and len(last_event_id) < 19 else 0
