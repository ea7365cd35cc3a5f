import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from gatewayfilter.crawl.net import dns_cache
from gatewayfilter.crawl.net.dns_cache import NEGATIVE_S, DnsCache
from gatewayfilter.telemetry import Counters

TTL_S = 100.0


def address(host: str, number: int, port: int = 0) -> ResolveResult:
    return ResolveResult(hostname=host, host=f"203.0.113.{number}", port=port, family=socket.AF_INET, proto=0, flags=0)


class Names(AbstractResolver):
    """Answers with another address each time; can be made to fail or to wait."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.closed = False
        self.under_way = 0

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        assert (port, family) in {(0, socket.AF_UNSPEC), (0, socket.AF_INET)}
        self.asked.append(host)
        number = len(self.asked)
        self.under_way += 1
        try:
            await self.may_answer.wait()
        finally:
            self.under_way -= 1
        if self.failing:
            raise OSError(None, "no such name")
        return [address(host, number, port)]

    async def close(self) -> None:
        assert not self.under_way, "what is under way has ended"
        self.closed = True


class World:
    """A cache, the names behind it, and a clock."""

    def __init__(self, ttl_s: float = TTL_S) -> None:
        self.now = 1000.0
        self.names = Names()
        self.counters = Counters()
        self.cache = DnsCache(self.names, ttl_s, self.counters, lambda: self.now)

    async def ask(self, host: str = "a.example", port: int = 80) -> str:
        (found,) = await self.cache.resolve(host, port)
        assert found["port"] == port
        return found["host"]


async def settled() -> None:
    """Lets background look-ups finish."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_name_is_asked_for_once_while_it_counts() -> None:
    world = World()
    assert [await world.ask(), await world.ask(port=443)] == ["203.0.113.1", "203.0.113.1"]
    world.now += TTL_S
    assert await world.ask() == "203.0.113.2"
    assert world.counters.as_dict() == {"dns_hits": 1, "dns_misses": 2}


async def test_one_in_use_is_refreshed_before_it_runs_out_and_nobody_waits() -> None:
    world = World()
    await world.ask()
    world.now += TTL_S * 0.8
    assert await world.ask() == "203.0.113.1"
    await settled()
    assert await world.ask() == "203.0.113.2"
    world.now += TTL_S * 0.7
    assert await world.ask() == "203.0.113.2"
    assert len(world.names.asked) == 2


async def test_a_refresh_that_fails_leaves_what_is_known_until_it_runs_out() -> None:
    world = World()
    await world.ask()
    world.now += TTL_S * 0.9
    world.names.failing = True
    assert await world.ask() == "203.0.113.1"
    await settled()
    assert await world.ask() == "203.0.113.1"
    world.now += TTL_S * 0.2
    with pytest.raises(OSError, match="no such name"):
        await world.ask()


async def test_a_name_without_addresses_is_not_asked_for_again_for_a_while() -> None:
    world = World()
    world.names.failing = True
    for _ in range(3):
        with pytest.raises(OSError, match="no such name"):
            await world.ask()
    assert len(world.names.asked) == 1
    world.names.failing = False
    world.now += NEGATIVE_S
    assert await world.ask() == "203.0.113.2"


async def test_look_ups_at_the_same_time_share_one_question() -> None:
    world = World()
    world.names.may_answer.clear()
    asking = [asyncio.create_task(world.ask()) for _ in range(5)]
    await settled()
    asking[0].cancel()  # one who gives up takes the answer from nobody else
    world.names.may_answer.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert answers[1:] == ["203.0.113.1"] * 4
    assert world.names.asked == ["a.example"]


async def test_insert_and_delete() -> None:
    world = World()
    world.cache.insert("b.example", [address("b.example", 77)])
    assert await world.ask("b.example") == "203.0.113.77"
    assert world.cache.delete("b.example")
    assert not world.cache.delete("b.example")
    assert await world.ask("b.example") == "203.0.113.1"


async def test_without_a_life_nothing_is_remembered() -> None:
    world = World(ttl_s=0)
    assert [await world.ask(), await world.ask()] == ["203.0.113.1", "203.0.113.2"]
    assert len(world.cache) == 0


async def test_the_longest_unused_name_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_cache, "MAX_NAMES", 2)
    world = World()
    for host in ("a.example", "b.example", "a.example", "c.example"):
        await world.ask(host)
    assert len(world.cache) == 2
    await world.ask("a.example")
    await world.ask("c.example")
    assert world.names.asked == ["a.example", "b.example", "c.example"]
    world.now += TTL_S
    await world.ask("a.example")  # resolved anew: the newest again
    await world.ask("b.example")
    asked = len(world.names.asked)
    await world.ask("a.example")
    assert len(world.names.asked) == asked


async def test_a_life_of_less_than_a_second_counts() -> None:
    world = World(ttl_s=0.5)
    assert [await world.ask(), await world.ask()] == ["203.0.113.1"] * 2


async def test_closing_gives_up_what_is_under_way() -> None:
    world = World()
    world.names.may_answer.clear()
    asking = asyncio.create_task(world.ask())
    await settled()
    await world.cache.close()
    assert world.names.closed
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(("age_s", "asked"), [(TTL_S * 0.74, 1), (TTL_S * 0.75, 2)])
async def test_from_when_on_a_name_in_use_is_refreshed(age_s: float, asked: int) -> None:
    world = World()
    await world.ask()
    world.now += age_s
    assert await world.ask() == "203.0.113.1"
    await settled()
    assert len(world.names.asked) == asked


@pytest.mark.parametrize(("ttl_s", "life_s"), [(TTL_S, NEGATIVE_S), (7.0, 7.0)])
async def test_how_long_a_failure_counts(ttl_s: float, life_s: float) -> None:
    world = World(ttl_s)
    world.names.failing = True
    for later_s, asked in ((0.0, 1), (life_s - 0.01, 1), (0.01, 2)):
        world.now += later_s
        with pytest.raises(OSError, match="no such name"):
            await world.ask()
        await settled()
        assert len(world.names.asked) == asked, "a failure is not refreshed"


async def test_a_refresh_that_fails_too_late_is_a_failure() -> None:
    world = World()
    await world.ask()
    world.now += TTL_S * 0.9
    world.names.may_answer.clear()
    assert await world.ask() == "203.0.113.1"
    await settled()
    world.now += TTL_S * 0.1
    world.names.failing = True
    world.names.may_answer.set()
    await settled()
    with pytest.raises(OSError, match="no such name"):
        await world.ask()
    assert len(world.names.asked) == 2


async def test_each_address_family_has_answers_of_its_own() -> None:
    world = World()
    await world.ask()
    await world.cache.resolve("a.example", 80, socket.AF_INET)
    assert len(world.names.asked) == len(world.cache) == 2
    assert world.cache.delete("a.example")
    assert len(world.cache) == 0


class Unnamed(Names):
    """Fails without a reason."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        raise OSError


async def test_a_failure_without_a_reason_is_told_all_the_same() -> None:
    cache = DnsCache(Unnamed(), TTL_S, Counters(), lambda: 0.0)
    with pytest.raises(OSError, match="the name cannot be resolved"):
        await cache.resolve("a.example")


async def test_what_was_put_in_meanwhile_counts_where_the_look_up_fails() -> None:
    world = World()
    world.names.may_answer.clear()
    asking = asyncio.create_task(world.ask())
    await settled()
    world.cache.insert("a.example", [address("a.example", 77)])
    world.names.failing = True
    world.names.may_answer.set()
    assert await asking == "203.0.113.77"
    assert await world.ask() == "203.0.113.77"
