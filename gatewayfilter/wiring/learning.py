"""Crawling, judging and learning, and the people who have the last word."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from gatewayfilter.config import bundled_folder
from gatewayfilter.wiring.classification import classifier, following_classifier, rule_book

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from gatewayfilter.classify import (
        ExtractionRule,
        ReloadingClassifier,
        RuleResult,
    )
    from gatewayfilter.config import Settings
    from gatewayfilter.crawl import CrawlContext, CrawlOutcome, CrawlProgress, CrawlWorker, PageBuffer, WarcArchive
    from gatewayfilter.crawl.net.proxy_pool import PooledProxy
    from gatewayfilter.interfaces import Frontier, Page, PageSink
    from gatewayfilter.learn import LearningPipeline, Recognition, ReviewService, Revisits
    from gatewayfilter.model import Classification
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters
    from gatewayfilter.urls import Url

_log = logging.getLogger(__name__)


def crawl_worker(
    settings: Settings, store: Store, counters: Counters, *, backlog: str = "", frontier: Frontier | None = None
) -> CrawlWorker:
    """Returns the crawler with the classifier, which follows changes of the words, and the growth of the lists behind it.

    Args:
        settings: the settings.
        store: the database.
        counters: where pages are counted.
        backlog: name of the journal of pages that wait to be judged, of one process alone; `""` lets none wait on the disk.
        frontier: where URLs come from, by default the whole queue.
    """
    from gatewayfilter.crawl import CrawlWorker

    return CrawlWorker(crawl_context(settings, store, counters, backlog=backlog, frontier=frontier))


def crawl_context(
    settings: Settings, store: Store, counters: Counters, *, backlog: str = "", frontier: Frontier | None = None
) -> CrawlContext:
    """Returns what a crawler works with; the arguments are those of `crawl_worker`."""
    from gatewayfilter.crawl import CrawlContext, DigestTree, FocusedDiscovery, SeenFilter, out_links, page_pictures, rule_links
    from gatewayfilter.settings import Dedup

    number = backlog.removeprefix("backlog")  # each process writes files of its own
    tree = settings.crawl.dedup is Dedup.TREE
    seen = DigestTree(settings.data_dir / f"seen{number}.tree") if tree else SeenFilter(settings.data_dir / f"seen{number}.bloom")
    rules = rule_book(settings)
    judge = following_classifier(settings, rules)
    sink = learning_sink(settings, store, counters, judge)
    buffer = page_buffer(settings, store, counters, sink, backlog=backlog)

    discovery = FocusedDiscovery(settings.crawl)

    def more_links(page: Page, classification: Classification | None, sitemaps: Sequence[str]) -> list[Url]:
        result = rules.read(page)
        by_rule = rule_links(result, page.final_url, settings.crawl) if result is not None else []
        charset = classification.charset if classification is not None else ""
        near_duplicates = (
            out_links(page, charset, settings.crawl) if classification is not None and sink.is_near_duplicate(page) else []
        )
        pictures = page_pictures(page, charset, settings.crawl) if classification is not None and sink.knows_images() else []
        return [*near_duplicates, *by_rule, *discovery.links(page, classification, sitemaps), *pictures]

    return CrawlContext(
        frontier or store.frontier,
        buffer or sink,
        settings.crawl,
        counters,
        seen=seen,
        buffer=buffer,
        more_links=more_links,
        together=store.settling,
        revisits=revisits(settings, store, judge),
        task_sites=store.task_sites,
        images=sink.knows_images,
    )


async def run_crawl_worker(settings: Settings, store: Store, counters: Counters, index: int, stop: asyncio.Event) -> None:
    """Runs one of the crawlers that share the queue until `stop` is set.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
        StoreError: the database refuses, at the end.
    """
    import asyncio

    from gatewayfilter.crawl import FleetFrontier

    backlog = f"backlog-{index}" if index else "backlog"
    if not index:
        await asyncio.to_thread(adopt_backlogs, settings)
    alone = settings.crawl.workers == 1 and settings.store_url.startswith("sqlite")  # nobody to share with: no heartbeats
    name = f"{socket.gethostname()}:{settings.data_dir}:{index}"
    fleet = FleetFrontier(store.frontier, None if alone else store.crawlers, name, counters=counters)
    alive = asyncio.create_task(fleet.keep_alive(stop))
    try:
        await crawl_worker(settings, store, counters, backlog=backlog, frontier=fleet).run(stop)
    finally:
        alive.cancel()
        await asyncio.gather(alive, return_exceptions=True)
    await asyncio.to_thread(fleet.leave)


def adopt_backlogs(settings: Settings) -> int:
    """Lets the first crawler judge what waits in journals of crawlers beyond `crawl.workers`. Returns how many pages."""
    from gatewayfilter.crawl import Backlog

    folder = settings.data_dir / "archive"
    numbers = {path: path.stem.removeprefix("backlog-") for path in sorted(folder.glob("backlog-*.log"))}
    left = [path for path, number in numbers.items() if number.isdigit() and int(number) >= settings.crawl.workers]
    try:
        return sum(Backlog(folder / "backlog.log").adopt(path) for path in left)
    except OSError as error:
        _log.warning("cannot take over pages that wait to be judged: %s", error)
        return 0


def revisits(settings: Settings, store: Store, judge: ReloadingClassifier) -> Revisits:
    """Returns what spares pages that have not changed since they were judged by this classifier's words."""
    from gatewayfilter.learn import ListGrowth, Revisits

    list_growth = ListGrowth(store.lists, store.verdicts, settings.learn, together=store.learning)
    words = judge.words_version
    known = recognition(settings, store, words)
    return Revisits(store.validators, store.verdicts, list_growth, settings.learn, words, recognition=known, read_text=judge)


def page_buffer(
    settings: Settings, store: Store, counters: Counters, sink: PageSink, *, backlog: str = "", evidence_only: bool = False
) -> PageBuffer | None:
    """Returns what archives the pages that a sink judges, `None` when no archive is kept.

    Args:
        settings: the settings.
        store: where it is noted where evidence lies.
        counters: where pages are counted.
        sink: judges.
        backlog: name of the journal of pages that wait; `""` for one that lets none wait.
        evidence_only: archives harmful pages alone.
    """
    from gatewayfilter.crawl import Backlog, PageBuffer

    archive = page_archive(settings)
    if archive is None:
        return None
    journal = Backlog(archive.folder / f"{backlog}.log") if backlog else None
    evidence_s = (settings.learn.block_days + 2) * 86_400.0  # until a re-check that falls due has come to it
    return PageBuffer(sink, archive, store.verdicts, evidence_s, counters, journal, evidence_only=evidence_only)


def page_archive(settings: Settings) -> WarcArchive | None:
    """Returns the archive of fetched pages, `None` when none is kept."""
    from gatewayfilter.crawl import WarcArchive

    if not settings.crawl.archive_mb:
        return None
    return WarcArchive(settings.data_dir / "archive", settings.crawl.archive_mb * 1_000_000)


def learning_sink(
    settings: Settings, store: Store, counters: Counters, judge: ReloadingClassifier | None = None
) -> LearningPipeline:
    """Returns what judges pages, by `judge` where there is one already, and grows the lists.

    Raises:
        ClassifyError: the words cannot be used.
        ConfigError: `learn.image_classifier` cannot be used.
    """
    from gatewayfilter.learn import LearningPipeline, ListGrowth, TaskIntake, UserContentHosts, load_image_classifier

    judge = judge or following_classifier(settings)
    user_content = UserContentHosts.load(bundled_folder() / "user-content.txt")
    list_growth = ListGrowth(store.lists, store.verdicts, settings.learn, user_content=user_content, together=store.learning)
    return LearningPipeline(
        judge,
        list_growth,
        counters,
        settings.learn,
        recognition=recognition(settings, store, judge.words_version),
        intake=TaskIntake(store.reviews, counters, settings.learn.max_open_reviews, together=store.deciding, explain=judge),
        read_text=judge,
        images=load_image_classifier(settings.learn.image_classifier),
    )


def recognition(settings: Settings, store: Store, words: Callable[[], str] = str) -> Recognition:
    """Returns what knows judged content again; the hits that it counts are written before the store is closed.

    Args:
        settings: for the state folder, where the key of the fingerprints lies.
        store: where fingerprints are kept.
        words: returns the version of the words in use.
    """
    from gatewayfilter.learn import ContentIds, Recognition, load_key

    known = Recognition(store.fingerprints, ContentIds(load_key(settings.data_dir / "fingerprints.key")), words)
    store.before_close(known.flush)
    return known


def review_service(settings: Settings, store: Store) -> ReviewService:
    """Returns where people decide tasks."""
    from gatewayfilter.learn import ReviewService

    known = recognition(settings, store)
    return ReviewService(store.reviews, store.lists, store.verdicts, known, settings.learn, together=store.deciding)


def crawl_now(
    settings: Settings,
    store: Store,
    urls: Sequence[str],
    report: Callable[[CrawlOutcome], None] | None = None,
    *,
    task: str = "",
    progress: Callable[[CrawlProgress], None] | None = None,
) -> list[CrawlOutcome]:
    """Fetches and judges these URLs at once, and grows the lists.

    Args:
        settings: the settings.
        store: the database.
        urls: where to begin.
        report: told of each page as it is done.
        task: by whose strategy links are followed; `""` follows none.
        progress: told how far the crawl is, whenever that changes.

    Returns:
        What came of each page, in the order in which they were done.
    """
    import asyncio
    from dataclasses import replace

    from gatewayfilter.crawl import ForegroundCrawl, SeenFilter
    from gatewayfilter.telemetry import Counters

    context = replace(crawl_context(settings, store, Counters()), seen=SeenFilter(), revisits=None)
    return asyncio.run(ForegroundCrawl(context, task, report, progress).run(urls))


def check_proxies(settings: Settings) -> list[PooledProxy]:
    """Collects the crawler's outbound proxies and checks each now. Returns them, the best first, without passwords.

    Without a page to check with (`crawl.proxy_check_url`) they are only collected.

    Raises:
        ConfigError: an address in `crawl.proxies` is none.
    """
    import asyncio
    from dataclasses import replace

    from gatewayfilter.crawl.net.outbound_proxies import collect_proxies
    from gatewayfilter.crawl.net.proxy_check import ProxyChecker, without_password
    from gatewayfilter.crawl.net.proxy_pool import ProxyPool

    async def check() -> list[PooledProxy]:
        pool = ProxyPool(settings.crawl.proxies, anonymous_only=settings.crawl.proxies_anonymous)
        await collect_proxies(pool, settings.crawl.proxies_from)
        if settings.crawl.proxy_check_url:
            await ProxyChecker(pool, settings.crawl.proxy_check_url).check_due()
        return pool.proxies()

    return [replace(proxy, address=without_password(proxy.address)) for proxy in asyncio.run(check())]


def judge_now(settings: Settings, url: Url) -> tuple[Page, Classification | None]:
    """Fetches and judges a page; nothing is learned, kept or queued.

    Returns:
        The page, and its classification: `None` for one of a kind that is not classified.

    Raises:
        FetchError: it was refused or could not be fetched.
    """
    from gatewayfilter.learn import is_readable

    page = fetch_now(settings, url)
    return page, classifier(settings).classify_page(page) if is_readable(page) else None


def extract_now(settings: Settings, rule: ExtractionRule, url: Url) -> tuple[RuleResult, list[Url]]:
    """Fetches a page and reads it by a rule, whether it is for that URL or not; nothing is judged, learned, kept or queued.

    Returns:
        What the rule found, and the links that a worker would queue.

    Raises:
        FetchError: it was refused or could not be fetched.
        ClassifyError: it took too long or too much memory to read.
    """
    from gatewayfilter.classify import extract
    from gatewayfilter.crawl import rule_links

    page = fetch_now(settings, url)
    result = extract(rule, page)
    return result, rule_links(result, page.final_url, settings.crawl)


def fetch_now(settings: Settings, url: Url) -> Page:
    """Fetches a page by the crawler's rules of safety.

    Raises:
        FetchError: it was refused or could not be fetched.
    """
    import asyncio

    from gatewayfilter.crawl.fetch.fetcher import Fetcher
    from gatewayfilter.crawl.fetch.politeness import Politeness
    from gatewayfilter.crawl.fetch.robots import Robots
    from gatewayfilter.crawl.render.renderer import renderer
    from gatewayfilter.interfaces import Priority
    from gatewayfilter.telemetry import Counters

    robots = Robots(settings.crawl)

    async def fetch() -> Page:
        fetching = Fetcher(settings.crawl, Politeness(settings.crawl))
        async with fetching as fetcher, renderer(settings.crawl, Counters()) as rendering:

            async def permit(hop: Url) -> None:
                await robots.check(hop, fetcher, priority=Priority.MANUAL, patience_s=0.0)

            page = await fetcher.fetch(url, urgent=True, permit=permit)
            return page if rendering is None else await rendering.improved(page)

    return asyncio.run(fetch())
