"""Happy eyeballs (RFC 8305): connects to the first of several addresses that answers, both families in turn.

Callbacks instead of tasks: a connection that passes through is made in some hundred microseconds, of which a task and its
timers would be a fifth.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from gatewayfilter.proxy.tunnel.poller import GONE, WRITE, Poller, poller_of
from gatewayfilter.proxy.tunnel.resolver import AddressInfo
from gatewayfilter.proxy.tunnel.timeouts import Deadlines

RACE_AFTER_S: Final = 0.25
"""How long the first address may try before the next one tries beside it (RFC 8305 §5)."""
_ATTRIBUTE: Final = "gatewayfilter_races"
_NONBLOCK: Final[int] = getattr(socket, "SOCK_NONBLOCK", 0)
_UNDER_WAY: Final = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK})


class Race:
    """Attempts to connect, of which the first that succeeds counts.

    Args:
        poller: watches the attempts.
        next_ones: lets the next address try.
        found: the addresses, the preferred one first; at least one.
        done: called once: with a connected, non-blocking socket, or with the error of the last attempt.
    """

    __slots__ = ("_done", "_error", "_left", "_next_ones", "_poller", "_trying")

    def __init__(
        self,
        poller: Poller,
        next_ones: "Deadlines[Race]",
        found: Sequence[AddressInfo],
        done: Callable[[socket.socket | OSError], None],
    ) -> None:
        self._poller = poller
        self._next_ones = next_ones
        self._left = interleaved(found)
        self._left.reverse()
        self._trying: list[socket.socket] = []
        self._error = OSError("no address")
        self._done = done

    def try_next(self) -> None:
        """Lets the next address try. A failure that is known at once lets the one after it."""
        self._next_ones.remove(self)
        while self._left:
            family, kind, protocol, _, address = self._left.pop()
            try:
                made = socket.socket(family, kind | _NONBLOCK, protocol)
            except OSError as error:  # no such family here, or no descriptors left
                self._error = error
                continue
            if not _NONBLOCK:
                made.setblocking(False)
            code = _connect(made, address)
            if code and code not in _UNDER_WAY:
                made.close()
                self._error = _failure(code, address)
                continue
            self._trying.append(made)
            self._poller.watch(made.fileno(), WRITE, partial(self._answered, made, address))
            if self._left:
                self._next_ones.add(self)
            return
        if not self._trying:
            self._done(self._error)

    def cancel(self) -> None:
        """Ends all attempts; `done` is not called."""
        self._next_ones.remove(self)
        self._left.clear()
        for made in self._trying:
            self._poller.drop(made)
        self._trying.clear()

    def _answered(self, made: socket.socket, address: object, events: int) -> None:
        code = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if events & GONE else 0
        self._trying.remove(made)
        if code:
            self._poller.drop(made)
            self._error = _failure(code, address)
            self.try_next()
            return
        self._poller.forget(made.fileno())
        if self._left or self._trying:
            self.cancel()
        self._done(made)


def _connect(made: socket.socket, address: tuple[object, ...]) -> int:
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made.connect_ex(address)
    except OSError as error:  # an address that its family does not have
        return error.errno or errno.EINVAL


def _failure(code: int, address: object) -> OSError:
    return OSError(code, f"Connect call failed {address}: {os.strerror(code)}")


def interleaved(found: Sequence[AddressInfo]) -> list[AddressInfo]:
    """Returns addresses of both families in turn, each family in the order it has (RFC 8305 §4)."""
    families: dict[int, list[AddressInfo]] = {}
    for info in found:
        families.setdefault(info[0], []).append(info)
    if len(families) == 1:
        return list(found)
    longest = max(len(family) for family in families.values())
    return [family[place] for place in range(longest) for family in families.values() if place < len(family)]


def race_of(
    loop: asyncio.AbstractEventLoop, found: Sequence[AddressInfo], done: Callable[[socket.socket | OSError], None]
) -> Race:
    """Returns a race on a loop, not yet begun."""
    next_ones: Deadlines[Race] | None = getattr(loop, _ATTRIBUTE, None)
    if next_ones is None:
        next_ones = Deadlines(loop, RACE_AFTER_S, Race.try_next)
        setattr(loop, _ATTRIBUTE, next_ones)
    return Race(poller_of(loop), next_ones, found, done)


async def connect_to_any(loop: asyncio.AbstractEventLoop, found: Sequence[AddressInfo]) -> socket.socket:
    """Returns a connection to the first of several addresses that answers.

    Raises:
        OSError: none of them does.
    """
    answer: asyncio.Future[socket.socket] = loop.create_future()

    def done(result: socket.socket | OSError) -> None:
        if answer.done():  # the caller has given it up, and is about to cancel
            if isinstance(result, socket.socket):
                result.close()
        elif isinstance(result, OSError):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    race = race_of(loop, found, done)
    race.try_next()
    try:
        return await answer
    except asyncio.CancelledError:
        race.cancel()
        if not answer.cancelled() and answer.exception() is None:  # it ended with the cancellation under way
            answer.result().close()
        raise
