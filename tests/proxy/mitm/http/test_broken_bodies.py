"""Bodies of origins that break off or cannot be read: the client hears of it at once, and never takes them for complete."""

import asyncio
import contextlib
import ssl

import pytest
import trustme

from tests.proxy.proxy_fakes import Gateway

_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


class _Origin:
    """Sends a part of a body, and then what breaks it; its connection stays open."""

    def __init__(self, answer: bytes, rest: bytes, pause_s: float) -> None:
        self._answer, self._rest, self._pause_s = answer, rest, pause_s
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._answer)
        if self._pause_s:
            await asyncio.sleep(self._pause_s)
        writer.write(self._rest)
        with contextlib.suppress(OSError):
            await reader.read()
        self.left.set()
        writer.close()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    ("rest", "pause_s"),
    [(b"zz\r\nnonsense\r\n", 0.1), (b"5\r\ntoo long\r\n", 0.1), (b"zz\r\nnonsense\r\n", 0.0)],
    ids=["length", "end", "at-once"],
)
async def test_a_broken_chunk_ends_the_answer(
    rest: bytes, pause_s: float, gateway: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext, *, tls: bool
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    origin = _Origin(_CHUNKED + b"4\r\nbean\r\n", rest, pause_s)
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=context if tls else None)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        if tls:
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % port)
            await reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(client_tls, server_hostname="localhost")
        target = b"/" if tls else b"http://localhost:%d/" % port
        writer.write(b"GET %s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (target, port))
        got = await reader.read()
        assert got.startswith(b"HTTP/1.1 200 OK")
        assert not got.endswith(b"0\r\n\r\n")
        await origin.left.wait()
        writer.close()
