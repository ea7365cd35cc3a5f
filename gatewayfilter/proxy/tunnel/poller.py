"""The poller of relayed connections' sockets, at a fraction of the event loop's cost per socket.

The worker's loop has a selector of ours, which calls the handler of such a socket directly. To watch a socket
costs a system call and two dictionary entries, where the loop has a handle and a key; an event costs one lookup and one call,
where the loop makes a list of keys, a queue of handles, and a context of each. Other loops watch these sockets themselves.
"""

import asyncio
import contextlib
import math
import select
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sized
from operator import methodcaller
from typing import Any, Final, Protocol, override

from gatewayfilter.proxy.tunnel.client_turns import CROWD, ClientTurns

READ: Final = 1
WRITE: Final = 4
ENDING: Final = 0x2000
"""With `READ`: after what is there to read comes the end."""
_ERROR: Final = 8
_HANG_UP: Final = 16
GONE: Final = _ERROR | _HANG_UP
"""The connection is broken, or was never made: a read or write gives the reason. Reported whether or not it is registered for."""
_AT_ONCE: Final = 256
_AT_ONCE_IN_A_CROWD: Final = 8192
"""All that are ready: who is left out cannot be given a turn."""
_ATTRIBUTE: Final = "gatewayfilter_poller"
_call: Final = methodcaller("_run")
"""Calls what a handle of asyncio holds, as its loop does."""

type Handler = Callable[[int], None]
"""Called with the events of a socket. Readiness is only a hint: a read or write may still block, which a handler must expect."""


class Poller(Protocol):
    """Watches non-blocking sockets, level-triggered; everything happens in the thread of its event loop."""

    @property
    def now(self) -> float:
        """The loop's time, as of the last event."""
        ...

    @property
    def turns(self) -> ClientTurns:
        """Shares the loop among clients where many sockets are ready at once."""
        ...

    def watch(self, descriptor: int, events: int, handler: Handler) -> None:
        """Starts to watch a socket, or changes its events or its handler.

        Args:
            descriptor: of a socket that ends with `forget` or `drop`.
            events: `READ`, `WRITE` or both.
            handler: called with what happened.
        """
        ...

    def forget(self, descriptor: int) -> None:
        """Stops to watch a socket, which stays open."""
        ...

    def drop(self, connection: socket.socket) -> None:
        """Closes a socket, watched or not."""
        ...


def new_loop() -> asyncio.AbstractEventLoop:
    """Returns an event loop that watches sockets in the cheap way, where the system has `epoll`."""
    if not hasattr(select, "epoll"):
        return asyncio.new_event_loop()
    selector = WireSelector()
    loop = asyncio.SelectorEventLoop(selector)
    selector.serve(loop)
    setattr(loop, _ATTRIBUTE, selector)
    return loop


def poller_of(loop: asyncio.AbstractEventLoop) -> Poller:
    """Returns the one poller of a loop."""
    found: Poller | None = getattr(loop, _ATTRIBUTE, None)
    if found is None:
        found = LoopPoller(loop)
        setattr(loop, _ATTRIBUTE, found)
    return found


class WireSelector(selectors.BaseSelector):
    """A selector for asyncio that is a poller as well, over one `epoll` set."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self.turns = ClientTurns()
        self._most = _AT_ONCE
        self._complain: Callable[[dict[str, Any]], None] = lambda _: None
        self._ready: Sized = (None,)
        self._timers: Sized = ()
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._map = _KeysByFile(self._keys, self._lookup)
        self._events: dict[int, int] = {}
        self._handlers: dict[int, Handler] = {}
        self._fresh: set[int] = set()

    def watch(self, descriptor: int, events: int, handler: Handler) -> None:
        """Implements `Poller`."""
        known = self._events.get(descriptor)
        if known is None:
            self._epoll.register(descriptor, events | ENDING if events & READ else events)
            self._events[descriptor] = events
            self._fresh.add(descriptor)
        elif known != events:
            self._epoll.modify(descriptor, events | ENDING if events & READ else events)
            self._events[descriptor] = events
        self._handlers[descriptor] = handler

    def forget(self, descriptor: int) -> None:
        """Implements `Poller`."""
        if self._events.pop(descriptor, None) is not None:
            del self._handlers[descriptor]
            self._epoll.unregister(descriptor)

    def drop(self, connection: socket.socket) -> None:
        """Implements `Poller`. The system takes a closed socket out of the set."""
        descriptor = connection.fileno()
        if self._events.pop(descriptor, None) is not None:
            del self._handlers[descriptor]
        connection.close()

    def serve(self, loop: asyncio.BaseEventLoop) -> None:
        """Sets the event loop of the selector."""
        self._complain = loop.call_exception_handler
        # Whether the loop has anything to do by now; without these two it would have its turn after each poll.
        self._ready = getattr(loop, "_ready", self._ready)
        self._timers = getattr(loop, "_scheduled", self._timers)

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits, and calls the handlers of what happened, until there is something for the loop, which is returned.

        What the loop itself watches is called here as well, which saves the loop a turn for each read. Not while callbacks wait:
        those are due before what happens now.
        """
        at_once = not self._ready
        ends = math.inf if timeout is None else self.now + timeout if timeout > 0 else 0.0
        timers = len(self._timers)
        ready: list[tuple[selectors.SelectorKey, int]] = []
        while True:
            try:
                happened = self._epoll.poll(timeout, self._most)
            except InterruptedError:
                return []
            self.now = now = time.monotonic()
            if len(happened) > CROWD:
                happened = self.turns.take(happened)
                self._most = _AT_ONCE_IN_A_CROWD
            elif self._most != _AT_ONCE:
                self.turns.rest()
                self._most = _AT_ONCE
            if not happened:
                return ready
            self._dispatch(happened, ready, at_once=at_once)
            if ready or self._ready or len(self._timers) != timers or now >= ends:
                return ready
            timeout = None if ends == math.inf else ends - now

    def _dispatch(
        self, happened: list[tuple[int, int]], ready: list[tuple[selectors.SelectorKey, int]], *, at_once: bool
    ) -> None:
        handlers = self._handlers
        fresh = self._fresh
        fresh.clear()
        for descriptor, events in happened:
            handler = handlers.get(descriptor)
            if descriptor in fresh:  # closed and opened again meanwhile: what happened, happened to the one before
                continue
            if handler is not None:
                try:
                    handler(events)
                except Exception as error:  # noqa: BLE001  as the loop does: the others go on
                    self._complain({"message": "a connection that passes through failed", "exception": error})
            elif (key := self._keys.get(descriptor)) is not None:
                if at_once and events == READ and key.events == selectors.EVENT_READ and type(key.data) is tuple:
                    callback = key.data[0]
                    if callback is not None and not callback.cancelled():
                        _call(callback)
                        continue
                occurred = (selectors.EVENT_WRITE if events & ~READ else 0) | (selectors.EVENT_READ if events & ~WRITE else 0)
                if occurred & key.events:
                    ready.append((key, occurred & key.events))

    @override
    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = _descriptor(fileobj)
        if not events or events & ~(selectors.EVENT_READ | selectors.EVENT_WRITE):
            raise ValueError(f"invalid events: {events!r}")
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} (FD {descriptor}) is already registered")
        self._epoll.register(descriptor, _epoll_mask(events))
        self._fresh.add(descriptor)
        self._keys[descriptor] = key = selectors.SelectorKey(fileobj, descriptor, events, data)
        return key

    @override
    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        try:
            key = self._keys.pop(self._lookup(fileobj))
        except KeyError:
            raise KeyError(f"{fileobj!r} is not registered") from None
        with contextlib.suppress(OSError):  # it may have been closed
            self._epoll.unregister(key.fd)
        return key

    @override
    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        known = self._keys[self._lookup(fileobj)]
        if known.events != events:
            self._epoll.modify(known.fd, _epoll_mask(events))
        self._keys[known.fd] = key = known._replace(events=events, data=data)
        return key

    @override
    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._map[fileobj]

    @override
    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._map

    @override
    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()
        self._events.clear()
        self._handlers.clear()

    def _lookup(self, fileobj: Any) -> int:
        try:
            return _descriptor(fileobj)
        except ValueError:  # closed before it was taken out
            for key in self._keys.values():
                if key.fileobj is fileobj:
                    return key.fd
            raise


class _KeysByFile(Mapping[Any, selectors.SelectorKey]):
    """What is registered, by file object or by descriptor: asyncio looks it up at each wait."""

    def __init__(self, keys: dict[int, selectors.SelectorKey], look_up: Callable[[Any], int]) -> None:
        self._keys = keys
        self._look_up = look_up

    def __getitem__(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.get(self._look_up(fileobj))
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        return key

    def get(self, fileobj: Any, default: Any = None) -> Any:
        return self._keys.get(self._look_up(fileobj), default)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _descriptor(fileobj: Any) -> int:
    found = fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
    if found < 0:
        raise ValueError(f"invalid file descriptor: {found}")
    return found


def _epoll_mask(events: int) -> int:
    return (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0)


class LoopPoller:
    """A poller that leaves the watching to the loop.

    Args:
        loop: watches the sockets.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turns = ClientTurns()
        self._loop = loop
        self._events: dict[int, int] = {}

    @property
    def now(self) -> float:
        """Implements `Poller`."""
        return self._loop.time()

    def watch(self, descriptor: int, events: int, handler: Handler) -> None:
        """Implements `Poller`."""
        known = self._events.get(descriptor, 0)
        self._events[descriptor] = events
        if events & READ:
            self._loop.add_reader(descriptor, handler, READ)
        elif known & READ:
            self._loop.remove_reader(descriptor)
        if events & WRITE:
            self._loop.add_writer(descriptor, handler, WRITE | GONE)  # the loop does not tell whether it failed
        elif known & WRITE:
            self._loop.remove_writer(descriptor)

    def forget(self, descriptor: int) -> None:
        """Implements `Poller`."""
        if self._events.pop(descriptor, None) is not None:
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)

    def drop(self, connection: socket.socket) -> None:
        """Implements `Poller`."""
        self.forget(connection.fileno())
        connection.close()
