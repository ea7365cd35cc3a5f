"""The crawler worker: leases the most urgent URLs, has them visited, and writes the outcome of each to the frontier.

The table of outcomes stands at the head of `outcomes`.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.outcome_batcher import OutcomeBatcher
from gatewayfilter.crawl.outcomes import Completion, OutcomeHandler, Visited
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.crawl.runtime import CrawlRuntime, HostState, open_runtime
from gatewayfilter.errors import EXHAUSTED, StoreError
from gatewayfilter.interfaces import Lease, LeaseUrls, Validators
from gatewayfilter.urls import parse_url

_log = logging.getLogger(__name__)

POLL_MIN_S = 0.02
POLL_MAX_S = 0.075
"""A query of the idle queue costs some 0.6 ms of CPU from cold caches: at this rate below 1 % of a core."""
POLL_GROWTH = 1.1
GATHER_S = 0.05
"""How long a full crawler lets places become free before it leases again: one query for several, others go on meanwhile."""
STORE_PAUSE_S = 1.0
GRACE_S = 5.0
SAVE_SEEN_S = 60.0
LEASE_S = 60.0
"""Of a lease, beside four times `timeout_s`: longer than waits, robots.txt, page and judgement can take."""


@dataclass(frozen=True, slots=True)
class _Leased:
    """URLs in work, and the validators for conditional requests of their pages."""

    leases: Sequence[Lease]
    validators: Mapping[str, Validators]


@dataclass(frozen=True, slots=True)
class _WorkerSession:
    """The state of one run of the worker.

    Attributes:
        closing: set when the queue's thread should stop waiting.
        buffered: set while pages may wait in the buffer.
    """

    runtime: CrawlRuntime
    batcher: OutcomeBatcher
    closing: threading.Event
    buffered: asyncio.Event


class CrawlWorker:
    """Visits the URLs of the frontier.

    Args:
        context: its collaborators.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read (by `run`).
    """

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._leases: LeaseUrls = context.leases or context.frontier
        self._settings = context.settings
        self._buffer = context.buffer
        self._seen = context.seen
        self._host_state = HostState(context.settings, context.counters, context.clock)
        self._outcomes = OutcomeHandler(context)
        self._lease_s = LEASE_S + 4 * context.settings.timeout_s

    async def run(self, stop: asyncio.Event) -> None:
        """Visits URLs until `stop` is set; then finishes what it has begun, or gives it back after `GRACE_S`.

        Raises:
            ConfigError: `crawl.upstream_ca` cannot be read.
        """
        tasks: set[asyncio.Task[None]] = set()
        async with open_runtime(self._context, self._host_state) as runtime:
            closing = threading.Event()
            session = _WorkerSession(
                runtime, OutcomeBatcher(self._context, self._outcomes, runtime.queue, closing), closing, asyncio.Event()
            )
            stopping = asyncio.create_task(stop.wait())
            stopping.add_done_callback(lambda _: closing.set())
            scanning = asyncio.create_task(self._scan(session, stopping))
            try:
                await self._work(session, tasks, stopping)
                if tasks:
                    await asyncio.wait(tasks, timeout=GRACE_S)
            finally:
                stopping.cancel()
                closing.set()
                session.buffered.set()
                await asyncio.gather(scanning, return_exceptions=True)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await session.batcher.finish()
                await session.batcher.call(self._seen.save)

    async def _work(self, session: _WorkerSession, tasks: set[asyncio.Task[None]], stopping: asyncio.Task[Literal[True]]) -> None:
        poll_s = POLL_MIN_S
        save_at = time.monotonic() + SAVE_SEEN_S
        while not stopping.done():
            free = self._settings.concurrency - len(tasks)
            idle = not tasks and not (self._buffer is not None and self._buffer.waiting)  # else they need the queue's thread
            leased = await self._lease(session, free, wait=idle) if free else _Leased((), {})
            for lease in leased.leases if leased is not None else ():
                known = leased.validators.get(lease.url) if leased is not None else None
                task = asyncio.create_task(self._handle(session, lease, known, self._patience_s(len(tasks))))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            if time.monotonic() >= save_at:
                save_at = time.monotonic() + SAVE_SEEN_S
                await session.batcher.call(self._seen.save)
            if leased is None:
                await asyncio.wait({stopping}, timeout=STORE_PAUSE_S)
            elif len(tasks) >= self._settings.concurrency:
                changing: set[asyncio.Task[Any]] = {stopping, *tasks}
                await asyncio.wait(changing, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({stopping}, timeout=GATHER_S)
            elif not idle:
                poll_s = POLL_MIN_S if leased.leases else min(poll_s * POLL_GROWTH, POLL_MAX_S)
                await asyncio.wait({stopping}, timeout=poll_s)

    async def _scan(self, session: _WorkerSession, stopping: asyncio.Task[Literal[True]]) -> None:
        """Judges the pages in the buffer one by one; urgent pages go between."""
        if self._buffer is None:
            return
        while not session.closing.is_set():
            try:
                scanned = await session.runtime.visitor.scan_first()
                if scanned is None:
                    if not self._buffer.waiting and not session.closing.is_set():  # as it may have been meanwhile
                        session.buffered.clear()
                        await session.buffered.wait()
                    continue
                if scanned.visit is not None:
                    await session.batcher.call(partial(self._keep_scanned, scanned.visit))
            except StoreError as error:
                _log.warning("%s; the page is judged again", error)
                await asyncio.wait({stopping}, timeout=STORE_PAUSE_S)
                continue
            except Exception:  # noqa: BLE001  the outermost boundary of one page: none may end the scanner
                self._context.counters.add("pages_failed")
                _log.exception("judging a page out of the archive failed")
            self._buffer.advance()

    def _keep_scanned(self, visit: VisitResult) -> None:
        for digest in self._outcomes.scanned(visit):
            self._seen.add(digest)

    def _patience_s(self, busy: int) -> float:
        """Returns how long a page may wait for its host: not at all once half the places are taken, others may be urgent."""
        return PATIENCE_S if busy < self._settings.concurrency / 2 else 0.0

    async def _handle(self, session: _WorkerSession, lease: Lease, known: Validators | None, patience_s: float) -> None:
        """Visits a leased URL and writes the outcome. A failure concerns this page alone."""
        try:
            completion = await self._visited(session, lease, known, patience_s)
        except asyncio.CancelledError:
            await asyncio.shield(session.batcher.complete(self._outcomes.stopped(lease)))
            raise
        await session.batcher.complete(completion)

    async def _visited(self, session: _WorkerSession, lease: Lease, known: Validators | None, patience_s: float) -> Completion:
        """Visits a leased URL and returns what to write to the frontier."""
        outcomes = self._outcomes
        if outcomes.has_died_too_often(lease):
            return outcomes.crashed(lease, f"crawlers ended {lease.attempts - 1} times during its visit")
        try:
            strategy = strategy_of(self._settings, lease.task)
            target = Target(parse_url(lease.url), lease.priority, strategy, lease.depth, known)
            visit = await session.runtime.visitor.visit(target, patience_s=patience_s)
        except Exception as error:  # noqa: BLE001  the outermost boundary of one page: none may end the crawler
            return outcomes.of_error(lease, error)
        if visit.buffered:
            session.buffered.set()
        return Visited(lease, target, visit)

    async def _lease(self, session: _WorkerSession, limit: int, *, wait: bool) -> _Leased | None:
        """Returns what to work on, `None` when the database fails or the machine has nothing left.

        Args:
            session: what is open.
            limit: most leases.
            wait: nothing else is in work: the query is repeated in the queue's thread, where that costs least.
        """
        lease = self._wait_for_leases if wait else self._lease_now
        try:
            return await asyncio.get_running_loop().run_in_executor(session.runtime.queue, lease, limit, session.closing)
        except (StoreError, *EXHAUSTED) as error:
            _log.warning("cannot read the queue: %s", str(error) or type(error).__name__)
            return None

    def _lease_now(self, limit: int, _: threading.Event) -> _Leased:
        leases = self._leases.lease(limit, self._lease_s, self._context.clock())
        revisits = self._context.revisits
        if not leases or revisits is None:
            return _Leased(leases, {})
        with contextlib.suppress(StoreError):  # then the pages are fetched whole
            return _Leased(leases, revisits.conditions([lease.url for lease in leases]))
        return _Leased(leases, {})

    def _wait_for_leases(self, limit: int, closing: threading.Event) -> _Leased:
        """Returns leases as soon as there are any, or nothing when it is time for upkeep or the end."""
        until = time.monotonic() + SAVE_SEEN_S
        poll_s = POLL_MIN_S
        while not (leased := self._lease_now(limit, closing)).leases and time.monotonic() < until:
            if closing.wait(poll_s):
                break
            poll_s = min(poll_s * POLL_GROWTH, POLL_MAX_S)
        return leased
