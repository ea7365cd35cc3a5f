"""The crawl queue: requests, leases and the frontier, which crawlers share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

from gatewayfilter.renamed_codes import current_code


class Priority(IntEnum):
    """How urgent a URL is in the frontier: the smaller, the sooner."""

    MANUAL = 0
    VISIT = 10
    RECHECK = 50
    LINK = 100


@dataclass(frozen=True, slots=True)
class CrawlRequest:
    """A URL for the frontier.

    Attributes:
        url: canonical text.
        priority: see `Priority`.
        not_before: Unix seconds before which it is not leased.
        task: the crawl task with the strategy to use, a name of `crawl.tasks`; `""` for none.
        depth: links away from where the task began.
    """

    url: str
    priority: int = Priority.VISIT
    not_before: float = 0.0
    task: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """A URL that a crawler works on until `expires_at` (Unix seconds); after that it is handed out again.

    Attributes:
        token: proves ownership when the lease is given back.
        attempts: how often it was leased, this time included; times that `Frontier.retry` did not count are left out.
        task: as in `CrawlRequest`; `depth` too.
    """

    url: str
    priority: int
    attempts: int
    token: str
    expires_at: float
    task: str = ""
    depth: int = 0


class QueueState(StrEnum):
    """Where a URL of the frontier stands."""

    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"

    @classmethod
    def _missing_(cls, value: object) -> "QueueState | None":
        return next((state for state in cls if state == current_code(str(value))), None)


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """One row of `queue show`."""

    url: str
    priority: int
    state: QueueState
    attempts: int
    not_before: float
    error: str
    task: str = ""
    depth: int = 0


class CrawlRequestSink(Protocol):
    """Takes URLs on no list, to be crawled. Never waits, never raises: full means drop and count."""

    def offer(self, offer: CrawlRequest) -> bool:
        """Returns whether it was taken."""
        ...


class CrawlRequestStore(Protocol):
    """Takes URLs to crawl into the database."""

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Adds URLs; one that is waiting already keeps the more urgent priority. Returns how many were new."""
        ...


class LeaseUrls(Protocol):
    """Hands out URLs to crawl."""

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals."""
        ...


class Frontier(CrawlRequestStore, LeaseUrls, Protocol):
    """The priority queue of URLs to crawl. At least once: a lease that runs out is handed out again."""

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Takes a finished URL out, or lets it rest: until then (Unix seconds) adding it again does nothing.

        Returns False when the lease is no longer the caller's.
        """
        ...

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        """As `done` for each lease with its `rest_until`, in one transaction; those of others are passed over."""
        ...

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        """Puts a failed URL back, `counted` as a failed try. Returns False when the lease is no longer the caller's."""
        ...

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        """Puts a finished URL back for its next time (Unix seconds). Returns False when the lease is no longer the caller's."""
        ...

    def dead_letter(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer the caller's."""
        ...

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `done`, `dead`."""
        ...

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        ...

    def revive(self) -> int:
        """Puts all dead letters back to waiting. Returns how many."""
        ...

    def clear(self, task: str | None = None) -> int:
        """Empties the queue, leased and dead URLs included, or takes one task's URLs out. Returns how many."""
        ...


SITE_SLOTS = 1024
"""Sites fall into so many slots; a crawler of several leases those that are its own."""


class SharedFrontier(Frontier, Protocol):
    """A frontier that several crawlers lease from, each its own sites."""

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None, holder: str = "") -> list[Lease]:
        """Returns up to `limit` URLs as `Frontier.lease` does, of sites in these slots alone; `None` for all.

        Args:
            limit: most URLs.
            lease_s: how long they are the holder's.
            now: Unix seconds.
            slots: of sites.
            holder: the crawler's name; its leases come back when it is gone.
        """
        ...

    def release(self, holders: Sequence[str], now: float) -> int:
        """Hands out again at once what these crawlers had in work. Returns how many."""
        ...

    def release_except(self, holders: Sequence[str], now: float) -> int:
        """Hands out again at once what crawlers with a name had in work, those named here aside. Returns how many."""
        ...


class TaskSites(Protocol):
    """How many pages of each site a task has queued."""

    def take(self, task: str, site: str, wanted: int, limit: int, now: float, period_s: float) -> int:
        """Takes up to `wanted` pages of what a site has left of `limit` in this period. Returns how many it got."""
        ...


class Crawlers(Protocol):
    """Which crawlers are alive."""

    def beat(self, name: str, now: float) -> None:
        """Records a heartbeat of a crawler now (Unix seconds)."""
        ...

    def alive(self, since: float) -> list[str]:
        """Returns the names of those with a heartbeat since then (Unix seconds), in order."""
        ...

    def leave(self, name: str) -> bool:
        """Takes a crawler that ends off the list. Returns False when it was not on it."""
        ...
