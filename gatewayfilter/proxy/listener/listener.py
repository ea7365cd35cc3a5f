"""The worker's listener: takes connections in, finds out whose they are, and keeps count of them.

mitmproxy spends milliseconds on a new connection and tens of microseconds on each read of it. A connection that ends in passing
bytes through, or in a refusal, never gets there (docs/proxy.md has the figures).
"""

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Protocol

from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Verdict
from gatewayfilter.proxy.listener.handshake import HELLO_S, SILENT_S, ClientHandshake
from gatewayfilter.proxy.tunnel.dialer import Dialer
from gatewayfilter.proxy.tunnel.poller import READ
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.proxy.tunnel.timeouts import Deadlines

_log = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_REST_S: Final = 0.5
"""How long nothing is accepted after the system had no descriptors left."""
_SWEEP_S: Final = 5.0
_NETWORK_BITS: Final = 64
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Decision(Protocol):
    """What the door asks: `HostPolicy`."""

    def judge(self, client: str, target: str, name: str = "") -> HostVerdict:
        """Returns what to do with a connection."""
        ...

    def shows_page(self, client: str, host: str) -> bool:
        """Returns whether a blocked host is answered with a page."""
        ...

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int) -> None:
        """Counts and logs a connection that no request will be logged of."""
        ...


class InterceptAll:
    """Leaves every connection to mitmproxy."""

    verdict: Final = HostVerdict(HostAction.INTERCEPT, Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True))

    def judge(self, client: str, target: str, name: str = "") -> HostVerdict:  # noqa: ARG002  the protocol
        """Returns: look at it."""
        return self.verdict

    def shows_page(self, client: str, host: str) -> bool:  # noqa: ARG002  the protocol
        """Returns True."""
        return True

    def record(self, client: str, host: str, port: int, verdict: Verdict, started_ns: int) -> None:
        """Does nothing: there is never anything to record."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker puts up with.

    Attributes:
        idle_s: how long a connection may say nothing.
        most: connections at once.
        most_of_one: connections of one client address at once. Those of one IPv6 network (/64), of which a device may take
            as many addresses as it likes, are half of all at most.
    """

    idle_s: float = 600.0
    most: int = 8192
    most_of_one: int = 1024


class Listener:
    """Listens, and parts the connections between the relay and mitmproxy.

    Args:
        mode: `proxy.mode`.
        handle: mitmproxy's handler of a connection.
        decision: says what becomes of a host.
        relays: takes what passes through.
        dialer: connects to origins.
        admits: whether a client may use the proxy, by its Proxy-Authorization header (`""` without) and address.
        limits: how many connections, and for how long.
    """

    look: Final = InterceptAll.verdict

    def __init__(
        self,
        mode: str,
        handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        decision: Decision,
        relays: RelayPool,
        dialer: Dialer,
        *,
        admits: Callable[[str, str], bool],
        limits: Limits,
    ) -> None:
        self.loop = relays.loop
        self.poller = relays.poller
        self.dialer = dialer
        self.silent: Deadlines[ClientHandshake] = Deadlines(self.loop, SILENT_S, ClientHandshake.out_of_time)
        self.speaking: Deadlines[ClientHandshake] = Deadlines(self.loop, HELLO_S, ClientHandshake.out_of_time)
        self.transparent = mode == "transparent"
        # TLS to a parent would need a relay that encrypts: such connections pass through mitmproxy (tls_failures.py).
        self.can_splice = not mode.startswith("upstream:https:")
        self.decision = decision
        self.relays = relays
        self.counters = relays.counters
        self.sockets: tuple[socket.socket, ...] = ()
        self._families: dict[socket.socket, int] = {}
        self._handle = handle
        self._admits = admits
        self._limits = limits
        self._handshakes: set[ClientHandshake] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[str] = Counter()
        self._all = 0
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def open_connections(self) -> int:
        """How many connections of clients there are, whoever has them."""
        return self._all

    def listen(self, host: str, port: int) -> None:
        """Starts to listen. Every worker may listen on the same address: the kernel spreads connections over them.

        Raises:
            OSError: the address cannot be listened on.
        """
        hosts = [host, "0.0.0.0"] if host == "::" else [host]  # noqa: S104  `::` is IPv6 alone here
        made: list[socket.socket] = []
        try:
            for one in hosts:
                found = socket.getaddrinfo(one, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                for family, address in dict.fromkeys((info[0], info[4]) for info in found):
                    made.append(_listener(family, address))
                    port = port or int(made[-1].getsockname()[1])
        except BaseException:
            for listener in made:
                listener.close()
            raise
        self.sockets = tuple(made)
        self._families = {listener: listener.family for listener in made}
        self.dialer.own_port = port
        for listener in made:
            self._watch(listener)
        self._sweeper = self.loop.call_later(_SWEEP_S, self._sweep)

    def close(self) -> None:
        """Stops to listen, and drops what has not said yet what it wants. What passes through goes on."""
        for listener in self.sockets:
            self.poller.drop(listener)
        self.sockets = ()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for handshake in list(self._handshakes):
            handshake.drop()

    def admits(self, authorization: str, address: str) -> bool:
        """Returns whether a client may be served without mitmproxy having a look at it first."""
        return (self.transparent or not _is_public(address)) and self._admits(authorization, address)

    def forget_limits(self, handshake: ClientHandshake) -> None:
        """Lifts the limits of an arrival whose tunnel has been decided."""
        self.silent.remove(handshake)
        self.speaking.remove(handshake)

    def hand_over(self, handshake: ClientHandshake, *, answered: bool) -> None:
        """Gives a connection to mitmproxy, with what was read of it.

        Args:
            handshake: the connection.
            answered: its CONNECT has been answered already: mitmproxy's own answer is kept back.
        """
        task = self.loop.create_task(self._serve(handshake, answered=answered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def left(self, handshake: ClientHandshake, *, ended: bool = True) -> None:
        """Forgets an arrival whose fate is known; `ended` when the connection is closed."""
        if handshake in self._handshakes:
            self._handshakes.discard(handshake)
            if ended:
                self.ended(handshake.address)

    def ended(self, address: str) -> None:
        """Takes note that a connection of a client has been closed."""
        self._all -= 1
        for counted in _counted_as(address):
            self._open[counted] -= 1
            if self._open[counted] <= 0:
                del self._open[counted]

    def _watch(self, listener: socket.socket) -> None:
        self.poller.watch(listener.fileno(), READ, lambda _: self._accept(listener))

    def _accept(self, listener: socket.socket) -> None:
        # One, not all that wait: to ask once too often costs more than to be told again beside the other events.
        try:
            number, peer = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  as `accept`, which asks for all below
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno in _NO_ROOM:
                _log.error("no more connections can be taken: %s", error.strerror)
                self.poller.forget(listener.fileno())
                self.loop.call_later(_REST_S, self._accept_again, listener)
            return
        self._take(socket.socket(self._families[listener], socket.SOCK_STREAM, socket.IPPROTO_TCP, number), peer[0])

    def _accept_again(self, listener: socket.socket) -> None:
        if listener in self.sockets:
            self._watch(listener)

    def _take(self, client: socket.socket, address: str) -> None:
        self.counters.add("connections")
        names = _counted_as(address)
        if self._is_full(names):
            self.counters.add("connections_refused")
            client.close()
            return
        client.setblocking(False)
        self._all += 1
        for counted in names:
            self._open[counted] += 1
        handshake = ClientHandshake(self, client, address)
        self._handshakes.add(handshake)
        handshake.begin()

    def _is_full(self, names: tuple[str, ...]) -> bool:
        limits, opened = self._limits, self._open
        if self._all >= limits.most or opened[names[0]] >= limits.most_of_one:
            return True
        return len(names) > 1 and opened[names[1]] >= max(limits.most_of_one, limits.most // 2)

    async def _serve(self, handshake: ClientHandshake, *, answered: bool) -> None:
        reader = asyncio.StreamReader(loop=self.loop)

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                if writer.get_extra_info("peername") is None:  # reset meanwhile: mitmproxy's hooks would fail
                    writer.transport.abort()
                    return
                if answered:
                    _keep_back(writer)
                # Not sooner: mitmproxy must wait for its first bytes once, or it reads them before it has noted who reads.
                # What the socket has further comes later than this, with the next look at all sockets.
                self.loop.call_soon(reader.feed_data, handshake.data)
                await self._handle(reader, writer)
            finally:
                self.ended(handshake.address)

        protocol = asyncio.StreamReaderProtocol(reader, handle, loop=self.loop)
        try:
            await self.loop.connect_accepted_socket(lambda: protocol, handshake.client)
        except OSError:
            handshake.client.close()
            self.ended(handshake.address)

    def _sweep(self) -> None:
        now = self.loop.time()
        for handshake in list(self._handshakes):
            if handshake.expired(now, self._limits.idle_s):
                handshake.drop()
        self._sweeper = self.loop.call_later(_SWEEP_S, self._sweep)


def _listener(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is accepted inherits it
        made.setblocking(False)
        made.bind(address)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def _keep_back(writer: asyncio.StreamWriter) -> None:
    """Keeps the answer to a CONNECT back that the client has had already; a refusal ends the connection."""
    write = writer.write

    def first(data: bytes) -> None:
        writer.write = write  # type: ignore[method-assign]
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.") and head[8:12] == b" 200":
            if rest:
                write(rest)
        else:
            writer.transport.abort()

    writer.write = first  # type: ignore[method-assign, assignment]


@lru_cache(maxsize=4096)
def _counted_as(address: str) -> tuple[str, ...]:
    """Returns what a client's connections are counted under: its address and, for IPv6, its network."""
    if ":" not in address:
        return (address,)
    network = int(IPv6Address(address.partition("%")[0])) >> _NETWORK_BITS
    return address, f"{network:x}/64"


@lru_cache(maxsize=4096)
def _is_public(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_global
    except ValueError:
        return True
