"""Server-sent events: their format, and the bounds of a stream."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from fastapi import Request

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogQuery
from gatewayfilter.use_cases.traffic.shared_batches import BatchWriter, SharedBatches

EVERY_S: Final = 0.5
"""Interval between two batches."""
LONGEST_S: Final = 600.0
"""A stream ends after this time, and the browser connects again: a session that has ended sees nothing more."""
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
_STATE_EVERY: Final = 20
"""Rounds between two events of the state."""
_PIECE: Final = 1 << 14
"""Bytes that are written at once: what a slow reader has not taken yet is copied for its connection, a piece at most."""
_BEGIN: Final = b"retry: 2000\n\n"
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
        for begin in range(0, len(sent), _PIECE):
            yield sent[begin : begin + _PIECE]
        del sent
        await asyncio.sleep(EVERY_S)


def first_number(last_event_id: str) -> int:
    """Returns the decision after which a stream continues, 0 for now.

    Args:
        last_event_id: of the header of that name.
    """
    return int(last_event_id) if last_event_id.isdecimal() and len(last_event_id) < 19 else 0
