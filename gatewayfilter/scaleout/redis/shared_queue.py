"""The crawl queue that machines share, with the machine's own queue in the database behind it.

While Redis is away a machine queues and crawls on its own; what still waits there goes into the shared queue when it is back.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from gatewayfilter.errors import StoreUnavailableError
from gatewayfilter.interfaces import Crawlers, CrawlQueue, CrawlRequest, Lease, QueuedUrl, QueueHolds, QueueState
from gatewayfilter.scaleout.redis.connection import RedisAwayError
from gatewayfilter.scaleout.redis.crawlers import RedisCrawlers
from gatewayfilter.scaleout.redis.frontier import MARK, RedisFrontier
from gatewayfilter.scaleout.redis.no_holds import NoHolds
from gatewayfilter.telemetry import Counters

_MOVE_EVERY_S: Final = 1.0
_MOVED_AT_ONCE: Final = 500
_MOVE_LEASE_S: Final = 60.0
_GRACE_S: Final = 15.0


class SharedQueue:
    """Implements `interfaces.CrawlQueue` over a shared queue and the machine's own.

    Counts `queue_away`: URLs that went into the machine's own queue because Redis was away.

    Args:
        shared: the queue of all machines.
        own: the machine's own.
        counters: where it is counted.

    Attributes:
        holds: refuses the pause of a single task or host.
    """

    def __init__(self, shared: RedisFrontier, own: CrawlQueue, counters: Counters) -> None:
        self._shared = shared
        self._own = own
        self._counters = counters
        self.holds: QueueHolds = NoHolds(own.holds)
        self._move_at = 0.0

    @property
    def max_waiting(self) -> int:
        """The bound on waiting URLs of both queues."""
        return self._shared.max_waiting

    @max_waiting.setter
    def max_waiting(self, most: int) -> None:
        self._shared.max_waiting = self._own.max_waiting = most

    @property
    def refused(self) -> int:
        """The number of URLs that this object refused."""
        return self._shared.refused + self._own.refused

    @refused.setter
    def refused(self, count: int) -> None:
        self._shared.refused, self._own.refused = count, 0

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Adds URLs to the shared queue, or to the machine's own while Redis is away. Returns the number of new ones."""
        offered = list(offers)
        try:
            return self._shared.add(offered, now)
        except RedisAwayError:
            self._counters.add("queue_away", len(offered))
            return self._own.add(offered, now)

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None, holder: str = "") -> list[Lease]:
        """Returns up to `limit` URLs of the shared queue, or of the machine's own while Redis is away."""
        try:
            leases = self._shared.lease(limit, lease_s, now, slots, holder)
        except RedisAwayError:
            return self._own.lease(limit, lease_s, now, None, holder)
        with suppress(RedisAwayError):  # then they are moved when their leases have run out
            self._move(now)
        return leases

    def release(self, holders: Sequence[str], now: float) -> int:
        """Releases the leases of these crawlers at once. Returns their number."""
        return self._own.release(holders, now) + self._or_none(lambda: self._shared.release(holders, now))

    def release_except(self, holders: Sequence[str], now: float) -> int:
        """Releases at once the leases of all named crawlers except these. Returns their number."""
        return self._or_none(lambda: self._shared.release_except(holders, now))

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Removes a finished URL, or lets it rest. Returns False when the lease is no longer the caller's."""
        return _acknowledged(lambda: self._of(lease).done(lease, rest_until))

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        """Does `done` for each lease with its `rest_until`; lost leases are ignored."""
        own = [(lease, until) for lease, until in finished if not _is_shared(lease)]
        shared = [(lease, until) for lease, until in finished if _is_shared(lease)]
        if own:
            self._own.done_all(own)
        _acknowledged(lambda: self._shared.done_all(shared))

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        """Requeues a failed URL. Returns False when the lease is no longer the caller's."""
        return _acknowledged(lambda: self._of(lease).retry(lease, not_before, error, counted=counted))

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        """Requeues a finished URL for its next visit (Unix seconds). Returns False when the lease is no longer the caller's."""
        return _acknowledged(lambda: self._of(lease).again(lease, at, priority))

    def dead_letter(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer the caller's."""
        return _acknowledged(lambda: self._of(lease).dead_letter(lease, error))

    def still_held(self, leases: Sequence[Lease]) -> list[Lease]:
        """Returns those that are the caller's still.

        Raises:
            StoreUnavailableError: Redis is away, which alone can tell.
        """
        own = self._own.still_held([lease for lease in leases if not _is_shared(lease)])
        shared = [lease for lease in leases if _is_shared(lease)]
        return own + (_acknowledged(lambda: self._shared.still_held(shared)) if shared else [])

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state, of the machine's own queue while Redis is away."""
        return self._read(lambda queue: queue.stats(now))

    def waiting(self, now: float) -> tuple[int, float | None]:
        """Returns the number of waiting URLs, and since when the oldest one of them is due (`None` for none)."""
        return self._read(lambda queue: queue.waiting(now))

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        return self._read(lambda queue: queue.show(limit, state))

    def page(
        self, limit: int, state: QueueState | None = None, after: tuple[int, float, int] | None = None
    ) -> tuple[list[QueuedUrl], tuple[int, float, int] | None]:
        """Returns rows, the most urgent first, and what `after` of the next page is (`None` on the last)."""
        return self._read(lambda queue: queue.page(limit, state, after))

    def tasks(self) -> dict[str, dict[str, int]]:
        """Returns for each task with URLs in the queue their number by state."""
        return self._read(lambda queue: queue.tasks())

    def paused_since(self) -> float | None:
        """Returns the start of the pause (Unix seconds), `None` if not paused."""
        return self._read(lambda queue: queue.paused_since())

    def pause(self, now: float) -> bool:
        """Pauses leasing on all machines. Returns False when it was paused already."""
        return _acknowledged(lambda: self._shared.pause(now))

    def resume(self) -> bool:
        """Resumes leasing. Returns False when it was not paused."""
        return _acknowledged(self._shared.resume)

    def revive(self) -> int:
        """Requeues all dead letters, due at once. Returns their number."""
        return _acknowledged(self._shared.revive)

    def clear(self, task: str | None = None) -> int:
        """Empties both queues, or removes one task's URLs. Returns their number."""
        return _acknowledged(lambda: self._shared.clear(task)) + self._own.clear(task)

    def _of(self, lease: Lease) -> CrawlQueue:
        return self._shared if _is_shared(lease) else self._own

    def _move(self, now: float) -> None:
        """Moves what is due in the machine's own queue into the shared one. A URL leaves only when the other queue has it."""
        if now < self._move_at and self._move_at - now <= _MOVE_EVERY_S:
            return
        leases = self._own.lease(_MOVED_AT_ONCE, _MOVE_LEASE_S, now, None, "")
        if leases:
            self._shared.add([CrawlRequest(found.url, found.priority, 0.0, found.task, found.depth) for found in leases], now)
            self._own.done_all([(lease, 0.0) for lease in leases])
        if len(leases) < _MOVED_AT_ONCE:
            self._move_at = now + _MOVE_EVERY_S

    def _read[T](self, work: Callable[[CrawlQueue], T]) -> T:
        try:
            return work(self._shared)
        except RedisAwayError:
            return work(self._own)

    @staticmethod
    def _or_none(work: Callable[[], int]) -> int:
        try:
            return work()
        except RedisAwayError:
            return 0  # the leases run out


class SharedCrawlers:
    """Implements `interfaces.Crawlers`: the heartbeats of all machines.

    While Redis is away, and for `_GRACE_S` after, the members of before count as alive: none of them could send a heartbeat, and
    the leases of a crawler that is taken for dead would be handed out twice.

    Args:
        shared: of all machines.
        own: of this machine, for a process that has not met Redis yet.
        clock: monotonic seconds.
    """

    def __init__(self, shared: RedisCrawlers, own: Crawlers, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._own = own
        self._clock = clock
        self._members: set[str] = set()
        self._is_away = False
        self._grace_until = 0.0

    def beat(self, name: str, now: float) -> None:
        """Records a heartbeat of a crawler now (Unix seconds)."""
        try:
            self._shared.beat(name, now)
        except RedisAwayError:
            self._own.beat(name, now)

    def alive(self, since: float) -> list[str]:
        """Returns the names of those with a heartbeat since then (Unix seconds), in order."""
        try:
            alive = set(self._shared.alive(since))
        except RedisAwayError:
            self._is_away = True
            return sorted(self._members) or self._own.alive(since)
        if self._is_away:
            self._is_away = False
            self._grace_until = self._clock() + _GRACE_S
        if self._clock() < self._grace_until:
            alive |= self._members
        self._members = alive
        return sorted(alive)

    def leave(self, name: str) -> bool:
        """Removes a crawler that ends. Returns False when it was not registered."""
        self._own.leave(name)
        try:
            return self._shared.leave(name)
        except RedisAwayError:
            return False


def _is_shared(lease: Lease) -> bool:
    return lease.token.startswith(MARK)


def _acknowledged[T](work: Callable[[], T]) -> T:
    """Returns the result of a change that only Redis can make: without it a lease runs out, and the URL is visited again."""
    try:
        return work()
    except RedisAwayError as error:
        raise StoreUnavailableError(f"the shared queue (queue.url): {error}") from error
