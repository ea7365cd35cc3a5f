"""The visit of one URL: fetch, judge, find links. Independent of the queue."""

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.fetcher import NOT_MODIFIED
from gatewayfilter.crawl.fetch.robots import Robots
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.page_fetch import FetchedPage, PageFetch
from gatewayfilter.crawl.page_judge import FileReading, PageJudge, Target, VisitResult
from gatewayfilter.documents.pdf_text import is_pdf
from gatewayfilter.interfaces import Page, Priority
from gatewayfilter.model import Classification

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CrawlOutcome:
    """The outcome of one URL in a foreground crawl.

    Attributes:
        url: the requested URL, canonical where it could be read.
        final_url: what answered, `""` when nothing did.
        status: HTTP status, 0 without an answer.
        classification: `None` for a page that is not classified or was not fetched.
        error: why there is no classification, in one sentence; `""` without an error.
        refused: the crawler did not fetch it (policy, robots.txt, address); otherwise the fetch failed.
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
class ScannedVisit:
    """The first page of the buffer, judged; `visit` is `None` when the archive had lost it."""

    visit: VisitResult | None


class Visitor:
    """Visits URLs: fetches and judges them in one process.

    Counts `pages_unchanged`.

    Args:
        context: the crawler's collaborators.
        fetch: fetches.
        judge: judges.
        robots: the robots.txt of sites, for the sitemaps that they name.
    """

    def __init__(self, context: CrawlContext, fetch: PageFetch, judge: PageJudge, robots: Robots) -> None:
        self._context = context
        self._fetch = fetch
        self._judge = judge
        self._robots = robots
        self._files = FileReading()
        self._in_memory = 0
        self._most_in_memory = max(context.settings.concurrency // 4, 1)

    async def visit(self, target: Target, *, patience_s: float) -> VisitResult:
        """Fetches and judges a URL.

        Args:
            target: what to visit.
            patience_s: longest wait for a host's turn.

        Raises:
            FetchError: it was refused or could not be fetched.
            StoreError: the verdict could not be kept.
        """
        fetched = await self._fetch.fetch(target.url, target.priority, patience_s=patience_s, validators=target.validators)
        if fetched.page.status == NOT_MODIFIED and target.validators is not None:
            return await self._renewed(fetched.page, target, patience_s)
        await self._files.read(fetched.page)
        if target.priority > Priority.VISIT and await self._put_aside(fetched.page, target):
            return VisitResult(fetched.page, None, (), buffered=True, rendered=fetched.rendered)
        self._in_memory += 1
        try:
            return await self._judge.judge(fetched, target)
        finally:
            self._in_memory -= 1

    async def scan_first(self) -> ScannedVisit | None:
        """Judges the page that has waited longest in the buffer, `None` when none waits; `buffer.advance` takes it out.

        Raises:
            StoreError: the verdict could not be kept.
        """
        return await self._judge.in_thread(self._scan)

    async def _renewed(self, page: Page, target: Target, patience_s: float) -> VisitResult:
        """Renews the verdict of a page that has not changed; where there is none to renew, fetches and judges it whole."""
        classification = await self._judge.in_thread(partial(self._renew, page))
        if classification is None:
            return await self.visit(replace(target, validators=None), patience_s=patience_s)
        self._context.counters.add("pages_unchanged")
        return VisitResult(page, classification, (), unchanged=True)

    def _renew(self, page: Page) -> Classification | None:
        """Renews a verdict, and keeps its evidence as long: the new record of the verdict has no reference to it."""
        buffer = self._context.buffer
        evidence = buffer.evidence_of(page) if buffer is not None else ""
        classification = self._context.revisits.renew(page) if self._context.revisits is not None else None
        if buffer is not None and evidence and classification is not None and classification.harmful:
            buffer.keep_longer(page, evidence)
        return classification

    async def _put_aside(self, page: Page, target: Target) -> bool:
        """Puts a page that is not urgent on the disk when the scanner lags. Returns False when it has to go on in memory."""
        buffer = self._context.buffer
        if is_pdf(page.content_type, page.body):
            return False  # out of the buffer it would be read in the judge's thread
        if buffer is None or not page.body or self._in_memory < self._most_in_memory or not buffer.has_room:
            return False
        try:
            await asyncio.wrap_future(buffer.put(page, target.strategy.task, target.depth))
        except OSError as error:
            self._context.counters.add("archive_failures")
            _log.warning("cannot put a page into the archive: %s; it waits in memory", error.strerror)
            return False
        return True

    def _scan(self) -> ScannedVisit | None:
        buffer = self._context.buffer
        scanned = buffer.scan_first() if buffer is not None else None
        if scanned is None:
            return None
        if scanned.page is None:
            return ScannedVisit(None)
        strategy = strategy_of(self._context.settings, scanned.task)
        fetched = FetchedPage(scanned.page, self._robots.sitemaps(scanned.page.final_url))
        return ScannedVisit(self._judge.with_links(fetched, scanned.classification, strategy, scanned.depth))
