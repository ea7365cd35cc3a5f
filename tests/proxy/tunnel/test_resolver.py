"""Names are looked up once for all who ask, and who gives up takes nothing from the others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayfilter.proxy.mitm.event_loop import use_resolver
from gatewayfilter.proxy.tunnel.resolver import Resolver, addresses_of, known_addresses


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """A loop's `getaddrinfo` that counts, waits, and fails for `bad` names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, host: str, port: int, **_: object) -> list[Any]:
        self.names.append(host)
        await self.gate.wait()
        if host.startswith("bad"):
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def asked(clock: Clock) -> AsyncIterator[Asked]:
    loop = asyncio.get_running_loop()
    before = loop.getaddrinfo
    found = Asked()
    loop.getaddrinfo = found  # type: ignore[method-assign, assignment]
    use_resolver(loop, Resolver(loop, clock))
    yield found
    loop.getaddrinfo = before  # type: ignore[method-assign]


async def look_up(name: str) -> Any:
    return await addresses_of(asyncio.get_running_loop(), name, 443)


async def test_a_name_is_remembered_for_a_while(asked: Asked, clock: Clock) -> None:
    first = await look_up("a.example")
    clock.now = 9.9
    assert await look_up("a.example") == first
    assert asked.names == ["a.example"]
    clock.now = 10.0
    await look_up("a.example")
    await look_up("b.example")
    assert asked.names == ["a.example", "a.example", "b.example"]


async def test_a_failure_is_remembered_for_less(asked: Asked, clock: Clock) -> None:
    for now, times in ((0.0, 1), (1.9, 1), (2.0, 2)):
        clock.now = now
        with pytest.raises(OSError, match="not known"):
            await look_up("bad.example")
        assert len(asked.names) == times


async def test_it_is_asked_once_for_all_and_one_who_leaves_spoils_nothing(asked: Asked) -> None:
    asked.gate.clear()
    tasks = [asyncio.create_task(look_up("a.example")) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    asked.gate.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(one, list) for one in found[1:])
    assert asked.names == ["a.example"]


async def test_the_memory_is_bounded(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.resolver._MOST_KEPT", 2)
    for name in ("a", "b", "c", "b", "a"):
        await look_up(name)
    assert asked.names == ["a", "b", "c", "a"]


async def test_a_name_that_no_name_server_could_know() -> None:
    with pytest.raises(OSError):  # noqa: PT011  the message is the system's
        await addresses_of(asyncio.get_running_loop(), "a" * 70 + ".example", 443)


@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("127.0.0.1", [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]),
        ("[::1]", [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 443, 0, 0))]),
        ("fe80::1%lo", None),
        ("host9", None),
        ("a.example", None),
    ],
)
async def test_addresses_need_no_look_up(host: str, want: object, asked: Asked) -> None:
    assert known_addresses(asyncio.get_running_loop(), host, 443) == want
    assert asked.names == []


async def test_what_is_remembered_is_at_hand(asked: Asked, clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    found = await look_up("a.example")
    assert known_addresses(loop, "a.example", 443) == found
    assert known_addresses(loop, "a.example", 444) is None
    clock.now = 10.0
    assert known_addresses(loop, "a.example", 443) is None
    with pytest.raises(OSError, match="not known"):
        await look_up("bad.example")
    with pytest.raises(OSError, match="not known"):
        known_addresses(loop, "bad.example", 443)


async def test_open_connections_go_by_an_older_answer(asked: Asked, clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    found = await look_up("a.example")
    for now, new, open_already in ((9.9, found, found), (10.0, None, found), (59.9, None, found), (60.0, None, None)):
        clock.now = now
        assert known_addresses(loop, "a.example", 443) == new
        assert known_addresses(loop, "a.example", 443, is_open=True) == open_already
    assert asked.names == ["a.example"]


async def test_a_failure_holds_no_longer_for_open_connections(asked: Asked, clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(OSError, match="not known"):
        await look_up("bad.example")
    with pytest.raises(OSError, match="not known"):
        known_addresses(loop, "bad.example", 443, is_open=True)
    clock.now = 2.0
    assert known_addresses(loop, "bad.example", 443, is_open=True) is None
    assert asked.names == ["bad.example"]


async def test_the_oldest_answer_is_forgotten_first(asked: Asked, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.resolver._MOST_KEPT", 3)
    await look_up("a")
    await look_up("b")
    clock.now = 10.0
    for name in ("a", "c", "d", "a"):  # the answer for `b` is the oldest
        await look_up(name)
    assert asked.names == ["a", "b", "a", "c", "d"]
