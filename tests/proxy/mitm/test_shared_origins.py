"""Connections to origins that outlive their client: who gets them, who must not, and what a hostile origin or client gains."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

import pytest
import trustme
from mitmproxy import http
from mitmproxy.connection import Client, Server
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._events import RequestHeaders

from gatewayfilter.proxy.mitm import shared_origins
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.sharing import Sharing, note_sharing, sharing_of
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway
from tests.proxy.test_lean_proxy import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class CountingOrigin:
    """An origin that keeps connections open, and answers as it is told.

    Args:
        answer: of every request.
        tls: `None` for plain HTTP.
    """

    def __init__(self, answer: bytes = OK, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.late = b""
        self.closes_second = False
        self.connections = 0
        self.requests: list[tuple[int, str]] = []
        self.writers: list[asyncio.StreamWriter] = []
        self._tls = tls
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()
        for writer in self.writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self.writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            for turn in range(1000):
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append((number, head.split(b" ", 2)[1].decode().rpartition("/")[2]))
                if turn and self.closes_second:
                    writer.transport.abort()
                    return
                writer.write(self.answer)
                if self.late:
                    await writer.drain()
                    writer.write(self.late)


@pytest.fixture
async def gateway(start_gateway: StartGateway) -> AsyncIterator[Gateway]:
    async with start_gateway(shared_origins=256) as running:
        yield running


@pytest.fixture
def origin_tls(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(made)
    return made


async def visit(
    gateway: Gateway,
    origin: CountingOrigin,
    name: str,
    head: str = "",
    tls: ssl.SSLContext | None = None,
    host: str = "localhost",
) -> bytes:
    """Sends a request over a client connection of its own, and leaves. Returns what came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    at = f"{host}:{origin.port}"
    if tls is not None:
        writer.write(f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(tls, server_hostname=host)
    begin = "" if tls is not None else f"http://{at}"
    method, _, rest = head.partition(" ") if head.startswith(("POST ", "DELETE ")) else ("GET", "", head)
    fields, _, body = rest.partition("|")
    writer.write(f"{method} {begin}/{name} HTTP/1.1\r\nHost: {at}\r\n{fields}\r\n{body}".encode())
    got = b""
    with suppress(asyncio.IncompleteReadError):
        got = await reader.readuntil(b"\r\n\r\n")
        size = int(got.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        got += await reader.readexactly(size)
    writer.close()
    return got


async def left(gateway: Gateway, kept: int) -> None:
    """Waits until all clients have left, and checks how many connections to origins are kept."""
    await until(lambda: not gateway.master._proxyserver.connections)
    assert len(gateway.master._shared) == kept


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("fast_path", [True, False])
async def test_the_next_client_gets_the_connection(
    start_gateway: StartGateway, origin_tls: ssl.SSLContext, client_tls: ssl.SSLContext, *, secure: bool, fast_path: bool
) -> None:
    async with (
        start_gateway(shared_origins=256, fast_path=fast_path) as gateway,
        CountingOrigin(OK, origin_tls if secure else None).running() as origin,
    ):
        for number in range(4):
            assert (await visit(gateway, origin, str(number), tls=client_tls if secure else None)).endswith(b"\r\n\r\nok")
            await left(gateway, 1)
            (parked,) = gateway.master._shared._parked
            sharing = sharing_of(parked.tls.before)
            assert sharing is not None
            assert sharing.http_layer is None  # earlier clients are not kept in memory
            assert sharing.adopted is None
        assert origin.requests == [(1, "0"), (1, "1"), (1, "2"), (1, "3")]
        assert gateway.master._shared._counters["origin_connections_shared"] == 3


async def test_it_can_be_turned_off(start_gateway: StartGateway) -> None:
    async with start_gateway(shared_origins=0) as gateway, CountingOrigin().running() as origin:
        for _ in range(2):
            await visit(gateway, origin, "x")
            await left(gateway, 0)
        assert origin.connections == 2


@pytest.mark.parametrize(
    "head",
    [
        "Authorization: NTLM TlRMTVNTUAABAAAA\r\n",
        "authorization: negotiate YIIJ\r\n",
        "Authorization: Basic QTpC\r\nAuthorization: NTLM QQ==\r\n",
        "Authorization: Unheard-of x\r\n",
        "POST Content-Length: 4\r\n|body",
        "POST Content-Length: 0\r\n|",
        "DELETE \r\n|",
        "Connection: close\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    ],
)
async def test_a_connection_that_may_carry_something_of_its_client_is_not_kept(gateway: Gateway, head: str) -> None:
    """A login of the connection, or a body that the origin may take for the next request."""
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first", head.replace("DELETE \r\n", "DELETE X: y\r\n"))
        await left(gateway, 0)
        await visit(gateway, origin, "second")
        assert [number for number, _ in origin.requests] == [1, 2]


@pytest.mark.parametrize("body", [False, True])
def test_a_body_without_a_length_binds_as_well(*, body: bool) -> None:
    """By HTTP/2 a GET with a body looks like one without; an origin that passes over bodies takes it for the next request."""
    server = Server(address=("localhost", 443))
    sharing = Sharing(None, may_adopt=True)
    note_sharing(server, sharing)
    request = http.Request.make("GET", "https://localhost/")
    request.http_version = "HTTP/2.0"
    client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
    context = Context(client, Options())
    context.server = server
    list(GatewayHttp1Client(context).send(RequestHeaders(1, request, end_stream=not body)))
    assert sharing.bound is body


async def test_a_login_on_the_fast_path_binds_as_well(gateway: Gateway) -> None:
    async with CountingOrigin().running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for field in ("", "Authorization: Bearer x\r\n", "Authorization: NTLM TlRM\r\n", ""):
            writer.write(f"GET http://localhost:{origin.port}/ HTTP/1.1\r\nHost: x\r\n{field}\r\n".encode())
            await reader.readuntil(b"\r\n\r\nok")
        writer.close()
        await left(gateway, 0)
        assert origin.connections == 1


async def test_a_login_that_a_hook_adds_binds_as_well(gateway: Gateway) -> None:
    class LogsIn:
        name = "logsin"

        def request(self, flow: http.HTTPFlow) -> None:
            if flow.request.path == "/in":
                flow.request.headers["authorization"] = "Negotiate YIIJ"

    gateway.master.addons.add(LogsIn())
    async with CountingOrigin().running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for path in ("", "in", ""):
            writer.write(f"GET http://localhost:{origin.port}/{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\nok")
        writer.close()
        await left(gateway, 0)
        assert origin.connections == 1


@pytest.mark.parametrize("head", ["", "Authorization: Basic QTpC\r\n", "Authorization: Bearer abc\r\n", "Cookie: a=b\r\n"])
async def test_credentials_of_a_request_do_not_bind(gateway: Gateway, head: str) -> None:
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first", head)
        await left(gateway, 1)


async def test_an_unsafe_request_takes_no_idle_connection(gateway: Gateway) -> None:
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        await visit(gateway, origin, "post", "POST Content-Length: 4\r\n|body")
        await left(gateway, 1)
        assert [number for number, _ in origin.requests] == [1, 2]


async def test_another_name_another_scheme_and_another_port_get_their_own(
    gateway: Gateway, origin_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with CountingOrigin(OK, origin_tls).running() as one, CountingOrigin().running() as other:
        await visit(gateway, one, "a", tls=client_tls)
        await left(gateway, 1)
        await visit(gateway, one, "b", tls=client_tls, host="127.0.0.1")
        await left(gateway, 2)
        await visit(gateway, other, "c")
        await left(gateway, 3)
        assert one.connections == 2
        assert other.connections == 1


async def test_a_name_that_leads_elsewhere_by_now_gets_a_new_connection(gateway: Gateway) -> None:
    """Another resolution, another policy: what a client may connect to now is what counts."""
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        (parked,) = gateway.master._shared._parked
        server = parked.tls.before
        sharing = sharing_of(server)
        assert sharing is not None
        sharing.adopted = None
        token = shared_origins._connecting.set(server)
        try:
            assert await gateway.master._shared.take([(2, 1, 6, "", ("127.0.0.9", origin.port))]) is None
            assert len(gateway.master._shared) == 1
            assert await gateway.master._shared.take([(2, 1, 6, "", ("127.0.0.1", origin.port))]) is parked.transport
        finally:
            shared_origins._connecting.reset(token)


@pytest.mark.parametrize(
    "late",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTOLE", b"x", b"HTTP/1.1 103 Early Hints\r\nLink: </evil.js>\r\n\r\n"],
    ids=["a second response", "leftover bytes", "an interim response"],
)
async def test_what_comes_after_a_response_reaches_no_other_client(gateway: Gateway, late: bytes) -> None:
    async with CountingOrigin().running() as origin:
        origin.late = late
        await visit(gateway, origin, "first")
        await until(lambda: not gateway.master._proxyserver.connections and not len(gateway.master._shared))
        origin.late = b""
        assert (await visit(gateway, origin, "second")).endswith(b"\r\n\r\nok")
        assert origin.requests == [(1, "first"), (2, "second")]


async def test_what_comes_while_a_connection_is_kept_closes_it(gateway: Gateway) -> None:
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        origin.writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTOLE")
        await until(lambda: len(gateway.master._shared) == 0)
        assert (await visit(gateway, origin, "second")).endswith(b"\r\n\r\nok")


async def test_what_the_kernel_holds_at_the_moment_of_taking_closes_it(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_origins._Parked, "data_received", lambda *_: pytest.fail("read before it was taken"))
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        (parked,) = gateway.master._shared._parked
        parked.transport.pause_reading()  # as if the event loop had not come to it yet
        origin.writers[0].write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTOLE")
        await origin.writers[0].drain()
        await until(lambda: shared_origins._is_readable(parked.transport))
        assert (await visit(gateway, origin, "second")).endswith(b"\r\n\r\nok")
        assert [number for number, _ in origin.requests] == [1, 2]


async def test_a_connection_that_its_origin_closes_on_the_request_is_replaced(gateway: Gateway) -> None:
    async with CountingOrigin().running() as origin:
        origin.closes_second = True
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        assert (await visit(gateway, origin, "second")).endswith(b"\r\n\r\nok")
        assert origin.requests == [(1, "first"), (1, "second"), (2, "second")]
        assert gateway.counters["origin_errors"] == 0


async def test_what_its_origin_has_closed_is_forgotten(gateway: Gateway) -> None:
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 1)
        origin.writers[0].close()
        await until(lambda: len(gateway.master._shared) == 0)
        assert not gateway.master._shared._origins


async def test_number_and_age_are_bounded(start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with start_gateway(shared_origins=2) as gateway:
        shared = gateway.master._shared
        async with CountingOrigin().running() as one, CountingOrigin().running() as two, CountingOrigin().running() as three:
            for origin in (one, two, three):
                await visit(gateway, origin, "first")
                await until(lambda: not gateway.master._proxyserver.connections)
            assert len(shared) == 2
            await visit(gateway, one, "again")
            assert one.connections == 2  # the oldest one was given up
            await left(gateway, 2)
            monkeypatch.setattr(shared_origins, "MOST_IDLE_S", 0.0)
            shared._sweep()
            assert len(shared) == 0
            assert not shared._origins


async def test_an_old_connection_is_not_shared(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_origins, "MOST_AGE_S", 0.0)
    async with CountingOrigin().running() as origin:
        await visit(gateway, origin, "first")
        await left(gateway, 0)


async def test_a_silent_client_lends_its_idle_connection(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with CountingOrigin().running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        ask = f"GET http://localhost:{origin.port}/silent HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        writer.write(ask)
        await reader.readuntil(b"\r\n\r\nok")
        await visit(gateway, origin, "soon")
        assert [number for number, _ in origin.requests] == [1, 2]
        await until(lambda: len(gateway.master._shared) == 1)
        gateway.master._shared.drop(next(iter(gateway.master._shared._parked)))
        monkeypatch.setattr(shared_origins, "_LENT_AFTER_S", -1.0)
        await visit(gateway, origin, "later")
        assert origin.requests[-1] == (1, "later")
        monkeypatch.undo()
        writer.write(ask)
        await reader.readuntil(b"\r\n\r\nok")
        assert [path for _, path in origin.requests] == ["silent", "soon", "later", "silent"]
        writer.close()


async def test_an_untrusted_origin_is_refused_each_time(gateway: Gateway, client_tls: ssl.SSLContext) -> None:
    stranger = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(stranger)
    async with CountingOrigin(OK, stranger).running() as origin:
        for _ in range(2):
            assert (await visit(gateway, origin, "x", tls=client_tls)).startswith(b"HTTP/1.1 502")
            await left(gateway, 0)
        assert not origin.requests
