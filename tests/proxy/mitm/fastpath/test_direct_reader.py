"""Bytes that go straight to the layers: in order, with back pressure, and to their end."""

import asyncio
from typing import Any, cast

import pytest
from mitmproxy.connection import Connection
from mitmproxy.proxy import events
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO
from mitmproxy.test.tflow import tclient_conn

from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader, read_directly


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


async def test_what_the_stream_still_has_comes_first() -> None:
    found = Reading()
    found.transport.protocol.data_received(b"first")
    assert await found.reader.read(2) == b"fi"
    assert await found.reader.read(65535) == b"rst"
    assert found.transport.protocol is found.before


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
