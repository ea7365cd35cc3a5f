"""Time limits for what a client has begun to send: a ClientHello, a handshake, the head of a request.

A limit counts from the first byte, or from the answer to a CONNECT, and does not start again with further bytes: a client that
sends one byte now and then would hold its connection for ever. A request that arrives in one read never meets this module.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mitmproxy import ctx, http, tls
from mitmproxy.connection import Client

from gatewayfilter.proxy.listener.handshake import HELLO_S
from gatewayfilter.proxy.tunnel.timeouts import Deadlines
from gatewayfilter.telemetry import Counters

HEAD_S: Final = 40.0
"""How long a client may take to send the head of a request that it has begun."""


class ConnectionDeadlines:
    """The addon that closes connections of clients that take too long.

    Args:
        counters: `header_timeouts`.
    """

    name = "connectiondeadlines"

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._connections: Mapping[Any, Any] = {}
        self._hellos: Deadlines[str] | None = None
        self._heads: Deadlines[str] | None = None

    def running(self) -> None:
        """Finds the table of connections. A mitmproxy hook."""
        proxyserver = ctx.master.addons.get("proxyserver")
        if proxyserver is not None:
            self._connections = proxyserver.connections
            loop = asyncio.get_running_loop()
            self._hellos = Deadlines(loop, HELLO_S, self._over)
            self._heads = Deadlines(loop, HEAD_S, self._over)

    def done(self) -> None:
        """Lifts all limits. A mitmproxy hook."""
        for limits in (self._hellos, self._heads):
            if limits is not None:
                limits.close()

    def begin_hello(self, client: Client) -> None:
        """Limits how long it may take until the protocol of a client is clear and, with TLS, until its handshake is done."""
        if self._hellos is not None and client.id not in self._hellos:
            self._hellos.add(client.id)

    def lift(self, client: Client) -> None:
        """Lifts that limit."""
        if self._hellos is not None:
            self._hellos.remove(client.id)

    def http_connected(self, flow: http.HTTPFlow) -> None:
        """Waits for the first bytes in a tunnel."""
        self.begin_hello(flow.client_conn)

    def tunnel_opened(self, client: Client) -> None:
        """Waits for the first bytes in a tunnel that the listener has opened."""
        self.begin_hello(client)

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Lifts the limit of a connection that passes through."""
        if data.ignore_connection:
            self.lift(data.context.client)

    def tls_established_client(self, data: tls.TlsData) -> None:
        """Lifts the limit of a handshake."""
        if isinstance(data.conn, Client):
            self.lift(data.conn)

    def client_disconnected(self, client: Client) -> None:
        """Forgets a client."""
        self.lift(client)
        self.head_done(client)

    def head_begun(self, client: Client) -> None:
        """Limits how long the rest of a head may take."""
        if self._heads is not None:
            self._heads.add(client.id)

    def head_done(self, client: Client) -> None:
        """Lifts that limit."""
        if self._heads is not None:
            self._heads.remove(client.id)

    def _over(self, client_id: str) -> None:
        connection = self._connections.get(client_id)
        if connection is None:
            return
        io = connection.transports.get(connection.client)
        if io is not None and io.handler is not None:
            self._counters.add("header_timeouts")
            io.handler.cancel("a ClientHello or the head of a request took too long")
