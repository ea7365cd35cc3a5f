"""The visit of one URL: fetch, judge, find links. Independent of the queue."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from gatewayfilter.crawl.buffer.classify_batcher import ClassifyBatcher
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.fetcher import NOT_MODIFIED, Fetcher
from gatewayfilter.crawl.fetch.robots import Robots
from gatewayfilter.crawl.links.page_links import out_links
from gatewayfilter.crawl.links.sitemap_discovery import task_links
from gatewayfilter.crawl.links.strategy import Strategy, strategy_of
from gatewayfilter.crawl.net.fetch_errors import HostBusyError, UnreachableError
from gatewayfilter.crawl.render.renderer import Renderer
from gatewayfilter.documents.pdf_text import is_pdf, read_pdf_aside
from gatewayfilter.interfaces import Page, Priority, Validators
from gatewayfilter.model import Classification
from gatewayfilter.urls import Url, parse_url

_log = logging.getLogger(__name__)

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a passing failure: the page may be had later."""
_MOST_FILES = 4
"""PDF files that may wait to be read: each may take five seconds, and the places of the crawler are for pages too."""
_FILES_REST_S = 10.0


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
class VisitResult:
    """A page that was fetched and judged.

    Attributes:
        links: those that its strategy follows, as a rule of harmful pages alone, and those that an extraction rule names.
        buffered: it is in the buffer and is judged later.
        unchanged: not modified, by its origin's answer; the last verdict is renewed.
        rendered: by a browser, so its origin's validators do not cover all of it.
        task: to which it belongs, `""` for none.
        links_depth: how many links away from where the task began its links lead.
    """

    page: Page
    classification: Classification | None
    links: tuple[Url, ...]
    buffered: bool = False
    unchanged: bool = False
    rendered: bool = False
    task: str = ""
    links_depth: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """A URL to visit.

    Attributes:
        url: canonical.
        priority: see `Priority`.
        strategy: decides which links are followed.
        depth: links away from where the task began.
        validators: of the page that was judged before, for a conditional request; `None` fetches it whole.
    """

    url: Url
    priority: int
    strategy: Strategy
    depth: int = 0
    validators: Validators | None = None


@dataclass(frozen=True, slots=True)
class ScannedVisit:
    """The first page of the buffer, judged; `visit` is `None` when the archive had lost it."""

    visit: VisitResult | None


class Visitor:
    """Visits URLs with an open fetcher.

    Counts `pages_fetched` and `pages_unchanged`.

    Args:
        context: the crawler's collaborators.
        fetcher: open.
        robots: the robots.txt of sites.
        judge: a thread beside the event loop, one, so that the sink is never called by two at a time.
        rendering: renders pages that a script builds; `None` where they are judged as they came.
    """

    def __init__(
        self, context: CrawlContext, fetcher: Fetcher, robots: Robots, judge: Executor, rendering: Renderer | None = None
    ) -> None:
        self._context = context
        self._fetcher = fetcher
        self._robots = robots
        self._judge_thread = judge
        self._batcher = ClassifyBatcher(context.sink, judge)
        self._rendering = rendering
        self._in_memory = 0
        self._files = 0
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

        async def permit(hop: Url) -> None:
            await self._robots.check(hop, self._fetcher, priority=target.priority, patience_s=patience_s)

        urgent = target.priority <= Priority.VISIT
        page = await self._fetcher.fetch(
            target.url, urgent=urgent, patience_s=patience_s, permit=permit, validators=target.validators
        )
        self._context.counters.add("pages_fetched")
        if page.status == NOT_MODIFIED and target.validators is not None:
            return await self._renewed(page, target, patience_s)
        if page.status in _PASSING:
            raise self._passing(page)
        if is_pdf(page.content_type, page.body):
            await self._read_aside(page)
        came = page
        if self._rendering is not None:
            page = await self._rendering.improved(page)
        if not urgent and await self._put_aside(page, target):
            return VisitResult(page, None, (), buffered=True)
        self._in_memory += 1
        try:
            visit = await self._batcher.judge(page, partial(self._visit_result, page, target), urgent=urgent)
        finally:
            self._in_memory -= 1
        return visit if page is came else replace(visit, rendered=True)

    async def scan_first(self) -> ScannedVisit | None:
        """Judges the page that has waited longest in the buffer, `None` when none waits; `buffer.advance` takes it out.

        Raises:
            StoreError: the verdict could not be kept.
        """
        return await self._in_judge_thread(self._scan)

    async def _renewed(self, page: Page, target: Target, patience_s: float) -> VisitResult:
        """Renews the verdict of a page that has not changed; where there is none to renew, fetches and judges it whole."""
        classification = await self._in_judge_thread(partial(self._renew, page))
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

    async def _in_judge_thread[T](self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._judge_thread, work)

    async def _read_aside(self, page: Page) -> None:
        """Has a PDF file read outside of the judge's thread, which a file that was made to be slow would block.

        Raises:
            HostBusyError: too many files wait already.
        """
        if self._files >= _MOST_FILES:
            raise HostBusyError("other files are read first", _FILES_REST_S)
        self._files += 1
        try:
            await asyncio.wrap_future(read_pdf_aside(page.body))
        finally:
            self._files -= 1

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
        return ScannedVisit(self._with_links(scanned.page, scanned.classification, strategy, scanned.depth))

    def _visit_result(self, page: Page, target: Target, classification: Classification | None) -> VisitResult:
        return self._with_links(page, classification, target.strategy, target.depth)

    def _with_links(self, page: Page, classification: Classification | None, strategy: Strategy, depth: int) -> VisitResult:
        settings, sitemaps = self._context.settings, self._robots.sitemaps(page.final_url)
        more: Sequence[Url] = ()
        if self._context.links is not None:
            more = self._context.links.links(page, classification, sitemaps)
        harmful = classification is not None and classification.harmful
        charset = classification.charset if classification is not None else ""
        links = [*out_links(page, charset, settings, strategy), *more] if strategy.follows(depth, harmful=harmful) else []
        if not strategy.task:
            return VisitResult(page, classification, tuple(links or more))
        named, next_depth = task_links(page, charset, sitemaps, strategy, depth, settings)
        return VisitResult(page, classification, (*links, *named), task=strategy.task, links_depth=next_depth)

    def _passing(self, page: Page) -> UnreachableError:
        wait_s = 0.0
        if page.status == 429 or (page.status == 503 and "retry-after" in page.headers):
            netloc = parse_url(page.final_url).netloc
            wait_s = self._fetcher.politeness.asked_to_wait(netloc, page.headers, self._context.clock())
        return UnreachableError(f"answered with status {page.status}", wait_s)
