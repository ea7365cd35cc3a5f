"""An open crawler: its connections and its two threads."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.fetch.robots import Robots
from gatewayfilter.crawl.page_fetch import PageFetch
from gatewayfilter.crawl.page_judge import PageJudge
from gatewayfilter.crawl.render.renderer import renderer
from gatewayfilter.crawl.visitor import Visitor
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.telemetry import Counters


@dataclass(frozen=True, slots=True)
class CrawlRuntime:
    """An open crawler.

    Attributes:
        visitor: visits URLs.
        queue: the one thread in which the frontier and the set of seen URLs are used.
    """

    visitor: Visitor
    queue: ThreadPoolExecutor


class HostState:
    """The state of hosts that outlives the connections: when each may be requested again, and its robots.txt."""

    def __init__(self, settings: CrawlSettings, counters: Counters, clock: Callable[[], float] = time.time) -> None:
        self.politeness = Politeness(settings, counters=counters)
        self.robots = Robots(settings, clock)
        self.clock = clock


@contextlib.asynccontextmanager
async def open_fetch(
    settings: CrawlSettings, counters: Counters, host_state: HostState, images: Callable[[], bool]
) -> AsyncIterator[PageFetch]:
    """Opens a fetcher of pages; `images` returns whether images are fetched too.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
    """
    fetcher = Fetcher(settings, host_state.politeness, counters, images=images)
    async with fetcher, renderer(settings, counters) as rendering:
        yield PageFetch(fetcher, host_state.robots, counters, rendering, host_state.clock)


@contextlib.asynccontextmanager
async def open_runtime(context: CrawlContext, host_state: HostState) -> AsyncIterator[CrawlRuntime]:
    """Opens a crawler; at the end all pages of the buffer are on the disk.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
    """
    settings, counters = context.settings, context.counters
    judge = ThreadPoolExecutor(1, "crawl-judge")
    queue = ThreadPoolExecutor(1, "crawl-queue")
    with judge, queue:
        async with open_fetch(settings, counters, host_state, context.images) as fetch:
            try:
                yield CrawlRuntime(Visitor(context, fetch, PageJudge(context, judge), host_state.robots), queue)
            finally:
                if context.buffer is not None:
                    await asyncio.get_running_loop().run_in_executor(judge, context.buffer.flush)
