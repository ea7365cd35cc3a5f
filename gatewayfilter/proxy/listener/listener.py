"""The worker's listener: accepts connections, begins their handshakes, and counts and limits them.

mitmproxy spends milliseconds on a new connection and tens of microseconds on each read of it. A connection that is relayed unread
or refused never reaches it (docs/proxy.md has the figures).
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
from typing import Final

from gatewayfilter.addresses.client_network import turn_names
from gatewayfilter.proxy.listener.connection_policy import ConnectionPolicy
from gatewayfilter.proxy.listener.handshake import HELLO_S, SILENT_S, ClientHandshake, HandshakeServices
from gatewayfilter.proxy.listener.tunnel_writer import AnsweredWriter
from gatewayfilter.proxy.pages.block_page import BlockPages
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
_BEHIND_S: Final = 1.0
"""Backlog above which new connections of clients with many are refused. Those of all that have any are refused above four times
as much, where no client counts with more than a few sockets: one client alone must not have others refused."""
_FEW: Final = 6
"""Connections that a client may have during an overload: a browser opens six to a host."""
_ACCEPTED_AT_ONCE: Final = 64
_RUSH_S: Final = 0.002
"""Connections that come after less than this are a rush, in which many are accepted at once."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections a worker takes, and for how long.

    Attributes:
        idle_s: how long a connection may send nothing.
        most: connections at once.
        most_of_one: connections of one client address at once. Those of one IPv6 network (/64), of which a device may take
            as many addresses as it likes, are half of all at most.
    """

    idle_s: float = 600.0
    most: int = 8192
    most_of_one: int = 1024


@dataclass(frozen=True, slots=True)
class Admission:
    """Who may use the proxy.

    Attributes:
        user_of: returns the proxy user of a Proxy-Authorization header that was right before, `""` for none.
        admits: whether a client may use the proxy, by its Proxy-Authorization header (`""` without) and address.
    """

    user_of: Callable[[str], str]
    admits: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class OpenTunnel:
    """A tunnel whose CONNECT the listener has read.

    Attributes:
        address: where it leads.
        answered: the CONNECT was answered, too.
    """

    address: tuple[str, int]
    answered: bool


@dataclass(frozen=True, slots=True)
class Handlers:
    """What serves the connections that are not relayed: mitmproxy.

    Attributes:
        stream: serves a connection from its first byte.
        tunnel: serves what is inside a tunnel, given its socket and what came behind the CONNECT; closes the socket.
        takes_tunnels: whether that can be done now; else the CONNECT is read by mitmproxy as well.
    """

    stream: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    tunnel: Callable[[socket.socket, bytes, OpenTunnel], Awaitable[None]]
    takes_tunnels: Callable[[], bool]


class Listener:
    """Listens, and gives each connection to the relay or to mitmproxy once its handshake has been read.

    Args:
        mode: `proxy.mode`.
        handlers: of mitmproxy, for connections.
        policy: decides connections.
        relays: takes what passes through.
        dialer: connects to origins.
        admission: who may use the proxy.
        limits: how many connections, and for how long.
        pages: the answers to tunnels whose origin cannot be reached.
    """

    def __init__(
        self,
        mode: str,
        handlers: Handlers,
        policy: ConnectionPolicy,
        relays: RelayPool,
        dialer: Dialer,
        *,
        admission: Admission,
        limits: Limits,
        pages: BlockPages,
    ) -> None:
        self.loop = loop = relays.loop
        self.poller = relays.poller
        self.dialer = dialer
        self.relays = relays
        self.sockets: tuple[socket.socket, ...] = ()
        self._counters = relays.counters
        self._turns = relays.poller.turns
        self._turn_name = turn_names()
        self._families: dict[socket.socket, int] = {}
        self._handlers = handlers
        self._admits = admission.admits
        self._limits = limits
        self._transparent = mode == "transparent"
        self._handshakes: set[ClientHandshake] = set()
        self._services = HandshakeServices(
            policy=policy,
            relays=relays,
            poller=relays.poller,
            dialer=dialer,
            undecided=self._handshakes,
            silent=Deadlines(loop, SILENT_S, ClientHandshake.out_of_time),
            in_hello=Deadlines(loop, HELLO_S, ClientHandshake.out_of_time),
            transparent=self._transparent,
            # TLS to a parent would need a relay that encrypts: such connections pass through mitmproxy (tls_failures.py).
            can_splice=not mode.startswith("upstream:https:"),
            user_of=admission.user_of,
            admits=self._may_use,
            pages=pages,
            hand_over=self.hand_over,
            closed=self._closed,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[str] = Counter()
        self._all = 0
        self._accepted_at = 0.0
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def open_connections(self) -> int:
        """How many connections of clients are open: in their handshake, relayed or at mitmproxy."""
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
                    made.append(_open_socket(family, address))
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
        """Stops to listen, and drops connections in their handshake. What passes through goes on."""
        for listener in self.sockets:
            self.poller.drop(listener)
        self.sockets = ()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for handshake in list(self._handshakes):
            handshake.drop()

    def hand_over(self, handshake: ClientHandshake) -> None:
        """Gives a connection to mitmproxy, with what was read of it."""
        task = self.loop.create_task(self._serve(handshake))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _may_use(self, authorization: str, address: str) -> bool:
        """Returns whether a client may be relayed: what else is refused, mitmproxy answers."""
        return (self._transparent or not _is_public(address)) and self._admits(authorization, address)

    def _closed(self, address: str) -> None:
        """Counts a connection of a client as closed."""
        self._all -= 1
        for counted in _counted_as(address):
            self._open[counted] -= 1
            if self._open[counted] <= 0:
                del self._open[counted]

    def _watch(self, listener: socket.socket) -> None:
        self.poller.watch(listener.fileno(), READ, lambda _: self._accept(listener))

    def _accept(self, listener: socket.socket) -> None:
        # One, not all that wait: a call too many costs more than a further event beside the others. In a rush all of them: those
        # that wait in the kernel take no turns, and are not counted as backlog.
        now = self.poller.now
        rush = now - self._accepted_at < _RUSH_S
        self._accepted_at = now
        for _ in range(_ACCEPTED_AT_ONCE if rush else 1):
            if not self._accept_one(listener):
                return

    def _accept_one(self, listener: socket.socket) -> bool:
        """Takes a connection; returns whether there was one."""
        try:
            number, peer = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  `accept` determines the family again
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            if error.errno in _NO_ROOM:
                _log.error("no more connections can be taken: %s", error.strerror)
                self.poller.forget(listener.fileno())
                self.loop.call_later(_REST_S, self._accept_again, listener)
            return False
        self._take(socket.socket(self._families[listener], socket.SOCK_STREAM, socket.IPPROTO_TCP, number), peer[0])
        return True

    def _accept_again(self, listener: socket.socket) -> None:
        if listener in self.sockets:
            self._watch(listener)

    def _take(self, client: socket.socket, address: str) -> None:
        self._counters.add("connections")
        names = _counted_as(address)
        if self._is_full(names):
            self._counters.add("connections_refused")
            client.close()
            return
        client.setblocking(False)
        shed = self._turns.behind_s > _BEHIND_S and self._has_its_share(names)
        self._all += 1
        for counted in names:
            self._open[counted] += 1
        if shed:
            self._counters.add("overload_refused")
        owner = None if shed else self._turns.own(client.fileno(), self._turn_name(address))
        handshake = ClientHandshake(self._services, client, address, owner)
        self._handshakes.add(handshake)
        handshake.begin()

    def _is_full(self, names: tuple[str, ...]) -> bool:
        limits, opened = self._limits, self._open
        if self._all >= limits.most or opened[names[0]] >= limits.most_of_one:
            return True
        return len(names) > 1 and opened[names[1]] >= max(limits.most_of_one, limits.most // 2)

    def _has_its_share(self, names: tuple[str, ...]) -> bool:
        """Returns whether a client has as many connections as it may have during an overload."""
        opened = self._open[names[0]]
        if self._turns.spread_s > 4 * _BEHIND_S:
            return opened > 0
        return opened >= max(_FEW, self._all // max(len(self._open), 1))

    async def _serve_tunnel(self, handshake: ClientHandshake, tunnel: OpenTunnel) -> None:
        descriptor = handshake.client.fileno()
        try:
            await self._handlers.tunnel(handshake.client, handshake.data[handshake.head_bytes :], tunnel)
        finally:
            self._turns.disown(descriptor, handshake.owner)
            self._closed(handshake.address)

    async def _serve(self, handshake: ClientHandshake) -> None:
        if (opened := handshake.opened) is not None and self._handlers.takes_tunnels():
            await self._serve_tunnel(handshake, OpenTunnel((opened.host, opened.port), handshake.answered))
            return
        reader = asyncio.StreamReader(loop=self.loop)
        descriptor = handshake.client.fileno()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                if writer.get_extra_info("peername") is None:  # reset meanwhile: mitmproxy's hooks would fail
                    writer.transport.abort()
                    return
                # Not sooner: mitmproxy must wait for its first bytes once, or it reads them before it has noted who reads.
                # What the socket has further comes later than this, with the next poll of all sockets.
                if handshake.data:
                    self.loop.call_soon(reader.feed_data, handshake.data)
                if handshake.answered:
                    await self._handlers.stream(reader, AnsweredWriter(writer, protocol, reader, self.loop))
                else:
                    await self._handlers.stream(reader, writer)
            finally:
                self._turns.disown(descriptor, handshake.owner)
                self._closed(handshake.address)

        protocol = asyncio.StreamReaderProtocol(reader, handle, loop=self.loop)
        try:
            await self.loop.connect_accepted_socket(lambda: protocol, handshake.client)
        except OSError:
            self._turns.disown(descriptor, handshake.owner)
            handshake.client.close()
            self._closed(handshake.address)

    def _sweep(self) -> None:
        now = self.loop.time()
        for handshake in list(self._handshakes):
            if handshake.expired(now, self._limits.idle_s):
                handshake.drop()
        self._sweeper = self.loop.call_later(_SWEEP_S, self._sweep)


def _open_socket(family: int, address: tuple[object, ...]) -> socket.socket:
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
