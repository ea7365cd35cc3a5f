"""The outbound proxies that the crawler may go through, ordered by how good they are.

Source: [cloud-crawler, middleware] a pool of outbound proxies: collector, checker that measures response time and drops dead
ones, a ring ordered by response time that is walked per domain from its head, so that good ones come first and one domain
sees many addresses.
Deviation: no order by carrier, which an address does not show; a proxy that was dropped is tried again later.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gatewayfilter.errors import ConfigError
from gatewayfilter.urls import registrable_domain

DROP_AFTER = 3
"""Failures in a row after which a proxy is dropped."""
READMIT_S = 60.0
"""After which a dropped proxy is checked again; each time it fails, three times as long."""
READMIT_MOST_S = 6 * 3600.0
SMOOTHING = 0.3
"""Weight of the newest response time in the mean."""
MAX_DOMAINS = 20_000
_SCHEMES = ("http://", "https://")


@dataclass(slots=True)
class PooledProxy:
    """One outbound proxy and what is known of it.

    Attributes:
        address: `http://HOST:PORT`, credentials included where it requires some.
        response_ms: smoothed time of an answer, 0 before the first.
        anonymous: whether it hides its client; `None` before a check that can detect it.
        failures: in a row.
        dropped_until: seconds, monotonic; 0 while it is in use.
    """

    address: str
    response_ms: float = 0.0
    anonymous: bool | None = None
    failures: int = 0
    successes: int = 0
    dropped_until: float = 0.0
    drops: int = field(default=0, repr=False)

    @property
    def in_use(self) -> bool:
        """Whether it may be chosen."""
        return not self.dropped_until


class ProxyPool:
    """Chooses a proxy for each request, and rates it by the result. Not for several threads at a time.

    Args:
        addresses: `HOST:PORT` or URLs.
        anonymous_only: leaves out proxies that reveal their client, as found by a check.
        clock: seconds, monotonic.

    Raises:
        ConfigError: an address is none.
    """

    def __init__(
        self, addresses: Iterable[str] = (), *, anonymous_only: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._anonymous_only = anonymous_only
        self._proxies: dict[str, PooledProxy] = {}
        self._ring: list[PooledProxy] = []
        self._turns: OrderedDict[str, int] = OrderedDict()
        self.add(addresses)

    def __len__(self) -> int:
        return len(self._proxies)

    def add(self, addresses: Iterable[str]) -> int:
        """Adds proxies; known ones keep what is known of them. Returns how many were new.

        Raises:
            ConfigError: an address is none.
        """
        before = len(self._proxies)
        for address in map(proxy_address, addresses):
            self._proxies.setdefault(address, PooledProxy(address))
        self._order()
        return len(self._proxies) - before

    def remove(self, address: str) -> bool:
        """Removes a proxy. Returns False when there was none."""
        found = self._proxies.pop(proxy_address(address), None) is not None
        self._order()
        return found

    def choose(self, host: str) -> str:
        """Returns the proxy for the next request to a host, `""` when none is in use.

        A domain begins with the best one and takes the next with each request, round and round.
        """
        ring = self._ring
        if not ring:
            return ""
        domain = registrable_domain(host) or host
        turn = self._turns.pop(domain, 0)
        self._turns[domain] = turn + 1
        if len(self._turns) > MAX_DOMAINS:
            self._turns.popitem(last=False)
        return ring[turn % len(ring)].address

    def succeeded(self, address: str, elapsed_ms: float, *, anonymous: bool | None = None) -> None:
        """Notes an answer through a proxy; one that was dropped is in use again."""
        proxy = self._proxies.get(address)
        if proxy is None:
            return
        known = proxy.response_ms
        proxy.response_ms = elapsed_ms if not known else known + SMOOTHING * (elapsed_ms - known)
        proxy.anonymous = proxy.anonymous if anonymous is None else anonymous
        proxy.successes += 1
        proxy.failures = proxy.drops = 0
        proxy.dropped_until = 0.0
        self._order()

    def failed(self, address: str) -> None:
        """Notes that a proxy did not do its work; after `DROP_AFTER` times in a row it is dropped."""
        proxy = self._proxies.get(address)
        if proxy is None:
            return
        proxy.failures += 1
        if proxy.failures >= DROP_AFTER:
            rest_s = min(READMIT_S * 3.0 ** min(proxy.drops, 10), READMIT_MOST_S)
            proxy.drops += 1
            proxy.dropped_until = self._clock() + rest_s
        self._order()

    def due(self) -> list[str]:
        """Returns the proxies to check now: those never used, and those dropped that are due for another try."""
        now = self._clock()
        return [
            proxy.address
            for proxy in self._proxies.values()
            if (proxy.dropped_until and now >= proxy.dropped_until) or not (proxy.successes or proxy.failures)
        ]

    def proxies(self) -> list[PooledProxy]:
        """Returns all proxies, those in use first, the best first."""
        rest = [proxy for proxy in self._proxies.values() if proxy not in self._ring]
        return [*self._ring, *rest]

    def _order(self) -> None:
        wanted = [
            proxy
            for proxy in self._proxies.values()
            if proxy.in_use and (proxy.anonymous is not False or not self._anonymous_only)
        ]
        self._ring = sorted(wanted, key=lambda proxy: (proxy.failures, not proxy.successes, proxy.response_ms))


def proxy_address(text: str) -> str:
    """Returns the address of a proxy as a URL.

    Raises:
        ConfigError: it is none.
    """
    address = text.strip().rstrip("/")
    if "://" not in address:
        address = f"http://{address}"
    host, _, port = address.partition("://")[2].rpartition("@")[2].rpartition(":")
    if not address.startswith(_SCHEMES) or not host or not port.isdigit() or not 0 < int(port) < 65_536 or "/" in address[8:]:
        raise ConfigError(f"{text[:80]!r} is not the address of a proxy: use HOST:PORT or http://HOST:PORT")
    return address


def read_proxies(text: str) -> tuple[list[str], list[int]]:
    """Reads a list of proxies, one a line, `#` for comments.

    Returns:
        The addresses, and the numbers of the lines that are none.
    """
    found, bad = [], []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            found.append(proxy_address(entry))
        except ConfigError:
            bad.append(number)
    return found, bad
