"""103 Early Hints reach the client before the answer does, by HTTP/1.1; an older client gets the answer alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.proxy.proxy_fakes import Gateway

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Secret: no\r\nlink: </b.js>; rel=preload\r\n\r\n"
SEEN = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.js>; rel=preload\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
async def site() -> AsyncIterator[tuple[int, asyncio.Event]]:
    gate = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 102 Processing\r\n\r\n" + HINTS)
            await gate.wait()
            writer.write(FINAL)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], gate
    server.close()


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_hints_go_ahead_of_the_answer(version: str, gateway: Gateway, site: tuple[int, asyncio.Event]) -> None:
    port, gate = site
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    async with asyncio.timeout(10):
        for _ in range(2):
            gate.clear()
            writer.write(f"GET http://localhost:{port}/ HTTP/{version}\r\nHost: localhost:{port}\r\n\r\n".encode())
            if version == "1.1":
                assert await reader.readexactly(len(SEEN)) == SEEN
            assert not gate.is_set()
            gate.set()
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 OK\r\n" in head
            assert await reader.readexactly(2) == b"ok"
            if version == "1.0":
                break
    writer.close()
