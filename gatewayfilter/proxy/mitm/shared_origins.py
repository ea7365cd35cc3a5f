"""A keep-alive pool: idle connections to origins, kept when their client's connection ends, for the next client of the worker.

mitmproxy ties a connection to an origin to the client connection that it was opened for. A browser that comes back, or another
one, pays for a TCP and a TLS handshake again. Here an idle HTTP/1.1 connection is taken off the layers of its client with its
transport and its TLS state. For a client that needs a connection to the same origin, the event loop's `create_connection` returns
that transport, and the handshake that follows completes at once: mitmproxy's layers, hooks and checks run as for a new one.

| rule | why |
|---|---|
| same address, verified name, offered protocols; a peer address that this client may connect to now | policies differ by client |
| no request with a body or `Upgrade` passed over it, nor a login of the connection | no smuggled request, no NTLM user |
| never through a parent proxy, nor with a client certificate | those belong to a user |
| nothing came after the last response, not even in the kernel's buffer | responses must not be split between clients |
| the first request on it is safe to send again (RFC 9112 §9.3.1) | the origin may be about to close it |
"""

import asyncio
import select
import socket
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from mitmproxy.connection import Client, Connection, ConnectionState, Server
from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.tls import ServerTLSLayer, TlsEstablishedServerHook
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.tls import TlsData
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.fastpath.connection_handler import DetachedTransport
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader
from gatewayfilter.proxy.mitm.fastpath.steps import behind
from gatewayfilter.proxy.mitm.fastpath.tls_path import holds_data
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.sharing import Adopted, Key, Sharing, sharing_of
from gatewayfilter.proxy.mitm.tls_config import GatewayTlsConfig
from gatewayfilter.proxy.mitm.upstream import set_on
from gatewayfilter.proxy.tunnel.resolver import AddressInfo
from gatewayfilter.telemetry import Counters

MOST_IDLE_S: Final = 50.0
"""How long a connection is kept without a request; many origins close theirs after 60 or 75 seconds."""
MOST_AGE_S: Final = 600.0
"""How long after its handshake a connection is shared: its name is looked up and its certificate checked again after that."""
_MOST_OF_ONE: Final = 32
"""Connections kept for one origin; a browser opens 6, and a worker has many clients."""
_LENT_AFTER_S: Final = 5.0
"""How long a client must have sent nothing before its idle connection is given to another one."""
_SWEEP_S: Final = 5.0
_connecting: ContextVar[Server | None] = ContextVar("connecting", default=None)
"""The connection that the running task opens; mitmproxy has a task for each."""


@dataclass(slots=True, eq=False)
class _Parked(asyncio.Protocol):
    """An idle connection in the pool. Whatever its origin sends ends it."""

    pool: "SharedOrigins"
    key: Key
    transport: asyncio.Transport
    tls: Adopted
    since: float

    def data_received(self, data: bytes) -> None:  # noqa: ARG002  no request awaits it
        """Closes the connection: what comes now would be read as the response to the next client's request."""
        self.pool.drop(self)

    def eof_received(self) -> None:
        """Closes the connection, whose origin has closed its half."""
        self.pool.drop(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forgets the connection."""
        self.pool.drop(self)


@dataclass(slots=True)
class _Origin:
    """The connections to one origin: in the pool, and those of clients that are connected."""

    parked: list[_Parked] = field(default_factory=list)
    held: list[tuple[ConnectionHandler, Server]] = field(default_factory=list)


class SharedOrigins:
    """The addon that keeps idle connections to origins.

    Args:
        connections: the proxy's clients, by id.
        tls: has the TLS state of connections that were verified.
        most: connections that are kept at once; 0 keeps and shares none.
        counters: `origin_connections_shared`.
        clock: monotonic seconds.
    """

    name = "sharedorigins"

    def __init__(
        self,
        connections: Mapping[tuple[Any, ...] | str, ConnectionHandler],
        tls: GatewayTlsConfig,
        most: int,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._tls = tls
        self._most = most
        self._counters = counters
        self._clock = clock
        self._origins: dict[Key, _Origin] = {}
        self._parked: dict[_Parked, None] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Returns how many connections are kept."""
        return len(self._parked)

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Notes what connection the running task opens."""
        self.note_key(data.server, data.client)
        _connecting.set(data.server)

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Notes whose connection it is."""
        sharing = sharing_of(data.server)
        if sharing is not None and sharing.key is not None:
            if sharing.adopted is None:
                sharing.opened_at = self._clock()
            handler = self._connections[data.client.id]
            self._origins.setdefault(sharing.key, _Origin()).held.append((handler, data.server))

    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        """Forgets a connection that has ended, or was taken."""
        sharing = sharing_of(data.server)
        origin = self._origins.get(sharing.key) if sharing is not None and sharing.key is not None else None
        if origin is not None and sharing is not None and sharing.key is not None:
            origin.held = [one for one in origin.held if one[1] is not data.server]
            self._forget_if_empty(sharing.key)

    def client_disconnected(self, client: Client) -> None:
        """Takes the idle connections of a client that has left."""
        handler = self._connections.get(client.id)
        if handler is None or not self._most:
            return
        for server in list(handler.transports):
            if isinstance(server, Server) and (parked := self._detach(handler, server)) is not None:
                self._keep(parked)

    async def take(self, found: Sequence[AddressInfo]) -> asyncio.Transport | None:
        """Returns the transport of an idle connection for the connection that the running task opens, `None` to open one.

        Args:
            found: the addresses that it may lead to.
        """
        server = _connecting.get()
        sharing = sharing_of(server) if server is not None else None
        if sharing is None or sharing.key not in self._origins or not sharing.may_adopt:
            return None
        await asyncio.sleep(0)  # mitmproxy notes the task of a connection after it has begun, and expects it to wait
        return self.take_for(sharing, lambda: {info[4][0] for info in found})

    def take_for(self, sharing: Sharing, addresses: Callable[[], Container[str]]) -> asyncio.Transport | None:
        """Returns the transport of an idle connection with a key, which is noted as adopted; `None` where there is none.

        Args:
            sharing: what was noted on the connection that is to be opened.
            addresses: returns those that it may lead to.
        """
        origin = self._origins.get(sharing.key) if sharing.key is not None else None
        if origin is None:
            return None
        wanted = addresses()
        while (taken := self._next_of(origin, wanted)) is not None:
            if self._is_usable(taken):
                sharing.adopted, sharing.opened_at = taken.tls, taken.tls.opened_at
                self._counters.add("origin_connections_shared")
                return taken.transport
            self._close(taken)
        return None

    def may_have(self, key: Key | None) -> bool:
        """Returns whether there is a connection with a key, in the pool or of a client."""
        return key in self._origins

    def note_key(self, server: Server, client: Client) -> None:
        """Notes what another connection must equal to be shared with one."""
        sharing = sharing_of(server)
        if sharing is not None and self._most and server.address is not None and server.transport_protocol == "tcp":
            sharing.key = _key_of(server, client)

    def drop(self, parked: _Parked) -> None:
        """Closes a connection that is kept."""
        if parked in self._parked:
            self._remove(parked)
            self._close(parked)

    def close(self) -> None:
        """Closes all connections that are kept, and keeps no more."""
        self._most = 0
        for parked in list(self._parked):
            self.drop(parked)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _next_of(self, origin: _Origin, addresses: Container[str]) -> _Parked | None:
        for parked in reversed(origin.parked):  # the one used last is the least likely to be closed
            if _peer_of(parked.transport) in addresses:
                self._remove(parked)
                return parked
        for handler, server in origin.held:
            idle_s = time.time() - handler.timeout_watchdog.last_activity
            if idle_s > _LENT_AFTER_S and server.peername is not None and server.peername[0] in addresses:
                io = handler.transports.get(server)
                taken = self._detach(handler, server)
                if taken is not None and io is not None and io.handler is not None:
                    io.handler.cancel("taken by another client")
                    return taken
        return None

    def _is_usable(self, parked: _Parked) -> bool:
        now = self._clock()
        young = now - parked.since < MOST_IDLE_S and now - parked.tls.opened_at < MOST_AGE_S
        return young and not parked.transport.is_closing() and not _is_readable(parked.transport)

    def _detach(self, handler: ConnectionHandler, server: Server) -> _Parked | None:
        """Takes an idle connection off its client, `None` if it is in use or not to be shared."""
        sharing, io = sharing_of(server), handler.transports.get(server)
        if sharing is None or sharing.key is None or sharing.bound or sharing.http_layer is None:
            return None
        if io is None or not _is_at_rest(server, io):
            return None
        found = sharing.http_layer.connections.get(server)
        made: SSL.Connection | None = None
        if type(found) is ServerTLSLayer:
            made = found.tls
            if found.tunnel_state is not TunnelState.OPEN or found._paused is not None or made is None or holds_data(made):  # noqa: SLF001
                return None
            found = found.child_layer
        if found is None or server.tls is not (made is not None) or not _is_idle(behind(found)):
            return None
        if self._clock() - sharing.opened_at >= MOST_AGE_S:
            return None
        verified: tuple[tuple[object, ...], float] | None = ((), 0.0) if made is None else self._tls.release(server, made)
        if verified is None:
            return None
        writer = io.writer
        assert isinstance(writer, asyncio.StreamWriter)
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        parked = _Parked(self, sharing.key, transport, Adopted(server, made, *verified, sharing.opened_at), self._clock())
        transport.set_protocol(parked)
        set_on(writer, "_transport", DetachedTransport())  # it closes its transport when it is collected
        sharing.http_layer = sharing.adopted = None
        server.state = ConnectionState.CLOSED  # until its layers get the event
        return parked

    def _keep(self, parked: _Parked) -> None:
        origin = self._origins.setdefault(parked.key, _Origin())
        if len(origin.parked) >= _MOST_OF_ONE:
            self.drop(origin.parked[0])
            origin = self._origins.setdefault(parked.key, _Origin())
        elif len(self._parked) >= self._most:
            self.drop(next(iter(self._parked)))
            origin = self._origins.setdefault(parked.key, _Origin())
        origin.parked.append(parked)
        self._parked[parked] = None
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _remove(self, parked: _Parked) -> None:
        self._parked.pop(parked, None)
        self._origins[parked.key].parked.remove(parked)
        self._forget_if_empty(parked.key)

    def _forget_if_empty(self, key: Key) -> None:
        origin = self._origins.get(key)
        if origin is not None and not origin.parked and not origin.held:
            del self._origins[key]

    def _close(self, parked: _Parked) -> None:
        if parked.tls.made is not None:
            self._tls.end(parked.tls.peer, parked.tls.made)
        parked.transport.abort()

    def _sweep(self) -> None:
        now = self._clock()
        for parked in [one for one in self._parked if now - one.since >= MOST_IDLE_S]:
            self.drop(parked)
        self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep) if self._parked else None


_start_handshake = ServerTLSLayer.start_handshake
_OF_HANDSHAKES: Final = ("certificate_list", "timestamp_tls_setup", "alpn", "cipher", "tls_version")


def start_handshake(self: ServerTLSLayer) -> layer.CommandGenerator[None]:
    """Stands in for `ServerTLSLayer.start_handshake`: a connection from the pool has its handshake behind it."""
    sharing = sharing_of(self.conn)
    if sharing is None or sharing.adopted is None:
        yield from _start_handshake(self)
        return
    yield from self.start_tls()
    take_over(self.conn, sharing.adopted.before)
    yield TlsEstablishedServerHook(TlsData(self.conn, self.context, self.tls))
    yield from self._handshake_finished(None)


def take_over(conn: Connection, before: Server) -> None:
    """Sets on a connection from the pool what its handshake had set when another client had it."""
    had = vars(before)
    vars(conn).update({name: had[name] for name in _OF_HANDSHAKES})


def _key_of(server: Server, client: Client) -> Key:
    """Returns what two connections must have in common to be shared: tls_config.py sets name and protocols by the same rule."""
    if not server.tls:
        return (server.address, None, ())
    assert server.address is not None
    name = server.sni if server.sni is not None else client.sni or server.address[0]
    return (server.address, name, tuple(server.alpn_offers or client.alpn_offers or ()))


def _is_at_rest(server: Server, io: ConnectionIO) -> bool:
    """Returns whether a connection is open, and nothing is on its way in either direction."""
    writer: object = io.writer
    reader: object = io.reader
    if server.state is not ConnectionState.OPEN or server.error or server.via is not None or io.handler is None:
        return False
    if not isinstance(writer, asyncio.StreamWriter) or not isinstance(reader, DirectReader) or not reader.at_rest:
        return False
    transport = writer.transport
    return (
        isinstance(transport, asyncio.Transport)
        and not transport.is_closing()
        and transport.is_reading()
        and not transport.get_write_buffer_size()
    )


def _is_idle(client: object) -> bool:
    """Returns whether the HTTP/1.1 side of a connection has answered, and awaits the next request."""
    return (
        type(client) is GatewayHttp1Client
        and client._paused is None  # noqa: SLF001
        and client.has_answered
        and client.stream_id is None
        and client.request is None
        and client.state == client.read_headers
        and not client.buf
    )


def _peer_of(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _is_readable(transport: asyncio.Transport) -> bool:
    """Returns whether the kernel holds data of a connection, or its end."""
    connected: socket.socket | None = transport.get_extra_info("socket")
    if connected is None:
        return True
    with suppress(OSError, ValueError):
        poller = select.poll()
        poller.register(connected.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(poller.poll(0))
    return True
