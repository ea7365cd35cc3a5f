"""Raw tunnels: connections that carry neither HTTP nor TLS. Which of them are allowed, and how the others are refused.

Their content is never seen, so each name that such a connection carries is judged, and what is unknown is
treated by `proxy.unknown`.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from mitmproxy import tcp
from mitmproxy.connection import Client, Server

from gatewayfilter.config import ProxySettings, RawTcpRule, UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide, DecideHost
from gatewayfilter.model import Action, HostAction, Reason, Request, UnknownAction, Verdict
from gatewayfilter.proxy.request.flow_request import read_tunnel
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})
_WEB_PORTS: Final = frozenset({80, 443})
_NOT_HTTP: Final = Verdict(Action.BLOCK, Reason.NOT_HTTP)
_BY_PORT: Final = frozenset({Reason.SERVICE, Reason.QUOTA})
"""Blocks that may be of a port, which the decision on a host does not have."""
_UNKNOWN: Final = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
_COMPLAIN_EVERY_S: Final = 10.0


class RawTunnels:
    """The addon that decides connections with unreadable content.

    Args:
        decide: the engine.
        hosts: the same for host names alone; `None` where nothing is spliced.
        recorder: takes every decision for the log; `None` when nothing is logged.
        settings: `raw_tcp` and `unknown`.
        counters: `requests`, `blocked`, `not_http`, `hook_errors`.
        logged_in: id of a client's connection → its proxy user.
        usage: counts the use of quotas, `None` for nothing.
        web_ports: ports on which nothing but HTTP and TLS is allowed, beside 80 and 443.
    """

    name = "rawtunnels"

    def __init__(
        self,
        decide: Decide,
        hosts: DecideHost | None,
        recorder: DecisionRecorder | None,
        settings: ProxySettings,
        counters: Counters,
        *,
        web_ports: frozenset[int] = frozenset(),
        logged_in: Mapping[str, str] = _NOBODY,
        usage: UsageCounter | None = None,
    ) -> None:
        self._decide = decide
        self._hosts = hosts
        self._recorder = recorder
        self._settings = settings
        self._counters = counters
        self._logged_in = logged_in
        self._usage = usage
        self._web_ports = _WEB_PORTS | web_ports
        self._complained_at = -_COMPLAIN_EVERY_S

    def admits(self, client: Client, server: Server) -> bool:
        """Returns whether `proxy.raw_tcp` lets a connection through unread; `tcp_start` then judges where it leads."""
        rule = self._settings.raw_tcp
        if rule is RawTcpRule.OFF or server.address is None or server.address[1] in self._web_ports:
            return False
        try:
            return rule is RawTcpRule.ON or self._spliced(self._read(client, server)) is not None
        except UrlError:
            return False

    def refused(self, client: Client, server: Server) -> None:
        """Counts and logs a connection that was refused because it cannot be read."""
        for counter in ("requests", "blocked", "not_http"):
            self._counters.add(counter)
        if self._recorder is None:
            return
        try:
            self._recorder.record(self._read(client, server)[0], _NOT_HTTP, 0)
        except UrlError:
            self._recorder.record_unreadable(str(client.peername[0]) if client.peername else "", "", _NOT_HTTP)

    def tcp_start(self, flow: tcp.TCPFlow) -> None:
        """Refuses a tunnel that leads to a blocked site, or to an unknown one where those are blocked."""
        try:
            started = time.perf_counter_ns()
            requests = self._read(flow.client_conn, flow.server_conn)
            verdict = self._verdict(requests)
            if verdict.blocked:
                flow.server_conn.error = "blocked by the filter"
                self._counters.add("blocked")
            self._counters.add("requests")
            if self._recorder is not None:
                self._recorder.record(requests[0], verdict, (time.perf_counter_ns() - started) // 1000)
        except Exception:  # noqa: BLE001  a hook that raises fails open, and what passes here is never read
            self.failed()
            with suppress(Exception):
                flow.server_conn.error = "the filter failed"

    def tcp_message(self, flow: tcp.TCPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the connection is open."""
        try:
            flow.messages.clear()
            if self._usage is not None and self._usage.active:
                self._usage.running(self._read(flow.client_conn, flow.server_conn)[0])
        except Exception:  # noqa: BLE001  a hook must not raise
            self.failed()

    def failed(self) -> None:
        """Counts and logs a failure of a hook; to be called where it is caught."""
        self._counters.add("hook_errors")
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAIN_EVERY_S:
            self._complained_at = now
            _log.exception("deciding a connection failed; it is refused")

    def _read(self, client: Client, server: Server) -> tuple[Request, ...]:
        return read_tunnel(client, server, self._logged_in.get(client.id, ""))

    def _verdict(self, requests: tuple[Request, ...]) -> Verdict:
        spliced = self._spliced(requests)
        verdicts = [self._decide.decide(request) for request in requests]
        for verdict in verdicts:
            if verdict.blocked and (spliced is None or verdict.reason in _BY_PORT):
                return verdict
        if spliced is not None:
            return spliced
        return _UNKNOWN if any(self._blocks_unknown(verdict) for verdict in verdicts) else verdicts[0]

    def _blocks_unknown(self, verdict: Verdict) -> bool:
        """Returns whether an unknown host is blocked: by the client's policy, or where it sets nothing by `proxy.unknown`."""
        if verdict.unknown_action is not None:
            return verdict.unknown_action is UnknownAction.BLOCK
        return verdict.unknown and self._settings.unknown is UnknownRule.BLOCK

    def _spliced(self, requests: tuple[Request, ...]) -> Verdict | None:
        """Returns why a connection may pass unread, where each of its names is spliced."""
        if self._hosts is None:
            return None
        found = [self._hosts.decide_host(request.url.host, request.client, request.user) for request in requests]
        return found[0].verdict if all(one.action is HostAction.SPLICE for one in found) else None
