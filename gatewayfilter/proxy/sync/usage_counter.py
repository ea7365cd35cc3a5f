"""The usage counter: in which minutes clients use their quotas, collected for the store writer.

A minute counts when a request of the user's own doing was allowed in it (a page, something played, a WebSocket), when a request
to a host that sends what is played was allowed, or when bytes passed a WebSocket or a tunnel.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import CountQuotas
from gatewayfilter.model import Action, QuotaUse, Reason, Request, ResourceType, Verdict, key_of_client
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import canonical_host, parse_url

_OWN: Final = frozenset({ResourceType.DOCUMENT, ResourceType.MEDIA, ResourceType.WEBSOCKET})
_ALLOWED: Final = Verdict(Action.ALLOW, Reason.UNKNOWN)
_MOST: Final = 10_000
"""Uses that wait while the database is away, and that are remembered within one minute.

Clients that policies name have as much room again: devices that take many addresses must not use up theirs.
"""
_BY_ADDRESS: Final = key_of_client("")


class UsageCounter:
    """Collects uses; each is taken once a minute.

    The event loop counts, the writer's thread takes: neither needs a lock.

    Args:
        engine: finds the quotas of a request; `None` counts nothing.
        counters: `quota_uses_dropped`.
        clock: Unix seconds.

    Attributes:
        active: whether there is any quota. To be tested before the other methods are called; `refresh` updates it.
    """

    def __init__(self, engine: CountQuotas | None, counters: Counters, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._counters = counters
        self._clock = clock
        self._waiting: deque[QuotaUse] = deque()
        self._minute = 0
        self._noted: set[QuotaUse] = set()
        self.active = False
        self.refresh()

    def __len__(self) -> int:
        return len(self._waiting)

    def refresh(self) -> None:
        """Takes in whether there is any quota. To be called about once a second, from any thread."""
        self.active = self._engine is not None and self._engine.has_quotas()

    def request(self, request: Request, verdict: Verdict) -> None:
        """Counts a request that was allowed."""
        self._count(request, verdict, own=request.resource_type in _OWN)

    def running(self, request: Request) -> None:
        """Counts a WebSocket, stream or tunnel that was allowed, and over which something passed."""
        self._count(request, _ALLOWED, own=True)

    def relayed(self, client: str, host: str, user: str) -> None:
        """Counts a connection that is relayed unread, over which something passed."""
        try:
            url = parse_url(f"https://{canonical_host(host)}/")
        except (UrlError, UnicodeError):
            return
        self.running(Request(url, None, ResourceType.OTHER, "CONNECT", client, user))

    def take(self, most: int) -> list[QuotaUse]:
        """Returns up to `most` uses, the oldest first, and forgets them."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def take_back(self, uses: Sequence[QuotaUse]) -> None:
        """Has uses wait again that could not be written."""
        self._waiting.extendleft(reversed(uses))

    def _count(self, request: Request, verdict: Verdict, *, own: bool) -> None:
        used = self._engine.quotas_used(request, verdict, own=own) if self._engine is not None else None
        if used is None:
            return
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._minute = minute
            self._noted.clear()
        for quota in used.quotas:
            use = QuotaUse(used.client, quota, minute)
            if use in self._noted:
                continue
            most = _MOST if use.client.startswith(_BY_ADDRESS) else 2 * _MOST
            if len(self._noted) >= most or len(self._waiting) >= most:
                self._counters.add("quota_uses_dropped")
                continue
            self._noted.add(use)
            self._waiting.append(use)


def no_usage() -> UsageCounter:
    """Returns a counter that counts nothing."""
    return UsageCounter(None, Counters())
