"""The review of open connections: where policies block something from now on, what of it is running ends.

It runs at each boundary of a schedule, at the end of a pause and after each change of a policy: once a second it compares one
mark. A stream is ended with its client's connection: over HTTP/2 the other streams of that connection end too, and browsers
request them again.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mitmproxy import http, tcp
from mitmproxy.proxy.layer import Layer
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.tcp import TCPLayer
from mitmproxy.proxy.server import ConnectionHandler

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import DecideTraffic
from gatewayfilter.model import Request, Verdict
from gatewayfilter.proxy.request.flow_request import read_flow, read_tunnel
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_AT_ONCE: Final = 100
"""Connections that are reviewed before the event loop may do something else: some milliseconds."""


class OpenConnections:
    """Reviews the open connections of a worker.

    Args:
        engine: decides.
        connections: of mitmproxy, by id.
        relays: connections that pass through unread.
        recorder: takes each decision that ends something; `None` when nothing is logged.
        counters: `ended_by_policy`.
        logged_in: id of a client's connection → its proxy user.
    """

    def __init__(
        self,
        engine: DecideTraffic,
        connections: Mapping[Any, ConnectionHandler],
        relays: RelayPool,
        recorder: DecisionRecorder | None,
        counters: Counters,
        logged_in: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._connections = connections
        self._relays = relays
        self._recorder = recorder
        self._counters = counters
        self._logged_in = logged_in
        self._mark = engine.policy_mark()

    async def follow(self) -> None:
        """Reviews the connections whenever that is due. Does not end by itself."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.review_if_due()
            except Exception:  # noqa: BLE001  the next boundary must be reviewed
                _log.exception("reviewing open connections failed")

    async def review_if_due(self) -> bool:
        """Reviews all connections if policies have changed what is in force since the last review. Returns whether it did."""
        mark = self._engine.policy_mark()
        if mark == self._mark:
            return False
        self._mark = mark
        self._relays.review()
        for number, connection in enumerate(list(self._connections.values()), 1):
            self._review(connection)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return True

    def _review(self, connection: ConnectionHandler) -> None:
        for flow in _open_flows(connection.layer.context.layers):
            blocked = self._blocked(flow)
            if blocked is None:
                continue
            self._counters.add("ended_by_policy")
            if self._recorder is not None:
                self._recorder.record(*blocked, 0)
            io = connection.transports.get(connection.client)
            if io is not None and io.handler is not None:
                io.handler.cancel("blocked by a policy from now on")
            return

    def _blocked(self, flow: http.HTTPFlow | tcp.TCPFlow) -> tuple[Request, Verdict] | None:
        """Returns the request and the verdict of a flow that is blocked now, `None` for any other one."""
        try:
            requests = _requests_of(flow, self._logged_in.get(flow.client_conn.id, ""))
        except UrlError:
            return None
        for request in requests:
            verdict = self._engine.decide(request)
            if verdict.blocked:
                return request, verdict
        return None


def _requests_of(flow: http.HTTPFlow | tcp.TCPFlow, user: str) -> tuple[Request, ...]:
    if isinstance(flow, tcp.TCPFlow):
        return read_tunnel(flow.client_conn, flow.server_conn, user)
    found = read_flow(flow, user)
    return (found.request, *found.aliases)


def _open_flows(layers: list[Layer]) -> Iterator[http.HTTPFlow | tcp.TCPFlow]:
    """Yields the requests and raw tunnels that run over a connection; a CONNECT is represented by what runs inside of it."""
    for layer in list(layers):
        if isinstance(layer, TCPLayer) and layer.flow is not None:
            yield layer.flow
        elif isinstance(layer, HttpLayer):
            for stream in list(layer.streams.values()):
                flow = getattr(stream, "flow", None)  # it has none before its head was read
                if flow is not None and flow.request.method != "CONNECT":
                    yield flow
                inner = stream.context.layers
                yield from _open_flows(inner[inner.index(stream) + 1 :])
