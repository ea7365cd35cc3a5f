"""Names to addresses for the whole worker: each asked for once at a time, and remembered for a few seconds.

A browser opens several connections to a site at once. The system's resolver gives no lifetimes, so that what it says is kept for
less time than any useful one: addresses for ten seconds, failures for two.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

_KEEP_S: Final = 10.0
_KEEP_FAILURE_S: Final = 2.0
_MOST_KEPT: Final = 4096

type AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""One answer of `socket.getaddrinfo`."""


class Resolver:
    """A loop's `getaddrinfo` with a memory.

    Args:
        loop: whose `getaddrinfo` is asked.
        clock: monotonic seconds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] | None = None) -> None:
        self._ask = loop.getaddrinfo
        self._loop = loop
        self._clock = clock or loop.time
        self._known: dict[tuple[Any, ...], tuple[float, list[AddressInfo] | OSError]] = {}
        self._asking: dict[tuple[Any, ...], asyncio.Future[list[AddressInfo]]] = {}

    def install(self) -> None:
        """Stands in for the loop's own: everything that connects on it asks here."""
        self._loop.getaddrinfo = self.getaddrinfo  # type: ignore[method-assign, assignment]

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  asyncio's name for it
        proto: int = 0,
        flags: int = 0,
    ) -> list[AddressInfo]:
        """Returns what `loop.getaddrinfo` would.

        Raises:
            OSError: the name cannot be looked up.
        """
        key = (host, port, family, type, proto, flags)
        known = self._known.get(key)
        if known is not None and self._clock() < known[0]:
            if isinstance(known[1], OSError):
                raise OSError(*known[1].args)
            return known[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(
                self._ask(host, port, family=family, type=type, proto=proto, flags=flags)  # type: ignore[arg-type]
            )
            asking.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(asking)  # whoever gives up does not take the answer away from the others

    def _keep(self, key: tuple[Any, ...], done: asyncio.Future[list[AddressInfo]]) -> None:
        self._asking.pop(key, None)
        if done.cancelled():
            return
        error = done.exception()
        if error is not None and not isinstance(error, OSError):
            return
        while len(self._known) >= _MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._known.pop(key, None)
        until = self._clock() + (_KEEP_S if error is None else _KEEP_FAILURE_S)
        self._known[key] = (until, done.result() if error is None else error)


async def addresses_of(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[AddressInfo]:
    """Returns the TCP addresses of a host, which may be an IP literal with or without brackets.

    Raises:
        OSError: there are none.
    """
    try:
        found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"not a name: {error}") from error
    if not found:
        raise OSError(f"no address associated with {host}")
    return found  # type: ignore[return-value]
