"""A scanner that lags behind the fetcher: nothing is lost, and a user's visit goes ahead."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayfilter.crawl import Backlog, CrawlContext, CrawlWorker, PageBuffer, WarcArchive
from gatewayfilter.interfaces import CrawlRequest, Page, Priority
from gatewayfilter.model import Classification
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

PAGES = 12


class SlowSink(FakeSink):
    """Judges nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def page(self, page: Page) -> Classification | None:
        self.go.wait(20)
        return super().page(page)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    yield opened
    opened.close()


class Lagging:
    """A worker over a real queue and archive."""

    def __init__(self, store: Store, folder: Path, **changes: object) -> None:
        self.sink = SlowSink()
        self.counters = Counters()
        archive = WarcArchive(folder, 10_000_000)
        self.backlog = Backlog(folder / "backlog.log")
        self.buffer = PageBuffer(self.sink, archive, store.verdicts, 1000.0, self.counters, self.backlog)
        settings = loopback_settings(concurrency=4, per_host_concurrency=4, robots="never", **changes)
        self.worker = CrawlWorker(
            CrawlContext(
                store.frontier,
                self.buffer,
                settings,
                self.counters,
                buffer=self.buffer,
                together=store.settling,
                task_sites=store.task_sites,
            )
        )
        self.stop = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110  what ends the wait happens in another thread
                await asyncio.sleep(0.005)


async def test_fetching_goes_on_while_the_scanner_lags_and_nothing_is_lost(origin: Origin, store: Store, tmp_path: Path) -> None:
    urls = [origin.url(f"/{number}") for number in range(PAGES)]
    origin.answers.update({f"/{number}": reply(b'casino <a href="/more">') for number in range(PAGES)})
    origin.answers["/more"] = reply()
    store.frontier.add([CrawlRequest(url, Priority.LINK) for url in urls], time.time())
    first = Lagging(store, tmp_path / "archive")
    running = asyncio.create_task(first.worker.run(first.stop))
    await first.until(lambda: first.counters["pages_fetched"] == PAGES and len(first.backlog) >= PAGES - 2)
    assert first.sink.pages == []
    waiting = len(first.backlog)
    first.stop.set()
    first.sink.go.set()
    await running
    assert 0 < len(first.backlog) <= waiting  # it ends at once, with pages that wait on the disk

    again = Lagging(store, tmp_path / "archive")
    again.sink.go.set()
    running = asyncio.create_task(again.worker.run(again.stop))
    await again.until(lambda: not len(again.backlog) and any(page.url == origin.url("/more") for page in again.sink.pages))
    again.stop.set()
    await running
    judged = [page.url for page in first.sink.pages + again.sink.pages]
    assert set(judged) == {*urls, origin.url("/more")}
    assert origin.requests.count("/0") == 1
    assert again.counters["pages_lost"] == 0


async def test_pages_that_wait_are_judged_while_nothing_else_is_to_do(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers.update({f"/{number}": reply() for number in range(PAGES)})
    store.frontier.add([CrawlRequest(origin.url(f"/{number}"), Priority.LINK) for number in range(PAGES)], time.time())
    first = Lagging(store, tmp_path / "archive")
    running = asyncio.create_task(first.worker.run(first.stop))
    await first.until(lambda: first.counters["pages_fetched"] == PAGES and len(first.backlog) >= PAGES - 2)
    first.stop.set()
    first.sink.go.set()
    await running

    again = Lagging(store, tmp_path / "archive")
    running = asyncio.create_task(again.worker.run(again.stop))
    await asyncio.sleep(0.3)  # it has asked the queue, which has no more
    again.sink.go.set()
    await again.until(lambda: not len(again.backlog))
    again.stop.set()
    await running


async def test_it_ends_when_told_so_while_the_scanner_looks_for_a_page(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, crawler = asyncio.get_running_loop(), Lagging(store, tmp_path / "archive")

    def look() -> None:
        loop.call_soon_threadsafe(crawler.stop.set)
        time.sleep(0.3)

    monkeypatch.setattr(crawler.buffer, "scan_first", look)
    await asyncio.wait_for(crawler.worker.run(crawler.stop), 10)


async def test_pages_of_a_task_wait_too_and_the_task_goes_on(origin: Origin, store: Store, tmp_path: Path) -> None:
    urls = [origin.url(f"/{number}") for number in range(PAGES)]
    for number in range(PAGES):
        origin.answers[f"/{number}"] = reply(f'<a href="/{number}/1">'.encode())
        origin.answers[f"/{number}/1"] = reply(f'<a href="/{number}/1/1">'.encode())  # beyond the task's depth
    store.frontier.add([CrawlRequest(url, 100, task="look") for url in urls], time.time())
    tasks = {"look": {"depth": 1}}
    first = Lagging(store, tmp_path / "archive", tasks=tasks)
    running = asyncio.create_task(first.worker.run(first.stop))
    await first.until(lambda: first.counters["pages_fetched"] == PAGES and len(first.backlog) >= PAGES - 2)
    first.stop.set()
    first.sink.go.set()
    await running

    again = Lagging(store, tmp_path / "archive", tasks=tasks)
    again.sink.go.set()
    running = asyncio.create_task(again.worker.run(again.stop))
    linked = {f"{url}/1" for url in urls}
    await again.until(lambda: not len(again.backlog) and {page.url for page in again.sink.pages} >= linked)
    again.stop.set()
    await running
    assert sorted(origin.requests) == sorted(url.removeprefix(origin.url("")) for url in [*urls, *linked])


async def test_a_visit_never_waits_on_the_disk(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers.update({f"/{number}": reply() for number in range(PAGES)})
    origin.answers["/visit"] = reply(b"a visit")
    store.frontier.add([CrawlRequest(origin.url(f"/{number}"), Priority.LINK) for number in range(PAGES)], time.time())
    lagging = Lagging(store, tmp_path / "archive")
    running = asyncio.create_task(lagging.worker.run(lagging.stop))
    await lagging.until(lambda: len(lagging.backlog) >= PAGES - 2)
    store.frontier.add([CrawlRequest(origin.url("/visit"), Priority.VISIT)], time.time())
    await lagging.until(lambda: lagging.counters["pages_fetched"] == PAGES + 1)
    lagging.sink.go.set()
    await lagging.until(lambda: any(page.body == b"a visit" for page in lagging.sink.pages))
    assert [page.body for page in lagging.sink.pages].index(b"a visit") <= 4  # those in memory before it, not the backlog
    lagging.stop.set()
    await running
