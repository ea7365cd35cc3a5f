"""HTTPS on its short way: nothing is lost, whatever the size, the version of TLS, and the way in which it ends."""

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trustme

from gatewayfilter.proxy.mitm.fastpath import hook_runner, tls_path
from tests.proxy.conftest import StartGateway
from tests.proxy.connection_fakes import until
from tests.proxy.mitm.test_shared_origins import CountingOrigin, left, origin_tls, visit
from tests.proxy.proxy_fakes import Gateway

__all__ = ["origin_tls"]

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

type Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
END = b"\r\n\r\n"
LARGE = bytes(range(256)) * 20_000


@contextlib.asynccontextmanager
async def site(authority: trustme.CA, serve: Serve) -> AsyncIterator[int]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def through(gateway: Gateway, port: int, tls: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % port)
    await reader.readuntil(END)
    await writer.start_tls(tls, server_hostname="localhost")
    return reader, writer


async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await reader.readuntil(END):
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            body = await reader.readexactly(length) if length else LARGE
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()


@pytest.fixture(params=[True, False], ids=["fast-path", "mitmproxy"])
async def either(request: pytest.FixtureRequest, start_gateway: StartGateway) -> AsyncIterator[Gateway]:
    """A gateway with and one without the fast path."""
    async with start_gateway(fast_path=request.param) as running:
        yield running


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_large_bodies_pass_both_ways(
    version: ssl.TLSVersion, either: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    client_tls.maximum_version = version
    async with site(authority, keep_alive) as port, asyncio.timeout(30):
        reader, writer = await through(either, port, client_tls)
        for number in range(4):
            body = LARGE if number % 2 else b""
            writer.write(b"POST /%d HTTP/1.1\r\nHost: localhost\r\ncontent-length: %d\r\n\r\n" % (number, len(body)) + body)
            assert (await reader.readuntil(END)).startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(len(LARGE)) == LARGE
        writer.close()
    assert either.counters["requests"] == 4
    assert either.counters["hook_errors"] == 0


async def test_requests_take_the_short_way(
    gateway: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[object] = []
    deliver = tls_path.deliver

    def note(*arguments: Any) -> Any:
        found = deliver(*arguments)
        results.append(type(found))
        return found

    monkeypatch.setattr(hook_runner, "deliver", note)
    async with site(authority, keep_alive) as port, asyncio.timeout(30):
        reader, writer = await through(gateway, port, client_tls)
        for _ in range(3):
            results.clear()
            writer.write(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(END)
            await reader.readexactly(len(LARGE))
        assert set(results) == {list}
        writer.close()


async def test_a_body_that_ends_with_the_connection_is_whole(
    either: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(END)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + LARGE)
        writer.close()

    async with site(authority, close) as port, asyncio.timeout(30):
        reader, writer = await through(either, port, client_tls)
        writer.write(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.read()).partition(END)[2] == LARGE
        writer.close()


async def test_what_is_no_tls_ends_the_connection_alone(
    either: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    async with site(authority, keep_alive) as port, asyncio.timeout(30):
        for ends in (True, False):
            reader, writer = await through(either, port, client_tls)
            writer.write(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(END)
            await reader.readexactly(len(LARGE))
            if ends:  # below TLS, on the socket itself
                os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
                with pytest.raises(ssl.SSLError, match="alert"):
                    await reader.read()
            writer.close()
    assert either.counters["hook_errors"] == 0


async def test_a_client_that_breaks_its_tls_fails_nothing_else(
    gateway: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    """What is to be sent to it is dropped: the answer to its request is read to the end, and no log grows by a traceback."""
    asked, broken, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(END)
        asked.set()
        await broken.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    class Notes:
        name = "notes"

        def response(self, _: object) -> None:
            answered.set()

    gateway.master.addons.add(Notes())
    caplog.set_level(logging.INFO, "mitmproxy")  # a worker of this process may have silenced it
    async with asyncio.timeout(20), site(authority, answer) as port:
        _, writer = await through(gateway, port, client_tls)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)
        encrypted: Any = writer.transport
        raw = encrypted._ssl_protocol._transport
        await asked.wait()  # else both may be read at once, and nothing is asked
        raw.pause_reading()  # the alert would end it
        raw.write(b"\x17\x03\x03\0\5hello")
        await until(lambda: "TLS Error" in caplog.text)
        broken.set()
        await answered.wait()
        raw.abort()
        await until(lambda: not gateway.master._proxyserver.connections)
    assert "crashed" not in caplog.text


class _GatedOrigin(CountingOrigin):
    """An origin that answers when it may."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(tls=tls)
        self.gate = asyncio.Event()
        self.gate.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                await self.gate.wait()
                writer.write(self.answer)


async def _handshake(
    gateway: Gateway, origin: CountingOrigin, tls: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, ssl.MemoryBIO, ssl.SSLObject, bytes]:
    """Opens a tunnel and does the handshake in it. Returns what to go on with, and the client's last message, not yet sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (origin.port, origin.port))
    await reader.readuntil(b"\r\n\r\n")
    source, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = tls.wrap_bio(source, sent, server_hostname="localhost", session=session)
    while True:
        try:
            made.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(sent.read())
            source.write(await reader.read(65536))
        else:
            break
    made.write(b"GET /x HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % origin.port)
    return reader, writer, source, made, sent.read()


async def test_session_tickets_go_out_with_the_response(
    start_gateway: StartGateway, origin_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    session: ssl.SSLSession | None = None
    async with start_gateway(shared_origins=256) as gateway, _GatedOrigin(origin_tls).running() as origin:
        assert (await visit(gateway, origin, "0", tls=client_tls)).endswith(b"ok")
        for resumed in (False, True):
            await left(gateway, 1)
            origin.gate.clear()
            async with asyncio.timeout(10):
                reader, writer, source, made, last = await _handshake(gateway, origin, client_tls, session)
                assert made.session_reused is resumed
                writer.write(last)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.05)
                origin.gate.set()
                source.write(await reader.read(65536))
                assert made.read(65536).endswith(b"ok")
                assert made.session is not None
                assert made.session.has_ticket
                session = made.session
                writer.close()
