"""Clients that say a byte now and then: their connections end, whatever they have begun; others do not notice."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h2.config
import h2.connection
import pytest
from mitmproxy.connection import Client, Server
from mitmproxy.test import tflow

from gatewayfilter.proxy.listener import connection_deadlines, handshake, listener
from gatewayfilter.proxy.listener.connection_deadlines import ConnectionDeadlines
from gatewayfilter.telemetry import Counters
from tests.proxy.connection_fakes import WireGateway, client_hello, until, wire_gateway
from tests.proxy.proxy_fakes import Origin
from tests.proxy.split_clients import Channel, channel

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
LIMIT_S = 0.4
DRIP_S = 0.05
LONGEST_S = 20


@pytest.fixture
async def gateway(state: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WireGateway]:
    """A proxy with short limits."""
    monkeypatch.setattr(connection_deadlines, "HEAD_S", LIMIT_S)
    monkeypatch.setattr(connection_deadlines, "HELLO_S", LIMIT_S)
    monkeypatch.setattr(handshake, "HELLO_S", LIMIT_S)
    monkeypatch.setattr(listener, "_SWEEP_S", DRIP_S)
    async with wire_gateway(state, {}) as running:
        yield running


async def drip(client: Channel, piece: bytes) -> bool:
    """Sends a piece again and again. Returns whether the connection was ended meanwhile."""

    async def forever() -> None:
        while True:
            await client.send(piece)
            await asyncio.sleep(DRIP_S)

    dripping = asyncio.create_task(forever())
    try:
        async with asyncio.timeout(LONGEST_S):
            while await client.read():
                pass
    except TimeoutError:
        return False
    except OSError:
        pass
    finally:
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
    return True


async def test_the_first_head(gateway: WireGateway) -> None:
    async with channel(gateway.port) as client:
        await client.send(b"GET http://localhost/ HTTP/1.1\r\n")
        assert await drip(client, b"x: y\r\n")
    assert gateway.counters["header_timeouts"] == 1


async def test_a_later_head(gateway: WireGateway, origin: Origin) -> None:
    async with channel(gateway.port) as client:
        for _ in range(2):
            await client.send(f"GET {origin.http}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert await client.status() == "200"
        await client.send(f"GET {origin.http}/".encode())
        assert await drip(client, b"x")
    assert gateway.counters["header_timeouts"] == 1


async def test_a_head_that_is_slow_but_in_time(gateway: WireGateway, origin: Origin) -> None:
    """Each head has its own time."""
    head = f"GET {origin.http}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with channel(gateway.port) as client:
        for _ in range(4):
            for start in range(0, len(head), 15):
                await client.send(head[start : start + 15])
                await asyncio.sleep(0.02)
            assert await client.status() == "200"
        await asyncio.sleep(2 * LIMIT_S)  # and between two requests there is no limit but that of silence
        await client.send(head)
        assert await client.status() == "200"


async def test_a_connect(gateway: WireGateway) -> None:
    async with channel(gateway.port) as client:
        await client.send(b"CONNECT localhost:443 HTTP/1.1\r\n")
        assert await drip(client, b"x: y\r\n")


@pytest.mark.parametrize(
    "first",
    [b"", b"\x16", client_hello("localhost")[:100], b"\r\n", b"SSH-2.0-x"],
    ids=["nothing", "one byte", "part of a ClientHello", "line end", "part of an SSH banner"],
)
async def test_a_tunnel_in_which_nothing_becomes_clear(first: bytes, gateway: WireGateway) -> None:
    async with channel(gateway.port, "localhost:443") as client:
        await client.send(first)
        async with asyncio.timeout(LONGEST_S):
            assert await client.read() == b""
    assert gateway.counters["header_timeouts"] == 1


async def test_a_handshake_in_drips(gateway: WireGateway) -> None:
    async with channel(gateway.port, "localhost:443") as client:
        await client.send(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")
        assert await drip(client, b"\0")


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
async def test_inside_tls(protocol: str, gateway: WireGateway, client_tls: ssl.SSLContext) -> None:
    client_tls.set_alpn_protocols([protocol])
    begun: dict[str, Callable[[Channel], Awaitable[bool]]] = {"h2": drip_continuations, "http/1.1": drip_fields}
    async with channel(gateway.port, "localhost:443") as client:
        assert await client.begin_tls(client_tls, "localhost") == protocol
        assert await begun[protocol](client)
    assert gateway.counters["header_timeouts"] == 1


async def drip_fields(client: Channel) -> bool:
    await client.send(b"GET / HTTP/1.1\r\n")
    return await drip(client, b"x: y\r\n")


async def drip_continuations(client: Channel) -> bool:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    await client.send(connection.data_to_send() + b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82")  # HEADERS without END_HEADERS
    return await drip(client, b"\x00" if len(connection.streams) else b"\x00\x00\x01\x09\x00\x00\x00\x00\x01\x84")


async def test_a_frame_of_headers_in_drips(gateway: WireGateway, client_tls: ssl.SSLContext) -> None:
    client_tls.set_alpn_protocols(["h2"])
    async with channel(gateway.port, "localhost:443") as client:
        await client.begin_tls(client_tls, "localhost")
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        connection.initiate_connection()
        await client.send(connection.data_to_send() + b"\x00\x3f\xff\x01\x04\x00\x00\x00\x01")
        assert await drip(client, b"\x82")


async def test_http2_goes_on_after_its_limit(gateway: WireGateway, client_tls: ssl.SSLContext) -> None:
    client_tls.set_alpn_protocols(["h2"])
    async with channel(gateway.port, "localhost:443") as client:
        await client.begin_tls(client_tls, "localhost")
        await asyncio.sleep(2 * LIMIT_S)
        assert await client.status_by_http2("localhost", "/blocked", 30) == "403 blacklist"
    assert gateway.counters["header_timeouts"] == 0


def deadlines_of(ended: list[str], monkeypatch: pytest.MonkeyPatch, *clients: Client) -> tuple[ConnectionDeadlines, Counters]:
    """The addon with limits of no time, among connections that note their end."""

    def connection(client: Client) -> SimpleNamespace:
        handler = SimpleNamespace(cancel=lambda _: ended.append(client.id))
        return SimpleNamespace(client=client, transports={client: SimpleNamespace(handler=handler)})

    for name in ("HELLO_S", "HEAD_S"):
        monkeypatch.setattr(connection_deadlines, name, 0.0)
    server = SimpleNamespace(connections={client.id: connection(client) for client in clients})
    monkeypatch.setattr(connection_deadlines, "ctx", SimpleNamespace(master=SimpleNamespace(addons={"proxyserver": server})))
    counters = Counters()
    addon = ConnectionDeadlines(counters)
    addon.running()
    return addon, counters


def handshake_of(conn: Client | Server, client: Client, *, ignored: bool = False) -> Any:
    return SimpleNamespace(conn=conn, context=SimpleNamespace(client=client), ignore_connection=ignored)


async def test_a_limit_does_not_start_again_and_is_lifted_by_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = [Client(peername=(f"192.0.2.{number}", 1), sockname=("192.0.2.1", 8080)) for number in range(7)]
    first, second, passed, established, gone, read, unknown = clients
    ended: list[str] = []
    addon, counters = deadlines_of(ended, monkeypatch, *clients[:-1])
    addon.http_connected(tflow.tflow(client_conn=first))
    for client in clients[1:]:
        addon.tunnel_opened(client)
    addon.begin_hello(first)
    addon.tls_clienthello(handshake_of(second, second))
    addon.tls_clienthello(handshake_of(passed, passed, ignored=True))
    addon.tls_established_client(handshake_of(Server(address=("a.test", 443)), second))
    addon.tls_established_client(handshake_of(established, established))
    addon.lift(read)
    addon.head_begun(gone)
    addon.client_disconnected(gone)
    addon.head_begun(read)
    addon.head_done(read)
    await until(lambda: len(ended) >= 2)
    await asyncio.sleep(0)
    assert ended == [first.id, second.id]
    assert counters.as_dict() == {"header_timeouts": 2}
    addon.head_begun(read)
    await until(lambda: len(ended) == 3)
    assert (ended[2], counters["header_timeouts"]) == (read.id, 3)
    addon.begin_hello(first)
    addon.head_begun(first)
    addon.done()
    await asyncio.sleep(0.002)
    assert len(ended) == 3
    assert unknown.id not in ended


def test_without_a_proxy_server_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_deadlines, "ctx", SimpleNamespace(master=SimpleNamespace(addons={})))
    addon = ConnectionDeadlines(Counters())
    addon.running()
    client = Client(peername=("192.0.2.7", 1), sockname=("192.0.2.1", 8080))
    addon.begin_hello(client)
    addon.head_begun(client)
    addon.client_disconnected(client)
    addon.done()
