"""The worker's scanner of buffered pages: what wakes it, and that it goes on after whatever happens to a page."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.crawl import crawl_worker
from gatewayfilter.crawl.page_judge import VisitResult
from gatewayfilter.crawl.visitor import ScannedVisit
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Page
from tests.crawl.test_crawl_worker import NOW, Crawl


@pytest.mark.parametrize("buffered", [True, False])
async def test_a_page_on_the_disk_wakes_the_scanner(*, buffered: bool) -> None:
    crawl, page = Crawl("http://a.example/"), Page("http://a.example/", "http://a.example/", 200, {}, b"x")

    async def visit(_: object, **__: object) -> VisitResult:
        return VisitResult(page, None, (), buffered=buffered)

    session = SimpleNamespace(runtime=SimpleNamespace(visitor=SimpleNamespace(visit=visit)), buffered=asyncio.Event())
    (lease,) = crawl.frontier.lease(1, 900, NOW)
    await crawl.worker._visited(cast("Any", session), lease, None, 0.0)
    assert session.buffered.is_set() is buffered


class Scans:
    """A buffer and a visitor that scan what a test says; a function among it is called in place of a scan."""

    def __init__(self, crawl: Crawl, *results: Any) -> None:
        self.results, self.left, self.waiting = [*results], 0, 0
        self.kept, self.advanced, self.times = list[Any](), 0, list[float]()
        self.closing, self.buffered = threading.Event(), asyncio.Event()
        crawl.worker._buffer = cast("Any", self)
        self.session = cast(
            "Any",
            SimpleNamespace(runtime=SimpleNamespace(visitor=self), batcher=self, closing=self.closing, buffered=self.buffered),
        )

    def advance(self) -> None:
        self.advanced += 1

    async def call(self, work: Any) -> None:
        self.kept.append(work.args[0])

    async def scan_first(self) -> Any:
        found = self.results.pop(0)
        self.times.append(asyncio.get_running_loop().time())
        if not self.results:
            self.closing.set()
        if isinstance(found, Exception):
            raise found
        return found


async def scanned(crawl: Crawl, scans: Scans) -> None:
    stopping = asyncio.create_task(asyncio.Event().wait())
    async with asyncio.timeout(10):
        await crawl.worker._scan(scans.session, cast("Any", stopping))
    stopping.cancel()


async def test_the_scanner_goes_on_after_whatever_happens_to_a_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crawl_worker, "STORE_PAUSE_S", 0.05)
    crawl = Crawl()
    scans = Scans(
        crawl, ScannedVisit(cast("Any", "one")), StoreError("locked"), ScannedVisit(None), ValueError("odd"),
        ScannedVisit(cast("Any", "two")),
    )  # fmt: skip
    await scanned(crawl, scans)
    assert (scans.kept, scans.advanced) == (["one", "two"], 4)
    assert crawl.counters.as_dict() == {"pages_failed": 1}
    assert scans.times[2] - scans.times[1] >= 0.049, "a database that refuses has a pause"
    assert caplog.messages == ["locked; the page is judged again", "judging a page out of the archive failed"]


async def test_the_scanner_waits_for_pages() -> None:
    crawl = Crawl()
    scans = Scans(crawl, None, ScannedVisit(cast("Any", "one")), None)
    scanning = asyncio.create_task(scanned(crawl, scans))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (scans.kept, len(scans.results), scanning.done()) == ([], 2, False)
    scans.buffered.set()
    await scanning
    assert (scans.kept, scans.advanced) == (["one"], 1)
    scans = Scans(crawl, None, ScannedVisit(cast("Any", "one")), None)
    scans.waiting = 1  # one came meanwhile
    await scanned(crawl, scans)
    assert scans.kept == ["one"]


async def test_without_a_buffer_nothing_is_scanned() -> None:
    crawl = Crawl()
    scans = Scans(crawl, None)
    crawl.worker._buffer = None
    await scanned(crawl, scans)
    assert len(scans.results) == 1


def test_links_of_a_page_out_of_the_buffer_count_as_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    crawl, asked = Crawl(), list[object]()
    digests = [bytes([number]) * 16 for number in range(2)]
    monkeypatch.setattr(crawl.worker._outcomes, "scanned", lambda visit: asked.append(visit) or digests)  # type: ignore[func-returns-value]
    crawl.worker._keep_scanned(cast("Any", "visit"))
    assert asked == ["visit"]
    assert all(digest in crawl.seen for digest in digests)
