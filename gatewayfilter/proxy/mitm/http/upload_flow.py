"""Back pressure of uploads: while a request waits for its origin or for a decision, its client is not read.

mitmproxy queues what comes for a stream that waits, without a bound: a client that uploads to an origin which does not answer
would have a worker keep all of it (600 of 600 MB, measured).
"""

import asyncio
from typing import Any, Final

from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layers

MOST_QUEUED: Final = 16
"""Events of a stream that wait, each of 64 kB at most."""
_LOOK_S: Final = 0.02

AHEAD: Final[dict[Connection, Any]] = {}
"""Clients that are ahead of their stream, which waits. Of this process: connections are made by mitmproxy."""


def note_upload(context: Context, stream_id: int | None) -> None:
    """Takes note that a part of a request's body came. A client that sends no more is not read, whatever waits."""
    if not context.client.state & ConnectionState.CAN_READ:
        return
    top = next((found for found in reversed(context.layers) if isinstance(found, http_layers.HttpLayer)), None)
    stream = top.streams.get(stream_id) if top is not None and stream_id is not None else None
    if stream is not None and stream._paused and len(stream._paused_event_queue) > MOST_QUEUED:  # noqa: SLF001  mitmproxy's own
        AHEAD[context.client] = stream


async def caught_up(connection: Connection) -> None:
    """Returns when the stream that a client is ahead of waits no more."""
    while (stream := AHEAD.get(connection)) is not None:
        if not (stream._paused and stream._paused_event_queue):  # noqa: SLF001
            AHEAD.pop(connection, None)
            return
        await asyncio.sleep(_LOOK_S)
