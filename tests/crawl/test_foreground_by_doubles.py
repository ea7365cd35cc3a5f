"""How a crawl in the foreground goes on from page to page, without a network: `gatewayfilter.crawl.foreground`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlOutcome, CrawlProgress, ForegroundCrawl, foreground
from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.errors import FetchError, ForbiddenAddressError
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import HARMFUL, HARMLESS, FakeFrontier, FakeSink
from tests.crawl.crawl_origin import loopback_settings


class Visits:
    """Answers of pages, in place of the internet; each takes 0.25 s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages: dict[str, tuple[tuple[str, ...], Classification | None] | Exception] = {}
        self.asked: list[tuple[str, int, int]] = []
        self.at_once = self.most_at_once = 0
        self.now = 3.0
        self.counters = Counters()
        self.progress: list[CrawlProgress] = []
        self.told: list[CrawlOutcome] = []

        @asynccontextmanager
        async def open_runtime(*_: object) -> AsyncIterator[Any]:
            yield SimpleNamespace(visitor=self)

        monkeypatch.setattr(foreground, "open_runtime", open_runtime)
        monkeypatch.setattr(foreground, "time", SimpleNamespace(monotonic=lambda: self.now))

    async def visit(self, target: Target, *, patience_s: float) -> VisitResult:
        assert patience_s == PATIENCE_S
        url = target.url.text
        self.asked.append((url, target.depth, target.priority))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.now += 0.25
        links, found = answer if not isinstance(answer := self.pages.get(url, ((), HARMLESS)), Exception) else ((), None)
        if isinstance(answer, Exception):
            raise answer
        page = Page(url, url, 404 if found is None else 200, {}, b"")
        return VisitResult(page, found, tuple(map(parse_url, links)), links_depth=target.depth + 1)

    def crawl(self, *, task: str = "look", concurrency: int = 1, **strategy: object) -> ForegroundCrawl:
        settings = loopback_settings(tasks={"look": {"depth": 2, **strategy}}, concurrency=concurrency)
        context = CrawlContext(FakeFrontier(), FakeSink(), settings, self.counters)
        return ForegroundCrawl(context, task, self.told.append, self.progress.append)


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    return Visits(monkeypatch)


def paths(outcomes: list[CrawlOutcome]) -> list[str]:
    return [outcome.url for outcome in outcomes]


START = "http://www.a.example/"


async def test_pages_of_all_hosts_of_a_site_count_together(visits: Visits) -> None:
    links = ("http://x.a.example/", "http://y.a.example/", "http://192.0.2.1/", "http://192.0.2.2/", "http://z.a.example/")
    visits.pages = {START: (links, HARMLESS)}
    found = await visits.crawl(pages_per_site=2).run([START])
    assert paths(found) == [START, *links[:4]]


async def test_the_nearest_pages_come_first_and_each_once(visits: Visits) -> None:
    one, two, deep = "http://a.example/1", "http://a.example/2", "http://a.example/1/1"
    visits.pages = {START: ((one, START, two), HARMLESS), one: ((deep, two), HARMLESS), two: ((one,), HARMFUL)}
    found = await visits.crawl(priority=13).run([START])
    assert visits.asked == [
        (START, 0, Priority.MANUAL), (one, 1, 13), (two, 1, 13), (deep, 2, 13),
    ]  # fmt: skip
    assert visits.told == found
    assert [outcome.elapsed_ms for outcome in found] == [250] * 4
    assert [(step.done, step.running, step.waiting, step.harmful, step.failed) for step in visits.progress] == [
        (0, 1, 0, 0, 0), (1, 0, 2, 0, 0), (1, 1, 1, 0, 0), (2, 0, 2, 0, 0), (2, 1, 1, 0, 0), (3, 0, 1, 1, 0), (3, 1, 0, 1, 0),
        (4, 0, 0, 1, 0),
    ]  # fmt: skip
    assert visits.progress[-1].elapsed_s == 1.0
    assert (await visits.crawl(task="").run([START]), len(visits.asked)) == ([visits.told[-1]], 5)


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (9, 3)])
async def test_so_many_pages_are_in_work_at_once(visits: Visits, concurrency: int, most: int) -> None:
    await visits.crawl(concurrency=concurrency).run([f"http://a{number}.example/" for number in range(3)])
    assert (visits.most_at_once, len(visits.asked)) == (most, 3)


async def test_what_went_wrong_is_said_and_counted(visits: Visits) -> None:
    visits.pages = {
        "http://none.example/": FetchError("cannot connect"),
        "http://away.example/": FetchError("cannot connect"),
        "http://inside.example/": ForbiddenAddressError("not a public address"),
        "http://gone.example/": ((), None),
    }
    found = await visits.crawl().run(["none.example", "away.example", "http://inside.example/", "http://[", "gone.example"])
    assert [(one.url, one.status, one.error, one.refused, one.elapsed_ms) for one in found[1:]] == [
        ("http://none.example/", 0, "cannot connect", False, 250),
        ("http://away.example/", 0, "cannot connect", False, 250),
        ("http://inside.example/", 0, "not a public address", True, 250),
        ("http://gone.example/", 404, "a page of this kind is not classified (status 404)", False, 250),
    ]
    assert (found[0].url, found[0].refused) == ("http://[", True)
    assert (visits.counters["pages_refused"], visits.counters["pages_failed"]) == (2, 2)
    assert (visits.progress[-1].failed, visits.progress[-1].done, visits.progress[-1].harmful) == (4, 5, 0)
    assert await visits.crawl().run([]) == []


async def test_without_listeners_it_goes_as_far(visits: Visits) -> None:
    crawl = visits.crawl()
    silent: Callable[..., Any] = ForegroundCrawl
    assert paths(await silent(crawl._context, "look").run([START])) == [START]
    assert (visits.told, visits.progress) == ([], [])


async def test_what_is_under_way_has_ended_before_the_runtime_closes(visits: Visits, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, closed = list[str](), list[str](), list[int]()

    class Slow:
        async def visit(self, target: Target, *, patience_s: float) -> VisitResult:
            begun.append(target.url.text)
            try:
                await asyncio.sleep(3_600 + patience_s)
            finally:
                for _ in range(len(begun) if target.url.text == begun[-1] else 0):
                    await asyncio.sleep(0)
                ended.append(target.url.text)
            raise AssertionError("it was cancelled")

    @asynccontextmanager
    async def open_runtime(*_: object) -> AsyncIterator[Any]:
        try:
            yield SimpleNamespace(visitor=Slow())
        finally:
            closed.append(len(ended))

    monkeypatch.setattr(foreground, "open_runtime", open_runtime)
    running = asyncio.create_task(visits.crawl(concurrency=3).run([f"http://a{number}.example/" for number in range(3)]))
    async with asyncio.timeout(10):
        while len(begun) < 3:  # noqa: ASYNC110  they begin by themselves
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert (closed, sorted(ended)) == ([3], sorted(begun))
