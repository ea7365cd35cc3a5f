"""Crawls with somebody waiting: named pages, tasks that follow links, progress."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlOutcome, CrawlProgress, ForegroundCrawl, foreground
from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.interfaces import Priority
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import HARMFUL, HARMLESS, FakeFrontier, FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply


class Foreground:
    """A crawl with fakes around it; it goes on knowing hosts between runs."""

    def __init__(self, settings: CrawlSettings | None = None, task: str = "") -> None:
        self.frontier = FakeFrontier()
        self.told: list[CrawlOutcome] = []
        self.progress: list[CrawlProgress] = []
        self.counters = Counters()
        context = CrawlContext(self.frontier, FakeSink(), settings or loopback_settings(), self.counters)
        self.crawl = ForegroundCrawl(context, task, self.told.append, self.progress.append)

    async def run(self, *urls: str) -> list[CrawlOutcome]:
        return await self.crawl.run(urls)


async def test_one_page(origin: Origin) -> None:
    origin.answers["/a"] = reply(b"", "Location: /b", status="302 Found")
    origin.answers["/b"] = reply(b"casino")
    crawl = Foreground()
    (outcome,) = await crawl.run(origin.url("/a").removeprefix("http://"))
    assert (outcome.url, outcome.final_url, outcome.status) == (origin.url("/a"), origin.url("/b"), 200)
    assert (outcome.classification, outcome.error, outcome.refused) == (HARMFUL, "", False)
    assert (await crawl.run(origin.url("/b")))[0].classification == HARMFUL
    assert origin.requests.count("/robots.txt") == 1
    assert HARMLESS.harmful is False


@pytest.mark.parametrize(
    ("url", "refused", "error"),
    [
        ("http://10.0.0.1/", True, "not a public address"),
        ("localhost:1/logout", True, "logout"),
        ("http://127.0.0.1:1/", False, "cannot connect"),
        ("http://[", True, "not a URL"),
        ("", True, "not a"),
        ("ftp://a.test/", True, "http"),
    ],
)
async def test_one_page_says_what_went_wrong(url: str, error: str, *, refused: bool) -> None:
    (outcome,) = await Foreground().run(url)
    assert error in outcome.error
    assert outcome.refused is refused
    assert outcome.classification is None


async def test_one_page_of_a_page_that_is_not_judged(origin: Origin) -> None:
    (outcome,) = await Foreground().run(origin.url("/none"))
    assert (outcome.status, outcome.refused) == (404, False)
    assert "404" in outcome.error


SITE = {
    "/": b'<a href="/1">one</a><a href="/2">two</a><a href="http://127.0.0.2:1/away">away</a>',
    "/1": b'<a href="/1/1">deeper</a><a href="/2">again</a>',
    "/2": b"casino",
    "/1/1": b'<a href="/1/1/1">too deep</a>',
}


def serve_site(origin: Origin) -> None:
    origin.answers.update({path: reply(body) for path, body in SITE.items()})


def task(**strategy: object) -> CrawlSettings:
    return loopback_settings(tasks={"look": strategy}, robots="never")


@pytest.mark.parametrize(
    ("strategy", "paths"),
    [
        ({"depth": 0}, {"/"}),
        ({"depth": 1}, {"/", "/1", "/2"}),
        ({"depth": 2}, {"/", "/1", "/2", "/1/1"}),
        ({"depth": 2, "pages_per_site": 1}, {"/", "/1"}),
        ({"depth": 2, "pages_per_site": 2}, {"/", "/1", "/2"}),
        ({"depth": 2, "follow": "none"}, {"/"}),
        ({"depth": 2, "follow": "harmful"}, {"/"}),
        ({"depth": 2, "hosts": ["other.example"]}, {"/"}),
    ],
)
async def test_a_task_goes_as_far_as_its_strategy(origin: Origin, strategy: dict[str, object], paths: set[str]) -> None:
    serve_site(origin)
    foreground = Foreground(task(**strategy), "look")
    outcomes = await foreground.run(origin.url("/"))
    assert sorted(origin.requests) == sorted(paths)  # each once
    assert {outcome.url for outcome in outcomes} == {origin.url(path) for path in paths}
    assert foreground.told == outcomes
    assert foreground.frontier.added == []


async def test_without_a_task_no_link_is_followed(origin: Origin) -> None:
    serve_site(origin)
    origin.answers["/2"] = reply(b'casino <a href="/1">')
    assert len(await Foreground(loopback_settings(robots="never")).run(origin.url("/2"))) == 1
    assert origin.requests == ["/2"]


async def test_progress_tells_how_far_it_is(origin: Origin) -> None:
    serve_site(origin)
    foreground = Foreground(task(depth=2), "look")
    await foreground.run(origin.url("/"), "http://10.0.0.1/")
    last = foreground.progress[-1]
    assert (last.done, last.running, last.waiting, last.harmful, last.failed) == (5, 0, 0, 1, 1)
    assert last.rate > 0
    assert max(step.running for step in foreground.progress) >= 2
    assert [step.done for step in foreground.progress] == sorted(step.done for step in foreground.progress)


async def test_many_urls_of_a_host_come_as_the_host_may_be_asked(origin: Origin) -> None:
    origin.answers.update({f"/{number}": reply() for number in range(8)})
    settings = loopback_settings(robots="never", per_host_delay_s=0.05, per_host_concurrency=8)
    outcomes = await Foreground(settings).run(*(origin.url(f"/{number}") for number in range(8)))
    assert [outcome.status for outcome in outcomes] == [200] * 8
    assert sorted(origin.requests) == [f"/{number}" for number in range(8)]


async def test_the_same_page_is_looked_at_once(origin: Origin) -> None:
    origin.answers["/a"] = reply()
    assert len(await Foreground(loopback_settings(robots="never")).run(origin.url("/a"), origin.url("/a#b"))) == 1


async def test_an_outcome_tells_how_long_it_took(origin: Origin) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.03)
        writer.write(reply())

    origin.answers["/a"] = slowly
    got, failed = await Foreground(loopback_settings(robots="never")).run(origin.url("/a"), "http://127.0.0.1:1/")
    if failed.url == origin.url("/a"):
        got, failed = failed, got
    assert 30 <= got.elapsed_ms < 60_000
    assert 0 <= failed.elapsed_ms < 60_000


def test_the_rate_is_pages_a_second() -> None:
    assert CrawlProgress(6, 0, 0, 0, 0, elapsed_s=2.0).rate == 3.0
    assert CrawlProgress(6, 0, 0, 0, 0, elapsed_s=0.0).rate == 0.0


async def test_what_is_wrong_is_counted_once(origin: Origin) -> None:
    crawl = Foreground(loopback_settings(robots="never"))
    origin.answers["/a"] = reply()
    await crawl.run("http://10.0.0.1/", "http://[", "http://127.0.0.1:1/", origin.url("/a"), origin.url("/none"))
    assert (crawl.counters["pages_refused"], crawl.counters["pages_failed"]) == (2, 1)
    assert crawl.progress[-1].failed == 3
    assert crawl.progress[-1].done == 5


async def test_a_crawl_that_is_given_up_ends_what_is_under_way(origin: Origin) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def hangs(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await writer.wait_closed()
        ended.set()

    origin.answers["/a"] = hangs
    crawl = Foreground(loopback_settings(robots="never", timeout_s=60.0))
    running = asyncio.create_task(crawl.run(origin.url("/a")))
    await asked.wait()
    running.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    assert all(task.done() for task in crawl.crawl._running)


async def test_a_page_waits_for_a_busy_host_as_long_as_it_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []
    waits: list[float] = []

    class Busy:
        async def visit(self, target: Target, *, patience_s: float) -> VisitResult:
            tries.append(patience_s)
            raise HostBusyError("busy", 0.5)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(foreground, "BUSY_TRIES", 3)
    monkeypatch.setattr(foreground, "asyncio", SimpleNamespace(sleep=sleep))
    crawl = Foreground().crawl
    runtime = cast("Any", SimpleNamespace(visitor=Busy()))
    for priority, attempts, slept in ((Priority.MANUAL, 1, []), (Priority.RECHECK, 4, [0.5] * 3)):
        target = Target(parse_url("http://a.example/"), priority, crawl._strategy, 0)
        with pytest.raises(HostBusyError):
            await crawl._patiently(runtime, target)
        assert (tries, waits) == ([PATIENCE_S] * attempts, slept)
        tries.clear()


async def test_the_first_page_of_a_host_is_urgent() -> None:
    crawl = Foreground().crawl
    for url in ("http://a.example/1", "http://a.example/2", "http://b.example/", "http://a.example/1"):
        crawl._put(parse_url(url), 0)
    crawl._put(parse_url("http://c.example/"), 1)
    got = [(task.depth, task.url.text, task.priority) for task in sorted(crawl._waiting)]
    assert got == [
        (0, "http://a.example/1", Priority.MANUAL),
        (0, "http://a.example/2", Priority.RECHECK),
        (0, "http://b.example/", Priority.MANUAL),
        (1, "http://c.example/", crawl._strategy.priority),
    ]
