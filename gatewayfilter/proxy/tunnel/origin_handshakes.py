"""The time limit of TLS handshakes with origins: one that takes connections and says nothing would keep clients for minutes."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mitmproxy import connection, tls
from mitmproxy.proxy.server import ConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.proxy.tunnel.timeouts import Deadlines

HANDSHAKE_S: Final = 10.0
"""From the ClientHello to the end of the handshake; half of what browsers wait for without an answer."""


class OriginHandshakes:
    """The addon that ends connections to origins whose handshake takes too long; the client gets the page for a failed one.

    A handshake inside a parent proxy's tunnel is not limited: the tunnel has a connection of its own, to the parent.

    Args:
        connections: the proxy's clients, by id.
    """

    name = "originhandshakes"

    def __init__(self, connections: Mapping[tuple[Any, ...] | str, ConnectionHandler]) -> None:
        self._connections = connections
        self._limits: Deadlines[tuple[str, connection.Server]] = Deadlines(asyncio.get_running_loop(), HANDSHAKE_S, self._over)

    def done(self) -> None:
        """Lifts all limits. A mitmproxy hook."""
        self._limits.close()

    def tls_start_server(self, data: tls.TlsData) -> None:
        """Limits a handshake."""
        if isinstance(data.conn, connection.Server):
            self._limits.add((data.context.client.id, data.conn))

    def tls_established_server(self, data: tls.TlsData) -> None:
        """Lifts the limit."""
        if isinstance(data.conn, connection.Server):
            self._limits.remove((data.context.client.id, data.conn))

    tls_failed_server = tls_established_server

    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        """Lifts the limit of a connection that ends before."""
        self._limits.remove((data.client.id, data.server))

    def _over(self, item: tuple[str, connection.Server]) -> None:
        client, server = item
        handler = self._connections.get(client)
        carried = handler.transports.get(server) if handler is not None else None
        if carried is not None and isinstance(carried.writer, asyncio.StreamWriter):
            carried.writer.transport.abort()
