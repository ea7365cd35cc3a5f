"""A crawl in the foreground, by `gatewayfilter crawl`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from gatewayfilter.config import Settings
from gatewayfilter.crawl import CrawlOutcome, CrawlProgress, ForegroundCrawl, SeenFilter
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import crawl_context


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
        report: called with each page as it is done.
        task: the crawl task with the strategy of links; `""` follows none.
        progress: called with the crawl's progress whenever it changes.

    Returns:
        The outcome of each page, in the order in which they were done.
    """
    context = replace(crawl_context(settings, store, Counters()), seen=SeenFilter(), revisits=None)
    return asyncio.run(ForegroundCrawl(context, task, report, progress).run(urls))
