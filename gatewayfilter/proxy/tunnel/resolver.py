"""The worker's DNS cache: concurrent queries for one name are merged, and answers are kept for a few seconds.

A browser opens several connections to a site at once. The system's resolver gives no lifetimes, so answers are kept for
less time than any useful one: addresses for ten seconds, failures for two. Only the choice among connections that are open
already may go by an older answer: no connection is made by it.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, cast

_KEEP_S: Final = 10.0
_KEEP_FAILURE_S: Final = 2.0
FOR_OPEN_S: Final = 60.0
"""How old an answer may be by which an open connection is used again; browsers keep answers of the system for as long."""
_MOST_KEPT: Final = 4096

type AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
"""One answer of `socket.getaddrinfo`."""


class Resolver:
    """A cache in front of a loop's `getaddrinfo`, with the same signature.

    Args:
        loop: the loop that provides `getaddrinfo`.
        clock: monotonic seconds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] | None = None) -> None:
        self._query: Callable[..., Awaitable[list[Any]]] = loop.getaddrinfo
        self._clock = clock or loop.time
        self._known: dict[tuple[Any, ...], tuple[float, list[AddressInfo] | OSError]] = {}
        self._pending: dict[tuple[Any, ...], asyncio.Future[list[AddressInfo]]] = {}

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
            OSError: the name cannot be resolved.
        """
        key = (host, port, family, type, proto, flags)
        known = self._remembered(key)
        if known is not None:
            return known
        answer = self._pending.get(key)
        if answer is None:
            answer = self._pending[key] = asyncio.ensure_future(
                self._query(host, port, family=family, type=type, proto=proto, flags=flags)
            )
            answer.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(answer)  # a cancelled caller must not cancel the query for the others

    def known(self, host: str, port: int, *, is_open: bool = False) -> list[AddressInfo] | None:
        """Returns the TCP addresses of a host that are remembered, `None` when they are not.

        Args:
            host: its name.
            port: TCP port.
            is_open: for a connection that is open already: an answer of the last `FOR_OPEN_S` seconds will do.

        Raises:
            OSError: it is remembered that there are none.
        """
        return self._remembered((host, port, 0, socket.SOCK_STREAM, 0, 0), FOR_OPEN_S - _KEEP_S if is_open else 0.0)

    def _remembered(self, key: tuple[Any, ...], longer_s: float = 0.0) -> list[AddressInfo] | None:
        known = self._known.get(key)
        if known is None:
            return None
        late_s = self._clock() - known[0]
        if late_s >= 0.0 and (late_s >= longer_s or isinstance(known[1], OSError)):
            return None
        if isinstance(known[1], OSError):
            raise type(known[1])(*known[1].args)
        return known[1]

    def _keep(self, key: tuple[Any, ...], done: asyncio.Future[list[AddressInfo]]) -> None:
        self._pending.pop(key, None)
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


def known_addresses(loop: asyncio.AbstractEventLoop, host: str, port: int, *, is_open: bool = False) -> list[AddressInfo] | None:
    """Returns the TCP addresses of a host without a query: those of an IP literal, or cached ones.

    Args:
        loop: the loop with the `Resolver` that may have cached them.
        host: as for `addresses_of`.
        port: TCP port.
        is_open: as for `Resolver.known`.

    Raises:
        OSError: it is remembered that there are none.
    """
    bare = host.strip("[]")
    if ":" in bare or bare[-1:].isdigit():
        return _literal(bare, port)
    resolver = getattr(loop.getaddrinfo, "__self__", None)
    return resolver.known(bare, port, is_open=is_open) or None if isinstance(resolver, Resolver) else None


@lru_cache(maxsize=1024)
def _literal(host: str, port: int) -> list[AddressInfo] | None:
    try:
        version = ip_address(host).version
    except ValueError:  # a name that ends in a digit, or an address with a zone
        return None
    if version == 6:
        return None if "%" in host else [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))]
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]


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
    return cast("list[AddressInfo]", found)
