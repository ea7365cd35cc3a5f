"""Addresses race: the first that answers wins, the others leave nothing behind, and all errors come to one."""

import asyncio
import errno
import socket
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.proxy.tunnel import happy_eyeballs
from gatewayfilter.proxy.tunnel.happy_eyeballs import connect_to_any, interleaved, race_of
from gatewayfilter.proxy.tunnel.resolver import AddressInfo
from tests.held_ports import hold_port, port_of
from tests.proxy.connection_fakes import tcp_server, until


def info(host: str, port: int) -> AddressInfo:
    if ":" in host:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (host, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))


@pytest.fixture
def nobody() -> Iterator[socket.socket]:
    """A port that refuses connections."""
    with hold_port() as held:
        yield held


SILENT = "192.0.2.1"
"""Nobody's (RFC 5737): here it stands for a host that does not answer at all."""


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """Nobody is contacted at the silent address, and nothing comes of it; the sockets that tried."""
    tried: list[socket.socket] = []
    connect = happy_eyeballs._connect

    def pretend(made: socket.socket, address: tuple[object, ...]) -> int:
        if address[0] != SILENT:
            return connect(made, address)
        tried.append(made)
        full = socket.create_server(("127.0.0.1", 0), backlog=0)  # with one in the queue the next is not answered
        blockers = [socket.socket() for _ in range(3)]
        for blocker in blockers:
            blocker.setblocking(False)
            blocker.connect_ex(full.getsockname())
        kept.extend([full, *blockers])
        return made.connect_ex(full.getsockname())

    kept: list[socket.socket] = []
    monkeypatch.setattr(happy_eyeballs, "_connect", pretend)
    monkeypatch.setattr(happy_eyeballs, "RACE_AFTER_S", 0.02)
    yield tried
    for one in kept:
        one.close()


async def connected(found: Sequence[AddressInfo]) -> socket.socket:
    async with asyncio.timeout(10):
        return await connect_to_any(asyncio.get_running_loop(), found)


async def test_the_address_that_answers_wins(nobody: socket.socket) -> None:
    async with tcp_server() as server:
        dead = info("127.0.0.1", port_of(nobody))
        alive = info("127.0.0.1", server.port)
        for found in ([alive], [dead, alive], [alive, dead], [dead, dead, alive]):
            made = await connected(found)
            assert made.getpeername() == ("127.0.0.1", server.port)
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not made.getblocking()
            made.close()
        for found in ([dead], [dead, dead]):
            with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
                await connected(found)


async def test_an_address_that_says_nothing_keeps_the_next_waiting_for_a_moment_only(silence: list[socket.socket]) -> None:
    async with tcp_server() as server:
        made = await connected([info(SILENT, 1), info("127.0.0.1", server.port)])
        assert made.getpeername() == ("127.0.0.1", server.port)
        assert [one.fileno() for one in silence] == [-1]
        made.close()


async def test_who_fails_lets_the_next_try_at_once(
    silence: list[socket.socket], nobody: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(happy_eyeballs, "RACE_AFTER_S", 1000)
    async with tcp_server() as server:
        made = await connected([info("127.0.0.1", port_of(nobody)), info("127.0.0.1", server.port)])
        made.close()


async def test_an_address_of_a_family_that_cannot_be_used_lets_the_next_try() -> None:
    unusable = (socket.AF_UNIX, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("", 1))
    async with tcp_server() as server:
        made = await connected([unusable, info("127.0.0.1", server.port)])
        made.close()
    with pytest.raises(OSError) as raised:  # noqa: PT011  the message is the system's
        await connected([unusable])
    assert raised.value.errno == errno.EPROTONOSUPPORT


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a race does: the function that it calls with its result, then what is done to it."""
    happened: list[Any] = []

    def race(_loop: object, _found: object, done: object) -> Any:
        happened.append(done)
        return SimpleNamespace(
            try_next=lambda: happened.append("tries"),
            cancel=lambda: happened.append("cancelled"),
        )

    monkeypatch.setattr(happy_eyeballs, "race_of", race)
    return happened


@pytest.mark.parametrize("comes", ["before", "after"])
@pytest.mark.parametrize("connected", [True, False])
async def test_who_gives_up_gets_nothing_of_a_race_that_ends_just_then(*, comes: str, connected: bool, told: list[Any]) -> None:
    waiting = asyncio.create_task(connect_to_any(asyncio.get_running_loop(), []))
    await asyncio.sleep(0)
    [done, *_] = told
    with socket.socket() as made:
        result = made if connected else ConnectionRefusedError()
        if comes == "before":
            done(result)
        waiting.cancel()
        if comes == "after":
            done(result)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert told[1:] == ["tries", "cancelled"]
        assert (made.fileno() == -1) is connected


async def test_giving_up_leaves_nothing(silence: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    waiting = asyncio.create_task(connect_to_any(loop, [info(SILENT, 1), info(SILENT, 2)]))
    await until(lambda: len(silence) == 2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [one.fileno() for one in silence] == [-1, -1]


async def test_it_is_told_once(silence: list[socket.socket], nobody: socket.socket) -> None:
    told: list[object] = []
    port = port_of(nobody)
    running = race_of(asyncio.get_running_loop(), [info("127.0.0.1", port), info("127.0.0.1", port)], told.append)
    running.try_next()
    await until(lambda: told)
    await asyncio.sleep(0.05)  # longer than the next address would have waited
    assert len(told) == 1
    assert isinstance(told[0], ConnectionRefusedError)


async def test_success_is_told_once_though_an_address_is_left(silence: list[socket.socket]) -> None:
    told: list[socket.socket | OSError] = []
    async with tcp_server() as server:
        running = race_of(asyncio.get_running_loop(), [info("127.0.0.1", server.port)] * 2, told.append)
        running.try_next()
        await until(lambda: told)
        await asyncio.sleep(0.05)  # longer than the next address would have waited
        (made,) = told
        assert isinstance(made, socket.socket)
        made.close()


@pytest.mark.parametrize("address", [("not an address", 1), ("::1", 1)])
async def test_an_impossible_address_is_an_error(address: tuple[object, ...]) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011  the message is the system's
        await connected([(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)])
    assert raised.value.errno in {socket.EAI_NONAME, socket.EAI_ADDRFAMILY}


def test_families_take_turns() -> None:
    six = [info(f"::{number}", 1) for number in range(1, 4)]
    four = [info(f"127.0.0.{number}", 1) for number in range(1, 3)]
    assert interleaved([*six, *four]) == [six[0], four[0], six[1], four[1], six[2]]
    assert interleaved([*four, *six]) == [four[0], six[0], four[1], six[1], six[2]]
    assert interleaved(six) == six
    assert interleaved(four[:1]) == four[:1]


async def test_the_races_of_a_loop_share_a_timer() -> None:
    loop = asyncio.get_running_loop()
    first, second = (race_of(loop, [info("127.0.0.1", 9)], lambda _: None) for _ in range(2))
    assert first._next_ones is second._next_ones
    assert first._next_ones.delay_s == happy_eyeballs.RACE_AFTER_S == 0.25
