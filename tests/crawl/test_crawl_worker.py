import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlWorker, SeenFilter, crawl_worker, outcomes
from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Priority
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

NOW = 1_700_000_000.0


class Crawl:
    """A worker with fakes around it."""

    def __init__(self, *urls: str, settings: CrawlSettings | None = None, priority: int = Priority.VISIT) -> None:
        self.frontier = FakeFrontier(*urls, priority=priority)
        self.sink = FakeSink()
        self.counters = Counters()
        self.seen = SeenFilter()
        self.queued: set[str] = set()
        self.settings = chosen = settings or loopback_settings()
        self.context = CrawlContext(self.frontier, self.sink, chosen, self.counters, clock=lambda: NOW, seen=self.seen)
        self.worker = CrawlWorker(self.context)

    async def until(self, condition: Callable[[], bool]) -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(self.worker.run(stop))
        try:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110  what ends the wait happens in another thread
                    await asyncio.sleep(0.002)
        finally:
            stop.set()
            await running

    async def complete(self, count: int = 1) -> None:
        await self.until(lambda: self.frontier.settled >= count)


async def test_a_harmless_page(origin: Origin) -> None:
    origin.answers["/a"] = reply(b"<p>knitting")
    crawl = Crawl(origin.url("/a"))
    await crawl.complete()
    assert [page.body for page in crawl.sink.pages] == [b"<p>knitting"]
    assert crawl.frontier.finished == {origin.url("/a"): NOW + outcomes.JUDGED_REST_S}
    assert crawl.counters.as_dict() == {"pages_fetched": 1}
    assert origin.requests == ["/robots.txt", "/a"]
    assert len(crawl.frontier.threads) == len(crawl.sink.threads) == 1
    assert crawl.frontier.threads != crawl.sink.threads


async def test_links_of_a_harmful_page_are_offered_once_and_spread(origin: Origin) -> None:
    origin.answers["/a"] = origin.answers["/b"] = reply(b'casino <a href="/a"><a href="/x"><a href="/y">')
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(per_host_delay_s=2.0))
    await crawl.complete()
    offers = [(offer.url, offer.priority, offer.not_before) for offer in crawl.frontier.added]
    assert offers == [(origin.url("/x"), Priority.LINK, NOW), (origin.url("/y"), Priority.LINK, NOW + 2.0)]
    crawl.frontier.waiting = FakeFrontier(origin.url("/b")).waiting
    await crawl.complete(2)
    assert len(crawl.frontier.added) == 2
    assert parse_url(origin.url("/x")).digest in crawl.seen


async def test_links_that_could_not_be_queued_are_not_taken_for_seen(origin: Origin) -> None:
    origin.answers["/a"] = reply(b'casino <a href="/x">')
    crawl = Crawl(origin.url("/a"))
    crawl.frontier.failing_adds = 1
    await crawl.until(lambda: not crawl.frontier.failing_adds)
    assert parse_url(origin.url("/x")).digest not in crawl.seen
    assert crawl.frontier.settled == 0  # the lease runs out, and the page is looked at again


@pytest.mark.parametrize("answer", [reply(status="404 Gone"), reply(content_type="image/png")])
async def test_what_is_not_judged_rests_a_day(origin: Origin, answer: bytes) -> None:
    origin.answers["/a"] = answer
    crawl = Crawl(origin.url("/a"))
    await crawl.complete()
    assert crawl.frontier.finished == {origin.url("/a"): NOW + 86_400}


REFUSED = ["http://10.0.0.1/", "http://127.0.0.1:1/logout", "http://[::1]/x", "ws://127.0.0.1/"]


@pytest.mark.parametrize("url", REFUSED)
async def test_what_is_refused_rests_a_week(url: str) -> None:
    crawl = Crawl(url)
    await crawl.complete()
    assert crawl.frontier.finished == {url: NOW + 7 * 86_400}
    assert crawl.counters.as_dict() == {"pages_refused": 1}


async def test_robots_refusals_rest_a_week(origin: Origin) -> None:
    origin.answers["/robots.txt"] = reply(b"User-agent: *\nDisallow: /")
    crawl = Crawl(origin.url("/a"))
    await crawl.complete()
    assert crawl.frontier.finished == {origin.url("/a"): NOW + 7 * 86_400}
    assert origin.requests == ["/robots.txt"]


@pytest.mark.parametrize("status", ["500 Oops", "502 Bad", "429 Slow Down", "503 Busy"])
async def test_passing_answers_are_tried_again_then_buried(origin: Origin, status: str) -> None:
    origin.answers["/a"] = reply(status=status)
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(max_attempts=2))
    await crawl.complete()
    [(url, not_before, error)] = crawl.frontier.retried
    assert url == origin.url("/a")
    assert NOW + outcomes.BACK_OFF_S * 0.5 <= not_before <= NOW + 90
    assert status[:3] in error
    last = Crawl(origin.url("/a"), settings=loopback_settings(max_attempts=2))
    last.frontier.attempts[url] = 1
    await last.complete()
    assert last.frontier.buried == {url: error}
    assert last.counters["pages_failed"] == 1


async def test_retry_after_is_kept_and_no_failed_try(origin: Origin) -> None:
    origin.answers["/a"] = origin.answers["/b"] = reply(b"", "Retry-After: 1000", status="503 Busy")
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(max_attempts=1))
    await crawl.complete()
    assert list(crawl.frontier.buried) == [origin.url("/a")]
    crawl.frontier.waiting = FakeFrontier(origin.url("/b")).waiting
    await crawl.complete(2)
    [(url, not_before, error)] = crawl.frontier.retried
    assert url == origin.url("/b")
    assert NOW + 900 <= not_before <= NOW + 1500
    assert "may not be requested" in error
    assert origin.requests == ["/robots.txt", "/a"]
    assert crawl.counters["pages_failed"] == 1


async def test_a_broken_answer_rests(origin: Origin) -> None:
    origin.answers["/a"] = reply(b"hello", "Content-Encoding: gzip")
    crawl = Crawl(origin.url("/a"))
    await crawl.complete()
    assert crawl.frontier.finished == {origin.url("/a"): NOW + 86_400}
    assert crawl.counters["pages_failed"] == 1


async def test_a_verdict_that_was_not_kept_is_made_again(origin: Origin) -> None:
    origin.answers["/a"] = reply()
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(max_attempts=1))
    crawl.sink.error = StoreError("the disk is full")
    await crawl.complete()
    assert [(url, error) for url, _, error in crawl.frontier.retried] == [(origin.url("/a"), "the verdict could not be kept")]


async def test_a_surprise_is_this_page_s_alone(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    origin.answers["/a?q=private"] = reply()
    crawl = Crawl(origin.url("/a?q=private"), "not a url")
    crawl.sink.error = ZeroDivisionError("boom")
    await crawl.complete(2)
    assert crawl.frontier.buried == {origin.url("/a?q=private"): "failed with ZeroDivisionError", "not a url": "not a URL"}
    assert "private" not in caplog.text


async def test_logs_carry_no_query(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gatewayfilter")
    crawl = Crawl("http://10.0.0.1/?q=private")
    await crawl.complete()
    assert "10.0.0.1/?…" in caplog.text
    assert "private" not in caplog.text


@pytest.mark.parametrize(
    "error", [StoreError("locked"), OSError(24, "Too many open files"), MemoryError(), RuntimeError("no thread")]
)
async def test_a_failing_queue_is_survived(error: Exception, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "STORE_PAUSE_S", 0.01)
    origin.answers["/a"] = reply()
    crawl = Crawl(origin.url("/a"))
    crawl.frontier.failing_leases, crawl.frontier.lease_error = 3, error
    await crawl.complete()
    assert list(crawl.frontier.finished) == [origin.url("/a")]


async def test_a_queue_that_fails_is_asked_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "STORE_PAUSE_S", 0.05)
    crawl = Crawl()
    crawl.frontier.failing_leases = 1_000_000
    until = time.monotonic() + 0.12
    await crawl.until(lambda: time.monotonic() > until)
    assert 1 <= crawl.frontier.polls <= 10


async def test_concurrency_is_bounded(origin: Origin) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.01)
        writer.write(reply())
        await writer.drain()

    paths = [f"/{number}" for number in range(20)]
    origin.answers.update(dict.fromkeys(paths, slowly))
    settings = loopback_settings(concurrency=6, per_host_concurrency=6)
    crawl = Crawl(*map(origin.url, paths), settings=settings)
    await crawl.until(lambda: len(crawl.frontier.finished) == 20)
    assert 2 <= origin.most_running <= 6


async def test_links_wait_for_their_host_and_visits_go_ahead(origin: Origin) -> None:
    origin.answers.update({f"/{number}": reply() for number in range(4)})
    settings = loopback_settings(per_host_delay_s=100.0)
    links = Crawl(*(origin.url(f"/{number}") for number in range(3)), settings=settings, priority=Priority.LINK)
    await links.complete(3)
    assert links.frontier.finished == {}  # robots.txt was the host's one request
    assert len(links.frontier.retried) == 3
    assert links.counters.as_dict() == {}
    visits = Crawl(*(origin.url(f"/{number}") for number in range(3)), settings=settings)
    await visits.complete(3)
    assert len(visits.frontier.finished) == 3


async def test_stopping_gives_back_what_hangs(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "GRACE_S", 0.05)

    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    origin.answers["/a"] = hang
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(timeout_s=300))
    await crawl.until(lambda: "/a" in origin.requests)
    assert crawl.frontier.retried == [(origin.url("/a"), NOW, "the crawler was stopped")]


async def test_stopping_finishes_what_is_nearly_done(origin: Origin) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(reply())
        await writer.drain()

    origin.answers["/a"] = slowly
    crawl = Crawl(origin.url("/a"))
    await crawl.until(lambda: "/a" in origin.requests)
    assert list(crawl.frontier.finished) == [origin.url("/a")]


async def test_pages_that_come_later_do_not_wait_for_one_that_hangs(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "GRACE_S", 0.01)

    async def hangs(writer: asyncio.StreamWriter) -> None:
        crawl.frontier.waiting += FakeFrontier(*urls).waiting
        await asyncio.sleep(3600)

    urls = [origin.url(f"/{number}") for number in range(3)]
    origin.answers |= {"/a": hangs, "/0": reply(), "/1": reply(), "/2": reply()}
    settings = loopback_settings(timeout_s=300, concurrency=3, robots="never", per_host_concurrency=3)
    crawl = Crawl(origin.url("/a"), settings=settings)
    await crawl.until(lambda: len(crawl.frontier.finished) == 3)
    assert sorted(crawl.frontier.finished) == urls


async def test_no_more_is_leased_than_there_are_places(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "GRACE_S", 0.01)

    async def hangs(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    paths = [f"/{number}" for number in range(9)]
    origin.answers |= dict.fromkeys(paths, hangs)
    settings = loopback_settings(timeout_s=300, concurrency=3, robots="never", per_host_concurrency=9)
    crawl = Crawl(origin.url("/0"), settings=settings)
    await crawl.until(
        lambda: crawl.frontier.polls >= 3 and _more(crawl, map(origin.url, paths[1:])) and len(origin.requests) >= 3
    )
    assert len(crawl.frontier.attempts) == 3


def _more(crawl: Crawl, urls: Iterable[str]) -> bool:
    """Puts URLs into the queue, once."""
    crawl.frontier.waiting += [request for request in FakeFrontier(*urls).waiting if request.url not in crawl.queued]
    crawl.queued |= {request.url for request in crawl.frontier.waiting}
    return True


async def test_what_was_seen_is_saved_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "SAVE_SEEN_S", 0.01)
    crawl, saved = Crawl(), list[str]()
    monkeypatch.setattr(crawl.seen, "save", lambda: saved.append(threading.current_thread().name))
    await crawl.until(lambda: len(saved) >= 3)
    assert len({*saved}) == 1


async def test_what_was_seen_is_saved_once_in_a_minute_and_at_the_end(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    origin.answers["/a"] = reply(b"<p>knitting")
    crawl, saved = Crawl(origin.url("/a")), list[bool]()
    monkeypatch.setattr(crawl.seen, "save", lambda: saved.append(True))
    await crawl.until(lambda: crawl.frontier.settled >= 1 and crawl.frontier.polls >= 3 and not saved)
    assert saved == [True]


async def test_a_worker_with_little_to_do_polls_seldom(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_worker, "GRACE_S", 0.01)

    async def hangs(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    origin.answers["/a"] = hangs
    crawl = Crawl(origin.url("/a"), settings=loopback_settings(timeout_s=300, robots="never"))
    until = time.monotonic() + 0.15
    await crawl.until(lambda: time.monotonic() > until and "/a" in origin.requests and crawl.frontier.polls >= 2)
    assert 2 <= crawl.frontier.polls <= 30


async def test_an_idle_worker_polls_seldom() -> None:
    crawl = Crawl()
    started = time.monotonic()
    await crawl.until(lambda: crawl.frontier.polls >= 12)
    assert time.monotonic() - started >= 10 * crawl_worker.POLL_MIN_S


async def test_pages_that_end_together_are_settled_in_one_transaction(origin: Origin) -> None:
    paths = [f"/{number}" for number in range(20)]
    origin.answers.update({path: reply(b'casino <a href="/x">') for path in paths})
    crawl = Crawl(*map(origin.url, paths), settings=loopback_settings(concurrency=20, per_host_concurrency=20, robots="never"))
    transactions: list[int] = []

    @contextmanager
    def together() -> Iterator[None]:
        before = crawl.frontier.settled
        yield
        transactions.append(crawl.frontier.settled - before)

    crawl.worker = CrawlWorker(replace(crawl.context, together=together))
    await crawl.complete(20)
    assert sum(transactions) == 20
    assert len(transactions) < 20


@pytest.mark.parametrize("error", [StoreError("the disk is full"), MemoryError()])
async def test_a_transaction_that_fails_leaves_no_link_for_seen(error: Exception, origin: Origin) -> None:
    origin.answers["/a"] = reply(b'casino <a href="/x">')
    crawl = Crawl(origin.url("/a"))
    failed = threading.Event()

    @contextmanager
    def together() -> Iterator[None]:
        yield
        failed.set()
        raise error

    crawl.worker = CrawlWorker(replace(crawl.context, together=together))
    await crawl.until(failed.is_set)
    assert parse_url(origin.url("/x")).digest not in crawl.seen
    assert parse_url(origin.url("/a")).digest not in crawl.seen


def test_pages_wait_for_their_host_until_half_the_places_are_taken() -> None:
    worker = Crawl(settings=loopback_settings(concurrency=5)).worker
    assert [worker._patience_s(busy) for busy in (0, 2, 3, 5)] == [PATIENCE_S] * 2 + [0.0] * 2
    even = Crawl(settings=loopback_settings(concurrency=4)).worker
    assert [even._patience_s(busy) for busy in (1, 2)] == [PATIENCE_S, 0.0]


def test_a_lease_outlives_the_longest_visit() -> None:
    crawl = Crawl("http://a.example/", settings=loopback_settings(timeout_s=7.0))
    (lease,) = crawl.worker._lease_now(1, threading.Event()).leases
    assert lease.expires_at == NOW + crawl_worker.LEASE_S + 28.0


@pytest.mark.parametrize("failing", [True, False])
def test_pages_are_fetched_whole_where_what_is_known_of_them_cannot_be_read(*, failing: bool) -> None:
    def conditions(urls: list[str]) -> dict[str, Any]:
        if failing:
            raise StoreError("locked")
        return dict.fromkeys(urls, "known")

    crawl = Crawl("http://a.example/", "http://b.example/")
    revisits = cast("Any", SimpleNamespace(conditions=conditions))
    worker = CrawlWorker(replace(crawl.context, revisits=revisits))
    leased = worker._lease_now(2, threading.Event())
    urls = [lease.url for lease in leased.leases]
    assert urls == ["http://a.example/", "http://b.example/"]
    assert leased.validators == ({} if failing else conditions(urls))
    assert worker._lease_now(2, threading.Event()).validators == {}
