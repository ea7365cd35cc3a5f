"""The addon that records failed TLS handshakes with clients, and counts requests that are no HTTP."""

import logging
import time
from collections.abc import Callable
from typing import Final

from mitmproxy import http, tls
from mitmproxy.connection import Client

from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action, HostAction, Reason, Verdict
from gatewayfilter.proxy.listener.services import ConnectionServices
from gatewayfilter.urls import canonical_host

_log = logging.getLogger(__name__)

_SOON_S: Final = 3.0
"""A connection that is closed sooner after its handshake, without a request, was not to the client's liking; browsers keep those
that they open in advance for longer."""
_UNREADABLE: Final = Verdict(Action.BLOCK, Reason.BAD_REQUEST)


class TlsFailures:
    """Watches handshakes.

    Many apps that accept one certificate only finish the handshake, check the certificate, and close without a request.

    Args:
        services: what decides connections, and what is learned about devices.
        passes: whether connections that pass through unread get here at all: where the listener cannot part them itself.
        clock: monotonic seconds.
    """

    name = "tlswatch"

    def __init__(self, services: ConnectionServices, *, passes: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._services = services
        self._passes = passes
        self._clock = clock
        self._silent: dict[str, tuple[str, float]] = {}

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Passes a connection through where the listener could not: the parent proxy is reached by TLS."""
        if not self._passes:
            return
        client, address = data.context.client, data.context.server.address
        if address is None or not (target := _host(address[0])):
            return
        started = time.perf_counter_ns()
        name, user = _host(data.client_hello.sni), self._services.logged_in.get(client.id, "")
        found = self._services.policy.judge(_address(client), target, name, user)
        if found.action is HostAction.SPLICE:
            data.ignore_connection = True
            self._services.policy.record(_address(client), target, address[1], found.verdict, started)

    def tls_established_client(self, data: tls.TlsData) -> None:
        """Notes a handshake that a request has to follow."""
        if isinstance(data.conn, Client):
            self._silent[data.conn.id] = (_name(data), self._clock())

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Records a handshake that the client aborted."""
        self._services.counters.add("tls_failed")
        if isinstance(data.conn, Client):
            self._failed(data.conn, _name(data))

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Notes that the client is content with our certificate."""
        silent = self._silent.pop(flow.client_conn.id, None) if self._silent else None
        if silent is not None and self._services.pinned_apps is not None:
            self._services.pinned_apps.succeeded(_address(flow.client_conn), silent[0])

    def client_disconnected(self, client: Client) -> None:
        """Notes a client that left without a request, as soon as it had seen our certificate."""
        silent = self._silent.pop(client.id, None)
        if silent is not None and self._clock() - silent[1] < _SOON_S:
            self._failed(client, silent[0])

    def unreadable_request(self, client: Client) -> None:
        """Counts and logs what is no HTTP request."""
        counters = self._services.counters
        counters.add("requests")
        counters.add("blocked")
        counters.add("bad_requests")
        if self._services.recorder is not None:
            self._services.recorder.record_unreadable(_address(client), "", _UNREADABLE)

    def _failed(self, client: Client, host: str) -> None:
        services = self._services
        if services.pinned_apps is None or not host:
            return
        address = _address(client)
        if services.pinned_apps.failed(address, host, may_learn=services.policy.may_learn(address, host)):
            services.counters.add("pinned_apps_learned")
            _log.info("a device rejects the certificate of the filter for %s; its connections there pass unread", host)


def _address(client: Client) -> str:
    return str(client.peername[0]) if client.peername else ""


def _name(data: tls.TlsData) -> str:
    address = data.context.server.address
    return _host(data.conn.sni or (address[0] if address is not None else ""))


def _host(name: str | None) -> str:
    try:
        return canonical_host(name) if name else ""
    except UrlError:
        return ""
