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
        depth: number of links from the start of the task.
    """

    url: str
    priority: int = Priority.VISIT
    not_before: float = 0.0
    task: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """A URL leased to a crawler until `expires_at` (Unix seconds); after that it is leased again.

    Attributes:
        token: proves ownership when the lease is returned.
        attempts: number of leases, this one included, without those that `Frontier.retry` did not count.
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
    """The state of a URL in the frontier."""

    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"

    @classmethod
    def _missing_(cls, value: object) -> "QueueState | None":
        return next((state for state in cls if state == current_code(str(value))), None)


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """One row of `queue show`; `held` where it waits and its task or host is paused."""

    url: str
    priority: int
    state: QueueState
    attempts: int
    not_before: float
    error: str
    task: str = ""
    depth: int = 0
    held: bool = False


class HoldKind(StrEnum):
    """What a hold is on."""

    TASK = "task"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Hold:
    """A pause of one crawl task or one host of the queue.

    Attributes:
        name: of the task, or the host as URLs have it.
        since: Unix seconds.
    """

    kind: HoldKind
    name: str
    since: float


class CrawlRequestSink(Protocol):
    """Accepts URLs on no list, to be crawled. Never waits, never raises: if full, URLs are dropped and counted."""

    def offer(self, offer: CrawlRequest) -> bool:
        """Returns whether it was accepted."""
        ...


class CrawlRequestStore(Protocol):
    """The store of URLs to crawl."""

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Adds URLs; one that is waiting already keeps the more urgent priority. Returns the number of new ones."""
        ...


class LeaseUrls(Protocol):
    """The source of URLs to crawl."""

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals."""
        ...


class Frontier(CrawlRequestStore, LeaseUrls, Protocol):
    """The priority queue of URLs to crawl. At-least-once: a URL with an expired lease is leased again."""

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Removes a finished URL, or lets it rest: until then (Unix seconds) adding it again has no effect.

        Returns False when the lease is no longer the caller's.
        """
        ...

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        """Does `done` for each lease with its `rest_until`, in one transaction; leases of others are ignored."""
        ...

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        """Requeues a failed URL, `counted` as a failed attempt. Returns False when the lease is no longer the caller's."""
        ...

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        """Requeues a finished URL for its next visit (Unix seconds). Returns False when the lease is no longer the caller's."""
        ...

    def dead_letter(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer the caller's."""
        ...

    def still_held(self, leases: Sequence[Lease]) -> list[Lease]:
        """Returns those that are the caller's still: neither given back, nor handed out again. Changes nothing."""
        ...

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `done`, `dead`."""
        ...

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        ...

    def revive(self) -> int:
        """Requeues all dead letters. Returns their number."""
        ...

    def clear(self, task: str | None = None) -> int:
        """Empties the queue, leased and dead URLs included, or removes one task's URLs. Returns their number."""
        ...


SITE_SLOTS = 1024
"""Number of slots that sites are hashed to; each of several crawlers leases its own slots."""


class SharedFrontier(Frontier, Protocol):
    """A frontier shared by several crawlers, each with its own sites."""

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None, holder: str = "") -> list[Lease]:
        """Returns up to `limit` URLs as `Frontier.lease` does, of sites in these slots alone; `None` for all.

        Args:
            limit: maximum number of URLs.
            lease_s: duration of the leases.
            now: Unix seconds.
            slots: of sites.
            holder: the crawler's name; its leases are released when it is gone.
        """
        ...

    def release(self, holders: Sequence[str], now: float) -> int:
        """Releases the leases of these crawlers at once. Returns their number."""
        ...

    def release_except(self, holders: Sequence[str], now: float) -> int:
        """Releases at once the leases of all named crawlers except these. Returns their number."""
        ...


class QueueHolds(Protocol):
    """The pauses of single crawl tasks and hosts. Their URLs go on waiting; those that are leased are finished."""

    def hold(self, kind: HoldKind, name: str, now: float) -> bool:
        """Leases no URL of a task or host from now on (Unix seconds), across restarts. Returns False when it was held already.

        Raises:
            ConfigError: the queue cannot hold single ones, or holds too many.
        """
        ...

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Leases URLs of a task or host again. Returns False when it was not held."""
        ...

    def all(self) -> list[Hold]:
        """Returns the holds by kind and name."""
        ...


class CrawlQueue(SharedFrontier, Protocol):
    """The crawl queue as a store has it: a frontier with bounds, a pause, and views for its operator.

    Attributes:
        max_waiting: beyond so many waiting URLs new links are refused, beyond twice as many everything new is.
        refused: number of URLs that this object refused.
    """

    max_waiting: int
    refused: int

    @property
    def holds(self) -> QueueHolds:
        """The pauses of single tasks and hosts."""
        ...

    def pause(self, now: float) -> bool:
        """Pauses leasing from now on (Unix seconds), across restarts. Returns False when it was paused already."""
        ...

    def resume(self) -> bool:
        """Resumes leasing. Returns False when it was not paused."""
        ...

    def paused_since(self) -> float | None:
        """Returns the start of the pause (Unix seconds), `None` if not paused."""
        ...

    def waiting(self, now: float) -> tuple[int, float | None]:
        """Returns the number of waiting URLs, and since when the oldest one of them is due (`None` for none)."""
        ...

    def page(
        self, limit: int, state: QueueState | None = None, after: tuple[int, float, int] | None = None
    ) -> tuple[list[QueuedUrl], tuple[int, float, int] | None]:
        """Returns rows, the most urgent first, and what `after` of the next page is (`None` on the last)."""
        ...

    def tasks(self) -> dict[str, dict[str, int]]:
        """Returns for each task with URLs in the queue their number by state."""
        ...


class TaskSites(Protocol):
    """The number of pages that a task has queued, by site."""

    def take(self, task: str, site: str, wanted: int, limit: int, now: float, period_s: float) -> int:
        """Takes up to `wanted` pages from the rest of a site's `limit` in this period. Returns the number granted."""
        ...


class Crawlers(Protocol):
    """The registry of live crawlers."""

    def beat(self, name: str, now: float) -> None:
        """Records a heartbeat of a crawler now (Unix seconds)."""
        ...

    def alive(self, since: float) -> list[str]:
        """Returns the names of those with a heartbeat since then (Unix seconds), in order."""
        ...

    def leave(self, name: str) -> bool:
        """Removes a crawler that ends. Returns False when it was not registered."""
        ...
