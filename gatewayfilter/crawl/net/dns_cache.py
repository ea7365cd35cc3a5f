"""The crawler's DNS cache, in front of the system's resolver.

Source: [cloud-crawler, middleware] a DNS cache with lookup, insert, delete and periodic refresh.
Deviation: no timer walks the whole cache: an entry that is still in use is refreshed in the background shortly before it
runs out, one that is not in use runs out. The system's resolver gives no time to live, so ours is a setting.
"""

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from gatewayfilter.telemetry import Counters

NEGATIVE_S = 30.0
"""Seconds for which a name that could not be resolved is not resolved again."""
REFRESH_SHARE = 0.25
"""The last part of an entry's life, in which a lookup refreshes it."""
MAX_NAMES = 20_000
"""About 1 KB each; the longest unused goes first."""

type _Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Attributes: the answer, or the error; when it runs out, and from when on it is refreshed (seconds, monotonic)."""

    addresses: tuple[ResolveResult, ...]
    error: str
    until: float
    refresh_at: float


class DnsCache(AbstractResolver):
    """Resolves names through another resolver, and keeps its answers. They are not trusted: the guard checks each address.

    Counts `dns_hits` and `dns_misses`.

    Args:
        resolver: resolves what is not in the cache; closed with this one.
        ttl_s: for which an answer counts; 0 remembers nothing.
        counters: `dns_hits`, `dns_misses`.
        clock: seconds, monotonic.
    """

    def __init__(
        self, resolver: AbstractResolver, ttl_s: float, counters: Counters, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._resolver = resolver
        self._ttl_s = ttl_s
        self._counters = counters
        self._clock = clock
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._asking: dict[_Key, asyncio.Task[_Entry]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        """Returns the addresses of a name. Concurrent lookups of one name share one query.

        Raises:
            OSError: it has none.
        """
        key = (host, int(family))
        entry = self._entries.get(key)
        now = self._clock()
        if entry is not None and now < entry.until:
            self._counters.add("dns_hits")
            self._entries.move_to_end(key)
            if now >= entry.refresh_at:
                self._ask(key)
        else:
            self._counters.add("dns_misses")
            entry = await asyncio.shield(self._ask(key))
        if entry.error:
            raise OSError(entry.error)
        return [_with_port(address, port) for address in entry.addresses]

    def insert(self, host: str, addresses: list[ResolveResult], family: socket.AddressFamily = socket.AF_UNSPEC) -> None:
        """Puts a name's addresses into the cache, as if they had been resolved now."""
        self._keep((host, int(family)), tuple(addresses), "")

    def delete(self, host: str) -> bool:
        """Forgets a name, for all address families. Returns False when it was not known."""
        keys = [key for key in self._entries if key[0] == host]
        for key in keys:
            del self._entries[key]
        return bool(keys)

    async def close(self) -> None:
        """Cancels lookups under way and closes the resolver behind."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._resolver.close()

    def _ask(self, key: _Key) -> "asyncio.Task[_Entry]":
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.get_running_loop().create_task(self._asked(key))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return task

    async def _asked(self, key: _Key) -> _Entry:
        host, family = key
        try:
            addresses = await self._resolver.resolve(host, 0, socket.AddressFamily(family))
        except OSError as error:
            known = self._entries.get(key)
            if known is not None and not known.error and self._clock() < known.until:
                return known  # a refresh that failed: what is known counts until it runs out
            return self._keep(key, (), error.strerror or str(error) or "the name cannot be resolved")
        return self._keep(key, tuple(addresses), "")

    def _keep(self, key: _Key, addresses: tuple[ResolveResult, ...], error: str) -> _Entry:
        life_s = min(NEGATIVE_S, self._ttl_s) if error else self._ttl_s
        now = self._clock()
        refresh_at = now + life_s if error else now + life_s * (1 - REFRESH_SHARE)
        entry = _Entry(addresses, error, now + life_s, refresh_at)
        if life_s > 0:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > MAX_NAMES:
                self._entries.popitem(last=False)
        return entry


def _with_port(address: ResolveResult, port: int) -> ResolveResult:
    """Returns the address with another port."""
    return ResolveResult(**{**address, "port": port})
