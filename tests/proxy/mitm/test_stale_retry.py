"""Kept connections that end just as they are used again."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trustme

from tests.proxy.mitm.http.test_http1_shapes import END, OK
from tests.proxy.proxy_fakes import Gateway

HEAD = re.compile(rb"(\w+) (\S+) HTTP/1.1\r\n(?:[^\r\n]+\r\n)*\r\n")


@dataclass
class TiredOrigin:
    """Answers once on each connection; the next request there is read, and the connection closed.

    Attributes:
        says: what comes of an answer before the end.
        heard: each request's method and path.
    """

    says: bytes = b""
    resets: bool = False
    port: int = 0
    heard: list[tuple[bytes, bytes]] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for answer in (OK, self.says):
            try:
                found = HEAD.fullmatch(await reader.readuntil(END))
            except asyncio.IncompleteReadError:
                break
            assert found is not None
            self.heard.append((found[1], found[2]))
            writer.write(answer.removesuffix(b"ok") if found[1] == b"HEAD" else answer)
        if self.resets:
            writer.transport.abort()
        writer.close()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["TiredOrigin"]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[bytes, bytes]:
    """Returns the status and the body."""
    writer.write(request)
    async with asyncio.timeout(10):
        head = await reader.readuntil(END)
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None
        return head[9:12], b"" if request.startswith(b"HEAD") else await reader.readexactly(int(length[1]))


def plain(port: int, path: bytes, method: bytes = b"GET", fields: bytes = b"", body: bytes = b"") -> bytes:
    return b"%b http://127.0.0.1:%d%b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%b\r\n%b" % (method, port, path, port, fields, body)


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS"])
async def test_it_is_asked_once_more(*, method: bytes, resets: bool, gateway: Gateway) -> None:
    async with TiredOrigin(resets=resets).running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for path in (b"/1", b"/2", b"/3"):
            status, _ = await ask(reader, writer, plain(origin.port, path, method))
            assert status == b"200"
        writer.close()
    assert [path for _, path in origin.heard] == [b"/1", b"/2", b"/2", b"/3", b"/3"]
    assert origin.connections == 3
    assert gateway.counters["requests"] == 3
    assert gateway.counters["origin_errors"] == 0


async def test_inside_tls_too(gateway: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    async with TiredOrigin().running(tls) as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % origin.port)
        await reader.readuntil(END)
        await writer.start_tls(client_tls, server_hostname="localhost")
        for path in (b"/1", b"/2", b"/3"):
            status, body = await ask(reader, writer, b"GET %b HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (path, origin.port))
            assert (status, body) == (b"200", b"ok")
        writer.close()
    assert [path for _, path in origin.heard] == [b"/1", b"/2", b"/2", b"/3", b"/3"]


@pytest.mark.parametrize(
    ("method", "fields", "body"),
    [(b"DELETE", b"", b""), (b"POST", b"Content-Length: 0\r\n", b""), (b"GET", b"Content-Length: 2\r\n", b"ab")],
)
async def test_what_may_do_something_is_not(method: bytes, fields: bytes, body: bytes, gateway: Gateway) -> None:
    async with TiredOrigin().running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        assert (await ask(reader, writer, plain(origin.port, b"/1")))[0] == b"200"
        assert (await ask(reader, writer, plain(origin.port, b"/2", method, fields, body)))[0] == b"502"
        writer.close()
    assert [path for _, path in origin.heard] == [b"/1", b"/2"]


async def test_half_an_answer_is_none(gateway: Gateway) -> None:
    async with TiredOrigin(says=b"HTTP/1.1 200 O").running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        await ask(reader, writer, plain(origin.port, b"/1"))
        assert (await ask(reader, writer, plain(origin.port, b"/2")))[0] == b"502"
        writer.close()
    assert len(origin.heard) == 2


async def test_a_new_connection_has_one_try(gateway: Gateway) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(END))
        writer.close()

    heard: list[bytes] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        assert (await ask(reader, writer, plain(server.sockets[0].getsockname()[1], b"/1")))[0] == b"502"
        writer.close()
    assert len(heard) == 1
