"""Several crawlers over one queue: each takes the sites of its arcs on the ring, and those of whoever dies.

Source: [cloud-crawler] dispatch over a consistent-hash ring; when a fetcher fails, its arc goes to the next clockwise.
Deviation: sites fall into `SITE_SLOTS` slots, and the slots lie on the ring, so that the queue in SQL can be asked for a
crawler's own sites with one index.
"""

import logging
import time
from collections.abc import Callable, Iterable

from gatewayfilter.crawl.ring import HashRing
from gatewayfilter.interfaces import SITE_SLOTS, Crawlers, Lease, Offer, QueuedUrl, QueueState, SharedFrontier

_log = logging.getLogger(__name__)

BEAT_S = 2.0
"""How often a crawler says that it is alive."""
DEAD_AFTER_S = 15.0
"""Of silence: longer than a crawler all of whose places are taken says nothing, with the usual `crawl.timeout_s`."""


class FleetFrontier:
    """One crawler's view of the shared queue: it leases what is its own. Implements `interfaces.Frontier`.

    Args:
        frontier: the queue of all.
        crawlers: who is alive.
        name: this crawler's, unique.
        clock: Unix seconds.
        beat_s: as `BEAT_S`; `dead_after_s` as `DEAD_AFTER_S`.
    """

    def __init__(
        self,
        frontier: SharedFrontier,
        crawlers: Crawlers,
        name: str,
        clock: Callable[[], float] = time.time,
        *,
        beat_s: float = BEAT_S,
        dead_after_s: float = DEAD_AFTER_S,
    ) -> None:
        self._frontier = frontier
        self._crawlers = crawlers
        self._name = name
        self._clock = clock
        self._beat_s = beat_s
        self._dead_after_s = dead_after_s
        self._beat_at = 0.0
        self._ring = HashRing()
        self._slots: tuple[int, ...] | None = None

    @property
    def slots(self) -> tuple[int, ...] | None:
        """The slots of sites that are this crawler's own; `None` while it is alone, and all are."""
        now = self._clock()
        if now >= self._beat_at:
            self._beat_at = now + self._beat_s
            self._crawlers.beat(self._name, now)
            alive = {self._name, *self._crawlers.alive(now - self._dead_after_s)}
            if alive != self._ring.members:
                gone, come = self._ring.members - alive, alive - self._ring.members
                _log.info("%s: %d crawlers share the queue (%d came, %d went)", self._name, len(alive), len(come), len(gone))
                self._ring = HashRing(alive)
                own = tuple(slot for slot in range(SITE_SLOTS) if self._ring.owner(str(slot)) == self._name)
                self._slots = own if len(alive) > 1 else None
        return self._slots

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        """Returns up to `limit` URLs of this crawler's sites, the most urgent first, oldest first among equals."""
        return self._frontier.lease(limit, lease_s, now, self.slots)

    def leave(self) -> None:
        """Gives this crawler's sites to the others at once."""
        self._crawlers.leave(self._name)

    def add(self, offers: Iterable[Offer], now: float) -> int:
        """As `interfaces.Frontier`."""
        return self._frontier.add(offers, now)

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """As `interfaces.Frontier`."""
        return self._frontier.done(lease, rest_until)

    def retry(self, lease: Lease, not_before: float, error: str) -> bool:
        """As `interfaces.Frontier`."""
        return self._frontier.retry(lease, not_before, error)

    def bury(self, lease: Lease, error: str) -> bool:
        """As `interfaces.Frontier`."""
        return self._frontier.bury(lease, error)

    def stats(self, now: float) -> dict[str, int]:
        """As `interfaces.Frontier`."""
        return self._frontier.stats(now)

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """As `interfaces.Frontier`."""
        return self._frontier.show(limit, state)

    def revive(self) -> int:
        """As `interfaces.Frontier`."""
        return self._frontier.revive()

    def clear(self) -> int:
        """As `interfaces.Frontier`."""
        return self._frontier.clear()
