"""The outcomes of visits: the next state of a URL after its visit.

===========================  ========================================================================
end of a visit               next state of the URL
===========================  ========================================================================
judged, or unchanged         on a list now: done, with a short rest against offers still on their way
of a kind not judged         rests a day
in the buffer                rests an hour; the scanner comes to it from the disk
refused                      rests a week
broken answer                rests a day
unreachable                  tried again, later each time; after `max_attempts` a dead letter
host is not due yet          back to the queue; not counted as a try
verdict not kept             tried again when the database may be well; not counted
crawlers died with it        after `max_attempts` and `DEATHS` more a dead letter
===========================  ========================================================================

A URL of a task with `recrawl_hours` is due again then, in place of the rest.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.link_queue import LinkFollower, seen_key
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.net.fetch_errors import HostBusyError, UnreachableError, is_refusal, is_retryable
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.errors import FetchError, StoreError, UrlError
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
"""Leases beyond `max_attempts` of a URL that was never completed: its page ends crawlers, or they were unlucky."""
_VALIDATORS: Final = frozenset({"etag", "last-modified"})
_JITTER = SystemRandom()


@dataclass(frozen=True, slots=True)
class Visited:
    """A page was fetched: its links are queued, and it rests."""

    lease: Lease
    target: Target
    visit: VisitResult


@dataclass(frozen=True, slots=True)
class Retry:
    """The URL goes back to the queue until `at` (Unix seconds); `counted` as a failed try."""

    lease: Lease
    at: float
    error: str
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Rest:
    """The URL was refused or answers wrongly: it rests so long."""

    lease: Lease
    rest_s: float


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The URL becomes a dead letter; `known` when it is a URL, which a later link may bring back."""

    lease: Lease
    error: str
    known: bool = True


type Completion = Visited | Retry | Rest | DeadLetter
"""What is written to the frontier when a leased URL is done with."""


class OutcomeHandler:
    """Decides the next state of URLs, and writes it. The methods that return a `Completion` write nothing.

    Counts `pages_refused`, `pages_failed`, `pages_retried` and `dead_letters`.
    """

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._frontier = context.frontier
        self._counters = context.counters
        self._clock = context.clock
        self._follower = LinkFollower(context)
        self._finished: list[tuple[Lease, float]] = []

    def has_died_too_often(self, lease: Lease) -> bool:
        """Returns whether a URL was handed out again and again without being completed."""
        return lease.attempts > self._context.settings.max_attempts + DEATHS

    def complete(self, completion: Completion) -> list[bytes]:
        """Writes the next state of a URL. Runs in the queue's thread, inside of `together`.

        Returns:
            The digests of URLs that are seen once that stands.

        Raises:
            StoreError: the database refuses.
        """
        match completion:
            case Visited(lease, target, visit):
                return self._visited(lease, target, visit)
            case Retry(lease, at, error, counted):
                self._frontier.retry(lease, at, error, counted=counted)
            case Rest(lease, rest_s):
                self._finish(lease, rest_s, failed=True)
            case DeadLetter(lease, error, known):
                self._frontier.dead_letter(lease, error)
                if known:
                    self._counters.add("dead_letters")
                    self._context.seen.remove(digest_of(lease.url))  # where it can forget, a later link brings the URL back
        return []

    def scanned(self, visit: VisitResult) -> list[bytes]:
        """Queues the links of a page out of the buffer. Runs in the queue's thread. Returns the digests that are seen then."""
        self._note(visit, known=False)
        return self.follow(visit.links, visit.task, visit.links_depth)

    def follow(self, links: Sequence[Url], task: str = "", depth: int = 0) -> list[bytes]:
        """Queues links. Runs in the queue's thread. Returns the digests that are seen then."""
        return self._follower.follow(links, strategy_of(self._context.settings, task), depth)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes one transaction of what is completed meanwhile; URLs that are done are written together at its end.

        Raises:
            StoreError: the database refuses. Nothing was written.
        """
        self._finished = []  # of a transaction that failed nothing is left
        with self._context.together():
            yield
            if self._finished:
                self._frontier.done_all(self._finished)

    def of_error(self, lease: Lease, error: Exception) -> Completion:
        """A page whose visit ended with an exception, of whatever kind."""
        match error:
            case HostBusyError():
                return self.postponed(lease, error)
            case FetchError():
                return self.failed(lease, error)
            case StoreError():
                _log.warning("%s; %s is visited again", error, redacted(lease.url))
                return self.not_kept(lease)
            case UrlError():
                return self.not_a_url(lease)
            case _:
                _log.error("visiting %s failed", redacted(lease.url), exc_info=error)
                return self.crashed(lease, f"failed with {type(error).__name__}")

    def postponed(self, lease: Lease, error: HostBusyError) -> Completion:
        """A page on a host that may not be requested now."""
        at = self._clock() + error.retry_after_s * _JITTER.uniform(1.0, 1.5)
        return Retry(lease, at, str(error), counted=False)

    def failed(self, lease: Lease, error: FetchError) -> Completion:
        """A page that was refused or could not be fetched."""
        refused = is_refusal(error)
        self._counters.add("pages_refused" if refused else "pages_failed")
        _log.info("%s was not fetched: %s", redacted(lease.url), error)
        if not is_retryable(error):
            return Rest(lease, REFUSED_REST_S if refused else UNJUDGED_REST_S)
        if lease.attempts >= self._context.settings.max_attempts:
            return DeadLetter(lease, str(error))
        asked_s = error.retry_after_s if isinstance(error, UnreachableError) else 0.0
        self._counters.add("pages_retried")
        return Retry(lease, self._clock() + max(_back_off_s(lease.attempts), asked_s), str(error))

    def not_kept(self, lease: Lease) -> Completion:
        """A page with a verdict that the database refused."""
        return Retry(lease, self._clock() + _back_off_s(lease.attempts), "the verdict could not be kept", counted=False)

    def stopped(self, lease: Lease) -> Completion:
        """A page that was in work when the crawler ended."""
        return Retry(lease, self._clock(), "the crawler was stopped", counted=False)

    def not_a_url(self, lease: Lease) -> Completion:
        """Text in the queue that is no URL."""
        self._counters.add("pages_refused")
        return DeadLetter(lease, "not a URL", known=False)

    def crashed(self, lease: Lease, reason: str) -> Completion:
        """A page at which the crawler failed."""
        self._counters.add("pages_failed")
        return DeadLetter(lease, reason)

    def _visited(self, lease: Lease, target: Target, visit: VisitResult) -> list[bytes]:
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


def _back_off_s(attempts: int) -> float:
    grown = min(BACK_OFF_S * BACK_OFF_GROWTH ** min(max(attempts, 1) - 1, 10), BACK_OFF_MAX_S)
    return grown * _JITTER.uniform(0.5, 1.5)
