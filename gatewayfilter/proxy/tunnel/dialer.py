"""The dialer: connects to origins for relayed connections, by happy eyeballs or through a parent proxy."""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayfilter.proxy.tunnel.happy_eyeballs import Race, race_of
from gatewayfilter.proxy.tunnel.poller import READ, poller_of
from gatewayfilter.proxy.tunnel.reach_guard import InternalAddressError, ReachGuard
from gatewayfilter.proxy.tunnel.resolver import AddressInfo, addresses_of, known_addresses
from gatewayfilter.proxy.tunnel.timeouts import Deadlines

CONNECT_S: Final = 30.0
"""Longest time for resolving a name and connecting; the kernel alone would try for more than two minutes."""
_MOST_HEAD_BYTES: Final = 65_536


class ParentRefusedError(OSError):
    """The parent proxy does not connect us."""


@dataclass(frozen=True, slots=True)
class Way:
    """A connection to an origin.

    Attributes:
        socket: connected and non-blocking; no poller watches it.
        first: what the origin already sent.
    """

    socket: socket.socket
    first: bytes = b""


type Done = Callable[[Way | OSError], None]
"""Called once with the result of an attempt."""


class Dialer:
    """Makes connections to origins.

    Args:
        loop: the event loop.
        parent: host and port of the parent proxy, `None` without one.
        authorization: the Proxy-Authorization for it, `b""` for none.
        leads_back: whether an established connection leads to this proxy itself.
        guard: admits the addresses to which a client may be connected; `None` any.
        connect_s: how long an attempt may take.

    Attributes:
        own_port: the only port at which `leads_back` is called; 0 for none.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        parent: tuple[str, int] | None = None,
        *,
        authorization: bytes = b"",
        leads_back: Callable[[socket.socket], bool] = lambda _: False,
        guard: ReachGuard | None = None,
        connect_s: float = CONNECT_S,
    ) -> None:
        self.loop = loop
        self.poller = poller_of(loop)
        self.parent = parent
        self.parent_fields = b"Proxy-Authorization: %b\r\n" % authorization if authorization else b""
        self.leads_back = leads_back
        self.guard = guard if parent is None else None  # where a parent connects to is the operator's word
        self.own_port = 0
        self.deadlines: Deadlines[Dial] = Deadlines(loop, connect_s, Dial.give_up)

    def dial(self, host: str, port: int, done: Done, prefer: str = "", *, client: str = "") -> "Dial":
        """Begins to connect to a host, given by name or address.

        Args:
            host: an IPv6 literal may stand in brackets.
            port: TCP port.
            done: called with the way; with a `TimeoutError` when it took longer than `CONNECT_S`, with another `OSError` when
                no address of it can be connected to, when the parent refuses, or when it is this proxy; with an
                `InternalAddressError` when this client must not reach it. Called later, unless that was clear at once.
            prefer: the address that the client itself had chosen: it goes first when the name really has it.
            client: the address of the client; without it only public addresses are connected to.
        """
        return Dial(self, host, port, done, prefer, client)


class Dial:
    """One attempt, from the name to the connection."""

    __slots__ = ("_client", "_dialer", "_done", "_host", "_port", "_prefer", "_race", "_request", "_task")

    def __init__(self, dialer: Dialer, host: str, port: int, done: Done, prefer: str, client: str) -> None:
        self._client = client
        self._dialer = dialer
        self._host = host
        self._port = port
        self._done: Done | None = done
        self._prefer = prefer
        self._race: Race | None = None
        self._task: asyncio.Task[None] | None = None
        self._request: _ParentRequest | None = None

    def begin(self) -> None:
        """Resolves the name and connects."""
        dialer = self._dialer
        dialer.deadlines.add(self)
        host, port = dialer.parent or (self._host, self._port)
        try:
            found = known_addresses(dialer.loop, host, port)
        except OSError as error:
            self._end(error)
            return
        if found is None:
            # Not eagerly: what it ends with must not come before this has returned.
            self._task = asyncio.Task(self._look_up(host, port), loop=dialer.loop, eager_start=False)
        else:
            self._connect(found)

    def cancel(self) -> None:
        """Ends the attempt; `done` is not called."""
        self._done = None
        self._dialer.deadlines.remove(self)
        if self._task is not None:
            self._task.cancel()
        if self._race is not None:
            self._race.cancel()
        if self._request is not None:
            self._request.cancel()

    def give_up(self) -> None:
        """Ends the attempt because it took too long."""
        done = self._done
        self.cancel()
        if done is not None:
            done(TimeoutError(f"timed out after {self._dialer.deadlines.delay_s:.0f} seconds"))

    async def _look_up(self, host: str, port: int) -> None:
        try:
            found = await addresses_of(self._dialer.loop, host, port)
        except OSError as error:
            self._task = None
            self._end(error)
            return
        self._task = None
        self._connect(found)

    def _connect(self, found: Sequence[AddressInfo]) -> None:
        guard = self._dialer.guard
        if guard is not None:
            try:
                found = guard.admitted(self._client, self._host, found, destination=self._prefer)
            except InternalAddressError as error:
                self._end(error)
                return
        self._race = race_of(self._dialer.loop, _ordered(found, self._prefer), self._connected)
        self._race.try_next()

    def _connected(self, made: socket.socket | OSError) -> None:
        self._race = None
        if isinstance(made, OSError):
            self._end(made)
            return
        dialer = self._dialer
        port = self._port if dialer.parent is None else dialer.parent[1]
        if port == dialer.own_port and dialer.leads_back(made):
            made.close()
            self._end(OSError(errno.ELOOP, "the connection leads back to the filter"))
        elif dialer.guard is not None and dialer.guard.leads_home(
            self._client, self._host, made.getsockname()[0], made.getpeername()[0]
        ):
            made.close()
            self._end(InternalAddressError())
        elif dialer.parent is None:
            self._end(Way(made))
        else:
            self._request = _ParentRequest(dialer, made, f"{self._host}:{self._port}".encode("ascii"), self._end)
            self._request.begin()

    def _end(self, found: Way | OSError) -> None:
        self._request = None
        self._dialer.deadlines.remove(self)
        done, self._done = self._done, None
        if done is not None:
            done(found)


class _ParentRequest:
    """Requests a tunnel from a parent proxy."""

    __slots__ = ("_answer", "_dialer", "_done", "_made", "_target")

    def __init__(self, dialer: Dialer, made: socket.socket, target: bytes, done: Done) -> None:
        self._dialer = dialer
        self._made = made
        self._target = target
        self._done = done
        self._answer = b""

    def begin(self) -> None:
        request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (self._target, self._target, self._dialer.parent_fields)
        try:
            sent = self._made.send(request)
        except OSError as error:
            self._fail(error)
            return
        if sent < len(request):  # a new connection has room for more than a name can be long
            self._fail(ParentRefusedError("upstream proxy takes nothing"))
            return
        self._dialer.poller.watch(self._made.fileno(), READ, self._readable)

    def cancel(self) -> None:
        self._dialer.poller.drop(self._made)

    def _fail(self, error: OSError) -> None:
        self.cancel()
        self._done(error)

    def _readable(self, events: int) -> None:  # noqa: ARG002  the read shows what happened
        try:
            more = self._made.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        self._answer += more
        if b"\r\n\r\n" not in self._answer:
            if not more or len(self._answer) > _MOST_HEAD_BYTES:
                self._fail(ParentRefusedError("upstream proxy gave no answer"))
            return
        head, _, rest = self._answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.") or not head.partition(b" ")[2].startswith(b"2"):
            status_line = head.partition(b"\r\n")[0].decode("latin-1")[:100]
            self._fail(ParentRefusedError(f"upstream proxy refused: {status_line}"))
            return
        self._dialer.poller.forget(self._made.fileno())
        self._done(Way(self._made, rest))


def _ordered(found: Sequence[AddressInfo], prefer: str) -> Sequence[AddressInfo]:
    if not prefer:
        return found
    chosen = [info for info in found if info[4][0] == prefer]
    return [*chosen, *(info for info in found if info[4][0] != prefer)] if chosen else found
