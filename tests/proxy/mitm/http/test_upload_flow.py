"""An upload to an origin that does not take the connection: the client waits, not the worker's memory."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD
from tests.proxy.connection_fakes import until
from tests.proxy.proxy_fakes import Gateway

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

_MOST_AHEAD = 16_000_000
"""What sockets of loopback and the proxy hold together."""


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port whose queue of connections is full: to connect there takes for ever."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])
        for one in waiting:
            one.close()


async def test_an_upload_waits_while_its_origin_is_connected_to(gateway: Gateway, deaf_port: int) -> None:
    sent = 0

    async def upload() -> None:
        nonlocal sent
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        target = f"127.0.0.1:{deaf_port}"
        writer.write(f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 100000000\r\n\r\n".encode())
        try:
            while sent < 100_000_000:
                writer.write(bytes(100_000))
                await writer.drain()
                sent += 100_000
        finally:
            writer.close()

    task = asyncio.create_task(upload())
    await until(lambda: bool(AHEAD) or task.done())
    await asyncio.sleep(0.5)
    assert sent < _MOST_AHEAD
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def chunked(target: str, chunks: int, *, whole: bool) -> bytes:
    """Returns a request whose body has so many small chunks, with or without its end."""
    head = f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"64\r\n%b\r\n" % (b"x" * 100) for _ in range(chunks)) + (b"0\r\n\r\n" if whole else b"")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request when it has come whole."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"POST"):
                await reader.readuntil(b"0\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    writer.close()


async def test_after_an_upload_that_was_ahead_the_client_is_read_on(gateway: Gateway) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=10_000_000)
    async with server:
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(chunked(target, 1_000, whole=True))
        for _ in range(4):
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 10)).startswith(b"HTTP/1.1 200")
            writer.write(f"GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        writer.close()
    assert not AHEAD


async def test_a_client_that_leaves_at_once_is_not_remembered(gateway: Gateway, deaf_port: int) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", gateway.port)) as client:
            client.sendall(chunked(f"127.0.0.1:{deaf_port}", 600, whole=False))
        await asyncio.sleep(0.02)
    await until(lambda: not gateway.master._proxyserver.connections)
    assert not AHEAD
