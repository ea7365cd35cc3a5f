"""Delays between failed log-ins, which double with each one. They are held in memory.

Three counts delay an attempt: of its network; of its account and network; and of its account from all networks together. Other
people can run them up, so none of them locks the owner out:

- A browser that has logged in before has a count of its own in place of all three (a "device cookie", as OWASP describes it).
- The count of the account alone delays by a minute at most, and not in networks from which the account has logged in before.
- A command on the machine (`gatewayfilter user passwd`) is never delayed.

One-time codes have a count of their own: who tries them has the password already, and a million is not many.

Deviation: the counts are not stored. A restart forgets them, but an attacker cannot restart the filter; a row for each attempt
would let an attacker write to the database without end.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

_MOST: Final = 20_000
"""Counts that are held; of more, those with the oldest failures are forgotten."""


_MOST_DOUBLINGS: Final = 20
"""Longer than any limit, and still a number."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """How failures delay.

    Attributes:
        free: failures without a delay.
        longest_s: the longest delay.
        forget_s: failures count from the beginning again after so long without one.
    """

    free: int
    longest_s: float
    forget_s: float = 3_600.0


_OF_NETWORK: Final = _Limit(free=10, longest_s=900.0)
_OF_BOTH: Final = _Limit(free=4, longest_s=900.0)
_OF_ACCOUNT: Final = _Limit(free=20, longest_s=60.0)
_OF_CODES: Final = _Limit(free=20, longest_s=3_600.0, forget_s=7 * 86_400.0)
"""Of one-time codes: 24 a day are one in 14,000 found, three of a million being good at a time."""


@dataclass(slots=True)
class _Count:
    failures: int = 0
    last_at: float = 0.0


type _Key = tuple[str, str]


class LogInThrottle:
    """Counts failed log-ins by account and by network. Threads may share one.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: OrderedDict[_Key, _Count] = OrderedDict()

    def begin(self, account: str, network: str, *, known: bool = False, device: str = "") -> float:
        """Returns the seconds until an attempt is permitted; 0 for now, and then it counts as failed until `succeeded`.

        Attempts at the same time thus count before the first of them is checked.

        Args:
            account: the folded name, whether or not there is such an account.
            network: of the client (`network_of`).
            known: the account has logged in from this network before.
            device: identifies a browser in which the account has logged in before, `""` for any other.
        """
        limits = _limits(account, network, known=known, device=device)
        with self._lock:
            wait = max(self._wait(key, limit) for key, limit in limits)
            if wait <= 0:
                for key, limit in limits:
                    self._count(key, limit)
                while len(self._counts) > _MOST:
                    self._counts.popitem(last=False)
        return wait

    def begin_code(self, account: str, *, device: str = "") -> float:
        """As `begin`, for a one-time code after a right password: all networks together have few guesses.

        Args:
            account: the folded name.
            device: as for `begin`; such a browser is delayed by its own failures alone.
        """
        key = account, f"codes {device}" if device else "codes"
        with self._lock:
            wait = self._wait(key, _OF_CODES)
            if wait <= 0:
                self._count(key, _OF_CODES)
        return wait

    def code_succeeded(self, account: str, *, device: str = "") -> None:
        """Forgets the wrong codes of an account."""
        with self._lock:
            self._counts.pop((account, f"codes {device}" if device else "codes"), None)

    def succeeded(self, account: str, network: str, *, known: bool = False, device: str = "") -> None:
        """Takes the attempt of `begin` back, and forgets the earlier ones of this account from there."""
        with self._lock:
            for key, limit in _limits(account, network, known=known, device=device):
                if limit is _OF_BOTH:
                    self._counts.pop(key, None)
                elif (count := self._counts.get(key)) is not None:
                    count.failures = max(0, count.failures - 1)

    def _count(self, key: _Key, limit: _Limit) -> None:
        now = self._clock()
        count = self._counts.pop(key, None) or _Count()
        count.failures = 1 if now - count.last_at > limit.forget_s else count.failures + 1
        count.last_at = now
        self._counts[key] = count

    def _wait(self, key: _Key, limit: _Limit) -> float:
        count = self._counts.get(key)
        if count is None or count.failures < limit.free:
            return 0.0
        delay = min(limit.longest_s, 2.0 ** min(count.failures - limit.free, _MOST_DOUBLINGS))
        return max(0.0, count.last_at + delay - self._clock())


def _limits(account: str, network: str, *, known: bool, device: str) -> list[tuple[_Key, _Limit]]:
    if device:
        return [((account, f"device {device}"), _OF_BOTH)]
    limits = [(("", network), _OF_NETWORK), ((account, network), _OF_BOTH)]
    return limits if known else [*limits, ((account, ""), _OF_ACCOUNT)]


def network_of(address: str) -> str:
    """Returns the network that counts for an address: the IPv4 address itself, or the /64 of an IPv6 address."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if found.version == 4 or found.is_loopback:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{ip_address(int(found) >> 64 << 64)}/64"
