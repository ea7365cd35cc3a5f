"""What becomes of a URL once its page was looked at.

===========================  ========================================================================
end of a page                what becomes of its URL
===========================  ========================================================================
judged, or unchanged         on a list now: done, with a short rest against offers still on their way
of a kind not judged         rests a day
in the buffer                rests an hour; the scanner comes to it from the disk
refused                      rests a week
broken answer                rests a day
unreachable                  tried again, later each time; after `max_attempts` a dead letter
host may not be asked now    back to the queue; not counted as a try
verdict not kept             tried again when the database may be well; not counted
crawlers died with it        after `max_attempts` and `DEATHS` more a dead letter
===========================  ========================================================================

What a task with `recrawl_hours` looked at is due again then, in place of the rest.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import SystemRandom
from typing import Final

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.link_queue import LinkFollower, seen_key
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.net.fetch_errors import HostBusyError, UnreachableError, is_refusal, is_retryable
from gatewayfilter.crawl.visitor import Target, VisitResult
from gatewayfilter.errors import FetchError
from gatewayfilter.interfaces import Lease
from gatewayfilter.urls import Url, digest_of, redacted

_log = logging.getLogger(__name__)

JUDGED_REST_S: Final = 60.0
UNJUDGED_REST_S: Final = 86_400.0
BUFFERED_REST_S: Final = 3600.0
REFUSED_REST_S: Final = 7 * 86_400.0
BACK_OFF_S: Final = 5.0
BACK_OFF_GROWTH: Final = 6.0
BACK_OFF_MAX_S: Final = 3600.0
DEATHS: Final = 2
"""Leases beyond `max_attempts` of a URL that was never settled: its page ends crawlers, or they were unlucky."""
_VALIDATORS: Final = frozenset({"etag", "last-modified"})
_JITTER = SystemRandom()

type Completion = Callable[[], object]
"""Tells the frontier what becomes of a URL, in the queue's thread; returns the digests that are seen then, or anything else."""


class OutcomeHandler:
    """Says what becomes of URLs. Each method returns what to run in the queue's thread.

    Counts `pages_refused`, `pages_failed`, `pages_retried` and `pages_buried`.
    """

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._frontier = context.frontier
        self._counters = context.counters
        self._clock = context.clock
        self._follower = LinkFollower(context)
        self._finished: list[tuple[Lease, float]] = []

    def has_died_too_often(self, lease: Lease) -> bool:
        """Tells whether a URL was handed out again and again without being settled."""
        return lease.attempts > self._context.settings.max_attempts + DEATHS

    def judged(self, lease: Lease, target: Target, visit: VisitResult) -> Completion:
        """A page that was fetched: queues its links, and keeps its validators."""
        return lambda: self._judged(lease, target, visit)

    def scanned(self, visit: VisitResult) -> list[bytes]:
        """A page out of the buffer: queues its links. Runs in the queue's thread. Returns what is seen then."""
        self._note(visit, known=False)
        return self.follow(visit.links, visit.task, visit.links_depth)

    def follow(self, links: Sequence[Url], task: str = "", depth: int = 0) -> list[bytes]:
        """Queues links. Runs in the queue's thread. Returns what is seen then."""
        return self._follower.follow(links, strategy_of(self._context.settings, task), depth)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes one transaction of what is settled meanwhile; the frontier is told at its end of all URLs that are done.

        Raises:
            StoreError: the database refuses. Nothing was settled.
        """
        self._finished = []  # of a transaction that failed nothing is left
        with self._context.together():
            yield
            if self._finished:
                self._frontier.done_all(self._finished)

    def postponed(self, lease: Lease, error: HostBusyError) -> Completion:
        """A page whose host may not be asked now."""
        again_at = self._clock() + error.retry_after_s * _JITTER.uniform(1.0, 1.5)
        return lambda: self._frontier.retry(lease, again_at, str(error), counted=False)

    def failed(self, lease: Lease, error: FetchError) -> Completion:
        """A page that was refused or could not be fetched."""
        refused = is_refusal(error)
        self._counters.add("pages_refused" if refused else "pages_failed")
        _log.info("%s was not fetched: %s", redacted(lease.url), error)
        if not is_retryable(error):
            return lambda: self._finish(lease, REFUSED_REST_S if refused else UNJUDGED_REST_S, failed=True)
        if lease.attempts >= self._context.settings.max_attempts:
            return lambda: self._buried(lease, str(error))
        asked_s = error.retry_after_s if isinstance(error, UnreachableError) else 0.0
        retry_at = self._clock() + max(_back_off_s(lease.attempts), asked_s)
        self._counters.add("pages_retried")
        return lambda: self._frontier.retry(lease, retry_at, str(error))

    def not_kept(self, lease: Lease) -> Completion:
        """A page whose verdict the database refused."""
        retry_at = self._clock() + _back_off_s(lease.attempts)
        return lambda: self._frontier.retry(lease, retry_at, "the verdict could not be kept", counted=False)

    def stopped(self, lease: Lease) -> Completion:
        """A page that was in work when the crawler ended."""
        return lambda: self._frontier.retry(lease, self._clock(), "the crawler was stopped", counted=False)

    def not_a_url(self, lease: Lease) -> Completion:
        """What is no URL."""
        self._counters.add("pages_refused")
        return lambda: self._frontier.dead_letter(lease, "not a URL")

    def surprised(self, lease: Lease, reason: str) -> Completion:
        """A page at which the crawler failed."""
        self._counters.add("pages_failed")
        return lambda: self._buried(lease, reason)

    def _judged(self, lease: Lease, target: Target, visit: VisitResult) -> list[bytes]:
        seen = self.follow(visit.links, lease.task, visit.links_depth)
        if not visit.unchanged:
            self._note(visit, known=target.validators is not None)
        judged_rest_s = UNJUDGED_REST_S if visit.classification is None else JUDGED_REST_S
        self._finish(lease, BUFFERED_REST_S if visit.buffered else judged_rest_s)
        return [*{target.url.digest, seen_key(target.url, lease.task)}, *seen]

    def _note(self, visit: VisitResult, *, known: bool) -> None:
        """Keeps a judged page's validators; of one without any, forgets those that were known."""
        revisits = self._context.revisits
        if revisits is None or visit.classification is None or visit.rendered:
            return
        if known or not _VALIDATORS.isdisjoint(visit.page.headers):
            revisits.note(visit.page)

    def _finish(self, lease: Lease, rest_s: float, *, failed: bool = False) -> None:
        strategy = strategy_of(self._context.settings, lease.task)
        now = self._clock()
        if strategy.recrawl_s:
            pause_s = max(strategy.recrawl_s, rest_s) if failed else strategy.recrawl_s
            self._frontier.again(lease, now + pause_s, strategy.priority)
        else:
            self._finished.append((lease, now + rest_s))

    def _buried(self, lease: Lease, reason: str) -> None:
        """Buries a URL; where the set of seen ones can forget, a later link brings it back."""
        self._counters.add("pages_buried")
        self._frontier.dead_letter(lease, reason)
        self._context.seen.remove(digest_of(lease.url))


def _back_off_s(attempts: int) -> float:
    grown = min(BACK_OFF_S * BACK_OFF_GROWTH ** min(max(attempts, 1) - 1, 10), BACK_OFF_MAX_S)
    return grown * _JITTER.uniform(0.5, 1.5)
