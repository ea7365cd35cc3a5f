"""Rate limiting of password checks: each check costs 50 ms of a core and 16 MB, and any client can send wrong passwords.

One password of a client is checked at a time, and the wait grows after each wrong one, independent of other clients; so a client
delays the others by one check at most. A wrong password that is sent again, as programs with an old password do, is found in a
cache and costs nothing. Clients behind one address share its limit; a client that has logged in before is not limited.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from gatewayfilter.addresses.client_network import network_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

AT_ONCE: Final = 2
MOST_WAITING: Final = 16
"""Of one client: a browser opens six connections to a host at once, and to several hosts."""
MOST_OF_NETWORK: Final = 64
"""Of all addresses of one IPv6 network together, since one client can use any of them: about two seconds of work."""
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
_FORGET_S: Final = 60.0
_MOST_CLIENTS: Final = 4096
_MOST_WRONG: Final = 16


class Outcome(Enum):
    """The outcome of a log-in."""

    RIGHT = 1
    WRONG = 2
    TOO_MANY = 3


@dataclass(slots=True)
class _Client:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    failures: int = 0
    failed_at: float = 0.0
    wrong: dict[bytes, None] = field(default_factory=dict)


class LoginTurns:
    """Checks passwords, a few at once, one of each client at a time. Its methods run in one event loop.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clients: dict[str, _Client] = {}
        self._networks: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def attempt(self, address: str, digest: bytes, verify: Callable[[], bool]) -> Outcome:
        """Returns the outcome of a log-in. For a wrong password it returns after a pause, also where the cache had it.

        Args:
            address: the client's.
            digest: identifies the name, the password and the file of users that they are checked against.
            verify: returns whether they are right; runs in a thread.
        """
        network = network_of(address)
        client = self._client(address)
        if client is not None and digest in client.wrong:
            await asyncio.sleep(FIRST_PAUSE_S)
            return Outcome.WRONG
        if client is None or client.waiting >= MOST_WAITING or self._networks[network] >= MOST_OF_NETWORK:
            return Outcome.TOO_MANY
        async with self._waiting(client, network), client.turn:
            if digest in client.wrong:  # found out meanwhile
                return Outcome.WRONG
            async with self._turns:
                right = await asyncio.to_thread(verify)
            if right:
                return Outcome.RIGHT
            self._note_failure(client, digest)
            await asyncio.sleep(min(FIRST_PAUSE_S * 2 ** (client.failures - 1), LONGEST_PAUSE_S))
        return Outcome.WRONG

    @asynccontextmanager
    async def _waiting(self, client: _Client, network: str) -> "AsyncIterator[None]":
        client.waiting += 1
        self._networks[network] += 1
        try:
            yield
        finally:
            client.waiting -= 1
            self._networks[network] -= 1
            if not self._networks[network]:
                del self._networks[network]

    def _client(self, address: str) -> _Client | None:
        """Returns what is known of a client; `None` when too many are waiting to note another one."""
        found = self._clients.pop(address, None)
        if found is None:
            if len(self._clients) >= _MOST_CLIENTS:
                idle = next((name for name, other in self._clients.items() if not other.waiting), None)
                if idle is None:
                    return None
                del self._clients[idle]
            found = _Client()
        self._clients[address] = found  # the latest is the last to be forgotten
        return found

    def _note_failure(self, client: _Client, digest: bytes) -> None:
        now = self._clock()
        client.failures = 1 if now - client.failed_at > _FORGET_S else min(client.failures + 1, 16)
        client.failed_at = now
        if len(client.wrong) >= _MOST_WRONG:
            del client.wrong[next(iter(client.wrong))]
        client.wrong[digest] = None
