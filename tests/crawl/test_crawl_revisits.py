"""Conditional re-fetches, from the queue to the origin and back to the lists."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.crawl import CrawlContext, CrawlWorker, PageBuffer, WarcArchive
from gatewayfilter.interfaces import CrawlRequest, Page, Priority
from gatewayfilter.learn import ListGrowth, Revisits
from gatewayfilter.model import Classification, ListAction
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

DAY_S = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")) as opened:
        yield opened


class GrowingSink(FakeSink):
    """Judges and puts pages on the lists."""

    def __init__(self, growth: ListGrowth) -> None:
        super().__init__()
        self.growth = growth

    def page(self, page: Page) -> Classification | None:
        classification = super().page(page)
        if classification is not None:
            self.growth.learn(page, classification)
        return classification


class Crawl:
    """A worker with real lists, and a clock that can be turned."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ahead_s = 0.0
        self.words = "words-1"
        self.counters = Counters()
        growth = ListGrowth(store.lists, store.verdicts, LearnSettings(), clock=self.now)
        self.sink = GrowingSink(growth)
        revisits = Revisits(store.validators, store.verdicts, growth, LearnSettings(), lambda: self.words, self.now)
        self.context = CrawlContext(
            store.frontier,
            self.sink,
            loopback_settings(robots="never"),
            self.counters,
            clock=self.now,
            together=store.settling,
            revisits=revisits,
        )

    def now(self) -> float:
        return time.time() + self.ahead_s

    async def visit(self, url: str) -> None:
        self.ahead_s += DAY_S
        before = self.counters["pages_fetched"]
        self.store.frontier.add([CrawlRequest(url, Priority.RECHECK)], self.now())
        stop = asyncio.Event()
        running = asyncio.create_task(CrawlWorker(self.context).run(stop))
        async with asyncio.timeout(20):
            while self.counters["pages_fetched"] == before or self.store.frontier.stats(self.now())["leased"]:  # noqa: ASYNC110  another thread settles
                await asyncio.sleep(0.005)
        stop.set()
        await running

    def expires_at(self, url: str) -> float:
        (entry,) = self.store.lists.find_learned((parse_url(url).key,))
        return entry.expires_at


def conditions(origin: Origin) -> list[str]:
    """The condition of each request, in order."""
    lines = [[line for line in head.split("\r\n") if line.lower().startswith("if-")] for head in origin.heads]
    return ["; ".join(found) for found in lines]


async def test_an_unchanged_page_is_not_judged_and_counts_anew(origin: Origin, store: Store) -> None:
    url = origin.url("/a")
    origin.answers["/a"] = reply(b"casino", 'ETag: "v1"', "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT")
    crawl = Crawl(store)
    await crawl.visit(url)
    first = crawl.expires_at(url)
    origin.answers["/a"] = b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
    await crawl.visit(url)
    assert conditions(origin) == ["", 'If-None-Match: "v1"; If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT']
    assert len(crawl.sink.pages) == 1
    assert crawl.counters["pages_unchanged"] == 1
    assert crawl.expires_at(url) == pytest.approx(first + DAY_S, abs=60)
    (entry,) = store.lists.find_learned((parse_url(url).key,))
    assert entry.action is ListAction.BLOCK


async def test_the_evidence_of_a_renewed_block_is_kept_on_with_it(origin: Origin, store: Store, tmp_path: Path) -> None:
    url = origin.url("/a")
    origin.answers["/a"] = reply(b"casino", 'ETag: "v1"')
    crawl = Crawl(store)
    archive = WarcArchive(tmp_path / "archive", 1_000_000)
    buffer = PageBuffer(crawl.sink, archive, store.verdicts, 2 * DAY_S, crawl.counters, clock=crawl.now)
    crawl.context = replace(crawl.context, sink=buffer, buffer=buffer)
    await crawl.visit(url)
    reference = store.verdicts.archived(url)
    assert reference
    origin.answers["/a"] = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    for _ in range(3):
        await crawl.visit(url)
    assert crawl.counters["pages_unchanged"] == 3
    assert store.verdicts.archived(url) == reference
    archive._pins.refresh()
    archive._pins.drop_expired(crawl.now() + 1.5 * DAY_S)
    assert archive._pins.in_segment(reference.partition(":")[0]) == [reference]
    kept = archive.read(reference)
    assert kept is not None
    assert kept.body == b"casino"


async def test_a_page_that_changed_is_judged_and_its_new_validators_count(origin: Origin, store: Store) -> None:
    url = origin.url("/a")
    crawl = Crawl(store)
    for version in ("v1", "v2", "v3"):
        origin.answers["/a"] = reply(version.encode(), f'ETag: "{version}"')
        await crawl.visit(url)
    assert conditions(origin) == ["", 'If-None-Match: "v1"', 'If-None-Match: "v2"']
    assert [page.body for page in crawl.sink.pages] == [b"v1", b"v2", b"v3"]


async def test_the_condition_goes_to_the_url_that_answered_alone(origin: Origin, store: Store) -> None:
    origin.answers["/a"] = reply(b"", "Location: /b", status="302 Found")
    origin.answers["/b"] = reply(b"words", 'ETag: "v1"')
    crawl = Crawl(store)
    await crawl.visit(origin.url("/a"))
    await crawl.visit(origin.url("/a"))
    assert origin.requests == ["/a", "/b", "/a", "/b"]
    assert conditions(origin) == ["", "", "", 'If-None-Match: "v1"']
    origin.answers["/a"] = reply(b"", "Location: /c", status="302 Found")
    origin.answers["/c"] = reply(b"other words")
    await crawl.visit(origin.url("/a"))
    assert conditions(origin)[-2:] == ["", ""]


async def test_other_words_fetch_whole(origin: Origin, store: Store) -> None:
    origin.answers["/a"] = reply(b"words", 'ETag: "v1"')
    crawl = Crawl(store)
    await crawl.visit(origin.url("/a"))
    crawl.words = "words-2"
    await crawl.visit(origin.url("/a"))
    assert conditions(origin) == ["", ""]
    assert len(crawl.sink.pages) == 2


async def test_not_modified_of_a_page_without_a_verdict_is_fetched_whole(origin: Origin, store: Store) -> None:
    """The verdict was forgotten, the validators not yet."""
    url = origin.url("/a")
    origin.answers["/a"] = reply(b"words", 'ETag: "v1"')
    crawl = Crawl(store)
    await crawl.visit(url)
    crawl.context.revisits.renew = lambda _page: None  # type: ignore[union-attr, method-assign]
    whole = origin.answers["/a"]
    answers = iter([b"HTTP/1.1 304 Not Modified\r\n\r\n", whole])

    async def answer(writer: asyncio.StreamWriter) -> None:
        data = next(answers)
        assert isinstance(data, bytes)
        writer.write(data)
        await writer.drain()

    origin.answers["/a"] = answer
    await crawl.visit(url)
    assert conditions(origin) == ["", 'If-None-Match: "v1"', ""]
    assert len(crawl.sink.pages) == 2


async def test_a_304_that_nobody_asked_for_is_no_page(origin: Origin, store: Store) -> None:
    origin.answers["/a"] = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    crawl = Crawl(store)
    await crawl.visit(origin.url("/a"))
    assert crawl.counters["pages_unchanged"] == 0
    assert list(store.lists.learned()) == []
