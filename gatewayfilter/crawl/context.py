"""The collaborators of a crawler, as `gatewayfilter.wiring.crawling` assembles them."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from gatewayfilter.crawl.buffer.page_buffer import PageBuffer
from gatewayfilter.crawl.frontier.seen_filter import SeenFilter, SeenUrls
from gatewayfilter.crawl.links.link_finder import LinkFinder
from gatewayfilter.interfaces import Frontier, LeaseUrls, PageSink, Revisits, TaskSites
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class CrawlContext:
    """A crawler's collaborators.

    Attributes:
        frontier: the queue of URLs; called in one thread beside the event loop.
        sink: judges pages and grows the lists; called in one other thread.
        settings: limits and politeness.
        counters: what happens is counted here.
        clock: Unix seconds.
        leases: hands URLs out; `None`: the frontier does.
        seen: which links were queued already; by default remembered in memory only.
        buffer: where pages wait when the scanner lags; it is the sink then. `None`: all wait in memory.
        links: finds links that are followed whatever the strategy follows; `None` for none.
        together: makes one transaction of what is written to the frontier meanwhile.
        revisits: spares pages that have not changed; `None` fetches and judges every page whole.
        task_sites: how much of a site a task may queue; `None`: tasks follow no links.
        images: whether images are fetched too.
    """

    frontier: Frontier
    sink: PageSink
    settings: CrawlSettings
    counters: Counters
    clock: Callable[[], float] = time.time
    leases: LeaseUrls | None = None
    seen: SeenUrls = field(default_factory=SeenFilter)
    buffer: PageBuffer | None = None
    links: LinkFinder | None = None
    together: Callable[[], AbstractContextManager[None]] = nullcontext
    revisits: Revisits | None = None
    task_sites: TaskSites | None = None
    images: Callable[[], bool] = lambda: False
