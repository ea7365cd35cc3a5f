"""How often and how many at a time one host is asked.

A user's own visit goes ahead of the delay between requests, never of the limit on connections nor of a Retry-After.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch_errors import HostBusyError

MAX_HOSTS = 10_000
MAX_RETRY_AFTER_S = 3600.0
DEFAULT_RETRY_AFTER_S = 60.0
CROWDED_S = 0.5
"""When to come back to a host all of whose connections are in use: about one fetch later."""


class _Host:
    __slots__ = ("blocked_until", "next_at", "running", "slots")

    def __init__(self, concurrency: int) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.running = 0
        self.next_at = 0.0
        self.blocked_until = 0.0


class Politeness:
    """The turns of hosts (`host` or `host:port`). Knows at most `MAX_HOSTS`; the least recently asked is forgotten first."""

    def __init__(self, settings: CrawlSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._concurrency = settings.per_host_concurrency
        self._delay_s = settings.per_host_delay_s
        self._clock = clock
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
        wait_s = max(start - now, CROWDED_S if host.running >= self._concurrency else 0.0)
        if wait_s > patience_s:
            raise HostBusyError(f"{netloc} may not be asked for another {wait_s:.1f} s", wait_s)
        host.next_at = max(start, now, host.next_at if urgent else 0.0) + self._delay_s
        host.running += 1
        try:
            if start > now:
                await asyncio.sleep(start - now)
            async with host.slots:
                yield
        finally:
            host.running -= 1

    def asked_to_wait(self, netloc: str, headers: Mapping[str, str], now: float) -> float:
        """Leaves the host alone for as long as its 429 or 503 answer says.

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
            host = self._hosts[netloc] = _Host(self._concurrency)
            self._forget()
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
    """Reads a Retry-After header (RFC 9110 §10.2.3), seconds or a date; bounded, and a default when it says nothing readable."""
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
