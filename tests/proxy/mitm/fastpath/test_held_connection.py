"""Odd ends of connections to origins that were taken from the pool; and what reviews see of clients that have left."""

import asyncio
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from mitmproxy import options
from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import commands, events, mode_specs
from mitmproxy.proxy.server import ConnectionIO
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.proxy.mitm.fastpath import connection_handler
from gatewayfilter.proxy.mitm.fastpath.connection_handler import DetachedTransport, FastConnectionHandler, HeldConnection
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader, read_directly
from tests.proxy.conftest import StartGateway
from tests.proxy.connection_fakes import ask_for_page, until
from tests.proxy.proxy_fakes import Origin


class Layers:
    """Layers that close both connections when the client ends."""

    def __init__(self) -> None:
        self.both: tuple[Connection, ...] = ()

    def handle_event(self, event: events.Event) -> Iterator[commands.Command]:
        if isinstance(event, events.ConnectionClosed) and event.connection is self.both[0]:
            yield from map(commands.CloseConnection, self.both)


class Addons:
    async def handle_lifecycle(self, hook: object) -> None:
        """Runs no hook."""


async def pair() -> tuple[socket.socket, asyncio.StreamReader, asyncio.StreamWriter]:
    """Returns one end of a connection, and the stream of the other."""
    far, near = socket.socketpair()
    return far, *await asyncio.open_connection(sock=near)


async def test_an_end_of_both_sides_at_once_leaves_no_connection_open() -> None:
    """The client's end is handled when the origin's is seen: it waits for its turn, and is cancelled there."""
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    loop.set_task_factory(asyncio.eager_task_factory)  # as the worker's
    try:
        client, client_reader, client_writer = await pair()
        origin, origin_reader, origin_writer = await pair()
        given = options.Options()
        given.add_option("tcp_timeout", int, 600, "")
        mode = mode_specs.ProxyMode.parse("regular")
        handler = FastConnectionHandler(SimpleNamespace(addons=Addons()), client_reader, client_writer, given, mode)
        server, layers = Server(address=("127.0.0.1", 1)), Layers()
        handler.layer, layers.both = layers, (handler.client, server)  # type: ignore[assignment]
        read_directly(handler, handler.client, begun=True)
        serving = asyncio.create_task(handler.handle_client())
        await asyncio.sleep(0)
        server.state = ConnectionState.OPEN
        reader = DirectReader(handler, server, origin_reader, origin_writer, begun=True)
        io = handler.transports[server] = ConnectionIO(reader=reader, writer=origin_writer)  # type: ignore[arg-type]
        left: list[int] = []
        data: Any = ServerConnectionHookData(server=server, client=handler.client)
        io.handler = HeldConnection(handler, data, reader, lambda: left.append(1))  # type: ignore[assignment]
        client.close()
        origin.close()
        async with asyncio.timeout(10):
            await serving
        assert (left, server in handler.transports) == ([1], False)
        assert origin_writer.transport.is_closing()
        assert server.state is ConnectionState.CLOSED
    finally:
        loop.set_task_factory(factory)


class Held:
    """A connection that was taken, its handler, and what was done with them."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.server = Server(address=("127.0.0.1", 1))
        self.server.state = ConnectionState.OPEN
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reads = asyncio.Event()
        writer = SimpleNamespace(close=lambda: self.done.append("closed"), transport=None)
        self.io: Any = SimpleNamespace(writer=writer, handler=None)
        self.handler: Any = SimpleNamespace(
            transports={self.server: self.io}, handle_connection=self._read, handle_hook=self._hook, log=lambda _: None
        )
        reader: Any = SimpleNamespace(begin=lambda: self.ended, stop=lambda: self.done.append("stopped"))
        client: Any = None
        self.data = ServerConnectionHookData(server=self.server, client=client)
        self.held = HeldConnection(cast("Any", self.handler), self.data, reader, lambda: self.done.append("left"))
        self.io.handler = self.held

    async def did(self, count: int) -> None:
        await until(lambda: len(self.done) >= count)

    async def _read(self, connection: object) -> None:
        self.done.append(("read", connection is self.server, self.io.handler is asyncio.current_task()))
        await self.reads.wait()

    async def _hook(self, hook: Any) -> None:
        self.done.append((type(hook).__name__, hook.data is self.data, self.server.timestamp_end is not None))


READ, LEFT = ("read", True, True), ["left", ("ServerDisconnectedHook", True, True)]


async def test_a_connection_that_the_pool_takes_has_its_hooks_and_is_not_read() -> None:
    held = Held()
    await held.held.release()
    assert (held.done, held.handler.transports) == (["stopped", *LEFT], {})
    held.ended.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert held.done == ["stopped", *LEFT], "what the origin does then concerns the pool"
    other = Held()
    other.io.handler = None
    other.ended.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert other.done == [], "a task reads it already"


async def test_a_connection_that_its_origin_ends_is_read_to_its_end() -> None:
    for closed in (True, False):
        held = Held()
        held.ended.set_result(None)
        await held.did(1)
        assert held.done == [READ]
        if closed:  # as mitmproxy's handler does
            del held.handler.transports[held.server]
        held.reads.set()
        await held.did(4 if closed else 5)
        assert held.done == [READ, "stopped", *([] if closed else ["closed"]), *LEFT]
        assert held.server.state is (ConnectionState.OPEN if closed else ConnectionState.CLOSED)
        assert held.handler.transports == {}


async def test_a_connection_that_is_cancelled_is_closed() -> None:
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    loop.set_task_factory(asyncio.eager_task_factory)  # as the worker's
    try:
        for has_writer in (True, False):
            held = Held()
            if not has_writer:
                held.io.writer = None
            assert held.held.cancel("a test") is True
            await held.did(5 if has_writer else 4)
            assert held.done == [READ, "stopped", *(["closed"] if has_writer else []), *LEFT]
            assert (held.server.state, held.handler.transports) == (ConnectionState.CLOSED, {})
    finally:
        loop.set_task_factory(factory)


def test_the_transport_that_is_left_behind_takes_nothing_and_closes_nothing() -> None:
    left = DetachedTransport()
    for do in (left.close, left.abort):
        do()
    left.write(b"late")
    assert (left.is_closing(), left.get_write_buffer_size()) == (True, 0)


async def test_the_time_of_a_client_runs_while_it_is_connected(start_gateway: StartGateway, origin: Origin) -> None:
    async with start_gateway() as gateway:
        connections = gateway.master.addons.get("proxyserver").connections
        async with asyncio.timeout(10):
            reader, writer = await ask_for_page(gateway.port, origin)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            (handler,) = connections.values()
            timer = handler.timeout_watchdog
            running = connection_handler._deadlines(asyncio.get_running_loop(), timer.timeout)
            assert timer in running
            writer.close()
            await until(lambda: not connections)
        assert timer not in running


async def test_a_client_that_has_left_shows_no_layers(start_gateway: StartGateway, origin: Origin) -> None:
    async with start_gateway() as gateway:
        connections = gateway.master.addons.get("proxyserver").connections
        async with asyncio.timeout(10):
            reader, writer = await ask_for_page(gateway.port, origin)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            (handler,) = connections.values()
            assert handler.layer.context.layers
            writer.close()
            await until(lambda: not connections)
        assert handler.layer.context.layers == []
