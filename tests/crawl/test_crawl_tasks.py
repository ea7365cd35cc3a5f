"""Tasks in the background: their strategies over the real queue, over restarts, and with pages that come again."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlWorker, SeenFilter
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.interfaces import CrawlRequest, Priority, QueueState
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_fakes import FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

HOUR_S = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")) as opened:
        yield opened


class Crawl:
    """A worker over the real queue, with a clock that can be turned."""

    def __init__(self, store: Store, settings: CrawlSettings, folder: Path) -> None:
        self.store = store
        self.sink = FakeSink()
        self.counters = Counters()
        self.ahead_s = 0.0
        self.context = CrawlContext(
            store.frontier,
            self.sink,
            settings,
            self.counters,
            clock=self.now,
            seen=SeenFilter(folder / "seen.bloom"),
            together=store.settling,
            task_sites=store.task_sites,
        )

    def now(self) -> float:
        return time.time() + self.ahead_s

    def add(self, *offers: CrawlRequest) -> None:
        self.store.frontier.add(offers, self.now())

    async def until(self, done: Callable[[], bool]) -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(CrawlWorker(self.context).run(stop))
        try:
            async with asyncio.timeout(20):
                while not done():  # noqa: ASYNC110  what ends the wait happens in another thread
                    await asyncio.sleep(0.005)
        finally:
            stop.set()
            await running

    def is_idle(self) -> bool:
        """Whether nothing is in work, due, or to be tried again, as of one look."""
        rows = self.store.frontier.show(100)
        now = self.now()  # after the look: what was queued meanwhile is due now
        return not any(
            row.state is QueueState.LEASED or (row.state is QueueState.WAITING and (row.not_before <= now or row.attempts))
            for row in rows
        )


def settings(**strategy: object) -> CrawlSettings:
    return task_settings(tasks={"look": strategy})


def task_settings(**changes: object) -> CrawlSettings:
    """Settings with which a busy machine is no origin that does not answer, and is asked again."""
    return loopback_settings(robots="never", timeout_s=30.0, **changes)


def serve(origin: Origin) -> None:
    origin.answers["/"] = reply(b'<a href="/1"><a href="/2"><a href="/3">')
    origin.answers["/1"] = reply(b'<a href="/1/1">')
    origin.answers["/2"] = reply(b'casino <a href="/2/1">')
    for path in ("/3", "/1/1", "/2/1"):
        origin.answers[path] = reply(b'<a href="/end">')


@pytest.mark.parametrize(
    ("strategy", "paths"),
    [
        ({"depth": 1}, ["/", "/1", "/2", "/3"]),  # /2 is harmful, but at the end of the task: nothing more
        ({"depth": 2}, ["/", "/1", "/1/1", "/2", "/2/1", "/3", "/end"]),
        ({"depth": 2, "pages_per_site": 2}, ["/", "/1", "/2"]),
        ({"depth": 2, "follow": "none"}, ["/"]),
    ],
)
async def test_a_task_goes_as_far_as_its_strategy(
    origin: Origin, store: Store, tmp_path: Path, strategy: dict[str, object], paths: list[str]
) -> None:
    serve(origin)
    crawl = Crawl(store, settings(**strategy), tmp_path)
    crawl.add(CrawlRequest(origin.url("/"), 100, task="look"))
    await crawl.until(lambda: crawl.is_idle() and bool(crawl.sink.pages))
    assert sorted(origin.requests) == sorted(paths)


SITEMAP = "application/xml"


def serve_sitemaps(origin: Origin) -> None:
    """A start without links, a sitemap that robots.txt does not name, an index behind it, and a feed that the start names."""

    def listing(root: str, item: str, *paths: str) -> bytes:
        items = "".join(f"<{item}><loc>{origin.url(path)}</loc></{item}>" for path in paths)
        return reply(f"<{root}>{items}</{root}>".encode(), content_type=SITEMAP)

    origin.answers["/"] = reply(b'<link rel="alternate" type="application/rss+xml" href="/news.rss"><p>hello')
    origin.answers["/sitemap.xml"] = listing("sitemapindex", "sitemap", "/one.xml")
    origin.answers["/one.xml"] = listing("urlset", "url", "/a", "/b")
    origin.answers["/news.rss"] = reply(f"<rss><channel><item><link>{origin.url('/c')}</link></item></channel></rss>".encode())
    origin.answers["/a"] = reply(b'<a href="/a/1">')
    for path in ("/b", "/c", "/a/1"):
        origin.answers[path] = reply()


LISTS = ["/", "/news.rss", "/one.xml", "/sitemap.xml"]


@pytest.mark.parametrize(
    ("strategy", "paths"),
    [
        ({"depth": 1}, ["/"]),
        ({"depth": 0, "sitemaps": True}, ["/"]),
        ({"depth": 1, "sitemaps": True}, [*LISTS, "/a", "/b", "/c"]),
        ({"depth": 2, "sitemaps": True}, [*LISTS, "/a", "/a/1", "/b", "/c"]),
        ({"depth": 2, "sitemaps": True, "follow": "none"}, [*LISTS, "/a", "/b", "/c"]),
        ({"depth": 1, "sitemaps": True, "pages_per_site": 1}, ["/", "/sitemap.xml"]),
        ({"depth": 1, "sitemaps": True, "hosts": ("other.test",)}, ["/"]),
    ],
)
async def test_a_task_reads_sitemaps_where_its_strategy_says_so(
    origin: Origin, store: Store, tmp_path: Path, strategy: dict[str, object], paths: list[str]
) -> None:
    serve_sitemaps(origin)
    crawl = Crawl(store, settings(**strategy), tmp_path)
    crawl.add(CrawlRequest(origin.url("/"), 100, task="look"))
    await crawl.until(lambda: crawl.is_idle() and bool(crawl.sink.pages))
    assert sorted(origin.requests) == sorted(paths)


async def test_a_task_goes_on_after_a_restart(origin: Origin, store: Store, tmp_path: Path) -> None:
    serve(origin)
    one_by_one = task_settings(concurrency=1, tasks={"look": {"depth": 2}})
    first = Crawl(store, one_by_one, tmp_path)
    first.add(CrawlRequest(origin.url("/"), 100, task="look"))
    await first.until(lambda: first.counters["links_followed"] >= 3)
    assert len(origin.requests) < 7
    again = Crawl(store, settings(depth=2), tmp_path)
    await again.until(again.is_idle)
    assert sorted(origin.requests) == ["/", "/1", "/1/1", "/2", "/2/1", "/3", "/end"]


async def test_each_task_sees_a_page_for_itself(origin: Origin, store: Store, tmp_path: Path) -> None:
    serve(origin)
    crawl = Crawl(store, task_settings(tasks={"a": {"depth": 1}, "b": {"depth": 1}}), tmp_path)
    for task in ("a", "b"):
        crawl.ahead_s += 200.0  # what was looked at has rested
        crawl.add(CrawlRequest(origin.url("/"), 100, task=task))
        await crawl.until(lambda task=task: crawl.is_idle() and store.task_sites.totals().get(task, 0) == 3)  # type: ignore[misc]
    assert sorted(origin.requests) == sorted(["/", "/1", "/2", "/3"] * 2)


async def test_a_page_comes_again_at_its_interval(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers["/"] = reply(b"knitting")
    crawl = Crawl(store, settings(depth=0, recrawl_hours=2, priority=60), tmp_path)
    crawl.add(CrawlRequest(origin.url("/"), Priority.VISIT, task="look"))
    await crawl.until(lambda: crawl.is_idle() and len(crawl.sink.pages) == 1)
    (row,) = store.frontier.show(5)
    assert (row.state, row.priority, row.task, row.attempts) == (QueueState.WAITING, 60, "look", 0)
    assert row.not_before == pytest.approx(crawl.now() + 2 * HOUR_S, abs=60)
    crawl.ahead_s = 1.9 * HOUR_S
    assert crawl.is_idle()
    crawl.ahead_s = 2.1 * HOUR_S
    await crawl.until(lambda: len(crawl.sink.pages) == 2 and crawl.is_idle())
    assert store.frontier.show(5)[0].not_before == pytest.approx(crawl.now() + 2 * HOUR_S, abs=60)


async def test_a_page_of_a_task_that_fails_comes_again_too(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers["/"] = reply(status="404 Gone")
    crawl = Crawl(store, settings(depth=0, recrawl_hours=1), tmp_path)
    crawl.add(CrawlRequest(origin.url("/"), 100, task="look"), CrawlRequest("http://10.0.0.1/", 100, task="look"))
    await crawl.until(lambda: crawl.is_idle() and crawl.counters["pages_refused"] == 1 and bool(crawl.sink.pages))
    due = {row.url: row.not_before - crawl.now() for row in store.frontier.show(5)}
    assert due[origin.url("/")] == pytest.approx(HOUR_S, abs=60)
    assert due["http://10.0.0.1/"] == pytest.approx(7 * 24 * HOUR_S, abs=60)  # refused: not before it would have rested


async def test_a_visit_goes_ahead_of_a_task_and_stays_in_it(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers.update({f"/{number}": reply() for number in range(6)})
    crawl = Crawl(store, settings(depth=0, priority=11), tmp_path)
    crawl.add(*(CrawlRequest(origin.url(f"/{number}"), 11, task="look") for number in range(6)))
    crawl.add(CrawlRequest(origin.url("/5")))
    assert [(lease.url, lease.task) for lease in store.frontier.lease(1, 1.0, crawl.now())] == [(origin.url("/5"), "look")]


async def test_a_task_that_is_gone_from_the_settings_follows_nothing(origin: Origin, store: Store, tmp_path: Path) -> None:
    serve(origin)
    crawl = Crawl(store, task_settings(), tmp_path)
    crawl.add(CrawlRequest(origin.url("/2"), 100, task="look"))
    await crawl.until(lambda: crawl.is_idle() and bool(crawl.sink.pages))
    assert origin.requests == ["/2"]


async def test_a_page_that_ends_crawlers_is_given_up(origin: Origin, store: Store, tmp_path: Path) -> None:
    origin.answers["/"] = reply()
    crawl = Crawl(store, task_settings(max_attempts=2), tmp_path)
    crawl.add(CrawlRequest(origin.url("/"), 100))
    for number in range(4):
        assert len(store.frontier.lease(1, 1.0, crawl.now() + 10 * number)) == 1  # a crawler that is killed each time
    crawl.ahead_s = 60.0
    await crawl.until(lambda: store.frontier.stats(crawl.now())["dead"] == 1)
    assert origin.requests == []
    assert "crawlers ended 4 times" in store.frontier.show(1)[0].error


HOSTS = [
    ((), "http://www.a.example/", "http://b.a.example/x", True),
    ((), "http://www.a.example/", "http://a.test/", False),
    (("b.test",), "http://a.example/", "http://b.test/", True),
    (("b.test",), "http://a.example/", "http://www.b.test/", False),
    (("b.test",), "http://a.example/", "http://a.example/2", False),
    (("*.b.test",), "http://a.example/", "http://www.b.test/", True),
    (("*.b.test",), "http://a.example/", "http://b.test/", True),
    (("*.b.test",), "http://a.example/", "http://bb.test/", False),
    (("x.test", "*.B.test"), "http://a.example/", "http://c.b.test/", True),
]


@all_cases(("hosts", "own", "link", "leads"), HOSTS)
def test_where_links_may_lead(hosts: tuple[str, ...], own: str, link: str, *, leads: bool) -> None:
    strategy = strategy_of(settings(hosts=hosts), "look")
    assert strategy.leads_to(parse_url(own), parse_url(link)) is leads
