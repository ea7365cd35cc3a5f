"""Odd ends of connections to origins that were taken from the pool; and what reviews see of clients that have left."""

import asyncio
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from mitmproxy import options
from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import commands, events, mode_specs
from mitmproxy.proxy.server import ConnectionIO
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler, HeldConnection
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
