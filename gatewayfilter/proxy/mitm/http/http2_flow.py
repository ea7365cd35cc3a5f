"""Back pressure over HTTP/2: data that a client does not read yet is not read from the origin either.

A slow client of HTTP/1 fills its socket, and mitmproxy stops reading. Over HTTP/2 a client grants a window for each stream, and
mitmproxy keeps the rest, whole downloads of it. Here an origin's connection of HTTP/1 is not read while the client's
stream has `MOST_UNSENT` waiting; over HTTP/2 the origin's stream gets no further window, so that its other streams go on.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import h2.errors
import h2.events
from mitmproxy.connection import Connection, Server
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import RequestData, ResponseData
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Server

from gatewayfilter.proxy.mitm.http.frame_budget import FrameBudget, is_call
from gatewayfilter.proxy.mitm.http.header_table import bound_table
from gatewayfilter.proxy.mitm.upstream import set_on

MOST_UNSENT: Final = 262_144
"""Bytes of one stream that wait for the client."""
WINDOW_BYTES: Final = 2_097_152
"""What an origin may send of one stream before we take it: 20 MB/s at 100 ms. mitmproxy grants 2 GB."""


@dataclass
class TakeMore(HttpEvent):
    """The client took what waited of a stream: the origin may send on."""


class _Paused:
    """Connections to origins that are not read for now. Of this process: connections are made by mitmproxy."""

    def __init__(self) -> None:
        self._until: dict[Connection, asyncio.Event] = {}

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._until

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, connection: Connection) -> None:
        self._until.setdefault(connection, asyncio.Event())

    def discard(self, connection: Connection) -> None:
        if (event := self._until.pop(connection, None)) is not None:
            event.set()

    async def wait(self, connection: Connection) -> None:
        """Returns when a connection may be read."""
        while (event := self._until.get(connection)) is not None:
            await event.wait()


PAUSED: Final = _Paused()


class PatientHttp2Server(Http2Server):
    """The client's side: notes which streams have too much waiting."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._full: dict[int, Server] = {}

    @property
    def has_full(self) -> bool:
        """Whether enough of any stream waits for the client."""
        return bool(self._full)

    def is_full(self, stream_id: int) -> bool:
        """Returns whether enough of a stream waits for the client."""
        return stream_id in self._full

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        yield from super()._handle_event(event)
        if isinstance(event, ResponseData):
            if self.h2_conn.stream_buffers:
                self.note_unsent(event.stream_id)
        elif self._full and isinstance(event, events.DataReceived | events.ConnectionClosed):
            yield from self.go_on(over=isinstance(event, events.ConnectionClosed))

    def note_unsent(self, stream_id: int) -> None:
        """Notes a stream if too much of it waits for the client now."""
        layers = self.context.layers
        parent = layers[-2] if len(layers) > 1 else None
        if stream_id in self._full or self._unsent(stream_id) <= MOST_UNSENT or not isinstance(parent, http_layers.HttpLayer):
            return
        stream = parent.streams.get(stream_id)
        if stream is None:
            return
        self._full[stream_id] = server = stream.context.server
        if server.alpn != b"h2":
            PAUSED.add(server)

    def go_on(self, *, over: bool = False) -> layer.CommandGenerator[None]:
        """Lets origins send on of which enough was taken, or all of them when it is over with the client."""
        parent = self.context.layers[-2]
        for stream_id, server in list(self._full.items()):
            if not over and self._unsent(stream_id) > MOST_UNSENT // 2 and not self.is_closed(stream_id):
                continue
            del self._full[stream_id]
            if server.alpn != b"h2":
                PAUSED.discard(server)
            elif isinstance(parent, http_layers.HttpLayer) and server in parent.connections:
                yield http_layers.SendHttp(TakeMore(stream_id), server)

    def _unsent(self, stream_id: int) -> int:
        waiting = self.h2_conn.stream_buffers.get(stream_id)
        return sum(len(part.data) for part in waiting) if waiting else 0


class PatientHttp2Client(FrameBudget, Http2Client):
    """The origin's side: while a stream's client does not read, the stream gets no further window.

    An origin may cause as much work that leads to nothing as a client (http2_bounds.py), interim responses among it.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        connection = self.h2_conn
        bound_table(connection)
        connection.local_settings.initial_window_size = WINDOW_BYTES
        connection.local_settings.acknowledge()
        self._acknowledge = connection.acknowledge_received_data
        self._owed: dict[int, int] = {}
        self._hinted = 0
        """The newest stream that had an interim response."""
        set_on(connection, "acknowledge_received_data", self._acknowledge_unless_full)

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, TakeMore):
            ours = self.our_stream_id.get(event.stream_id)
            if ours is not None and (owed := self._owed.pop(ours, 0)):
                self._acknowledge(owed, ours)  # of a stream that has ended, to the window of the connection
                if data := self.h2_conn.data_to_send():
                    yield commands.SendData(self.conn, data)
            return
        if isinstance(event, RequestData):
            self.note_sent(len(event.data))
        yield from super()._handle_event(event)

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        """Handles an event; returns whether the connection has ended."""
        if is_call(event) and not self._goes_with_request(event) and not self.may_cause(event):
            yield from self.protocol_error("too many frames for nothing", h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            return True
        return (yield from super().handle_h2_event(event))

    def _goes_with_request(self, event: h2.events.Event) -> bool:
        """Returns whether each request may have an event once: a reset, after an early response, and an interim response."""
        if isinstance(event, h2.events.InformationalResponseReceived) and (number := event.stream_id or 0) > self._hinted:
            self._hinted = number
            return True
        return isinstance(event, h2.events.StreamReset)

    def owes(self, ours: int) -> bool:
        """Returns whether a stream of the origin waits for its window."""
        return ours in self._owed

    def _acknowledge_unless_full(self, count: int, stream_id: int) -> None:
        client = self._client()
        if client is not None and client.is_full(self.their_stream_id.get(stream_id, -1)):
            self._owed[stream_id] = self._owed.get(stream_id, 0) + count
        else:
            self._acknowledge(count + self._owed.pop(stream_id, 0), stream_id)

    def _client(self) -> PatientHttp2Server | None:
        for one in reversed(self.context.layers):
            if isinstance(one, http_layers.HttpLayer):
                found = one.connections.get(one.context.client)
                return found if isinstance(found, PatientHttp2Server) else None
        return None
