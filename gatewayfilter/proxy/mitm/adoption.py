"""Adoption at once: the fast path takes an idle connection of the keep-alive pool for a request in the step that needs it.

mitmproxy opens a connection by a command that climbs to its connection handler, a task, and an event that climbs back through
four layers. Where the pool has a connection whose address is known, nothing of that has to wait. The hooks of a connection run in
their order, and layers, transports and limits are left in the state in which mitmproxy would have left them. What does not hold
for certain (another connection to that origin is being opened, a full limit, a hook that could wait) is left to mitmproxy.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any, Final, cast

from mitmproxy import http
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.tls import TlsData
from mitmproxy.utils import human

from gatewayfilter.proxy.mitm.fastpath.connection_handler import HeldConnection
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Hooks
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore
from gatewayfilter.proxy.mitm.shared_origins import SharedOrigins, take_over
from gatewayfilter.proxy.mitm.sharing import Sharing, note_sharing, sharing_of
from gatewayfilter.proxy.mitm.stale_retry import SAFE
from gatewayfilter.proxy.tunnel.reach_guard import ReachGuard

_log = logging.getLogger("mitmproxy.proxy.server")
_HOOKS: Final = ("server_connect", "server_connected", "tls_start_server", "tls_established_server")


class OriginAdoption:
    """Takes connections from the pool for one worker.

    Args:
        pool: has the idle connections.
        guard: knows which addresses a client may be connected to.
        hooks: runs hooks.
        connections: the proxy's clients, by id.
    """

    def __init__(
        self,
        pool: SharedOrigins,
        guard: ReachGuard,
        hooks: Hooks,
        connections: Mapping[tuple[Any, ...] | str, ConnectionHandler],
    ) -> None:
        self._pool = pool
        self._guard = guard
        self._hooks = hooks
        self._connections = connections

    def adopt(self, http_layer: FastHttpLayer, flow: http.HTTPFlow) -> GatewayHttp1Client | None:
        """Returns the origin's side of a connection for a request without a body whose HTTP layer has none, else `None`."""
        origin = http_layer.context.server
        if (
            flow.server_conn.via
            or origin.state is not ConnectionState.CLOSED
            or origin.error
            or flow.request.data.method not in SAFE
        ):
            return None
        return copy_context().run(self._adopt, http_layer, flow)  # hooks note in it for whom they run

    def _adopt(self, http_layer: FastHttpLayer, flow: http.HTTPFlow) -> GatewayHttp1Client | None:
        client = http_layer.context.client
        server = _asked_for(http_layer, flow.request.data)
        data = ServerConnectionHookData(client=client, server=server)
        sharing = Sharing(http_layer, may_adopt=True)
        note_sharing(server, sharing)
        self._pool.note_key(server, client)
        handler = self._connections.get(client.id)
        if handler is None or not self._pool.may_have(sharing.key) or not all(map(self._hooks.run_at_once, _HOOKS)):
            return None
        limit = handler.max_conns[server.address]  # type: ignore[index]
        if not isinstance(limit, FairSemaphore) or not limit.enter_at_once():
            return None
        transport = self._pool.take_for(sharing, lambda: self._guard.known_addresses(data))
        if transport is not None:
            self._hooks.run_now("server_connect", data)
        if transport is None or server.error:  # mitmproxy opens another one, or tells the client why not
            limit.leave()
            if transport is not None:
                transport.abort()
            return None
        io = handler.transports[server] = _opened(handler, server, transport)
        self._hooks.run_now("server_connected", data)
        made = self._layers(http_layer, server)
        io.handler = cast("Any", HeldConnection(handler, data, cast("DirectReader", io.reader), limit.leave))
        return made

    def _layers(self, http_layer: FastHttpLayer, server: Server) -> GatewayHttp1Client:
        """Makes the layers of a connection, as they are after the handshake."""
        context = http_layer.context.fork()
        context.server = server
        sharing = sharing_of(server)
        assert sharing is not None
        assert sharing.adopted is not None
        if not server.tls:
            http_layer.connections[server] = plain = GatewayHttp1Client.idle(context)
            return plain
        http_layer.connections[server] = outer = ServerTLSLayer(context)
        data = TlsData(server, context)
        self._hooks.run_now("tls_start_server", data)
        assert data.ssl_conn is sharing.adopted.made
        outer.tls = data.ssl_conn  # type: ignore[assignment]
        take_over(server, sharing.adopted.before)
        self._hooks.run_now("tls_established_server", TlsData(server, context, outer.tls))
        outer.tunnel_state = TunnelState.OPEN
        outer.child_layer = inner = GatewayHttp1Client.idle(context)
        return inner


def _asked_for(http_layer: FastHttpLayer, meant: http.RequestData) -> Server:
    """Returns the connection that a request needs, as `HttpLayer.get_connection` makes it."""
    context = http_layer.context
    server = Server(address=(meant.host, meant.port))
    if meant.scheme == b"https":
        server.tls = True
        as_named = http_layer.mode is HTTPMode.transparent and server.address == context.server.address
        server.sni = (context.server.sni or context.client.sni if as_named else None) or meant.host
    return server


def _opened(handler: ConnectionHandler, server: Server, transport: asyncio.Transport) -> ConnectionIO:
    """Does what `ConnectionHandler.open_connection` does with a connection that is open."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    now = time.time()
    vars(server).update(  # `Server.__setattr__` guards `address` and `via` alone, by a call for each field
        timestamp_start=now,
        timestamp_tcp_setup=now,
        state=ConnectionState.OPEN,
        peername=transport.get_extra_info("peername"),
        sockname=transport.get_extra_info("sockname"),
    )
    if _log.isEnabledFor(logging.INFO):
        handler.log(f"server connect {human.format_address(server.address)}")
    return ConnectionIO(reader=cast("Any", DirectReader(handler, server, reader, writer, begun=True)), writer=writer)
