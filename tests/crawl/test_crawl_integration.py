"""The worker over the real queue: offered, fetched, judged, settled."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlWorker, SeenFilter
from gatewayfilter.interfaces import CrawlRequest, Lease, Priority, QueueState
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    yield opened
    opened.close()


async def test_the_whole_way(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers["/bad"] = reply(b'casino <a href="/more"> <a href="/logout">')
    origin.answers["/more"] = reply(b"knitting")
    origin.answers["/ill"] = reply(status="500 Oops")
    sink = FakeSink()
    settings = loopback_settings(max_attempts=1)
    seen = SeenFilter(tmp_path / "seen.bloom")
    worker = CrawlWorker(CrawlContext(store.frontier, sink, settings, Counters(), seen=seen))
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    store.frontier.add(
        [CrawlRequest(origin.url("/bad")), CrawlRequest(origin.url("/ill")), CrawlRequest("http://10.0.0.1/")], time.time()
    )
    async with asyncio.timeout(20):
        while len(sink.pages) < 2 or store.frontier.stats(time.time())["leased"]:  # noqa: ASYNC110  another thread settles
            await asyncio.sleep(0.01)
    stop.set()
    await running
    rows = {row.url: (row.state, row.priority) for row in store.frontier.show(10)}
    assert rows == {
        origin.url("/bad"): (QueueState.DONE, Priority.VISIT),
        origin.url("/more"): (QueueState.DONE, Priority.LINK),
        "http://10.0.0.1/": (QueueState.DONE, Priority.VISIT),
        origin.url("/ill"): (QueueState.DEAD, Priority.VISIT),
    }
    assert (tmp_path / "seen.bloom").exists()
    assert "/logout" not in origin.requests


async def test_a_paused_queue_is_left_alone_until_it_goes_on_and_dead_letters_come_back(origin: Origin, store: Store) -> None:
    origin.answers["/a"] = reply(status="500 Oops")
    worker = CrawlWorker(CrawlContext(store.frontier, FakeSink(), loopback_settings(max_attempts=1, robots="never"), Counters()))
    store.frontier.pause(time.time())
    store.frontier.add([CrawlRequest(origin.url("/a"))], time.time())
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    looks = 0
    lease = store.frontier.lease

    def counting(*arguments: object, **named: object) -> list[Lease]:
        nonlocal looks
        looks += 1
        return lease(*arguments, **named)  # type: ignore[arg-type]

    store.frontier.lease = counting  # type: ignore[method-assign]

    async def until(done: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not done():  # noqa: ASYNC110  another thread does it
                await asyncio.sleep(0.005)

    await until(lambda: looks >= 5)
    assert origin.requests == []
    store.frontier.resume()
    await until(lambda: store.frontier.stats(time.time())["dead"] == 1)
    assert origin.requests == ["/a"]
    origin.answers["/a"] = reply()
    assert store.frontier.revive() == 1
    await until(lambda: store.frontier.stats(time.time())["done"] == 1)
    assert origin.requests == ["/a", "/a"]
    stop.set()
    await running
