"""The connections to origins that one client connection holds: a fair limit, and closing those that are idle.

mitmproxy allows five connections to an address for each client connection and lets the next request wait without end: six
event streams over one HTTP/2 connection, or six sites through a parent proxy, and the client hangs. It keeps each connection
until the client goes, keeps closed ones in its table, and answers every later request with the error of the first.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final

from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.proxy import commands, layer, tunnel
from mitmproxy.proxy.layers.http import GetHttpConnection, HttpLayer
from mitmproxy.proxy.layers.http._http1 import Http1Connection
from mitmproxy.proxy.layers.http._http2 import Http2Connection
from mitmproxy.proxy.server import ConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.sharing import Sharing, note_sharing
from gatewayfilter.proxy.mitm.stale_retry import is_retryable

_MOST_AT_ONCE: Final = 16
"""Connections of one client connection to one address before the next has to wait; browsers open 6 themselves."""
_PATIENCE_S: Final = 1.0
_MOST_IDLE: Final = 8
"""Idle connections that one client connection keeps open; a client that talks to many sites over one has one for each."""


class FairSemaphore:
    """A limit with a time-out: after `_PATIENCE_S` a waiting request goes ahead. Stands in for a semaphore."""

    def __init__(self) -> None:
        self._open = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._open >= _MOST_AT_ONCE:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await asyncio.wait((turn,), timeout=_PATIENCE_S)
            finally:
                turn.cancel()  # a task that does not wait any more must not use up another's turn
        self._open += 1

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def enter_at_once(self) -> bool:
        """Enters unless that would have to wait. Returns whether it did; `leave` ends it."""
        if self._open >= _MOST_AT_ONCE:
            return False
        self._open += 1
        return True

    def leave(self) -> None:
        """Lets the next one go ahead."""
        self._open -= 1
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break


class LoopGuard:
    """The addon that cuts connections which lead back to the proxy: without it one request would go round and round.

    mitmproxy recognises itself by a few names only, not by the other addresses of this machine.

    Args:
        connections: the proxy's clients, by id.
        listening: returns address and port of the proxy.
    """

    name = "loopguard"

    def __init__(
        self, connections: Mapping[tuple[Any, ...] | str, ConnectionHandler], listening: Callable[[], tuple[str, int]]
    ) -> None:
        self._connections = connections
        self._listening = listening

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Closes a connection to ourselves before anything is sent."""
        server = data.server
        if server.sockname is None or server.peername is None or server.peername[1] != self._listening()[1]:
            return
        if leads_back(server.sockname[0], server.peername[0], self._listening()[0]):
            writer = self._connections[data.client.id].transports[server].writer
            if isinstance(writer, asyncio.StreamWriter):
                writer.transport.abort()


def leads_back(ours: str, theirs: str, listening: str) -> bool:
    """Returns whether a connection to the proxy's own port leads to the proxy itself.

    Args:
        ours: the address that it is made from.
        theirs: the address that it leads to.
        listening: the address that the proxy listens on.
    """
    if ip_address(listening).is_unspecified:
        return ours == theirs or ip_address(theirs).is_loopback
    return theirs == listening


_get_connection = HttpLayer.get_connection


def get_connection(self: HttpLayer, event: GetHttpConnection, *, reuse: bool = True) -> layer.CommandGenerator[None]:
    """Stands in for `HttpLayer.get_connection`: closes idle connections first, and drops closed ones from the table.

    What is opened may be taken from the keep-alive pool, and left to it later (shared_origins.py).
    """
    if len(self.connections) > 1:
        yield from _close_idle(self, event)
    stream = self.command_sources.get(event)
    again = type(stream) is GatewayHttpStream and stream.retried
    for command in _get_connection(self, event, reuse=reuse and not again):
        if type(command) is commands.OpenConnection and isinstance(command.connection, Server) and event.via is None:
            safe = type(stream) is GatewayHttpStream and not again and is_retryable(stream.flow.request)
            note_sharing(command.connection, Sharing(self, may_adopt=safe))
        yield command


def _close_idle(http: HttpLayer, event: GetHttpConnection) -> Iterator[commands.Command]:
    idle: list[tuple[Server, Connection]] = []
    for connection, handler in list(http.connections.items()):
        if (
            not isinstance(connection, Server)
            or connection in http.waiting_for_establishment
            or connection is http.context.server
        ):
            continue
        # Behind a parent proxy the connection to the origin is inside another one; both are in the table.
        real: Connection = connection
        lent: Connection = connection
        if isinstance(handler, tunnel.TunnelLayer):
            real, lent = handler.tunnel_connection, handler.conn
        if isinstance(real, Server) and _gone(real):
            del http.connections[connection]
        elif (
            real is connection
            and connection.state is ConnectionState.OPEN
            and _idle(handler)
            and not event.connection_spec_matches(lent)  # this very request is about to use that one
        ):
            idle.append((connection, lent))
    for connection, lent in idle[:-_MOST_IDLE]:  # the oldest ones
        if lent is not connection:
            lent.state = ConnectionState.CLOSED  # the tunnel gets the end later: until then no request may get it
        yield commands.CloseConnection(connection)


def _gone(connection: Server) -> bool:
    """Returns whether a connection has ended, or was never made."""
    return connection.timestamp_end is not None or (connection.error is not None and connection.timestamp_tcp_setup is None)


def _idle(handler: layer.Layer) -> bool:
    innermost = handler.context.layers[-1]
    if isinstance(innermost, Http1Connection):
        return innermost.stream_id is None
    return isinstance(innermost, Http2Connection) and not innermost.streams
