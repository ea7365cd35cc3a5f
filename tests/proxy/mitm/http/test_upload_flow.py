"""An upload to an origin that does not take the connection: the client waits, not the worker's memory."""

import asyncio
import socket
from collections.abc import Iterator

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
