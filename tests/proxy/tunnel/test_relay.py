"""The relay over sockets: what goes in comes out, ends and resets pass on, nobody is read faster than the other side takes."""

import asyncio
import hashlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from gatewayfilter.proxy.tunnel import kernel_pipes, poller, relay
from gatewayfilter.proxy.tunnel.poller import LoopPoller
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.telemetry import Counters
from tests.proxy.connection_fakes import until


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


@dataclass
class Rig:
    """A relay between two connections: we hold the far end of each."""

    pool: RelayPool
    client: socket.socket
    origin: socket.socket
    ends: list[bool]


@pytest.fixture(params=["kernel", "copy", "loop"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    loop = asyncio.get_running_loop()
    if request.param == "loop":
        setattr(loop, poller._ATTRIBUTE, LoopPoller(loop))
    pool = RelayPool(loop, Counters(), in_kernel=request.param != "copy")
    found = start(pool)
    yield found
    pool.close()
    found.client.close()
    found.origin.close()


def start(pool: RelayPool, *, to_origin: bytes = b"", to_client: bytes = b"") -> Rig:
    client, near = tcp_pair()
    origin, far = tcp_pair()
    ends: list[bool] = []
    pool.start(near, far, on_end=lambda: ends.append(True), to_origin=to_origin, to_client=to_client)
    return Rig(pool, client, origin, ends)


async def read_all(end: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    found = bytearray()
    async with asyncio.timeout(20):
        while chunk := await loop.sock_recv(end, 1 << 16):
            found += chunk
    return bytes(found)


async def test_both_ways_and_both_ends(rig: Rig) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(rig.client, b"question")
    rig.client.shutdown(socket.SHUT_WR)
    assert await read_all(rig.origin) == b"question"
    await loop.sock_sendall(rig.origin, b"a late answer, after the other half has ended")
    assert len(rig.pool) == 1
    rig.origin.shutdown(socket.SHUT_WR)
    assert await read_all(rig.client) == b"a late answer, after the other half has ended"
    await until(lambda: rig.ends == [True])
    assert len(rig.pool) == 0
    assert rig.pool.counters["spliced_bytes"] == 8 + 45


async def test_the_origin_may_end_first(rig: Rig) -> None:
    loop = asyncio.get_running_loop()
    rig.origin.shutdown(socket.SHUT_WR)
    assert await read_all(rig.client) == b""
    await loop.sock_sendall(rig.client, b"still here")
    rig.client.shutdown(socket.SHUT_WR)
    assert await read_all(rig.origin) == b"still here"
    await until(lambda: rig.ends == [True])


@pytest.mark.parametrize("size", [1, 65_536, 262_144, 40_000_001])
async def test_large_transfers_are_whole(rig: Rig, size: int) -> None:
    loop = asyncio.get_running_loop()
    content = (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]

    async def send() -> None:
        await loop.sock_sendall(rig.origin, content)
        rig.origin.shutdown(socket.SHUT_WR)

    async def send_up() -> None:
        await loop.sock_sendall(rig.client, content)
        rig.client.shutdown(socket.SHUT_WR)

    down, up, _, _ = await asyncio.gather(read_all(rig.client), read_all(rig.origin), send(), send_up())
    assert hashlib.sha256(down).digest() == hashlib.sha256(up).digest() == hashlib.sha256(content).digest()
    await until(lambda: rig.ends == [True])
    assert rig.pool.counters["spliced_bytes"] == 2 * size


async def test_what_was_read_before_goes_first() -> None:
    pool = RelayPool(asyncio.get_running_loop(), Counters())
    rig = start(pool, to_origin=b"hello", to_client=b"greeting")
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(rig.client, b" and more")
    await loop.sock_sendall(rig.origin, b" to you")
    rig.client.shutdown(socket.SHUT_WR)
    rig.origin.shutdown(socket.SHUT_WR)
    assert await read_all(rig.origin) == b"hello and more"
    assert await read_all(rig.client) == b"greeting to you"
    rig.client.close()
    rig.origin.close()


async def test_a_slow_client_holds_the_origin_back(rig: Rig) -> None:
    rig.origin.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    sent = 0
    quiet = 0
    while quiet < 20:  # until nothing more is taken for a while
        try:
            sent += rig.origin.send(bytes(65_536))
            quiet = 0
        except BlockingIOError:
            quiet += 1
        await asyncio.sleep(0.005)
        assert sent < 64 << 20, "the relay takes in what nobody reads"
    rig.origin.shutdown(socket.SHUT_WR)
    assert len(await read_all(rig.client)) == sent


@pytest.mark.parametrize("who", ["client", "origin"])
async def test_a_reset_passes_on(rig: Rig, who: str) -> None:
    loop = asyncio.get_running_loop()
    breaker, other = (rig.client, rig.origin) if who == "client" else (rig.origin, rig.client)
    await loop.sock_sendall(breaker, b"x")
    assert await loop.sock_recv(other, 10) == b"x"
    breaker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    breaker.close()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(loop.sock_recv(other, 10), 5)
    await until(lambda: rig.ends == [True])


async def test_a_silent_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_SWEEP_S", 0.02)
    pool = RelayPool(asyncio.get_running_loop(), Counters(), idle_s=0.1)
    rig = start(pool)
    assert await read_all(rig.client) == b""
    assert await read_all(rig.origin) == b""
    assert rig.ends == [True]
    rig.client.close()
    rig.origin.close()


async def test_half_of_a_connection_does_not_stay_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_SWEEP_S", 0.02)
    monkeypatch.setattr(relay, "_HALF_CLOSED_S", 0.1)
    pool = RelayPool(asyncio.get_running_loop(), Counters())
    rig = start(pool)
    rig.client.shutdown(socket.SHUT_WR)
    assert await read_all(rig.origin) == b""
    await until(lambda: rig.ends == [True])
    rig.client.close()
    rig.origin.close()


async def test_busy_means_lately_active() -> None:
    pool = RelayPool(asyncio.get_running_loop(), Counters())
    assert not pool.busy()
    rig = start(pool)
    assert pool.busy(within_s=60)
    assert not pool.busy(within_s=-1)
    pool.close()
    assert rig.ends == [True]
    assert len(pool) == 0
    rig.client.close()
    rig.origin.close()


async def test_many_bulk_transfers_share_few_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_pipes, "_MOST_PIPES", 2)
    pool = RelayPool(asyncio.get_running_loop(), Counters())
    loop = asyncio.get_running_loop()
    rigs = [start(pool) for _ in range(5)]
    content = bytes(range(256)) * 40_000

    async def send(rig: Rig) -> None:
        await loop.sock_sendall(rig.origin, content)
        rig.origin.shutdown(socket.SHUT_WR)
        rig.client.shutdown(socket.SHUT_WR)

    received = await asyncio.gather(*(read_all(rig.client) for rig in rigs), *(send(rig) for rig in rigs))
    assert received[:5] == [content] * 5
    await until(lambda: len(pool) == 0)
    assert pool.pipes.lent == 0
    assert len(pool.pipes.idle) <= 2
    for rig in rigs:
        rig.client.close()
        rig.origin.close()
    pool.close()


async def test_a_relay_that_no_longer_holds_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_SWEEP_S", 0.02)
    pool = RelayPool(asyncio.get_running_loop(), Counters())
    held = [True]
    client, near = tcp_pair()
    origin, far = tcp_pair()
    pool.start(near, far, holds=lambda: held[0])
    unasked = start(pool)
    await asyncio.sleep(0.1)
    assert len(pool) == 2
    held[0] = False
    await until(lambda: len(pool) == 1)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    with pytest.raises(BlockingIOError):
        unasked.client.recv(1)
    pool.close()
    for side in (client, origin, unasked.client, unasked.origin):
        side.close()
