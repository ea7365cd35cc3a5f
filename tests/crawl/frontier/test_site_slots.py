"""Which slots of sites a crawler leases, and when it takes those of others: against a clock, without processes."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from gatewayfilter.crawl.frontier.fleet_leases import FleetLeases
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import SITE_SLOTS, Lease
from gatewayfilter.telemetry import Counters

LEASE = Lease("http://a.example/", 1, 1, "token", 0.0)


class Queue:
    """Hands out one lease, and keeps what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def lease(self, limit: int, lease_s: float, now: float, slots: tuple[int, ...] | None, name: str) -> list[Lease]:
        self.asked.append(("lease", limit, lease_s, now, slots if slots is None else len(slots), name))
        return [LEASE]

    def release(self, names: Sequence[str], now: float) -> int:
        self.asked.append(("release", tuple(names), now))
        return 3

    def release_except(self, names: Sequence[str], now: float) -> int:
        self.asked.append(("release except", tuple(names), now))
        return 0


class Heartbeats:
    """Those of all crawlers; time of the newest by name."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def beat(self, name: str, now: float) -> None:
        self.at[name] = now

    def alive(self, since: float) -> list[str]:
        return [name for name, at in self.at.items() if at >= since]

    def leave(self, name: str) -> None:
        del self.at[name]


class Setting:
    """Crawlers with one queue; time is `now`."""

    def __init__(self, *, shared: bool = True) -> None:
        self.now, self.queue, self.beats, self.counters = 1_000.0, Queue(), Heartbeats(), Counters()
        self.one = self.crawler("one", shared=shared)

    def crawler(self, name: str, *, shared: bool = True, beat_s: float = 2.0) -> FleetLeases:
        beats = cast("Any", self.beats) if shared else None
        return FleetLeases(
            cast("Any", self.queue), beats, name, lambda: self.now, beat_s=beat_s, dead_after_s=15.0, counters=self.counters
        )


def test_one_that_is_alone_by_setting_takes_back_all_leases_once() -> None:
    setting = Setting(shared=False)
    assert setting.one.slots is None
    for _ in range(2):
        assert setting.one.lease(5, 60.0, 7.0) == [LEASE]
    lease = ("lease", 5, 60.0, 7.0, None, "one")
    assert setting.queue.asked == [("release except", (), 7.0), lease, lease]
    assert (setting.beats.at, setting.counters.as_dict()) == ({}, {})
    setting.one.leave()


def test_one_of_several_takes_back_its_own_leases_and_its_share_of_sites() -> None:
    setting = Setting()
    setting.beats.at["two"] = setting.now - 15.0
    setting.one.lease(5, 60.0, 7.0)
    shares = [asked[4] for asked in setting.queue.asked if asked[0] == "lease"]
    assert setting.queue.asked[:2] == [("release", ("one",), 7.0), ("release except", ("one", "two"), 1_000.0)]
    assert setting.counters.as_dict() == {"leases_returned": 3}
    assert 0.3 * SITE_SLOTS < shares[0] < 0.7 * SITE_SLOTS
    own = set(setting.one.slots or ())
    others = set(setting.crawler("two").slots or ())
    assert (own & others, len(own | others)) == (set(), SITE_SLOTS)
    assert setting.crawler("new").slots is not None


def test_who_is_silent_for_too_long_loses_its_sites() -> None:
    setting = Setting()
    setting.beats.at["two"] = setting.now

    def alone() -> bool:
        return setting.one.slots is None

    assert not alone()
    begun = len(setting.queue.asked)
    setting.now += 1.9
    setting.beats.at.clear()
    assert not alone()
    assert setting.beats.at == {}, "heartbeats are sent every two seconds"
    setting.now += 0.1
    assert alone()
    assert setting.queue.asked[begun:] == [("release except", ("one",), 1_002.0)]
    setting.now += 2.0
    assert alone()
    assert len(setting.queue.asked) == begun + 1, "nothing changed"
    setting.one.leave()
    assert setting.beats.at == {}


async def test_heartbeats_go_on_until_the_crawler_stops() -> None:
    setting = Setting()
    one = setting.crawler("one", beat_s=0.0)
    stop, beats = asyncio.Event(), 0

    def beat(name: str, now: float) -> None:
        nonlocal beats
        assert (name, now) == ("one", setting.now)
        beats += 1
        if beats == 2:
            raise StoreError("locked")
        if beats == 3:
            stop.set()

    setting.beats.beat = beat  # type: ignore[method-assign]
    async with asyncio.timeout(5):
        await one.keep_alive(stop)
        await setting.crawler("alone", shared=False).keep_alive(asyncio.Event())
    assert beats == 3


@pytest.mark.parametrize("members", [1, 3])
def test_slots_are_none_only_for_one_alone(members: int) -> None:
    setting = Setting()
    setting.beats.at |= {f"other{number}": setting.now for number in range(members - 1)}
    assert (setting.one.slots is None) is (members == 1)
