"""The guard of outgoing connections: through the proxy, a client reaches only what `addresses/reach.py` allows it to.

It checks the addresses that are about to be connected to, after the name was resolved and before a socket is made, for each
connection again: what was judged is what is connected to, whatever a name resolves to the next time.
"""

import asyncio
import errno
from collections.abc import Callable, Container, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

from mitmproxy import http, tcp
from mitmproxy.flow import Flow
from mitmproxy.proxy.server import ConnectionHandler
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from gatewayfilter.addresses.kinds import Kind
from gatewayfilter.addresses.link_watch import PerLinks, current_links, kind_of_text
from gatewayfilter.addresses.links import Links
from gatewayfilter.addresses.reach import Reach, Target, target_of
from gatewayfilter.config import ProxySettings
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import DecideTraffic
from gatewayfilter.model import Action, Reason, Request, Verdict
from gatewayfilter.proxy.pages.upstream_errors import INTERNAL_MESSAGE
from gatewayfilter.proxy.request.flow_request import read_flow, read_tunnel
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.tunnel.resolver import AddressInfo, known_addresses
from gatewayfilter.telemetry import Counters

INTERNAL: Final = Verdict(Action.BLOCK, Reason.INTERNAL_ADDRESS)
_user: ContextVar[str] = ContextVar("user", default="")
"""The proxy user of that client, `""` for none."""
_client: ContextVar[str | None] = ContextVar("client", default=None)
"""The client of the running task, `None` for this process itself; mitmproxy has a task for each connection to an origin."""


class InternalAddressError(OSError):
    """All addresses of the target are such as this client must not reach through the proxy."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, INTERNAL_MESSAGE)

    def __str__(self) -> str:
        return INTERNAL_MESSAGE


class ReachGuard:
    """Separates the addresses that a client may be connected to from the others.

    An addon: its hooks give the client for whom mitmproxy connects, and the outcome.

    Args:
        settings: `mode` and `allow_networks`.
        counters: `internal_refused`.
        connections: the proxy's clients, by id.
        recorder: takes refusals for the log; `None` when nothing is logged.
        links: returns the interfaces of this machine.
        hosts: decides where connections to a host have to end; `None` for its own addresses.
        logged_in: id of a client's connection → its proxy user.
    """

    name = "reachguard"

    def __init__(
        self,
        settings: ProxySettings,
        counters: Counters,
        connections: Mapping[tuple[Any, ...] | str, ConnectionHandler],
        recorder: DecisionRecorder | None = None,
        links: Callable[[], Links] = current_links,
        *,
        hosts: DecideTraffic | None = None,
        logged_in: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._recorder = recorder
        self._hosts = hosts
        self._logged_in = logged_in
        self._reach = Reach(settings.allow_networks)
        self._transparent = settings.mode == "transparent"
        self._has_parent = settings.mode.startswith("upstream:")
        self._connections = connections
        self._counters = counters
        self._links = links
        self._kind_of = PerLinks(kind_of_text, links)

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Records the client for which this task connects."""
        _client.set(_client_of(data))
        if self._logged_in:
            _user.set(self._logged_in.get(data.client.id, ""))

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Aborts a connection that ends at this machine although its address did not show it, before anything is sent."""
        server = data.server
        if server.sockname is None or server.peername is None or server.address is None or self._has_parent:
            return
        if self.leads_home(_client_of(data), server.address[0], server.sockname[0], server.peername[0]):
            writer = self._connections[data.client.id].transports[server].writer
            if isinstance(writer, asyncio.StreamWriter):
                writer.transport.abort()

    def error(self, flow: http.HTTPFlow) -> None:
        """Counts and logs a request that was allowed, but whose target address was refused."""
        if flow.error is not None and flow.error.msg == INTERNAL_MESSAGE:
            self._record(flow, lambda: read_flow(flow, self._user_of(flow)).request)

    def tcp_error(self, flow: tcp.TCPFlow) -> None:
        """Counts and logs a tunnel whose target address was refused."""
        if flow.error is not None and flow.error.msg == INTERNAL_MESSAGE:
            self._record(flow, lambda: read_tunnel(flow.client_conn, flow.server_conn, self._user_of(flow))[0])

    def _record(self, flow: Flow, read: Callable[[], Request]) -> None:
        self._counters.add("blocked")
        if self._recorder is None:
            return
        try:
            request = read()
        except UrlError:
            client = str(flow.client_conn.peername[0]) if flow.client_conn.peername else ""
            self._recorder.record_unreadable(client, "", INTERNAL, self._user_of(flow))
        else:
            self._recorder.record(request, INTERNAL, 0)

    def _user_of(self, flow: Flow) -> str:
        return self._logged_in.get(flow.client_conn.id, "")

    def leads_home(self, client: str, host: str, ours: str, theirs: str) -> bool:
        """Returns whether a connection ends at this machine although the client must not reach it.

        The kernel connects addresses of this machine from the same address. So this also holds for addresses that were
        added a moment ago, and where the kernel does not list its interfaces.

        Args:
            client: the client's address.
            host: as the client named the target.
            ours: the address that the connection is made from.
            theirs: the address that it leads to.
        """
        if ours != theirs or self._kind_of(theirs) is Kind.OWN:  # the second one was judged before
            return False
        return not self._reach.admits(client, target_of(host), theirs, Kind.OWN, self._links())

    def admitted_here(self, host: str, found: Sequence[AddressInfo]) -> Sequence[AddressInfo]:
        """As `admitted`, for the client of the running task. A parent proxy is trusted: the operator configured it.

        Raises:
            InternalAddressError: none is left.
        """
        client = _client.get()
        if self._has_parent or client is None:
            return found
        return self.admitted(client, host, found, destination=host if self._transparent else "")

    def led_to(self, host: str) -> str:
        """Returns the host whose addresses the client of the running task is connected to: that of an enforced SafeSearch.

        A parent proxy looks names up itself: there the parameters and header fields of the requests have to do.
        """
        client = _client.get()
        if self._hosts is None or self._has_parent or client is None:
            return host
        return self._hosts.enforced_address(host, client, _user.get()) or host

    def known_addresses(self, data: ServerConnectionHookData) -> Container[str]:
        """Returns the addresses that an open connection may lead to, as `admitted_here`; none where they have to be looked up."""
        assert data.server.address is not None
        host, port = data.server.address[:2]
        client, user = _client_of(data), self._logged_in.get(data.client.id, "")
        led_to = (self._hosts.enforced_address(host, client, user) if self._hosts is not None else None) or host
        try:
            found = known_addresses(asyncio.get_running_loop(), led_to, port, is_open=True)
        except (OSError, UnicodeError):  # whoever connects tells the client
            return ()
        if found is None or self._has_parent:
            return ()
        return {info[4][0] for info in self._admissible(client, host, found, host if self._transparent else "")}

    def admitted(self, client: str, host: str, found: Sequence[AddressInfo], *, destination: str = "") -> Sequence[AddressInfo]:
        """Returns the addresses of a host that a client may be connected to, in their order.

        Args:
            client: its address.
            host: as the client named it; it may be a literal.
            found: its addresses, at least one.
            destination: the address that a redirected connection was on its way to.

        Raises:
            InternalAddressError: none is left.
        """
        left = self._admissible(client, host, found, destination)
        if not left:
            self._counters.add("internal_refused")
            raise InternalAddressError
        return left

    def _admissible(self, client: str, host: str, found: Sequence[AddressInfo], destination: str) -> Sequence[AddressInfo]:
        kinds = [self._kind_of(info[4][0]) for info in found]
        if not any(kinds):  # the usual case: all are public
            return found
        named = target_of(host)
        links = self._links()
        left = []
        for info, kind in zip(found, kinds, strict=True):
            address = info[4][0]
            target = Target.DESTINATION if address == destination else named
            if self._reach.admits(client, target, address, kind, links):
                left.append(info)
        return left


def _client_of(data: ServerConnectionHookData) -> str:
    return str(data.client.peername[0]) if data.client.peername else ""
