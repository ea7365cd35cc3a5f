"""Leases for several crawlers over one queue: each takes the sites of its arcs on a hash ring, and those of crawlers that died.

Source: [cloud-crawler] dispatch over a consistent-hash ring; when a fetcher fails, its arc goes to the next clockwise.
Deviation: sites fall into `SITE_SLOTS` slots, and the slots lie on the ring, so that one index of the queue in SQL finds a
crawler's own sites.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from gatewayfilter.crawl.frontier.hash_ring import HashRing
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import SITE_SLOTS, Crawlers, Lease, SharedFrontier
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

BEAT_S = 2.0
"""Between two heartbeats of a crawler."""
DEAD_AFTER_S = 15.0
"""Without a heartbeat, before a crawler's sites and leases go to the others."""


class FleetLeases:
    """One crawler's leases of the shared queue: URLs of its own sites alone. Implements `interfaces.LeaseUrls`.

    Leases of a crawler that died are handed out again as soon as the others notice, and those of one that was restarted under its
    name, at once. Counts `leases_returned`.

    Args:
        frontier: the queue of all.
        crawlers: the heartbeats of all; `None`: this one is alone.
        name: this crawler's, unique.
        clock: Unix seconds.
        beat_s: as `BEAT_S`; `dead_after_s` as `DEAD_AFTER_S`.
        counters: where it is counted.
    """

    def __init__(
        self,
        frontier: SharedFrontier,
        crawlers: Crawlers | None,
        name: str,
        clock: Callable[[], float] = time.time,
        *,
        beat_s: float = BEAT_S,
        dead_after_s: float = DEAD_AFTER_S,
        counters: Counters | None = None,
    ) -> None:
        self._frontier = frontier
        self._crawlers = crawlers
        self._name = name
        self._clock = clock
        self._beat_s = beat_s
        self._dead_after_s = dead_after_s
        self._counters = counters or Counters()
        self._beat_at = 0.0
        self._began = False
        self._ring = HashRing()
        self._slots: tuple[int, ...] | None = None

    @property
    def slots(self) -> tuple[int, ...] | None:
        """The slots of sites that are this crawler's own; `None` while it is alone, and all are."""
        now = self._clock()
        if self._crawlers is not None and now >= self._beat_at:
            self._beat_at = now + self._beat_s
            self._crawlers.beat(self._name, now)
            alive = {self._name, *self._crawlers.alive(now - self._dead_after_s)}
            if alive != self._ring.members:
                self._turn(HashRing(alive), now)
        return self._slots

    async def keep_alive(self, stop: asyncio.Event) -> None:
        """Sends heartbeats until `stop` is set, also while all places of this crawler are taken and it leases nothing."""
        while self._crawlers is not None and not stop.is_set():
            try:
                await asyncio.to_thread(self._crawlers.beat, self._name, self._clock())
            except StoreError as error:
                _log.warning("%s cannot send its heartbeat: %s", self._name, error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._beat_s)

    def lease(self, limit: int, lease_s: float, now: float) -> list[Lease]:
        """Returns up to `limit` URLs of this crawler's sites, the most urgent first, oldest first among equals."""
        if not self._began:  # its own leases of before it was killed; alone, all leases
            self._returned(
                self._frontier.release((self._name,), now) if self._crawlers else self._frontier.release_except((), now)
            )
            self._began = True
        return self._frontier.lease(limit, lease_s, now, self.slots, self._name)

    def leave(self) -> None:
        """Gives this crawler's sites to the others at once."""
        if self._crawlers is not None:
            self._crawlers.leave(self._name)

    def _turn(self, ring: HashRing, now: float) -> None:
        """Takes the sites that another ring assigns, and the leases of crawlers that ended."""
        gone, come = self._ring.members - ring.members, ring.members - self._ring.members
        _log.info("%s: %d crawlers share the queue (%d joined, %d left)", self._name, len(ring.members), len(come), len(gone))
        self._ring = ring
        own = tuple(slot for slot in range(SITE_SLOTS) if ring.owner(str(slot)) == self._name)
        self._slots = own if len(ring.members) > 1 else None
        self._returned(self._frontier.release_except(sorted(ring.members), now))

    def _returned(self, count: int) -> None:
        if count:
            _log.info("%s: %d leases of crawlers that ended are leased again", self._name, count)
            self._counters.add("leases_returned", count)
