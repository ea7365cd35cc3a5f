"""Wiring of the crawler, and of the reader of pages that passed the proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.wiring.classification import reloading_classifier, rule_book
from gatewayfilter.wiring.learning import learning_sink, revisits
from gatewayfilter.wiring.storage import spool_folder

if TYPE_CHECKING:
    from gatewayfilter.classify import ReloadingClassifier
    from gatewayfilter.config import Settings
    from gatewayfilter.crawl import CrawlContext, CrawlWorker, PageBuffer, SpoolReader, WarcArchive
    from gatewayfilter.interfaces import Classify, LeaseUrls, PageSink
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters


def crawl_worker(
    settings: Settings, store: Store, counters: Counters, *, backlog: str = "", leases: LeaseUrls | None = None
) -> CrawlWorker:
    """Returns the crawler with the classifier, which follows changes of the words, and the growth of the lists behind it.

    Args:
        settings: the settings.
        store: the database.
        counters: where pages are counted.
        backlog: name of the journal of pages that wait to be judged, of this process alone; `""` lets none wait on the disk.
        leases: hands URLs out; by default the whole queue does.
    """
    from gatewayfilter.crawl import CrawlWorker

    return CrawlWorker(crawl_context(settings, store, counters, backlog=backlog, leases=leases))


def crawl_context(
    settings: Settings,
    store: Store,
    counters: Counters,
    *,
    backlog: str = "",
    leases: LeaseUrls | None = None,
    judge: ReloadingClassifier | None = None,
    classify: Classify | None = None,
) -> CrawlContext:
    """Returns what a crawler works with.

    Args:
        settings: as for `crawl_worker`, and so are the others that are not named here.
        store: see there.
        counters: see there.
        backlog: see there.
        leases: see there.
        judge: the classifier, where it is open already.
        classify: judges pages in its place.
    """
    from gatewayfilter.crawl import CrawlContext, DigestTree, LinkFinder, SeenFilter
    from gatewayfilter.settings import Dedup

    number = backlog.removeprefix("backlog") if classify is None else "-modules"  # each process writes files of its own
    tree = settings.crawl.dedup is Dedup.TREE
    seen = DigestTree(settings.data_dir / f"seen{number}.tree") if tree else SeenFilter(settings.data_dir / f"seen{number}.bloom")
    rules = rule_book(settings, store)
    judge = judge or reloading_classifier(settings, rules)
    sink = learning_sink(settings, store, counters, judge, classify)
    buffer = page_buffer(settings, store, counters, sink, backlog=backlog)

    links = LinkFinder(settings.crawl, rules, sink)
    return CrawlContext(
        store.frontier,
        buffer or sink,
        settings.crawl,
        counters,
        leases=leases,
        seen=seen,
        buffer=buffer,
        links=links,
        together=store.settling,
        revisits=revisits(settings, store, judge),
        task_sites=store.task_sites,
        images=sink.knows_images,
    )


def spool_reader(settings: Settings, store: Store, counters: Counters) -> SpoolReader:
    """Returns what judges pages that passed the proxy; only harmful ones are archived.

    Raises:
        ClassifyError, ConfigError: as `learning_sink`.
    """
    from gatewayfilter.crawl import SpoolReader

    sink = learning_sink(settings, store, counters)
    buffer = page_buffer(settings, store, counters, sink, evidence_only=True)
    return SpoolReader(spool_folder(settings), buffer or sink, store.frontier, settings.crawl, counters, sink.knows_images)


def page_buffer(
    settings: Settings, store: Store, counters: Counters, sink: PageSink, *, backlog: str = "", evidence_only: bool = False
) -> PageBuffer | None:
    """Returns what archives the pages that a sink judges, `None` when no archive is kept.

    Args:
        settings: the settings.
        store: the place of evidence is recorded in it.
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
