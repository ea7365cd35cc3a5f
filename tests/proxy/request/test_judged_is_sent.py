"""What an origin gets is what was judged, to the byte, or it gets nothing: odd requests by every way into the proxy."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h2.config
import h2.connection
import pytest
import trustme

from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import Gateway

pytestmark = pytest.mark.slow

END = b"\r\n\r\n"


@dataclass
class Recorder:
    """An origin that answers everything and keeps each request head, by HTTP and by HTTPS on two ports."""

    heads: list[bytes] = field(default_factory=list)
    http: int = 0
    https: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(END)
                if not head.startswith(b"GET /first "):
                    self.heads.append(head)
                if b"content-length: 4" in head.lower():
                    await reader.readexactly(4)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.fixture
async def recorder(authority: trustme.CA) -> AsyncIterator[Recorder]:
    found = Recorder()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    plain = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    sealed = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=tls)
    async with plain, sealed:
        found.http = plain.sockets[0].getsockname()[1]
        found.https = sealed.sockets[0].getsockname()[1]
        yield found


def asked_of(head: bytes, scheme: str, port: int) -> str:
    """Returns the URL that a head asks an origin for, as it is written; the port is the connection's where Host has none."""
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, path, version = line.split(" ")
    assert version in {"HTTP/1.1", "HTTP/1.0"}
    [host] = [text.partition(":")[2].strip() for text in fields if text.lower().startswith("host:")]
    host = host.lower()
    name = host if ":" in host else f"{host}:{port}"
    return f"{scheme}://{name}{'/' if (method, path) == ('OPTIONS', '*') else path}"


PATHS = [
    b"/plain", b"/plain?x=%2e%2e/y", b"//secret/1", b"/secret/%2e%2e/ok", b"/secret/.%2E/ok", b"/secret/%2e./ok",
    b"/secret/x/../../ok", b"/secret/./ok", b"/secret/..", b"/..", b"/secret/x\\..\\..\\ok", b"/\\secret\\1", b"\\secret",
    b"/secret%2f1", b"/secret%5c..%5cok", b"/secret;v=1/1", b"/secret%00/1", b"/ok?%00", b"/secret#/../ok", b"/ok?a#b", b"/#",
    b"/a\x01b", b"/a\x7fb", b"/a\tb", b"/a b", b"/sec\xc3\xa9t", b"/\xff", b'/a"b', b"/a<b>", b"/a{b}", b"/a|b", b"/a^b", b"/a`b",
    b"/a?b'c", b'/a?b"c', b"/a?b<c>", b"/a?", b"/a??", b"/%", b"/%zz", b"/%2", b"/a%0d%0aHost:%20x", b"/a%20b", b"*", b"/*",
    b"/.", b"/...", b"/a/..;/b", b"/;/../a", b"//", b"///", b"//other.test/x", b"/http://other.test/x", b"/@other.test", b"/:80",
    b"/%61", b"/a%2Fb%2fc", b"/a/%252e%252e/b", b"/a/%c0%ae%c0%ae/b", b"/\xe3\x80\x82./b", b"?x", b"x", b"",
]  # fmt: skip

HOSTS = [
    b"localhost:PORT", b"LOCALHOST:PORT", b"localhost", b"localhost.:PORT", b"localhost:1", b"localhost:PORT0", b"localhost:",
    b"loc\xc2\xadalhost:PORT", b"localhost\xc2\xa0:PORT", b"l\xc3\xb6calhost", b"loc%61lhost:PORT", b"localhost\x0b:PORT",
    b"localhost\x01", b"user@localhost:PORT", b"user:pass@localhost:PORT", b"localhost:PORT:PORT", b"localhost:PORT, other.test",
    b"localhost,other.test", b"localhost/", b"localhost?", b"localhost#", b"localhost\\", b"other.test", b"other.test:PORT", b"",
    b"[::1]:PORT", b"127.0.0.1:PORT", b"127.1:PORT", b"0x7f.1:PORT", b"xn--bcher-kva.test", b"a" * 1025, b"a" * 64,
    b"localhost" + b"\xad" * 60_000, b"localhost:+80", b"localhost:8\xb2",
]  # fmt: skip


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        async with asyncio.timeout(20):
            yield reader, writer
    finally:
        writer.transport.abort()


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Returns the status line of an answer, `b""` when the connection ended instead."""
    try:
        head = await reader.readuntil(END)
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        await reader.readexactly(int(length.partition(b":")[2]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    return head.partition(b"\r\n")[0]


def check(gateway: Gateway, recorder: Recorder, scheme: str, status: bytes, what: object) -> None:
    """Refused, or sent as it was judged."""
    judged = [record.url for record in gateway.records if not record.url.endswith("/first")]
    if b" 200 " not in status:
        assert recorder.heads == [], what
        return
    port = recorder.http if scheme == "http" else recorder.https
    default = 80 if scheme == "http" else 443
    sent = [asked_of(head, scheme, port).replace(f":{default}/", "/", 1) for head in recorder.heads]
    assert sent == judged, what
    assert len(sent) == 1, what


WAYS = ["absolute", "tunnel", "tls"]


async def ask(
    way: str, gateway: Gateway, recorder: Recorder, tls: ssl.SSLContext, *, path: bytes, host: bytes, second: bool, body: bool
) -> None:
    scheme = "https" if way == "tls" else "http"
    port = recorder.https if way == "tls" else recorder.http
    authority = b"localhost:%d" % port
    target = b"http://" + authority if way == "absolute" else b""
    async with connected(gateway) as (reader, writer):
        if way != "absolute":
            writer.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (authority, authority))
            await reader.readuntil(END)
        if way == "tls":
            await writer.start_tls(tls, server_hostname="localhost")
        if second:
            writer.write(b"GET %b/first HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, authority))
            assert b" 200 " in await answer(reader)
        method = b"POST" if body else b"OPTIONS" if path == b"*" and second else b"GET"
        length = b"Content-Length: 4\r\n" if body else b""
        line = path if path == b"*" else target + path
        writer.write(b"%b %b HTTP/1.1\r\nHost: %b\r\n%b\r\n%b" % (method, line, host, length, b"body" if body else b""))
        status = await answer(reader)
        check(gateway, recorder, scheme, status, (way, path, host, status, second, body))


async def all_ways(gateway: Gateway, recorder: Recorder, tls: ssl.SSLContext, path: bytes, host: bytes) -> None:
    for way in WAYS:
        port = b"%d" % (recorder.https if way == "tls" else recorder.http)
        for second, body in ((False, False), (True, False), (True, True)):  # the long way, the short one, with a body
            gateway.records.clear()
            recorder.heads.clear()
            await ask(way, gateway, recorder, tls, path=path, host=host.replace(b"PORT", port), second=second, body=body)


@pytest.mark.parametrize("path", PATHS)
async def test_odd_paths(path: bytes, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    await all_ways(gateway, recorder, client_tls, path, b"localhost:PORT")


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: repr(host[:40]))
async def test_odd_hosts(host: bytes, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    await all_ways(gateway, recorder, client_tls, b"/page?x", host)


@pytest.mark.parametrize("host", [b"blo\xc2\xadcked.test", b"blocked.test\xc2\xa0", b"bl\xf6cked.test", b"a" * 1025])
@pytest.mark.parametrize("way", WAYS)
async def test_hosts_that_are_refused(
    host: bytes, way: str, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext
) -> None:
    await ask(way, gateway, recorder, client_tls, path=b"/page", host=host, second=True, body=False)
    assert recorder.heads == []


TARGETS = [
    b"http://user@localhost:PORT/a", b"http://user:pass@localhost:PORT/a", b"http://localhost:PORT:80/a",
    b"http:/localhost:PORT/a", b"http:localhost:PORT/a", b"http://localhost:PORT?x", b"http://localhost:PORT#x/a",
    b"http://localhost:PORT\\a/../b", b"http://localhost\\@other.test:PORT/a", b"http://localhost:PORT@other.test/a",
    b"http://l\xc3\xb6calhost:PORT/a", b"http://localhost\xc2\xa0:PORT/a", b"http://loc\xc2\xadalhost:PORT/a",
    b"HTTP://LOCALHOST:PORT/a/../b", b"http://localhost.:PORT/a", b"http://127.1:PORT/a", b"http://[::ffff:127.0.0.1]:PORT/a",
    b"http://loc%61lhost:PORT/a", b"ftp://localhost:PORT/a", b"http://localhost:0PORT/a", b"http://localhost:PORT",
    b"http://localhost:PORT//a", b"localhost:PORT/a", b"//localhost:PORT/a",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("host", [b"localhost:PORT", b"other.test", b"localhost:9"])
async def test_odd_absolute_targets(target: bytes, host: bytes, gateway: Gateway, recorder: Recorder) -> None:
    port = b"%d" % recorder.http
    for second in (False, True):
        gateway.records.clear()
        recorder.heads.clear()
        async with connected(gateway) as (reader, writer):
            if second:
                writer.write(b"GET http://localhost:%b/first HTTP/1.1\r\nHost: localhost:%b\r\n\r\n" % (port, port))
                assert b" 200 " in await answer(reader)
            writer.write(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target.replace(b"PORT", port), host.replace(b"PORT", port)))
            status = await answer(reader)
        check(gateway, recorder, "http", status, (target, host, status))


@pytest.mark.parametrize(
    "target", [b"l\xc3\xb6calhost:PORT", b"loc\xc2\xadalhost:PORT", b"localhost\xa0:PORT", b"a" * 1025 + b":PORT"]
)
async def test_odd_tunnels(target: bytes, gateway: Gateway, recorder: Recorder) -> None:
    async with connected(gateway) as (reader, writer):
        writer.write(b"CONNECT %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % target.replace(b"PORT", b"%d" % recorder.http))
        assert b" 200 " not in await answer(reader)
    assert recorder.heads == []


@pytest.mark.parametrize(
    "version",
    [b"HTTP/9.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/3.0", b"HTTP/0.9", b"HTTP/1.10", b"HTTP/1.1x", b"http/1.1", b"HTTP/ 1.1", b""],
)
@pytest.mark.parametrize("second", [False, True])
async def test_other_versions(version: bytes, *, second: bool, gateway: Gateway, recorder: Recorder) -> None:
    port = recorder.http
    async with connected(gateway) as (reader, writer):
        if second:
            writer.write(b"GET http://localhost:%d/first HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (port, port))
            assert b" 200 " in await answer(reader)
        writer.write(b"GET http://localhost:%d/a %b\r\nHost: localhost:%d\r\n\r\n" % (port, version, port))
        status = await answer(reader)
    assert status[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 505"}
    assert recorder.heads == []
    assert gateway.counters["blocked"] == gateway.counters["requests"] - second


class BareHttp2(Http2Client):
    """Sends header fields as they are."""

    def raw(self, fields: list[tuple[bytes, bytes]]) -> int:
        self._connection = (
            self._connection
            if self._connection.streams
            else h2.connection.H2Connection(
                h2.config.H2Configuration(
                    header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
                )
            )
        )
        stream = self._connection.get_next_available_stream_id()
        self._connection.initiate_connection()
        self._connection.send_headers(stream, fields, end_stream=True)
        self._writer.write(self._connection.data_to_send())
        return stream


async def ask_http2(
    gateway: Gateway, recorder: Recorder, tls: ssl.SSLContext, path: bytes, authority: bytes, *more: tuple[bytes, bytes]
) -> None:
    tls.set_alpn_protocols(["h2"])
    client = await BareHttp2.connect(gateway, f"https://localhost:{recorder.https}", tls)
    assert isinstance(client, BareHttp2)
    fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority), (b":path", path), *more]
    try:
        status = (await client.answer(client.raw(fields)))[0].encode()
    except (AssertionError, ConnectionError, h2.exceptions.ProtocolError):
        status = b"ended"
    finally:
        client.close()
    check(gateway, recorder, "https", b" %b " % status, (path, authority, more, status))


@pytest.mark.parametrize("path", PATHS)
async def test_odd_paths_over_http2(path: bytes, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    await ask_http2(gateway, recorder, client_tls, path, b"localhost:%d" % recorder.https)


@pytest.mark.parametrize("host", HOSTS[:-3], ids=lambda host: repr(host[:40]))
async def test_odd_hosts_over_http2(host: bytes, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    port = b"%d" % recorder.https
    await ask_http2(gateway, recorder, client_tls, b"/a", host.replace(b"PORT", port))


@pytest.mark.parametrize("host", [b"other.test", b"localhost:9", b"LOCALHOST", b"\xc3\xb6.test", b"a b"])
async def test_a_host_beside_the_authority(host: bytes, gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    await ask_http2(gateway, recorder, client_tls, b"/a", b"localhost:%d" % recorder.https, (b"host", host))


@pytest.mark.parametrize(
    ("connection", "left"),
    [
        (b"keep-alive", {b"connection", b"x-one", b"x-two", b"cookie"}),
        (b"X-One", {b"x-two", b"cookie"}),
        (b"keep-alive, x-one,X-TWO", {b"connection", b"cookie"}),
        (b"Host, cookie, content-length", {b"x-one", b"x-two"}),
        (b"keep-alive\r\nConnection: x-one", {b"connection", b"x-two", b"cookie"}),
    ],
)
async def test_fields_of_one_hop_end_here(connection: bytes, left: set[bytes], gateway: Gateway, recorder: Recorder) -> None:
    port = recorder.http
    async with connected(gateway) as (reader, writer):
        writer.write(
            b"GET http://localhost:%d/a HTTP/1.1\r\nHost: localhost:%d\r\n" % (port, port)
            + b"X-One: 1\r\nX-Two: 2\r\nCookie: c\r\nConnection: %b\r\n\r\n" % connection
        )
        assert b" 200 " in await answer(reader)
    [head] = recorder.heads
    names = {line.partition(b":")[0].lower() for line in head.strip().split(b"\r\n")[1:]}
    assert names == left | {b"host"}


async def test_trailers_over_http2(gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext) -> None:
    client_tls.set_alpn_protocols(["h2"])
    client = await BareHttp2.connect(gateway, f"https://localhost:{recorder.https}", client_tls)
    stream = client.ask("POST", "/a", body=True)
    client.send(stream, b"ok")
    client._connection.send_headers(stream, [("host", "x"), ("set-cookie", "a=b"), ("x-sum", "7")], end_stream=True)
    client._writer.write(client._connection.data_to_send())
    assert (await client.answer(stream))[0] == "200"
    client.close()
    head, body = recorder.heads
    assert head.startswith(b"POST /a HTTP/1.1\r\n")
    assert body == b"2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"


@pytest.mark.parametrize(
    "more",
    [
        [(b"content-length", b"5")],
        [(b"content-length", b"0"), (b"content-length", b"5")],
        [(b"content-length", b"+0")],
        [(b"transfer-encoding", b"chunked")],
        [(b"connection", b"x")],
        [(b"te", b"chunked")],
        [(b"x y", b"1")],
        [(b"x:y", b"1")],
        [(b"x\r\nhost", b"1")],
        [(b"X", b"1")],
        [(b"", b"1")],
        [(b"x", b"1\r\nhost: other.test")],
        [(b"x", b"1\x00")],
        [(b":path", b"/other")],
        [(b":protocol", b"websocket")],
        [(b"host", b"localhost"), (b"host", b"other.test")],
    ],
)
async def test_odd_fields_over_http2(
    more: list[tuple[bytes, bytes]], gateway: Gateway, recorder: Recorder, client_tls: ssl.SSLContext
) -> None:
    await ask_http2(gateway, recorder, client_tls, b"/a", b"localhost:%d" % recorder.https, *more)
    assert recorder.heads == []
