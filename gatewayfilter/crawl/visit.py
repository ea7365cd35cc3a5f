"""One look at one URL: fetch, judge, find links. Knows nothing of the queue."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch_errors import UnreachableError
from gatewayfilter.crawl.fetcher import Fetcher
from gatewayfilter.crawl.links import out_links
from gatewayfilter.crawl.page_buffer import PageBuffer
from gatewayfilter.crawl.rendering import Renderer
from gatewayfilter.crawl.robots import Robots
from gatewayfilter.interfaces import Page, PageSink, Priority
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url

_log = logging.getLogger(__name__)

type MoreLinks = Callable[[Page, Classification | None], Sequence[Url]]
"""Finds links on a page that was judged."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that say nothing of the page and may be another one later."""


@dataclass(frozen=True, slots=True)
class CrawlOutcome:
    """What came of looking at one URL.

    Attributes:
        url: what was asked for, canonical where it could be read.
        final_url: what answered, `""` when nothing did.
        status: HTTP status, 0 without an answer.
        classification: `None` for a page that is not classified or was not fetched.
        error: why there is no classification, in one sentence; `""` without an error.
        refused: we did not want to fetch it (policy, robots.txt, address), rather than could not.
        elapsed_ms: fetching and judging, waits included.
    """

    url: str
    final_url: str = ""
    status: int = 0
    classification: Classification | None = None
    error: str = ""
    refused: bool = False
    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """A page that was fetched and judged.

    Attributes:
        links: those of a harmful page, and those that an extraction rule names.
        buffered: it lies in the buffer and is judged later.
    """

    page: Page
    classification: Classification | None
    links: tuple[Url, ...]
    buffered: bool = False


class Visitor:
    """Looks at URLs with an open fetcher.

    Args:
        judge: a thread beside the event loop, one, so that the sink is never called by two at a time.
        buffer: where pages wait when the scanner lags; it is the sink too. `None`: all wait in memory.
        rendering: renders pages that a script builds; `None` where they are judged as they came.
        more_links: finds links that are followed whatever the judgement; `None` for none. Called in the judge's thread.
    """

    def __init__(  # noqa: PLR0913, PLR0917  it brings together what the worker has opened
        self,
        fetcher: Fetcher,
        robots: Robots,
        sink: PageSink,
        judge: Executor,
        settings: CrawlSettings,
        counters: Counters,
        clock: Callable[[], float] = time.time,
        buffer: PageBuffer | None = None,
        more_links: MoreLinks | None = None,
        rendering: Renderer | None = None,
    ) -> None:
        self._rendering = rendering
        self._more_links = more_links
        self._buffer = buffer
        self._in_memory = 0
        self._most_in_memory = max(settings.concurrency // 4, 1)
        self._fetcher = fetcher
        self._robots = robots
        self._sink = sink
        self._judge_thread = judge
        self._settings = settings
        self._counters = counters
        self._clock = clock

    async def look(self, url: Url, *, priority: int, patience_s: float) -> Look:
        """Fetches and judges a URL.

        Raises:
            FetchError: it was refused or could not be fetched.
            StoreError: the verdict could not be kept.
        """

        async def permit(hop: Url) -> None:
            await self._robots.check(hop, self._fetcher, priority=priority, patience_s=patience_s)

        urgent = priority <= Priority.VISIT
        page = await self._fetcher.fetch(url, urgent=urgent, patience_s=patience_s, permit=permit)
        self._counters.add("pages_fetched")
        if page.status in _PASSING:
            raise self._passing(page)
        if self._rendering is not None:
            page = await self._rendering.improved(page)
        if not urgent and await self._put_aside(page):
            return Look(page, None, (), buffered=True)
        self._in_memory += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._judge_thread, self._judge, page)
        finally:
            self._in_memory -= 1

    async def scan_first(self) -> Look | bool:
        """Judges the page that has waited longest in the buffer; `buffer.advance` takes it out.

        Returns:
            The page, True when one was lost, False when none waits.

        Raises:
            StoreError: the verdict could not be kept.
        """
        return await asyncio.get_running_loop().run_in_executor(self._judge_thread, self._scan)

    async def _put_aside(self, page: Page) -> bool:
        """Puts a page that nobody waits for on the disk when the scanner lags. Returns False when it has to go on in memory."""
        buffer = self._buffer
        if buffer is None or not page.body or self._in_memory < self._most_in_memory or not buffer.has_room:
            return False
        try:
            await asyncio.wrap_future(buffer.put(page))
        except OSError as error:
            self._counters.add("archive_failures")
            _log.warning("cannot put a page into the archive: %s; it waits in memory", error.strerror)
            return False
        return True

    def _scan(self) -> Look | bool:
        scanned = self._buffer.scan_first() if self._buffer is not None else None
        if scanned is None or scanned.page is None:
            return scanned is not None
        return self._looked_at(scanned.page, scanned.classification)

    def _judge(self, page: Page) -> Look:
        return self._looked_at(page, self._sink.page(page))

    def _looked_at(self, page: Page, classification: Classification | None) -> Look:
        more = self._more_links(page, classification) if self._more_links is not None else ()
        if classification is None or not classification.harmful:
            return Look(page, classification, tuple(more))
        return Look(page, classification, (*out_links(page, classification.charset, self._settings), *more))

    def _passing(self, page: Page) -> UnreachableError:
        wait_s = 0.0
        if page.status == 429 or (page.status == 503 and "retry-after" in page.headers):
            wait_s = self._fetcher.politeness.asked_to_wait(parse_url(page.final_url).netloc, page.headers, self._clock())
        return UnreachableError(f"answered with status {page.status}", wait_s)
