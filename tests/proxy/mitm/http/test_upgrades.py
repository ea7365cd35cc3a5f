"""An answer 101 passes to a request that asked for a WebSocket, and to no other."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from contextlib import asynccontextmanager
from hashlib import sha1
from typing import Any

import pytest
from mitmproxy import flow, http
from mitmproxy.addons.disable_h2c import DisableH2C
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm.http.upgrades import PlainRequests, is_websocket_answer
from tests.case_tables import all_cases
from tests.proxy.proxy_fakes import Gateway

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""Of RFC 6455 §1.3."""
ASKED = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}
ANSWERED = {"Upgrade": "WebSocket", "Connection": "keep-alive, upgrade", "Sec-WebSocket-Accept": ACCEPT}


def changes() -> Iterator[tuple[str, dict[str, str | None], dict[str, str | None], bool]]:
    yield "as it should be", {}, {}, True
    for name in ASKED:
        yield f"asked without {name}", {name: None}, {}, False
    for name in ANSWERED:
        yield f"answered without {name}", {}, {name: None}, False
    yield "h2c", {"Upgrade": "h2c"}, {}, False
    yield "two tokens", {"Upgrade": "websocket, foo"}, {}, False
    yield "a version of it", {"Upgrade": "websocket/13"}, {}, False
    yield "another answer", {}, {"Upgrade": "foo"}, False
    yield "another connection option", {"Connection": "keep-alive"}, {}, False
    yield "an old version", {"Sec-WebSocket-Version": "8"}, {}, False
    yield "a short key", {"Sec-WebSocket-Key": "abcd"}, {}, False
    yield "another key's accept", {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}, {}, False


@all_cases(("why", "asked", "answered", "right"), list(changes()))
@all_cases("method", [b"GET", b"POST"])
@all_cases("version", [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0"])
def test_what_is_a_websocket(
    *, why: str, asked: dict[str, str | None], answered: dict[str, str | None], right: bool, method: bytes, version: bytes
) -> None:
    request = http.Request.make("GET", "http://a.example/", b"", http.Headers(fields(ASKED, asked)))
    request.data.method, request.data.http_version = method, version
    response = http.Response.make(101, b"", http.Headers(fields(ANSWERED, answered)))
    assert is_websocket_answer(request, response) is (right and method == b"GET" and version == b"HTTP/1.1"), why
    assert is_websocket_answer(None, response) is False


def fields(usual: dict[str, str], changed: dict[str, str | None]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in {**usual, **changed}.items() if value is not None]


def test_a_field_twice_is_not_right() -> None:
    for name in ("Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version"):
        request = http.Request.make("GET", "http://a.example/", b"", http.Headers(fields(ASKED, {})))
        request.headers.add(name, ASKED[name])
        assert is_websocket_answer(request, http.Response.make(101, b"", http.Headers(fields(ANSWERED, {})))) is False


@asynccontextmanager
async def switching(status_line: bytes, answered: dict[str, str]) -> Any:
    """An origin that switches protocols whatever it is asked, and says `unread` to all that follows."""
    heard = bytearray()
    peers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        heard.extend(head)
        found = {**answered}
        for line in head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "sec-websocket-key":
                digest = sha1(value.strip().encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
                found["Sec-WebSocket-Accept"] = b64encode(digest).decode()
        writer.write(status_line + "".join(f"{name}: {value}\r\n" for name, value in found.items()).encode() + b"\r\n")
        try:
            while data := await reader.read(65536):
                heard.extend(data)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nunread")
        except OSError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        server.close()
        for peer in peers:
            peer.transport.abort()


UPGRADES: tuple[dict[str, str], ...] = (
    {},
    {"Upgrade": "foo", "Connection": "Upgrade"},
    {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABkAAQAoAAAAAIAAAAA"},
    {"Upgrade": "websocket", "Connection": "Upgrade"},
    {"Upgrade": "websocket, foo", **{name: value for name, value in ASKED.items() if name != "Upgrade"}},
)


@pytest.mark.parametrize("asked", UPGRADES, ids=[str(item.get("Upgrade")) for item in UPGRADES])
@pytest.mark.parametrize("line", [b"HTTP/1.1 101 Switching Protocols\r\n", b"HTTP/1.0 0101 x\r\n", b"HTTP/1.1 +101\r\n"])
@pytest.mark.parametrize("tunnel", [False, True])
async def test_a_101_that_was_not_asked_for(*, asked: dict[str, str], line: bytes, tunnel: bool, gateway: Gateway) -> None:
    async with switching(line, {"Upgrade": asked.get("Upgrade", "foo"), "Connection": "Upgrade"}) as (port, heard):
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            target = f"http://localhost:{port}"
            if tunnel:
                writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
                target = ""
            head = f"GET {target}/first HTTP/1.1\r\nHost: localhost:{port}\r\n"
            writer.write((head + "".join(f"{name}: {value}\r\n" for name, value in asked.items()) + "\r\n").encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 502"), answer
            try:
                writer.write(f"GET {target}/blocked HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                rest = await reader.read()
            except ConnectionError:
                rest = b""
            writer.close()
        assert b"unread" not in rest
        assert b"/blocked" not in heard


async def test_what_follows_a_websocket_is_read_as_one(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    async with switching(b"HTTP/1.1 101 Switching Protocols\r\n", {"Upgrade": "websocket", "Connection": "Upgrade"}) as (
        port,
        heard,
    ):
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            head = f"GET http://localhost:{port}/socket HTTP/1.1\r\nHost: localhost:{port}\r\n"
            writer.write((head + "".join(f"{name}: {value}\r\n" for name, value in ASKED.items()) + "\r\n").encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
            writer.write(b"GET /blocked HTTP/1.1\r\nHost: localhost\r\n\r\n")
            rest = await reader.read()
            writer.close()
        assert b"unread" not in rest
        assert b"/blocked" not in heard
    assert "crashed" not in caplog.text


def h2c_flow(method: str, version: bytes, path: bytes, fields: dict[str, str]) -> http.HTTPFlow:
    made = tflow.tflow()
    made.live = True
    made.request.method = method
    made.request.data.http_version, made.request.data.path = version, path
    made.request.headers = http.Headers([(name.encode(), value.encode()) for name, value in fields.items()])
    return made


@all_cases("method", ["GET", "get", "POST", "PRI", "pri"])
@all_cases(("version", "path"), [(b"HTTP/2.0", b"*"), (b"HTTP/1.1", b"*"), (b"HTTP/1.1", b"/")])
@all_cases(
    "fields",
    [
        {},
        {"Upgrade": "h2c"},
        {"UPGRADE": "h2c", "Connection": "Upgrade, HTTP2-Settings", "http2-settings": "AAAA"},
        {"upgrade": "H2C", "connection": "upgrade"},
        {"upgrade": "websocket", "connection": "upgrade"},
        {"connection": "upgrade"},
    ],
)
def test_http2_without_tls_is_refused_as_by_mitmproxy(method: str, version: bytes, path: bytes, fields: dict[str, str]) -> None:
    ours, theirs = h2c_flow(method, version, path, fields), h2c_flow(method, version, path, fields)
    addons: tuple[Any, Any] = PlainRequests(), DisableH2C()
    addons[0].request(ours)
    addons[1].request(theirs)
    assert ours.request.headers.fields == theirs.request.headers.fields
    assert (ours.error and ours.error.msg) == (theirs.error and theirs.error.msg)
    preface = method.upper() == "PRI" and version == b"HTTP/2.0" and path == b"*"
    assert (ours.error is not None and ours.error.msg == flow.Error.KILLED_MESSAGE) is preface
