"""The heartbeats of crawlers and the leases that follow from them, over doubles of the database and the clock."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gatewayfilter.crawl.frontier import fleet_leases
from gatewayfilter.crawl.frontier.fleet_leases import FleetLeases
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import SITE_SLOTS
from gatewayfilter.telemetry import Counters


class Queue:
    """The queue of all, with leases of crawlers that have ended."""

    def __init__(self) -> None:
        self.did: list[tuple[object, ...]] = []
        self.ended = 0

    def release(self, names: Sequence[str], now: float) -> int:
        self.did.append(("release", names, now))
        return self.ended

    def release_except(self, names: Sequence[str], now: float) -> int:
        self.did.append(("release except", tuple(names), now))
        return self.ended

    def lease(self, limit: int, lease_s: float, now: float, slots: object, name: str) -> list[Any]:
        self.did.append(("lease", limit, lease_s, now, slots is None, name))
        return ["leased"]


class Beats:
    """The heartbeats of all crawlers."""

    def __init__(self, *others: str) -> None:
        self.others = set(others)
        self.beats: list[tuple[str, float]] = []
        self.since: list[float] = []
        self.left: list[str] = []
        self.fails = 0

    def beat(self, name: str, now: float) -> None:
        self.beats.append((name, now))
        if self.fails:
            self.fails -= 1
            raise StoreError("locked")

    def alive(self, since: float) -> set[str]:
        self.since.append(since)
        return self.others

    def leave(self, name: str) -> None:
        self.left.append(name)


class Fleet:
    """One crawler, whose clock stands still."""

    def __init__(self, beats: Any) -> None:
        self.now = 1_000.0
        self.queue, self.counters = Queue(), Counters()
        queue: Any = self.queue
        self.leases = FleetLeases(queue, beats, "one", lambda: self.now, beat_s=2.0, dead_after_s=15.0, counters=self.counters)


def test_a_heartbeat_is_sent_when_it_is_due() -> None:
    beats = Beats()
    fleet = Fleet(beats)
    for now, sent in ((1_000.0, 1), (1_001.9, 1), (1_002.0, 2), (1_003.0, 2), (1_004.0, 3)):
        fleet.now = now
        assert fleet.leases.slots is None, "it is alone"
        assert len(beats.beats) == sent
    assert beats.beats == [("one", 1_000.0), ("one", 1_002.0), ("one", 1_004.0)]
    assert beats.since == [985.0, 987.0, 989.0]
    assert fleet.queue.did == [("release except", ("one",), 1_000.0)]


def test_sites_are_shared_with_those_who_join_and_taken_from_those_who_left() -> None:
    beats = Beats("two")
    fleet = Fleet(beats)
    own = fleet.leases.slots
    assert own is not None
    assert 0 < len(own) < SITE_SLOTS
    fleet.now, fleet.queue.ended, beats.others = 1_002.0, 3, {"one"}
    assert fleet.leases.slots is None
    assert fleet.queue.did == [("release except", ("one", "two"), 1_000.0), ("release except", ("one",), 1_002.0)]
    assert fleet.counters.as_dict() == {"leases_returned": 3}


def test_leases_of_an_earlier_run_are_returned_once() -> None:
    for beats, first in ((Beats(), ("release", ("one",), 5.0)), (None, ("release except", (), 5.0))):
        fleet = Fleet(beats)
        fleet.queue.ended = 2
        first_leases: Any = fleet.leases.lease(10, 60.0, 5.0)
        assert first_leases == ["leased"]
        fleet.leases.lease(11, 61.0, 6.0)
        did = [what for what in fleet.queue.did if what[0] == first[0] and what[-1] in {5.0, 6.0}]
        assert did == [first]
        leased = [what for what in fleet.queue.did if what[0] == "lease"]
        assert leased == [("lease", 10, 60.0, 5.0, True, "one"), ("lease", 11, 61.0, 6.0, True, "one")]
        assert fleet.counters["leases_returned"] == (4 if beats else 2), "once more as the ring begins"


def test_who_leaves_says_so() -> None:
    beats = Beats()
    Fleet(beats).leases.leave()
    Fleet(None).leases.leave()
    assert beats.left == ["one"]


async def test_it_stays_alive_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    beats = Beats("two")
    beats.fails = 1
    fleet, stop, pauses = Fleet(beats), asyncio.Event(), list[float | None]()

    async def wait_for(waiting: Any, timeout: float | None) -> None:
        waiting.close()
        pauses.append(timeout)
        fleet.now += 2.0
        if len(pauses) == 3:
            stop.set()
        raise TimeoutError

    monkeypatch.setattr(f"{fleet_leases.__name__}.asyncio.wait_for", wait_for)
    async with asyncio.timeout(10):
        await fleet.leases.keep_alive(stop)
        await fleet.leases.keep_alive(stop)
        await Fleet(None).leases.keep_alive(asyncio.Event())
    assert pauses == [2.0, 2.0, 2.0]
    assert beats.beats == [("one", 1_000.0), ("one", 1_002.0), ("one", 1_004.0)]
