"""The addon that asks clients for a user name and a password (RFC 9110 §11.7): of each request, of a tunnel once."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from mitmproxy import http
from mitmproxy.connection import Client
from mitmproxy.proxy.server import ConnectionHandler

from gatewayfilter.proxy.early_answer import answer_early
from gatewayfilter.proxy.users import Users
from gatewayfilter.telemetry import Counters

_HEADER: Final = "proxy-authorization"
_AT_ONCE: Final = 2
"""Passwords that are looked at at the same time: each takes 50 ms of a core and 16 MB."""
_PAUSE_S: Final = 0.5
"""How long a wrong password waits for its answer."""


class ProxyLogin:
    """Lets only those in who have a user name and a password.

    Args:
        users: who may use the proxy.
        counters: `logins_refused`.
        connections: the proxy's clients, by id.
        loopback: whether clients on this machine have to log in as well.
        free: tells of a request outside a tunnel whether it is for a page of the filter itself, such as the PAC file: browsers
            fetch that before they know that there is a proxy.
    """

    name = "proxylogin"

    def __init__(
        self,
        users: Users,
        counters: Counters,
        connections: Mapping[tuple[Any, ...] | str, ConnectionHandler],
        *,
        loopback: bool,
        free: Callable[[http.HTTPFlow], bool],
    ) -> None:
        self._users = users
        self._counters = counters
        self._connections = connections
        self._loopback = loopback
        self._free = free
        self._inside: set[str] = set()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def admits(self, authorization: str, address: str) -> bool:
        """Returns whether a client may pass, as far as that can be said at once."""
        return bool(self._users.recall(authorization)) or (not self._loopback and _is_loopback(address))

    def http_connect(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Asks before a tunnel is opened."""
        return self._ask(flow, tunnel=True)

    def requestheaders(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Asks of each request outside a tunnel, and keeps the password from going any further."""
        if flow.client_conn.id in self._inside or flow.response is not None:
            return None
        if self._free(flow):
            flow.request.headers.pop(_HEADER, None)
            return None
        return self._ask(flow, tunnel=False)

    def client_disconnected(self, client: Client) -> None:
        """Forgets a tunnel."""
        self._inside.discard(client.id)

    def _ask(self, flow: http.HTTPFlow, *, tunnel: bool) -> Coroutine[Any, Any, None] | None:
        header = str(flow.request.headers.pop(_HEADER, ""))
        address = flow.client_conn.peername[0] if flow.client_conn.peername else ""
        if self.admits(header, address):
            if tunnel:
                self._inside.add(flow.client_conn.id)
            return None
        if header:
            return self._verify(flow, header, tunnel=tunnel)
        self._refuse(flow)
        return None

    async def _verify(self, flow: http.HTTPFlow, header: str, *, tunnel: bool) -> None:
        async with self._turns:
            user = await asyncio.to_thread(self._users.verify, header)
        if user:
            if tunnel:
                self._inside.add(flow.client_conn.id)
            return
        self._counters.add("logins_refused")
        await asyncio.sleep(_PAUSE_S)
        self._refuse(flow)

    def _refuse(self, flow: http.HTTPFlow) -> None:
        flow.response = http.Response.make(
            407,
            b"This proxy asks for a user name and a password.\n",
            {
                "Proxy-Authenticate": 'Basic realm="GatewayFilter", charset="UTF-8"',
                "Content-Type": "text/plain; charset=utf-8",
                "Cache-Control": "no-store",
            },
        )
        if flow.request.method != "CONNECT":
            answer_early(flow, self._connections.get(flow.client_conn.id))


@lru_cache(maxsize=1024)
def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
