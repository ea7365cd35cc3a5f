"""The crawler worker: takes the most urgent URLs off the frontier, has them looked at, and settles what becomes of each.

===========================  ========================================================================
end of a page                what becomes of its URL
===========================  ========================================================================
judged                       on a list now: done, with a short rest against offers still on their way
of a kind not judged         rests a day
in the buffer                rests an hour; the scanner comes to it from the disk
refused                      rests a week
broken answer                rests a day
unreachable                  tried again, later each time; after `max_attempts` a dead letter
host may not be asked now    back to the queue; not counted as a try
verdict not kept             tried again when the database may be well
===========================  ========================================================================
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from random import SystemRandom
from typing import Any, Literal

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch_errors import HostBusyError, UnreachableError, is_refusal, is_retryable
from gatewayfilter.crawl.fetcher import PATIENCE_S, Fetcher
from gatewayfilter.crawl.links import LinkBudget
from gatewayfilter.crawl.page_buffer import PageBuffer
from gatewayfilter.crawl.politeness import Politeness
from gatewayfilter.crawl.rendering import renderer
from gatewayfilter.crawl.robots import Robots
from gatewayfilter.crawl.seen import SeenFilter, SeenUrls
from gatewayfilter.crawl.visit import CrawlOutcome, Look, MoreLinks, Visitor
from gatewayfilter.errors import FetchError, GatewayFilterError, StoreError, UrlError
from gatewayfilter.interfaces import Frontier, Lease, Offer, PageSink, Priority
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, digest_of, parse_loose_url, parse_url, redacted

_log = logging.getLogger(__name__)

POLL_MIN_S = 0.02
POLL_MAX_S = 0.075
"""An idle look at the queue costs some 0.6 ms of CPU from cold caches: at this rate below 1 % of a core."""
POLL_GROWTH = 1.1
GATHER_S = 0.05
"""How long a full crawler lets places become free before it looks at the queue: one look for several, others go on meanwhile."""
JUDGED_REST_S = 60.0
UNJUDGED_REST_S = 86_400.0
BUFFERED_REST_S = 3600.0
REFUSED_REST_S = 7 * 86_400.0
BACK_OFF_S = 5.0
BACK_OFF_GROWTH = 6.0
BACK_OFF_MAX_S = 3600.0
STORE_PAUSE_S = 1.0
SETTLE_S = 0.03
"""For which settlements are gathered; each page holds its place for so much longer."""
GRACE_S = 5.0
SAVE_SEEN_S = 60.0
MAX_POSTPONED = 10_000
_JITTER = SystemRandom()


@dataclass(frozen=True, slots=True)
class _Bench:
    """What is open while the worker works.

    Attributes:
        queue: the one thread in which the frontier and the seen-filter are used.
        closing: set when that thread should wait for nothing any more.
        buffered: set while pages may wait in the buffer.
    """

    visitor: Visitor
    queue: ThreadPoolExecutor
    closing: threading.Event
    buffered: asyncio.Event


@dataclass(frozen=True, slots=True)
class _Settlement:
    """What to tell the frontier of a page (it returns the URLs that are seen then, or anything else), and that it was told."""

    settle: Callable[[], object]
    done: asyncio.Future[None]


class CrawlWorker:
    """Crawls: `run` works off the frontier, `crawl_once` looks at one URL.

    Args:
        frontier: where URLs come from; called in one thread beside the event loop.
        sink: judges pages and grows the lists; called in one other thread.
        settings: limits and manners.
        counters: `pages_fetched`, `pages_refused` and `pages_failed` are counted here.
        clock: Unix seconds.
        seen: which links were queued already; by default remembered in memory only.
        buffer: where pages wait when the scanner lags; it is the sink then. `None`: all wait in memory.
        more_links: as for `Visitor`.
        together: makes one transaction of what the frontier is told meanwhile.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read (by `run` and `crawl_once`).
    """

    def __init__(  # noqa: PLR0913, PLR0917  it stands between all that the wiring joins
        self,
        frontier: Frontier,
        sink: PageSink,
        settings: CrawlSettings,
        counters: Counters,
        clock: Callable[[], float] = time.time,
        seen: SeenUrls | None = None,
        buffer: PageBuffer | None = None,
        more_links: MoreLinks | None = None,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._together = together
        self._settlements: list[_Settlement] = []
        self._settling: asyncio.Task[None] | None = None
        self._more_links = more_links
        self._buffer = buffer
        self._frontier = frontier
        self._sink = sink
        self._settings = settings
        self._counters = counters
        self._clock = clock
        self._seen: SeenUrls = SeenFilter() if seen is None else seen
        self._budget = LinkBudget(clock)
        self._politeness = Politeness(settings)
        self._robots = Robots(settings, clock)
        self._postponed: OrderedDict[str, int] = OrderedDict()
        self._lease_s = 60.0 + 4 * settings.timeout_s
        """Longer than waits, robots.txt, page and judgement can take, so that no other crawler takes a URL in work."""

    async def crawl_once(self, url: str) -> CrawlOutcome:
        """Looks at one URL now; its links are not followed. A scheme may be left away. What is wrong with it is in the outcome.

        Raises:
            StoreError: the verdict could not be kept.
            ConfigError: `crawl.upstream_ca` cannot be read.
        """
        started = time.monotonic()
        try:
            target = parse_loose_url(url)
        except UrlError as error:
            self._counters.add("pages_refused")
            return CrawlOutcome(url, error=str(error), refused=True)
        try:
            async with self._open() as bench:
                look = await bench.visitor.look(target, priority=Priority.MANUAL, patience_s=PATIENCE_S)
        except FetchError as error:
            refused = is_refusal(error)
            self._counters.add("pages_refused" if refused else "pages_failed")
            return CrawlOutcome(target.text, error=str(error), refused=refused, elapsed_ms=_ms_since(started))
        page = look.page
        why = "" if look.classification is not None else f"a page of this kind is not classified (status {page.status})"
        return CrawlOutcome(page.url, page.final_url, page.status, look.classification, why, elapsed_ms=_ms_since(started))

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; then finishes what it has begun, or gives it back after `GRACE_S`.

        Raises:
            ConfigError: `crawl.upstream_ca` cannot be read.
        """
        tasks: set[asyncio.Task[None]] = set()
        async with self._open() as bench:
            stopping = asyncio.create_task(stop.wait())
            stopping.add_done_callback(lambda _: bench.closing.set())
            scanning = asyncio.create_task(self._scan(bench, stopping))
            try:
                await self._work(bench, tasks, stopping)
                if tasks:
                    await asyncio.wait(tasks, timeout=GRACE_S)
            finally:
                stopping.cancel()
                bench.closing.set()
                bench.buffered.set()
                await asyncio.gather(scanning, return_exceptions=True)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if self._settling is not None:
                    await self._settling
                await self._in_queue_thread(bench, self._seen.save)

    async def _work(self, bench: _Bench, tasks: set[asyncio.Task[None]], stopping: asyncio.Task[Literal[True]]) -> None:
        poll_s = POLL_MIN_S
        save_at = time.monotonic() + SAVE_SEEN_S
        while not stopping.done():
            free = self._settings.concurrency - len(tasks)
            leases = await self._lease(bench, free, wait=not tasks) if free else []
            for lease in leases or ():
                task = asyncio.create_task(self._handle(bench, lease, self._patience_s(len(tasks))))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            if time.monotonic() >= save_at:
                save_at = time.monotonic() + SAVE_SEEN_S
                await self._in_queue_thread(bench, self._seen.save)
            if leases is None:
                await asyncio.wait({stopping}, timeout=STORE_PAUSE_S)
            elif len(tasks) >= self._settings.concurrency:
                changing: set[asyncio.Task[Any]] = {stopping, *tasks}
                await asyncio.wait(changing, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({stopping}, timeout=GATHER_S)
            elif tasks:
                poll_s = POLL_MIN_S if leases else min(poll_s * POLL_GROWTH, POLL_MAX_S)
                await asyncio.wait({stopping}, timeout=poll_s)

    async def _scan(self, bench: _Bench, stopping: asyncio.Task[Literal[True]]) -> None:
        """Works off the buffer, a page at a time: pages that are waited for go between."""
        if self._buffer is None:
            return
        while not bench.closing.is_set():
            try:
                look = await bench.visitor.scan_first()
                if isinstance(look, Look):
                    await self._in_queue_thread(bench, partial(self._follow_now, look.links))
            except StoreError as error:
                _log.warning("%s; the page is looked at again", error)
                await asyncio.wait({stopping}, timeout=STORE_PAUSE_S)
                continue
            except Exception:  # noqa: BLE001  the outermost boundary of one page: none may end the scanner
                self._counters.add("pages_failed")
                _log.exception("judging a page out of the archive failed")
                look = True
            if look is not False:
                self._buffer.advance()
            elif not len(self._buffer):
                bench.buffered.clear()
                await bench.buffered.wait()

    def _patience_s(self, busy: int) -> float:
        """Returns how long a page may wait for its host: not at all once half the places are taken, others may be urgent."""
        return PATIENCE_S if busy < self._settings.concurrency / 2 else 0.0

    async def _handle(self, bench: _Bench, lease: Lease, patience_s: float) -> None:
        """Looks at a leased URL and settles it. Whatever goes wrong is this page's alone."""
        try:
            settle = await self._settlement(bench, lease, patience_s)
        except asyncio.CancelledError:
            await asyncio.shield(
                self._settled(bench, lambda: self._frontier.retry(lease, self._clock(), "the crawler was stopped"))
            )
            raise
        await self._settled(bench, settle)

    async def _settlement(self, bench: _Bench, lease: Lease, patience_s: float) -> Callable[[], object]:
        """Looks at a leased URL and returns what to tell the frontier."""
        try:
            url = parse_url(lease.url)
            look = await bench.visitor.look(url, priority=lease.priority, patience_s=patience_s)
        except HostBusyError as error:
            return self._postponement(lease, error)
        except FetchError as error:
            return self._failure(lease, error)
        except StoreError as error:
            _log.warning("%s; %s is looked at again", error, redacted(lease.url))
            retry_at = self._clock() + self._back_off_s(lease.attempts)
            return lambda: self._frontier.retry(lease, retry_at, "the verdict could not be kept")
        except UrlError:
            self._counters.add("pages_refused")
            return lambda: self._frontier.bury(lease, "not a URL")
        except Exception as error:  # noqa: BLE001  the outermost boundary of one page: none may end the crawler
            self._counters.add("pages_failed")
            _log.exception("looking at %s failed", redacted(lease.url))
            reason = f"failed with {type(error).__name__}"
            return lambda: self._frontier.bury(lease, reason)
        self._postponed.pop(lease.url, None)
        if look.buffered:
            bench.buffered.set()
        return lambda: self._judged(lease, url, look)

    def _judged(self, lease: Lease, url: Url, look: Look) -> list[Url]:
        """Settles a page that was fetched, and queues its links. Runs in the queue's thread. Returns what is seen then."""
        links = self._follow(look.links)
        judged_rest_s = UNJUDGED_REST_S if look.classification is None else JUDGED_REST_S
        rest_s = BUFFERED_REST_S if look.buffered else judged_rest_s
        self._frontier.done(lease, self._clock() + rest_s)
        return [url, *links]

    def _follow_now(self, found: Sequence[Url]) -> None:
        for link in self._follow(found):
            self._seen.add(link.digest)

    def _follow(self, found: Sequence[Url]) -> list[Url]:
        """Queues links that were not seen yet. Runs in the queue's thread. Returns them."""
        now = self._clock()
        links = [link for link in found if link.digest not in self._seen and self._budget.take(link.host)]
        if links:
            step_s = self._settings.per_host_delay_s  # one after the other, as the host may be asked
            self._frontier.add([Offer(link.text, Priority.LINK, now + at * step_s) for at, link in enumerate(links)], now)
        return links

    def _postponement(self, lease: Lease, error: HostBusyError) -> Callable[[], object]:
        self._postponed[lease.url] = self._postponed.get(lease.url, 0) + 1
        if len(self._postponed) > MAX_POSTPONED:
            self._postponed.popitem(last=False)
        again_at = self._clock() + error.retry_after_s * _JITTER.uniform(1.0, 1.5)
        return lambda: self._frontier.retry(lease, again_at, str(error))

    def _failure(self, lease: Lease, error: FetchError) -> Callable[[], object]:
        refused = is_refusal(error)
        self._counters.add("pages_refused" if refused else "pages_failed")
        _log.info("%s was not fetched: %s", redacted(lease.url), error)
        now = self._clock()
        attempts = lease.attempts - self._postponed.get(lease.url, 0)
        if not is_retryable(error):
            self._postponed.pop(lease.url, None)
            return lambda: self._frontier.done(lease, now + (REFUSED_REST_S if refused else UNJUDGED_REST_S))
        if attempts >= self._settings.max_attempts:
            self._postponed.pop(lease.url, None)
            return lambda: self._buried(lease, error)
        asked_s = error.retry_after_s if isinstance(error, UnreachableError) else 0.0
        retry_at = now + max(self._back_off_s(attempts), asked_s)
        return lambda: self._frontier.retry(lease, retry_at, str(error))

    def _buried(self, lease: Lease, error: FetchError) -> None:
        """Buries a URL; where the set of seen ones can forget, a later link brings it back. Runs in the queue's thread."""
        self._frontier.bury(lease, str(error))
        self._seen.remove(digest_of(lease.url))

    def _back_off_s(self, attempts: int) -> float:
        grown = min(BACK_OFF_S * BACK_OFF_GROWTH ** min(attempts - 1, 10), BACK_OFF_MAX_S)
        return grown * _JITTER.uniform(0.5, 1.5)

    async def _lease(self, bench: _Bench, limit: int, *, wait: bool) -> list[Lease] | None:
        """Returns leases, `None` when the database fails.

        Args:
            bench: what is open.
            limit: most leases.
            wait: nothing else is in work: look again and again, in the queue's thread, where that costs least.
        """
        look = self._wait_for_leases if wait else self._lease_now
        try:
            return await asyncio.get_running_loop().run_in_executor(bench.queue, look, limit, bench.closing)
        except StoreError as error:
            _log.warning("cannot read the queue: %s", error)
            return None

    def _lease_now(self, limit: int, _: threading.Event) -> list[Lease]:
        return self._frontier.lease(limit, self._lease_s, self._clock())

    def _wait_for_leases(self, limit: int, closing: threading.Event) -> list[Lease]:
        """Returns leases as soon as there are any, or nothing when it is time for upkeep or the end."""
        until = time.monotonic() + SAVE_SEEN_S
        poll_s = POLL_MIN_S
        while not (leases := self._lease_now(limit, closing)) and time.monotonic() < until:
            if closing.wait(poll_s):
                break
            poll_s = min(poll_s * POLL_GROWTH, POLL_MAX_S)
        return leases

    async def _settled(self, bench: _Bench, settle: Callable[[], object]) -> None:
        """Settles a page together with those that end within `SETTLE_S`: a transaction for several costs hardly more than one."""
        settlement = _Settlement(settle, asyncio.get_running_loop().create_future())
        self._settlements.append(settlement)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self._settle_all(bench))
        await settlement.done

    async def _settle_all(self, bench: _Bench) -> None:
        while self._settlements:
            if not bench.closing.is_set():
                await asyncio.sleep(SETTLE_S)
            settlements, self._settlements = self._settlements, []
            try:
                await self._in_queue_thread(bench, partial(self._settle, settlements))
            except GatewayFilterError as error:  # the leases run out, and the URLs are handed out again
                _log.warning("cannot settle pages: %s", error)
            finally:
                for settlement in settlements:
                    if not settlement.done.done():
                        settlement.done.set_result(None)

    def _settle(self, settlements: Sequence["_Settlement"]) -> None:
        """Runs in the queue's thread. What is written is taken for seen only when it stands."""
        seen: list[Url] = []
        with self._together():
            for settlement in settlements:
                urls = settlement.settle()
                if isinstance(urls, list):
                    seen += urls
        for url in seen:
            self._seen.add(url.digest)

    @staticmethod
    async def _in_queue_thread(bench: _Bench, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(bench.queue, work)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[_Bench]:
        fetcher = Fetcher(self._settings, self._politeness, self._counters)
        judge = ThreadPoolExecutor(1, "crawl-judge")
        queue = ThreadPoolExecutor(1, "crawl-queue")
        with judge, queue:
            async with fetcher, renderer(self._settings, self._counters) as rendering:
                visitor = Visitor(
                    fetcher,
                    self._robots,
                    self._sink,
                    judge,
                    self._settings,
                    self._counters,
                    self._clock,
                    self._buffer,
                    self._more_links,
                    rendering,
                )
                try:
                    yield _Bench(visitor, queue, threading.Event(), asyncio.Event())
                finally:
                    if self._buffer is not None:
                        await asyncio.get_running_loop().run_in_executor(judge, self._buffer.flush)


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
