"""An open crawler: its connections and its two threads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
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

    def __init__(self, context: CrawlContext) -> None:
        self.politeness = Politeness(context.settings, counters=context.counters)
        self.robots = Robots(context.settings, context.clock)


@contextlib.asynccontextmanager
async def open_runtime(context: CrawlContext, host_state: HostState) -> AsyncIterator[CrawlRuntime]:
    """Opens a crawler; at the end all pages of the buffer are on the disk.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
    """
    settings, counters = context.settings, context.counters
    fetcher = Fetcher(settings, host_state.politeness, counters, images=context.images)
    judge = ThreadPoolExecutor(1, "crawl-judge")
    queue = ThreadPoolExecutor(1, "crawl-queue")
    with judge, queue:
        async with fetcher, renderer(settings, counters) as rendering:
            try:
                fetch = PageFetch(fetcher, host_state.robots, counters, rendering, context.clock)
                yield CrawlRuntime(Visitor(context, fetch, PageJudge(context, judge), host_state.robots), queue)
            finally:
                if context.buffer is not None:
                    await asyncio.get_running_loop().run_in_executor(judge, context.buffer.flush)
