"""The review of open connections: where policies block something from now on, what of it is running ends.

It runs at each boundary of a schedule, at the end of a pause or of an approved request, and after each change of them or of a
policy: once a second it compares one mark. A stream is ended with its client's connection: over HTTP/2 the other streams of that
connection end too, and browsers request them again.
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
from gatewayfilter.proxy.sync.usage_counter import UsageCounter
from gatewayfilter.proxy.tunnel.relay import RelayPool
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_COUNT_EVERY_S: Final = 20.0
"""Three times in each minute of the clock."""
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
        usage: counts the use of quotas.
    """

    def __init__(
        self,
        engine: DecideTraffic,
        connections: Mapping[Any, ConnectionHandler],
        relays: RelayPool,
        recorder: DecisionRecorder | None,
        counters: Counters,
        logged_in: Mapping[str, str],
        usage: UsageCounter,
    ) -> None:
        self._engine = engine
        self._connections = connections
        self._relays = relays
        self._recorder = recorder
        self._counters = counters
        self._logged_in = logged_in
        self._usage = usage
        self._count_at = 0.0
        self._mark = engine.policy_mark()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to compare the mark once a second."""
        self._timer = self._relays.loop.call_later(_EVERY_S, self._compare)

    def stop(self) -> None:
        """Ends that, and a review under way."""
        for running in (self._timer, self._task):
            if running is not None:
                running.cancel()

    def _compare(self) -> None:
        """Begins a review if policies have changed what is in force since the last one, which may still be under way."""
        mark = self._engine.policy_mark()
        if mark != self._mark and (self._task is None or self._task.done()):
            self._mark = mark
            self._task = self._relays.loop.create_task(self._review_all())
        now = self._relays.loop.time()
        if self._usage.active and now >= self._count_at and (self._task is None or self._task.done()):
            self._count_at = now + _COUNT_EVERY_S
            self._task = self._relays.loop.create_task(self._count_all())
        self._timer = self._relays.loop.call_later(_EVERY_S, self._compare)

    async def _review_all(self) -> None:
        self._relays.review()
        for number, connection in enumerate(list(self._connections.values()), 1):
            try:
                self._review(connection)
            except Exception:  # noqa: BLE001  the other connections must be reviewed
                _log.exception("reviewing an open connection failed")
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _count_all(self) -> None:
        """Counts the streams that run as use of quotas; WebSockets and tunnels are counted by what passes."""
        for number, connection in enumerate(list(self._connections.values()), 1):
            try:
                self._count(connection)
            except Exception:  # noqa: BLE001  the other connections must be counted
                _log.exception("counting an open connection failed")
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def _count(self, connection: ConnectionHandler) -> None:
        for flow in _open_flows(connection.layer.context.layers):
            if isinstance(flow, http.HTTPFlow) and flow.websocket is None and flow.request.stream:
                try:
                    request = _requests_of(flow, self._logged_in.get(flow.client_conn.id, ""))[0]
                except UrlError:
                    continue
                self._usage.request(request, self._engine.decide(request))

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
