"""The politeness policy: how often, and over how many connections, one host is requested.

A user's own visit goes ahead of the delay between requests, never of the limit on connections nor of a Retry-After.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.telemetry import Counters

MAX_HOSTS = 10_000
MAX_RETRY_AFTER_S = 3600.0
DEFAULT_RETRY_AFTER_S = 60.0
SLOW_S = 0.5
"""A host whose answers take longer to begin is requested less often than by `per_host_delay_s`."""
LATENCY_SHARE = 0.5
"""Of the newest answer in the smoothed latency."""
FIRST_PENALTY_S = 1.0
FORGIVE_S = 600.0
_TOO_MUCH = frozenset({429, 503})
CROWDED_S = 0.5
"""When to come back to a host all of whose connections are in use: about one fetch later."""


class _Host:
    """What is known of a host. All times in seconds, monotonic.

    Attributes:
        running: requests that hold or wait for a connection; `active` those that hold one.
        next_at: when it may be requested next; `blocked_until` by its own Retry-After.
        asked_delay_s: the crawl delay in its robots.txt.
        latency_s: how long it takes until its answer begins, smoothed.
        penalty_s: what is added to its delay because it failed or answered 429 or 503.
        last_at: when it was last requested.
    """

    __slots__ = ("active", "asked_delay_s", "blocked_until", "last_at", "latency_s", "next_at", "penalty_s", "running", "waiters")

    def __init__(self, now: float) -> None:
        self.running = 0
        self.active = 0
        self.next_at = 0.0
        self.blocked_until = 0.0
        self.asked_delay_s = 0.0
        self.latency_s = 0.0
        self.penalty_s = 0.0
        self.last_at = now
        self.waiters: deque[asyncio.Future[None]] = deque()


class Politeness:
    """The turns of hosts (`host` or `host:port`). Keeps at most `MAX_HOSTS`; the least recently requested is dropped first.

    The time between two requests to a host adapts, from `per_host_delay_s` to `per_host_delay_max_s`: a host that takes long
    to answer is requested as seldom as that; one that fails, or answers 429 or 503, twice as seldom each time, over one
    connection, until it answers well again; a crawl delay in robots.txt is kept. After `FORGIVE_S` without a request all but that
    is forgotten.

    Counts `hosts_throttled`.

    Args:
        settings: the bounds.
        clock: seconds, monotonic.
        counters: where it is counted.
    """

    def __init__(
        self, settings: CrawlSettings, clock: Callable[[], float] = time.monotonic, counters: Counters | None = None
    ) -> None:
        self._concurrency = settings.per_host_concurrency
        self._delay_s = settings.per_host_delay_s
        self._most_s = max(settings.per_host_delay_max_s, settings.per_host_delay_s)
        self._adapts = settings.per_host_delay_max_s > 0
        self._clock = clock
        self._counters = counters or Counters()
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hosts)

    @asynccontextmanager
    async def turn(self, netloc: str, *, urgent: bool, patience_s: float) -> AsyncIterator[None]:
        """Waits for the host's turn and holds one of its connections.

        Args:
            netloc: the host.
            urgent: goes ahead of the delay.
            patience_s: longest wait that is worth it.

        Raises:
            HostBusyError: the wait would be longer.
        """
        host = self._host(netloc)
        now = self._clock()
        start = max(host.blocked_until, now if urgent else host.next_at)
        wait_s = max(start - now, CROWDED_S if host.running >= self._places(host) else 0.0)
        if wait_s > patience_s:
            raise HostBusyError(f"{netloc} may not be requested for another {wait_s:.1f} s", wait_s)
        host.next_at = max(start, now, host.next_at if urgent else 0.0) + self.delay_s(netloc)
        host.running += 1
        try:
            if start > now:
                await asyncio.sleep(start - now)
            await self._enter(host)
            try:
                yield
            finally:
                host.last_at = self._clock()
                self._leave(host)
        finally:
            host.running -= 1

    def delay_s(self, netloc: str) -> float:
        """Returns the time between two requests to a host as it is now."""
        host = self._hosts.get(netloc)
        if host is None or not self._adapts:
            return self._delay_s
        slow_s = host.latency_s if host.latency_s >= SLOW_S else 0.0
        return min(max(self._delay_s, host.asked_delay_s, slow_s) + host.penalty_s, self._most_s)

    def answered(self, netloc: str, status: int, latency_s: float) -> None:
        """Takes note of an answer: its status, and after how long it began."""
        host = self._host(netloc)
        host.latency_s = latency_s if not host.latency_s else host.latency_s + (latency_s - host.latency_s) * LATENCY_SHARE
        if status in _TOO_MUCH:
            self._slow_down(host)
        elif status < 500 and host.penalty_s:
            host.penalty_s = host.penalty_s / 2 if host.penalty_s > FIRST_PENALTY_S else 0.0
            self._wake(host)

    def failed(self, netloc: str) -> None:
        """Records that a host could not be reached, or aborted a response."""
        self._slow_down(self._host(netloc))

    def wishes(self, netloc: str, delay_s: float) -> None:
        """Records the crawl delay in the host's robots.txt; kept up to `per_host_delay_max_s`."""
        self._host(netloc).asked_delay_s = delay_s

    def _slow_down(self, host: _Host) -> None:
        if self._adapts:
            if not host.penalty_s:
                self._counters.add("hosts_throttled")
            host.penalty_s = min(max(host.penalty_s * 2, FIRST_PENALTY_S), self._most_s)
            host.next_at = max(host.next_at, self._clock() + host.penalty_s)

    def _places(self, host: _Host) -> int:
        return 1 if host.penalty_s else self._concurrency

    async def _enter(self, host: _Host) -> None:
        while host.active >= self._places(host):
            waiter = asyncio.get_running_loop().create_future()
            host.waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake(host)
                raise
        host.active += 1

    def _leave(self, host: _Host) -> None:
        host.active -= 1
        self._wake(host)

    def _wake(self, host: _Host) -> None:
        free = self._places(host) - host.active
        while free > 0 and host.waiters:
            waiter = host.waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

    def asked_to_wait(self, netloc: str, headers: Mapping[str, str], now: float) -> float:
        """Blocks the host for as long as its 429 or 503 answer demands.

        Args:
            netloc: the host.
            headers: lower-case names.
            now: Unix seconds, for a Retry-After that is a date.

        Returns:
            The wait in seconds, bounded.
        """
        wait_s = retry_after_s(headers.get("retry-after", ""), now)
        host = self._host(netloc)
        host.blocked_until = max(host.blocked_until, self._clock() + wait_s)
        return wait_s

    def _host(self, netloc: str) -> _Host:
        host = self._hosts.get(netloc)
        if host is None:
            host = self._hosts[netloc] = _Host(self._clock())
            self._forget()
        elif not host.running and self._clock() - host.last_at >= FORGIVE_S:
            host.latency_s = host.penalty_s = 0.0
        self._hosts.move_to_end(netloc)
        return host

    def _forget(self) -> None:
        while len(self._hosts) > MAX_HOSTS:
            netloc, oldest = next(iter(self._hosts.items()))
            if oldest.running:  # in use: it is recent enough after all
                self._hosts.move_to_end(netloc)
            else:
                del self._hosts[netloc]


def retry_after_s(value: str, now: float) -> float:
    """Reads a Retry-After header (RFC 9110 §10.2.3), seconds or a date; bounded, and a default when it cannot be read."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return DEFAULT_RETRY_AFTER_S
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment.timestamp() - now, 0.0), MAX_RETRY_AFTER_S)
