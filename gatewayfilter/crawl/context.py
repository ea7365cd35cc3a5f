"""What a crawler works with: its collaborators, as the wiring joins them."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from gatewayfilter.crawl.buffer.page_buffer import PageBuffer
from gatewayfilter.crawl.frontier.seen_filter import SeenFilter, SeenUrls
from gatewayfilter.interfaces import Frontier, Page, PageSink, Revisits, TaskSites
from gatewayfilter.model import Classification
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url

type MoreLinks = Callable[[Page, Classification | None, Sequence[str]], Sequence[Url]]
"""Finds links on a page that was judged; the last are the sitemaps that its robots.txt names. Called in the judge's thread."""


@dataclass(frozen=True, slots=True)
class CrawlContext:
    """A crawler's collaborators.

    Attributes:
        frontier: where URLs come from; called in one thread beside the event loop.
        sink: judges pages and grows the lists; called in one other thread.
        settings: limits and manners.
        counters: what happens is counted here.
        clock: Unix seconds.
        seen: which links were queued already; by default remembered in memory only.
        buffer: where pages wait when the scanner lags; it is the sink then. `None`: all wait in memory.
        more_links: finds links that are followed whatever the judgement; `None` for none.
        together: makes one transaction of what the frontier is told meanwhile.
        revisits: spares pages that have not changed; `None` fetches and judges every page whole.
        task_sites: how much of a site a task may queue; `None`: tasks follow no links.
        images: whether images are read too, because the sink knows some.
    """

    frontier: Frontier
    sink: PageSink
    settings: CrawlSettings
    counters: Counters
    clock: Callable[[], float] = time.time
    seen: SeenUrls = field(default_factory=SeenFilter)
    buffer: PageBuffer | None = None
    more_links: MoreLinks | None = None
    together: Callable[[], AbstractContextManager[None]] = nullcontext
    revisits: Revisits | None = None
    task_sites: TaskSites | None = None
    images: Callable[[], bool] = lambda: False
