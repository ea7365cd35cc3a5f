"""Which fetched pages go on in memory, and which wait on the disk."""

import asyncio
from concurrent.futures import Future
from typing import Any, cast

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.crawl.visitor import Visitor
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import HARMLESS, FakeFrontier, FakeSink


class Fetch:
    """Fetches one page."""

    body = b"x"

    async def fetch(self, url: Any, _priority: int, **_: object) -> FetchedPage:
        return FetchedPage(Page(url.text, url.text, 200, {"content-type": "text/html"}, self.body))


class Judge:
    """Judges when it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()

    async def judge(self, fetched: FetchedPage, target: Target) -> VisitResult:
        await self.may.wait()
        return VisitResult(fetched.page, HARMLESS, (), task=target.strategy.task)


class Buffer:
    """Keeps pages, unless it is full or broken."""

    has_room = True
    error: OSError | None = None

    def __init__(self) -> None:
        self.put_aside: list[tuple[str, str, int]] = []

    def put(self, page: Page, task: str, depth: int) -> "Future[None]":
        done: Future[None] = Future()
        if self.error is not None:
            done.set_exception(self.error)
        else:
            self.put_aside.append((page.url, task, depth))
            done.set_result(None)
        return done


class Setting:
    """A visitor of eight places, of which two pages are judged in memory at once."""

    def __init__(self, *, buffer: bool = True, concurrency: int = 8) -> None:
        self.fetch, self.judge, self.buffer, self.counters = Fetch(), Judge(), Buffer(), Counters()
        self.settings = CrawlSettings(concurrency=concurrency)
        kept = cast("Any", self.buffer) if buffer else None
        context = CrawlContext(FakeFrontier(), FakeSink(), self.settings, self.counters, buffer=kept)
        self.visitor = Visitor(context, cast("Any", self.fetch), cast("Any", self.judge), cast("Any", None))
        self.tasks: list[asyncio.Task[VisitResult]] = []

    async def visit(self, priority: int = Priority.LINK) -> bool:
        """Visits a page. Returns whether it was put aside; otherwise it is in memory until `end`."""
        url = parse_url(f"http://a.example/{len(self.tasks)}")
        target = Target(url, priority, strategy_of(self.settings, ""), depth=3)
        self.tasks.append(asyncio.create_task(self.visitor.visit(target, patience_s=0.0)))
        for _ in range(5):
            await asyncio.sleep(0)
        return self.tasks[-1].done() and self.tasks[-1].result().buffered

    async def end(self) -> None:
        self.judge.may.set()
        await asyncio.gather(*self.tasks)


async def test_a_quarter_of_the_places_is_judged_in_memory_and_the_rest_waits_on_the_disk() -> None:
    setting = Setting()
    assert [await setting.visit() for _ in range(4)] == [False, False, True, True]
    assert not await setting.visit(Priority.VISIT), "a user waits for it"
    assert setting.buffer.put_aside == [("http://a.example/2", "", 3), ("http://a.example/3", "", 3)]
    await setting.end()
    setting.judge.may.clear()
    assert [await setting.visit() for _ in range(3)] == [False, False, True]
    await setting.end()
    few = Setting(concurrency=2)
    assert [await few.visit() for _ in range(2)] == [False, True]
    await few.end()


@pytest.mark.parametrize("why", ["no buffer", "full", "broken", "empty"])
async def test_what_cannot_wait_on_the_disk_goes_on_in_memory(why: str) -> None:
    setting = Setting(buffer=why != "no buffer")
    setting.buffer.has_room = why != "full"
    setting.buffer.error = OSError(28, "No space left on device") if why == "broken" else None
    setting.fetch.body = b"" if why == "empty" else b"x"
    assert [await setting.visit() for _ in range(4)] == [False] * 4
    assert setting.counters["archive_failures"] == (2 if why == "broken" else 0)
    page = Page("http://a.example/", "http://a.example/", 200, {"content-type": "text/html"}, setting.fetch.body)
    target = Target(parse_url(page.url), Priority.LINK, strategy_of(setting.settings, ""))
    assert await setting.visitor._put_aside(page, target) is False
    await setting.end()


async def test_a_pdf_is_never_read_in_the_thread_of_the_judge() -> None:
    setting = Setting(concurrency=2)
    assert not await setting.visit()
    target = Target(parse_url("http://a.example/"), Priority.LINK, strategy_of(setting.settings, ""))
    for content_type, aside in (("text/html", True), ("application/pdf", False)):
        page = Page(
            "http://a.example/", "http://a.example/", 200, {"content-type": content_type}, b"%PDF-1.4" * (not aside) or b"x"
        )
        assert await setting.visitor._put_aside(page, target) is aside
    await setting.end()
