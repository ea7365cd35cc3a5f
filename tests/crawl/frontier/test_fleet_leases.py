"""Several crawlers over one queue: real processes, one of them killed."""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlWorker
from gatewayfilter.crawl.frontier.fleet_leases import DEAD_AFTER_S, FleetLeases
from gatewayfilter.interfaces import SITE_SLOTS, CrawlRequest, QueueState
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeSink
from tests.crawl.crawl_origin import loopback_settings, reply, serving

pytestmark = pytest.mark.slow

NAMES = ("one", "two", "three")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'test.sqlite3'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(Store.open(url)) as opened:
        yield opened


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def offers(count: int) -> list[CrawlRequest]:
    return [CrawlRequest(f"http://site-{number}.example/") for number in range(count)]


def test_one_alone_takes_all(store: Store) -> None:
    store.frontier.add(offers(20), 1.0)
    alone = FleetLeases(store.frontier, store.crawlers, "one", Clock())
    assert alone.slots is None
    assert len(alone.lease(100, 60.0, 2.0)) == 20


def test_each_takes_its_own_and_together_they_take_all(store: Store) -> None:
    store.frontier.add(offers(300), 1.0)
    clock = Clock()
    fleet = [FleetLeases(store.frontier, store.crawlers, name, clock, beat_s=0.0) for name in NAMES]
    for _ in range(2):
        slots = [member.slots or () for member in fleet]
    assert sorted(slot for own in slots for slot in own) == list(range(SITE_SLOTS))
    shares = [{lease.url for lease in member.lease(1000, 60.0, 2.0)} for member in fleet]
    assert all(len(share) > 50 for share in shares)
    assert sum(map(len, shares)) == len(set().union(*shares)) == 300


def test_who_is_silent_or_leaves_hands_its_sites_over_and_nothing_else_moves(store: Store) -> None:
    clock = Clock()
    fleet = {name: FleetLeases(store.frontier, store.crawlers, name, clock, beat_s=0.0) for name in NAMES}
    for _ in range(2):
        before = {name: set(member.slots or ()) for name, member in fleet.items()}
    clock.now += DEAD_AFTER_S - 1
    assert fleet["one"].slots
    assert fleet["two"].slots
    clock.now += 2  # "three" has been silent for longer than it may
    for _ in range(2):
        after = {name: set(fleet[name].slots or ()) for name in ("one", "two")}
    assert after["one"] > before["one"]
    assert after["two"] > before["two"]
    assert after["one"] | after["two"] == set(range(SITE_SLOTS))
    fleet["two"].leave()
    assert fleet["one"].slots is None


def test_what_waited_before_there_were_slots_is_anybodys(store: Store) -> None:
    store.frontier.add([CrawlRequest("not a URL")], 1.0)
    assert [lease.url for lease in store.frontier.lease(5, 60.0, 2.0, (3,))] == ["not a URL"]


def test_what_one_had_in_work_that_is_gone_comes_back_with_its_sites(store: Store) -> None:
    store.frontier.add(offers(60), 1.0)
    clock = Clock()
    counters = Counters()
    one = FleetLeases(store.frontier, store.crawlers, "one", clock, beat_s=0.0, counters=counters)
    two = FleetLeases(store.frontier, store.crawlers, "two", clock, beat_s=0.0)
    assert [member.slots is None for member in (one, two, one)] == [True, False, False]
    lost = {lease.url for lease in two.lease(100, 3600.0, clock.now)}
    kept = one.lease(100, 3600.0, clock.now)
    assert lost
    assert len(lost) + len(kept) == 60
    clock.now += DEAD_AFTER_S + 1
    assert {lease.url for lease in one.lease(100, 3600.0, clock.now)} == lost  # an hour before the leases end
    assert counters["leases_returned"] == len(lost)
    assert all(store.frontier.done(lease) for lease in kept)


def test_one_that_is_started_again_takes_its_own_back_at_once(store: Store) -> None:
    store.frontier.add(offers(5), 1.0)
    clock = Clock()
    first = FleetLeases(store.frontier, store.crawlers, "one", clock)
    other = FleetLeases(store.frontier, store.crawlers, "other", clock)
    assert len(first.lease(5, 3600.0, clock.now)) == 5
    assert other.lease(5, 3600.0, clock.now) == []
    again = FleetLeases(store.frontier, store.crawlers, "one", clock)
    assert [lease.attempts for lease in again.lease(9, 3600.0, clock.now) + other.lease(9, 3600.0, clock.now)] == [2] * 5


def test_one_alone_takes_back_what_anybody_had_and_tells_nobody(store: Store) -> None:
    store.frontier.add(offers(5), 1.0)
    clock = Clock()
    FleetLeases(store.frontier, store.crawlers, "before", clock).lease(3, 3600.0, clock.now)
    clock.now += 1000.0
    counters = Counters()
    alone = FleetLeases(store.frontier, None, "alone", clock, counters=counters)
    assert len(alone.lease(9, 3600.0, clock.now)) == 5
    assert counters["leases_returned"] == 3
    assert store.crawlers.alive(clock.now) == []
    alone.leave()


async def test_one_whose_places_are_all_taken_is_alive(store: Store) -> None:
    stop = asyncio.Event()
    busy = FleetLeases(store.frontier, store.crawlers, "busy", beat_s=0.01)
    beating = asyncio.create_task(busy.keep_alive(stop))
    async with asyncio.timeout(90):
        for _ in range(3):
            mark = time.time()
            while store.crawlers.alive(mark) != ["busy"]:  # noqa: ASYNC110  it says so from another thread
                await asyncio.sleep(0.005)
    stop.set()
    await beating


def crawl(url: str, name: str) -> None:
    """One crawler, until it is killed."""
    with closing(Store.open(url)) as store:
        leases = FleetLeases(store.frontier, store.crawlers, name, beat_s=0.1, dead_after_s=1.5)
        settings = loopback_settings(robots="never", timeout_s=60.0)
        worker = CrawlWorker(
            CrawlContext(store.frontier, FakeSink(), settings, Counters(), leases=leases, together=store.settling)
        )
        worker._lease_s = 3600.0  # what the killed one had in work does not just run out
        asyncio.run(worker.run(asyncio.Event()))


async def test_a_killed_crawler_s_sites_are_crawled_by_the_others(url: str, store: Store) -> None:
    context = multiprocessing.get_context("forkserver")
    children = {name: context.Process(target=crawl, args=(url, name), daemon=True) for name in ("one", "two")}
    for child in children.values():
        child.start()
    try:
        async with serving() as origin, asyncio.timeout(100):
            origin.answers.update({f"/{number}": reply() for number in range(40)})
            while len(store.crawlers.alive(time.time() - 1.5)) < 2:  # noqa: ASYNC110  another process says so
                await asyncio.sleep(0.05)
            store.frontier.add([CrawlRequest(f"http://127.0.0.1:{origin.port}/{number}") for number in range(10)], time.time())
            children["one"].kill()
            # Addresses of the whole loopback network are sites of their own; the origin listens on one of them.
            urls = [f"http://127.0.0.{2 + number}:{origin.port}/{number}" for number in range(30)]
            store.frontier.add([CrawlRequest(each) for each in urls], time.time())
            while (counts := store.frontier.stats(time.time()))["done"] < 10 or counts["waiting"] + counts["leased"] > 30:  # noqa: ASYNC110  likewise
                await asyncio.sleep(0.05)
            tried: set[str] = set()
            while len(tried) < 30:
                rows = store.frontier.show(100)
                tried = {row.url for row in rows if row.url in urls and (row.attempts or row.state is not QueueState.WAITING)}
                await asyncio.sleep(0.05)
            while store.crawlers.alive(time.time() - 1.5) != ["two"]:  # noqa: ASYNC110  a busy one may be silent for a while
                await asyncio.sleep(0.05)
    finally:
        for child in children.values():
            child.kill()
            child.join()
