"""Direct reading: bytes go from the event loop to mitmproxy's layers without a stream and a task's turn for each read.

mitmproxy reads each connection in a task: bytes go into a stream, which wakes the task, which takes two locks for each read. Here
a connection's first bytes are read that way; then a protocol of ours takes the stream's place on the transport, and hands data to
the layers at once. Order and back pressure stay: while written data waits for a slow peer, or an earlier event waits for its
turn, nothing is read. The end of a connection goes through mitmproxy's task again.

The back pressure of HTTP/2 and of uploads (http/http2_flow.py, http/upload_flow.py) is applied here: a worker without the fast
path reads directly as well.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from mitmproxy.connection import Connection
from mitmproxy.proxy import events
from mitmproxy.proxy.server import ConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.proxy.mitm.fastpath.connection_handler import SOCKET_TRANSPORT, FastConnectionHandler
from gatewayfilter.proxy.mitm.http.http2_flow import PAUSED
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD, caught_up
from gatewayfilter.proxy.mitm.upstream import set_on

_AT_ONCE: Final = 65_536
"""Bytes that are read at once, as mitmproxy does; a transport would take up to 256 KB, for each of many streams."""


def read_directly(handler: ConnectionHandler, connection: Connection, *, begun: bool = False) -> None:
    """Lets a connection's bytes go straight to the layers from its second read on.

    Args:
        handler: the connection handler.
        connection: of it.
        begun: from the first read on: who reads is noted, and nothing comes by way of the stream but what it has.
    """
    io = handler.transports[connection]
    if type(io.reader) is asyncio.StreamReader and isinstance(io.writer, asyncio.StreamWriter):
        set_on(io, "reader", DirectReader(handler, connection, io.reader, io.writer, begun=begun))


def _any_waits(handler: ConnectionHandler) -> bool:
    """Returns whether data that was written to a connection waits, or the connection is closing."""
    for io in handler.transports.values():
        writer: Any = io.writer
        if writer is None:
            continue
        kind = type(writer)
        transport = writer._transport if kind is asyncio.StreamWriter else writer.transport  # noqa: SLF001  a property
        if type(transport) is SOCKET_TRANSPORT:
            busy = transport._buffer or transport._closing  # noqa: SLF001
        else:
            busy = transport.get_write_buffer_size() or transport.is_closing()
        if busy:
            return True
    return False


class DirectOrigins:
    """The addon that reads connections to origins directly.

    Args:
        connections: the proxy's clients, by id.
    """

    name = "directorigins"

    def __init__(self, connections: Any) -> None:
        self._connections = connections

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Takes a connection over before mitmproxy begins to read it."""
        read_directly(self._connections[data.client.id], data.server, begun=True)


class DirectReader:
    """Stands in for the stream that mitmproxy reads: returns its first bytes, and then nothing but its end.

    Args:
        handler: the connection handler; its layers get the bytes.
        connection: where they come from.
        reader, writer: the stream that is replaced.
        begun: nothing is to be read by way of the stream, but what it has.
    """

    def __init__(
        self,
        handler: ConnectionHandler,
        connection: Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        begun: bool = False,
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._reader = reader
        self._transport = writer.transport
        self._completed = begun
        self._protocol: _DirectProtocol | None = None

    @property
    def at_rest(self) -> bool:
        """Whether the connection is read directly, and nothing that was read still waits."""
        protocol = self._protocol
        return protocol is not None and not self._reader._buffer and not self._reader.at_eof() and protocol.at_rest  # type: ignore[attr-defined]  # noqa: SLF001

    async def read(self, size: int) -> bytes:
        """Returns the next bytes, `b""` at the end."""
        if not self._completed or self._reader._buffer or self._reader.at_eof() or self._reader.exception() is not None:  # type: ignore[attr-defined]  # noqa: SLF001  no public name for it
            self._completed = True
            return await self._reader.read(size)
        if self._transport.is_closing():
            return await self._reader.read(size)
        ended = self.begin()
        try:
            await ended
        finally:
            self.stop()
        return b""

    def begin(self) -> asyncio.Future[None]:
        """Begins to hand bytes to the layers. Returns what is done when the connection ends."""
        if self._protocol is None:
            self._protocol = _DirectProtocol(self._handler, self._connection, self._transport)
        return self._protocol.ended

    def stop(self) -> None:
        """Hands no more bytes to the layers."""
        if self._protocol is not None:
            self._protocol.stop()


class _DirectProtocol(asyncio.Protocol):
    """Hands bytes to the layers. All other events of the connection go to the stream's own protocol as well."""

    def __init__(self, handler: ConnectionHandler, connection: Connection, transport: Any) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handler: ConnectionHandler | None = handler
        self._handle_now = handler.handle_now if isinstance(handler, FastConnectionHandler) else None
        self._connection = connection
        self._transport = transport
        self._lock: Any = handler._server_event_lock  # noqa: SLF001
        self._task: asyncio.Task[None] | None = None
        self._before: Any = transport.get_protocol()
        self._transport.max_size = _AT_ONCE
        transport.set_protocol(self)

    @property
    def at_rest(self) -> bool:
        """Whether all that was read has been handled."""
        waits = self._task is not None and not self._task.done()
        return self._handler is not None and not waits and not self.ended.done()

    def data_received(self, data: bytes) -> None:
        """Handles bytes at once, unless an earlier event still waits for its turn."""
        handler = self._handler
        if handler is None:  # cancelled
            return
        event = events.DataReceived(self._connection, data)
        if self._lock._locked or self._lock._waiters:  # noqa: SLF001  earlier events come first
            self._wait_for(handler.server_event(event))
            return
        if self._handle_now is not None:
            self._handle_now(event)
        else:
            with suppress(StopIteration):
                handler.server_event(event).send(None)  # with the lock free it runs to its end
        if (PAUSED and self._connection in PAUSED) or (AHEAD and self._connection in AHEAD):
            self._wait_for(None)
            return
        if self._handle_now is None or handler.unsettled:  # type: ignore[attr-defined]
            if _any_waits(handler):
                self._wait_for(None)
            elif self._handle_now is not None:
                handler.unsettled = False  # type: ignore[attr-defined]

    def eof_received(self) -> bool | None:
        """Notes that nothing more will come. Returns whether the connection stays half open."""
        half_open: bool | None = self._before.eof_received()
        self._end()
        return half_open

    def connection_lost(self, exc: Exception | None) -> None:
        """Records that the connection is closed."""
        self._before.connection_lost(exc)
        self._end()

    def pause_writing(self) -> None:
        """Lets writers wait."""
        self._before.pause_writing()

    def resume_writing(self) -> None:
        """Lets writers go on."""
        self._before.resume_writing()

    def stop(self) -> None:
        """Handles no more bytes."""
        if self._task is not None:
            self._task.cancel()
        AHEAD.pop(self._connection, None)
        self._handler = None

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _wait_for(self, event: Coroutine[Any, Any, None] | None) -> None:
        self._transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._finish(event))

    async def _finish(self, event: Coroutine[Any, Any, None] | None) -> None:
        try:
            if event is not None:
                await event
            await PAUSED.wait(self._connection)
            await caught_up(self._connection)
            if self._handler is not None:
                await self._handler.drain_writers()
        finally:
            if self._handler is not None:  # whatever failed: a client that is not read again would wait for ever
                self._transport.resume_reading()
