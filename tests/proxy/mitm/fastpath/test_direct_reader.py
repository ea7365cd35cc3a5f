"""Bytes that go straight to the layers: in order, with back pressure, and to their end."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Connection
from mitmproxy.proxy import events
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO
from mitmproxy.test.tflow import tclient_conn, tserver_conn

from gatewayfilter.proxy.mitm.fastpath import direct_reader
from gatewayfilter.proxy.mitm.fastpath.connection_handler import SOCKET_TRANSPORT, FastConnectionHandler
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectOrigins, DirectReader, read_directly
from gatewayfilter.proxy.mitm.http.http2_flow import PAUSED
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD
from tests.proxy.connection_fakes import until


class Transport(asyncio.Transport):
    """Notes what is asked of it; `unsent` bytes wait for a slow peer."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.unsent = 0
        self.closing = False
        self.reading = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast("asyncio.BaseProtocol", self.protocol)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


class Handler(ConnectionHandler):
    """mitmproxy's handler with a layer that notes data; only what reading needs of it."""

    def __init__(self, connection: Connection) -> None:
        self.client = connection  # type: ignore[assignment]
        self.transports = {}
        self.seen: list[bytes] = []
        self.drained = asyncio.Event()
        self.drained.set()
        self._server_event_lock = asyncio.Lock()

    async def handle_hook(self, hook: object) -> None:
        raise NotImplementedError

    async def server_event(self, event: events.Event) -> None:
        async with self._server_event_lock:
            assert isinstance(event, events.DataReceived)
            self.seen.append(event.data)

    async def drain_writers(self) -> None:
        await self.drained.wait()


class Reading:
    """A connection whose first bytes were read, and a task that waits for its end."""

    def __init__(self, kind: type[Any] = Handler) -> None:
        loop = asyncio.get_running_loop()
        connection = tclient_conn()
        self.handler: Any = kind(connection)
        self.stream = asyncio.StreamReader()
        self.transport = Transport()
        protocol = asyncio.StreamReaderProtocol(self.stream)
        protocol.connection_made(self.transport)
        self.transport.protocol = self.before = protocol
        writer = asyncio.StreamWriter(self.transport, protocol, self.stream, loop)
        self.handler.transports[connection] = ConnectionIO(None, self.stream, writer)
        read_directly(self.handler, connection)
        self.reader: DirectReader = cast("Any", self.handler.transports[connection].reader)
        assert type(self.reader) is DirectReader
        self.rest: asyncio.Task[bytes] | None = None

    async def begin(self) -> None:
        self.transport.protocol.data_received(b"first")
        assert await self.reader.read(65535) == b"first"
        self.rest = asyncio.ensure_future(self.reader.read(65535))
        await asyncio.sleep(0)
        assert self.transport.protocol is not self.before


@pytest.fixture
async def reading() -> Reading:
    found = Reading()
    await found.begin()
    return found


async def test_bytes_are_handled_at_once(reading: Reading) -> None:
    for data in (b"a", b"b", b"c"):
        reading.transport.protocol.data_received(data)
        assert reading.handler.seen[-1] == data
    assert reading.handler.seen == [b"a", b"b", b"c"]
    assert reading.transport.reading


async def test_bytes_wait_for_an_earlier_event(reading: Reading) -> None:
    lock = reading.handler._server_event_lock
    await lock.acquire()
    earlier = asyncio.ensure_future(reading.handler.server_event(events.DataReceived(reading.handler.client, b"earlier")))
    await asyncio.sleep(0)
    lock.release()  # free, but somebody was first
    reading.transport.protocol.data_received(b"later")
    assert reading.handler.seen == []
    assert not reading.transport.reading
    await earlier
    for _ in range(5):
        await asyncio.sleep(0)
    assert reading.handler.seen == [b"earlier", b"later"]
    assert reading.transport.reading


async def test_nothing_is_read_while_a_peer_is_slow(reading: Reading) -> None:
    reading.transport.unsent = 1
    reading.handler.drained.clear()
    reading.transport.protocol.data_received(b"a")
    await asyncio.sleep(0)
    assert reading.handler.seen == [b"a"]
    assert not reading.transport.reading
    reading.handler.drained.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert reading.transport.reading


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
async def test_the_end_reaches_the_task_and_the_stream(reading: Reading, error: Exception | None) -> None:
    assert reading.rest is not None
    if error is None:
        assert reading.transport.protocol.eof_received()
        assert reading.stream.at_eof()
    else:
        reading.transport.protocol.connection_lost(error)
        assert reading.stream.exception() is error
    assert await reading.rest == b""


async def test_writers_wait_as_before(reading: Reading) -> None:
    reading.transport.protocol.pause_writing()
    assert reading.before._paused  # type: ignore[attr-defined]
    reading.transport.protocol.resume_writing()
    assert not reading.before._paused  # type: ignore[attr-defined]


async def test_after_a_cancelled_read_nothing_is_handled(reading: Reading) -> None:
    assert reading.rest is not None
    reading.rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading.rest
    reading.transport.protocol.data_received(b"late")
    assert reading.handler.seen == []


async def test_bytes_that_still_wait_when_reading_stops_are_handled_no_more(reading: Reading) -> None:
    lock = reading.handler._server_event_lock
    await lock.acquire()
    reading.transport.protocol.data_received(b"late")
    await asyncio.sleep(0)
    reading.reader.stop()
    lock.release()
    for _ in range(5):
        await asyncio.sleep(0)
    assert reading.handler.seen == []
    assert not reading.transport.reading, "who takes the connection over begins to read"


async def test_a_connection_that_closes_is_read_by_its_stream_to_the_end() -> None:
    found = Reading()
    found.transport.protocol.data_received(b"first")
    assert await found.reader.read(65535) == b"first"
    found.transport.closing = True
    last = asyncio.ensure_future(found.reader.read(65535))
    await asyncio.sleep(0)
    assert found.transport.protocol is found.before
    found.transport.protocol.data_received(b"last")
    assert await last == b"last"
    assert found.handler.seen == []


async def test_what_the_stream_still_has_comes_first() -> None:
    found = Reading()
    found.transport.protocol.data_received(b"first")
    assert await found.reader.read(2) == b"fi"
    assert await found.reader.read(65535) == b"rst"
    assert found.transport.protocol is found.before


async def test_an_end_or_an_error_before_the_second_read_comes_from_the_stream() -> None:
    ended, broken = Reading(), Reading()
    for found in (ended, broken):
        found.transport.protocol.data_received(b"first")
        assert await found.reader.read(65535) == b"first"
    ended.before.eof_received()
    assert await ended.reader.read(65535) == b""
    broken.before.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(ConnectionResetError, match="reset"):
        await broken.reader.read(65535)
    assert [one.transport.protocol is one.before for one in (ended, broken)] == [True, True]


async def test_a_connection_is_taken_over_once_and_only_from_a_stream() -> None:
    found = Reading()
    connection, io = found.handler.client, found.handler.transports[found.handler.client]
    read_directly(found.handler, connection)
    assert io.reader is found.reader
    other = found.handler.transports[connection] = ConnectionIO(None, found.stream, cast("Any", found.transport))
    read_directly(found.handler, connection)
    assert other.reader is found.stream
    assert found.reader.begin() is found.reader.begin()


async def test_a_connection_to_an_origin_is_read_directly_from_its_first_bytes_on() -> None:
    found = Reading()
    server, connection = tserver_conn(), found.handler.client
    io = found.handler.transports[server] = ConnectionIO(None, found.stream, found.handler.transports[connection].writer)
    data: Any = SimpleNamespace(client=connection, server=server)
    DirectOrigins({connection.id: found.handler}).server_connected(data)
    rest = asyncio.ensure_future(cast("Any", io.reader).read(65535))
    await asyncio.sleep(0)
    found.transport.protocol.data_received(b"an answer")
    assert found.handler.seen == [b"an answer"]
    rest.cancel()


async def test_when_a_connection_is_at_rest() -> None:
    found = Reading()

    def rests() -> bool:
        return found.reader.at_rest

    assert not rests(), "it is not read directly yet"
    await found.begin()
    assert rests()
    found.handler.drained.clear()
    found.transport.unsent = 1
    found.transport.protocol.data_received(b"a")
    assert not rests(), "a peer is slow"
    found.handler.drained.set()
    await until(lambda: found.transport.reading)
    assert rests()
    found.stream.feed_data(b"left")
    assert not rests(), "the stream has data"
    assert await found.stream.read(4) == b"left"
    assert rests()
    found.reader.stop()
    assert not rests(), "it is not read any more"
    for end in ("eof_received", "stream"):
        other = Reading()
        await other.begin()
        if end == "stream":
            other.stream.feed_eof()
        else:
            other.transport.protocol.eof_received()
        assert not other.reader.at_rest, end


@pytest.mark.parametrize("kept", ["paused", "ahead", "another paused", "another ahead"])
async def test_a_connection_that_is_held_back_is_not_read_meanwhile(kept: str, reading: Reading) -> None:
    connection = tclient_conn() if "another" in kept else reading.handler.client
    stream = SimpleNamespace(_paused=True, _paused_event_queue=[1])
    try:
        if "paused" in kept:
            PAUSED.add(connection)
        else:
            AHEAD[connection] = stream
        reading.transport.protocol.data_received(b"a")
        assert reading.transport.reading is ("another" in kept)
        assert reading.handler.seen == [b"a"]
        await asyncio.sleep(0)
        assert reading.transport.reading is ("another" in kept)
        stream._paused = False
        PAUSED.discard(connection)
        await until(lambda: reading.transport.reading)
    finally:
        PAUSED.discard(connection)
        AHEAD.pop(connection, None)


async def test_who_stops_to_read_is_ahead_of_nothing(reading: Reading) -> None:
    AHEAD[reading.handler.client] = SimpleNamespace(_paused=True, _paused_event_queue=[1])
    reading.reader.stop()
    assert reading.handler.client not in AHEAD


class Socket(SOCKET_TRANSPORT):  # type: ignore[misc]
    """What is asked of a transport of the event loop."""

    def __init__(self) -> None:
        self._buffer, self._closing = b"", False

    def __del__(self) -> None:
        """Closes nothing."""


@pytest.mark.parametrize("kind", ["stream", "other writer", "socket"])
async def test_nothing_is_read_while_any_connection_of_the_client_waits_or_closes(
    kind: str, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, transport = reading.handler, Transport()
    loop = asyncio.get_running_loop()
    one: Any = Socket() if kind == "socket" else transport
    writer: Any = SimpleNamespace(transport=one)
    if kind != "other writer":
        writer = asyncio.StreamWriter(one, cast("Any", reading.before), reading.stream, loop)
    opening, mine = ConnectionIO(), handler.transports[handler.client]
    handler.transports = {tserver_conn(): opening, tserver_conn(): ConnectionIO(None, None, writer), handler.client: mine}
    monkeypatch.setattr(direct_reader, "SOCKET_TRANSPORT", Socket)
    unsent, closing = ("_buffer", "_closing") if kind == "socket" else ("unsent", "closing")
    for name, value, idle in ((unsent, 1, 0), (closing, True, False)):
        setattr(one, name, value)
        handler.drained.clear()
        reading.transport.protocol.data_received(b"a")
        assert not reading.transport.reading, name
        setattr(one, name, idle)
        handler.drained.set()
        await until(lambda: reading.transport.reading)
    reading.transport.protocol.data_received(b"a")
    assert reading.transport.reading


class QuickHandler(FastConnectionHandler):
    """The fast path's handler with a layer that notes data; only what reading needs of it."""

    def __init__(self, connection: Connection) -> None:
        self.client = connection  # type: ignore[assignment]
        self.transports = {}
        self.seen: list[bytes] = []
        self.drained = asyncio.Event()
        self._server_event_lock = asyncio.Lock()

    def handle_now(self, event: events.DataReceived) -> None:
        self.seen.append(event.data)

    async def drain_writers(self) -> None:
        await self.drained.wait()


async def test_slow_peers_are_looked_for_where_something_that_was_written_may_wait() -> None:
    reading = Reading(QuickHandler)
    await reading.begin()
    handler, transport = reading.handler, cast("Any", reading.transport)
    receive = transport.protocol.data_received
    assert handler.unsettled
    receive(b"a")
    assert transport.reading
    assert not handler.unsettled
    transport.unsent, handler.unsettled = 1, True  # as who writes notes it
    for data in (b"b", b"c"):
        receive(data)
        await asyncio.sleep(0)
        assert not transport.reading
        assert handler.unsettled
        handler.drained.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert transport.reading
        handler.drained.clear()
    transport.unsent = 0
    receive(b"d")
    assert transport.reading
    assert not handler.unsettled
    assert handler.seen == [b"a", b"b", b"c", b"d"]
