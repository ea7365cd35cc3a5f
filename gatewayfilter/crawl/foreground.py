"""The crawl in the foreground, while a command waits: named URLs, and where a strategy follows links, their links.

The queue in the database is not touched: what is still to do at the end is forgotten. Verdicts go on the lists.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.links.strategy import Strategy, strategy_of
from gatewayfilter.crawl.net.fetch_errors import HostBusyError, is_refusal
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.crawl.runtime import CrawlRuntime, HostState, open_runtime
from gatewayfilter.crawl.visitor import CrawlOutcome
from gatewayfilter.errors import FetchError, UrlError
from gatewayfilter.interfaces import Priority
from gatewayfilter.urls import Url, parse_loose_url, registrable_domain

BUSY_TRIES: Final = 200
"""How often a page waits again for its host before it is given up; each time as long as the host demands."""


@dataclass(frozen=True, slots=True)
class CrawlProgress:
    """How far a crawl is.

    Attributes:
        done: pages visited, failed ones included.
        running: in work.
        waiting: known and not begun.
        harmful: of those done.
        failed: of those done: refused, or not to be had.
        elapsed_s: since it began.
    """

    done: int
    running: int
    waiting: int
    harmful: int
    failed: int
    elapsed_s: float

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.done / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(order=True, slots=True)
class _Task:
    """A page to visit: the nearest to the start first, then in order."""

    depth: int
    number: int
    url: Url = field(compare=False)
    priority: int = field(compare=False)


@dataclass(slots=True)
class _Tally:
    done: int = 0
    harmful: int = 0
    failed: int = 0


type Report = Callable[[CrawlOutcome], None]
type ShowProgress = Callable[[CrawlProgress], None]


class ForegroundCrawl:
    """One crawl, from the URLs that were named.

    Args:
        context: its collaborators; the frontier is not used.
        task: the crawl task with the strategy; `""`: no links are followed.
        report: called with each page as it is done.
        progress: called whenever that changes.
    """

    def __init__(
        self, context: CrawlContext, task: str = "", report: Report | None = None, progress: ShowProgress | None = None
    ) -> None:
        self._context = context
        self._host_state = HostState(context.settings, context.counters, context.clock)
        strategy = strategy_of(context.settings, task)
        self._strategy = strategy if task else replace(strategy, links_a_page=0)
        self._report = report
        self._progress = progress
        self._waiting: list[_Task] = []
        self._numbers = itertools.count()
        self._known: set[bytes] = set()
        self._hosts: set[str] = set()
        self._pages: dict[str, int] = {}
        self._running: set[asyncio.Task[CrawlOutcome]] = set()
        self._tally = _Tally()
        self._started = 0.0

    async def run(self, urls: Sequence[str]) -> list[CrawlOutcome]:
        """Visits these URLs, and what they lead to. A scheme may be left away.

        Returns:
            The outcome of each, in the order in which they were done. What is wrong with a page is in its outcome.

        Raises:
            StoreError: a verdict could not be kept.
            ConfigError: `crawl.upstream_ca` cannot be read.
        """
        self._started = time.monotonic()
        outcomes: list[CrawlOutcome] = []
        for url in urls:
            try:
                self._put(parse_loose_url(url), 0)
            except UrlError as error:
                self._context.counters.add("pages_refused")
                self._done(CrawlOutcome(url, error=str(error), refused=True), outcomes)
        if not self._waiting:
            return outcomes
        async with open_runtime(self._context, self._host_state) as runtime:
            try:
                while self._waiting or self._running:
                    self._begin(runtime)
                    self._show()
                    finished, self._running = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                    for task in finished:
                        self._done(task.result(), outcomes)
            finally:
                for task in self._running:
                    task.cancel()
                await asyncio.gather(*self._running, return_exceptions=True)
        return outcomes

    def _begin(self, runtime: CrawlRuntime) -> None:
        while self._waiting and len(self._running) < self._context.settings.concurrency:
            self._running.add(asyncio.create_task(self._visit(runtime, heapq.heappop(self._waiting))))

    def _done(self, outcome: CrawlOutcome, outcomes: list[CrawlOutcome]) -> None:
        outcomes.append(outcome)
        self._tally.done += 1
        self._tally.failed += outcome.classification is None and not outcome.status
        self._tally.harmful += outcome.classification is not None and outcome.classification.harmful
        if self._report is not None:
            self._report(outcome)
        self._show()

    def _show(self) -> None:
        if self._progress is not None:
            tally, elapsed_s = self._tally, time.monotonic() - self._started
            counts = (tally.done, len(self._running), len(self._waiting), tally.harmful, tally.failed)
            self._progress(CrawlProgress(*counts, elapsed_s))

    def _put(self, url: Url, depth: int) -> None:
        if url.digest in self._known:
            return
        self._known.add(url.digest)
        priority: int = self._strategy.priority
        if not depth:  # the first page of a host is urgent, further ones come as its delay allows
            priority = Priority.RECHECK if url.netloc in self._hosts else Priority.MANUAL
            self._hosts.add(url.netloc)
        heapq.heappush(self._waiting, _Task(depth, next(self._numbers), url, priority))

    async def _visit(self, runtime: CrawlRuntime, task: _Task) -> CrawlOutcome:
        """Visits a page, when its host may be requested; the links that the strategy follows wait then too."""
        started = time.monotonic()
        target = Target(task.url, task.priority, self._strategy, task.depth)
        try:
            visit = await self._patiently(runtime, target)
        except FetchError as error:
            refused = is_refusal(error)
            self._context.counters.add("pages_refused" if refused else "pages_failed")
            return CrawlOutcome(task.url.text, error=str(error), refused=refused, elapsed_ms=_ms_since(started))
        self._follow(visit)
        page = visit.page
        why = "" if visit.classification is not None else f"a page of this kind is not classified (status {page.status})"
        return CrawlOutcome(page.url, page.final_url, page.status, visit.classification, why, elapsed_ms=_ms_since(started))

    async def _patiently(self, runtime: CrawlRuntime, target: Target) -> VisitResult:
        if target.priority == Priority.MANUAL:
            return await runtime.visitor.visit(target, patience_s=PATIENCE_S)
        for _ in range(BUSY_TRIES):
            try:
                return await runtime.visitor.visit(target, patience_s=PATIENCE_S)
            except HostBusyError as error:
                await asyncio.sleep(error.retry_after_s)
        return await runtime.visitor.visit(target, patience_s=PATIENCE_S)

    def _follow(self, visit: VisitResult) -> None:
        strategy: Strategy = self._strategy
        if not strategy.task:
            return
        for link in visit.links:
            site = registrable_domain(link.host) or link.host
            if link.digest not in self._known and self._pages.get(site, 0) < strategy.pages_per_site:
                self._pages[site] = self._pages.get(site, 0) + 1
                self._put(link, visit.links_depth)


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
