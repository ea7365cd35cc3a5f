"""Many connections at once: the silent ones stay, the busy ones are served, and nothing is left of either.

scripts/bench/bench_relay.py does the same with two thousand and five hundred.
"""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.proxy.connection_fakes import PASS, client_hello, connect, until, wire_gateway
from tests.proxy.proxy_fakes import Origin

IDLE = 300
ACTIVE = 50
HELLO = client_hello("localhost")


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Each connection takes four descriptors here, because client and origin are in this process too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 8192:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192 if hard == resource.RLIM_INFINITY else min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """The port of a server that says everything once more."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    yield int(server.sockets[0].getsockname()[1])
    server.close()


async def test_silent_connections_stay_while_others_work(state: Path, origin: Origin, echo: int) -> None:
    async with wire_gateway(state, {"localhost": PASS}) as gateway:
        silent = []
        for _ in range(IDLE):
            reader, writer, answer = await connect(gateway, f"localhost:{echo}")
            assert answer.startswith(b"HTTP/1.1 200")
            writer.write(HELLO)
            silent.append((reader, writer))
        for reader, _ in silent:
            assert await reader.readexactly(len(HELLO)) == HELLO
        assert gateway.listener.open_connections == IDLE
        assert len(gateway.listener.relays) == IDLE

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=ACTIVE)) as client:

            async def ask(number: int) -> int:
                async with client.get(f"{origin.http}/page-{number}", proxy=gateway.url) as response:
                    await response.read()
                    return response.status

            assert await asyncio.gather(*(ask(number) for number in range(2 * ACTIVE))) == [200] * 2 * ACTIVE

        for number, (reader, writer) in enumerate(silent):  # still there, and not mixed up
            writer.write(b"%04d" % number)
            assert await asyncio.wait_for(reader.readexactly(4), 10) == b"%04d" % number
        for _, writer in silent:
            writer.close()
        await until(lambda: gateway.listener.open_connections == 0)
        assert len(gateway.listener.relays) == 0
        assert gateway.counters["spliced"] == IDLE
        assert gateway.counters["spliced_bytes"] == IDLE * 2 * (len(HELLO) + 4)
