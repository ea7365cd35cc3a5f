"""Tunnels that the listener has opened, and the same ones read by mitmproxy: the same bytes, hooks and records."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any

import pytest
import trustme
from mitmproxy.connection import Client

from gatewayfilter.proxy.mitm import server
from gatewayfilter.proxy.mitm.fastpath.tunnel_layer import TunnelLayer
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway, Origin

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
GET = b"GET /page HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"
HOOKS = frozenset({
    "client_connected", "tls_clienthello", "tls_start_client", "tls_established_client", "requestheaders", "request",
    "server_connect", "server_connected", "tls_start_server", "tls_established_server", "responseheaders", "response",
})  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each tunnel that the listener has opened had been answered before."""
    made: list[bool] = []

    class Noted(TunnelLayer):
        def __init__(self, context: Any, *, answered: bool) -> None:
            made.append(answered)
            super().__init__(context, answered=answered)

    monkeypatch.setattr(server, "TunnelLayer", Noted)
    return made


@dataclass
class Hooks:
    """Notes the hooks of a connection, and where they find it to lead."""

    seen: list[tuple[object, ...]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name not in HOOKS:
            raise AttributeError(name)

        def note(subject: Any) -> None:
            request = getattr(subject, "request", None)
            client = subject if isinstance(subject, Client) else None
            self.seen.append((name, request and (request.scheme, request.host, request.port, request.path), bool(client)))

        return note


def from_tunnel(gateway: Gateway) -> list[tuple[str, str, str]]:
    return [(record.method, record.url, record.reason) for record in gateway.records]


async def send(gateway: Gateway, head: bytes, *, tls: ssl.SSLContext | None, name: str, inside: bytes, early: bool) -> bytes:
    """Opens a tunnel and sends a request inside of it. Returns what came inside."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    async with asyncio.timeout(10):
        writer.write(head + (inside if early else b""))
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.replace(b"HTTP/1.0", b"HTTP/1.1") == OPENED
        if tls is not None:
            await writer.start_tls(tls, server_hostname=name)
        if not early:
            writer.write(inside)
        got = await reader.read()
    writer.close()
    return got


@pytest.mark.parametrize(
    ("connect", "taken"),
    [
        (b"CONNECT localhost:PORT HTTP/1.1\r\nHost: localhost:PORT\r\nUser-Agent: x\r\n\r\n", True),
        (b"\r\nCONNECT localhost:PORT HTTP/1.1\r\n\r\n", True),
        (b"CONNECT LocalHost:PORT HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", False),
        (b"CONNECT localhost:PORT HTTP/1.0\r\n\r\n", False),
    ],
)
@pytest.mark.parametrize("way", ["tls", "plain", "early"])
async def test_both_ways_are_equal(
    connect: bytes,
    taken: bool,  # noqa: FBT001  a column
    way: str,
    start_gateway: StartGateway,
    origin: Origin,
    client_tls: ssl.SSLContext,
    opened: list[bool],
) -> None:
    port = (origin.https if way == "tls" else origin.http).rpartition(":")[2].encode()
    found = []
    for fast_path in (True, False):
        async with start_gateway(fast_path=fast_path) as gateway:
            hooks = Hooks()
            gateway.master.addons.add(hooks)
            got = await send(
                gateway,
                connect.replace(b"PORT", port),
                tls=client_tls if way == "tls" else None,
                name="localhost",
                inside=GET.replace(b"HOST", b"localhost:" + port),
                early=way == "early",
            )
            assert got.startswith(b"HTTP/1.1 200")
            found.append((got.partition(b"\r\n")[0], got.rpartition(b"\r\n\r\n")[2], hooks.seen, from_tunnel(gateway)))
    quick, slow = found
    assert quick == slow
    assert opened == [False] * taken


async def test_hooks_of_a_connect_get_its_flow(start_gateway: StartGateway, origin: Origin, opened: list[bool]) -> None:
    """An addon that reads a CONNECT, such as the log-in, gets it from mitmproxy."""

    class Reads:
        name = "reads"

        def http_connect(self, flow: Any) -> None:
            flow.response = type(flow.response).make(403) if flow.response else None
            seen.append(flow.request.host)

    seen: list[str] = []
    port = origin.http.rpartition(":")[2].encode()
    async with start_gateway() as gateway:
        gateway.master.addons.add(Reads())
        inside = GET.replace(b"HOST", b"localhost:" + port)
        got = await send(gateway, b"CONNECT localhost:%b HTTP/1.1\r\n\r\n" % port, tls=None, name="", inside=inside, early=False)
        assert got.startswith(b"HTTP/1.1 200")
    assert seen == ["localhost"]
    assert opened == []


@pytest.mark.parametrize("fast_path", [True, False])
async def test_other_protocols_inside_tls_reach_their_origin_by_tls(
    fast_path: bool,  # noqa: FBT001  a column
    start_gateway: StartGateway,
    authority: trustme.CA,
    client_tls: ssl.SSLContext,
) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"heard " + await reader.read(100))
        writer.close()

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    async with (
        await asyncio.start_server(echo, "127.0.0.1", 0, ssl=tls) as served,
        start_gateway(fast_path=fast_path, raw_tcp="on") as gateway,
    ):
        head = b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % served.sockets[0].getsockname()[1]
        got = await send(gateway, head, tls=client_tls, name="localhost", inside=b"\0\1\2raw", early=False)
        assert got == b"heard \0\1\2raw"


@pytest.mark.parametrize("fast_path", [True, False])
async def test_a_hook_leads_later_requests_elsewhere_as_well(
    fast_path: bool,  # noqa: FBT001  a column
    start_gateway: StartGateway,
) -> None:
    """Where a request leads is set by the tunnel before the hook of its headers, and must not be set again after it."""

    class Leads:
        name = "leads"

        def requestheaders(self, flow: Any) -> None:
            if flow.request.path != "/0":
                flow.request.data.port = second.sockets[0].getsockname()[1]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = b"%d" % writer.get_extra_info("sockname")[1]
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(port), port))

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as first,
        await asyncio.start_server(answer, "127.0.0.1", 0) as second,
        start_gateway(fast_path=fast_path) as gateway,
    ):
        gateway.master.addons.add(Leads())
        ports = [b"%d" % one.sockets[0].getsockname()[1] for one in (first, second, second)]
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"CONNECT localhost:%b HTTP/1.1\r\nHost: localhost:%b\r\n\r\n" % (ports[0], ports[0]))
        assert await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(10):
            for number, port in enumerate(ports):
                writer.write(b"GET /%d HTTP/1.1\r\nHost: localhost:%b\r\n\r\n" % (number, ports[0]))
                assert await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(len(port)) == port
        writer.close()
