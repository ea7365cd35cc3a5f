"""Crawls with somebody waiting: named pages, tasks that follow links, progress."""

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlOutcome, CrawlProgress, ForegroundCrawl
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import HARMFUL, HARMLESS, FakeFrontier, FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply


class Foreground:
    """A crawl with fakes around it; it goes on knowing hosts between runs."""

    def __init__(self, settings: CrawlSettings | None = None, task: str = "") -> None:
        self.frontier = FakeFrontier()
        self.told: list[CrawlOutcome] = []
        self.progress: list[CrawlProgress] = []
        context = CrawlContext(self.frontier, FakeSink(), settings or loopback_settings(), Counters())
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
