"""The socket of the dashboard."""

import asyncio
import socket

import pytest

from gatewayfilter.web.server import listening


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
async def test_an_answer_of_several_segments_does_not_wait_for_the_client(address: str) -> None:
    """A kept connection otherwise waits 40 ms: Nagle's algorithm here, a delayed acknowledgement there."""
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listening(address) as listener:
        async with await asyncio.start_server(serve, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            async with asyncio.timeout(10):
                assert await found
            writer.close()
