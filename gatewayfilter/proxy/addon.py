"""The addon: the hooks of mitmproxy, each of which hands its flow to the filter.

A hook must neither raise (the flow would pass unfiltered) nor wait (one event loop serves all clients of a worker): each is
wrapped, does no I/O, takes no lock and never sleeps. With `proxy.unknown` as `hold` or `inspect` it returns a coroutine, which
holds up its own flow alone.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from mitmproxy import ctx, http, udp

from gatewayfilter.config import Settings
from gatewayfilter.errors import UrlError
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.listener.connection_deadlines import ConnectionDeadlines
from gatewayfilter.proxy.mitm.install import Setup
from gatewayfilter.proxy.mitm.next_layer import NextLayer
from gatewayfilter.proxy.pages.upstream_errors import is_origin_fault
from gatewayfilter.proxy.request.header_sanitizer import leave_trailers
from gatewayfilter.proxy.request_filter import RequestFilter
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.response_answerer import ResponseAnswerer
from gatewayfilter.proxy.response.response_pipeline import ResponsePipeline
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.proxy.tunnel.raw_tunnels import RawTunnels
from gatewayfilter.telemetry import Counters


class GatewayAddon:
    """Filters the traffic of one mitmproxy.

    Args:
        settings: all settings.
        services: the engine, and what the filter reads and writes beside it.
        counters: `requests`, `blocked`, `unknown`, `origin_errors`, `hook_errors` and those of the parts.
        on_start, on_stop: called when mitmproxy starts and ends; for mitmdump, where the addon starts the rest.

    Attributes:
        addons: the addons of connections; mitmproxy adds them with this one.
        pages: makes block and error pages.
    """

    name = "gatewayfilter"

    def __init__(
        self,
        settings: Settings,
        services: FilterServices,
        counters: Counters,
        *,
        on_start: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._counters = counters
        self._on_start = on_start
        self._on_stop = on_stop
        self.pages = services.pages
        self._answerer = ResponseAnswerer(services.pages, settings.proxy.on_error, counters)
        counter = DecisionCounter(counters, services.recorder)
        changes = None
        if services.changes is not None:
            changes = TrafficChanges(services.changes, settings.filter, counters, counter=counter)
        reporter = UrlReporter(services.offers, settings.proxy.unknown) if services.offers is not None else None
        self._requests = RequestFilter(settings, services, self._answerer, counter, counters, changes=changes, reporter=reporter)
        self._responses = ResponsePipeline(
            settings, services, self._answerer, counter, counters, changes=changes, reporter=reporter
        )
        tunnels = RawTunnels(
            services.decide,
            services.hosts if settings.tls.splice else None,
            services.recorder,
            settings.proxy,
            counters,
            web_ports=frozenset(settings.gateway.ports),
            logged_in=services.logged_in,
            usage=services.usage,
        )
        deadlines = ConnectionDeadlines(counters)
        self.addons = (tunnels, deadlines, NextLayer(tunnels, deadlines, services.pages), Setup(services.pages))

    def running(self) -> None:
        """Starts what belongs to the addon."""
        proxyserver = ctx.master.addons.get("proxyserver")
        if proxyserver is not None:
            self._answerer.connections = proxyserver.connections
        if self._on_start is not None:
            self._on_start()

    def done(self) -> None:
        """Stops what belongs to the addon."""
        if self._on_stop is not None:
            self._on_stop()

    def is_internal_page(self, flow: http.HTTPFlow) -> bool:
        """Returns whether a request is for a page of the filter itself, for which no log-in is needed."""
        try:
            return self._requests.is_internal_page(flow)
        except UrlError:
            return False
        except Exception:  # noqa: BLE001  called in a hook, which must not raise
            self._answerer.report_failure()
            return False

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Decides a request. Returns a coroutine only when it is held for a verdict."""
        try:
            rest = self._requests.begin(flow)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._answerer.fail(flow)
            return None
        return None if rest is None else _guarded(rest, flow, self._answerer.fail)

    def request(self, flow: http.HTTPFlow) -> None:
        """Answers a request to unblock a page. Removes the trailers that must not be sent on."""
        try:
            if flow.request.data.trailers is not None:
                leave_trailers(flow.request.data)
            if flow.metadata and not flow.request.stream:  # an allowed request streams
                self._requests.finish(flow)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._answerer.fail(flow)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Streams the origin's response, as the rules change it, unless it is kept to be inspected."""
        try:
            if flow.response is not None and flow.response.data.content is None:  # else ours, or of another addon
                self._responses.begin(flow, flow.response)
        except Exception:  # noqa: BLE001  a hook that raises would leave the body unstreamed
            self._answerer.fail_response(flow)

    def response(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Inspects a page that was kept for it. Removes the trailers that must not be sent on."""
        try:
            if flow.response is not None and flow.response.data.trailers is not None:
                leave_trailers(flow.response.data)
            rest = self._responses.finish(flow) if flow.metadata else None
        except Exception:  # noqa: BLE001  a hook must not raise
            self._answerer.report_failure()
            return None
        return None if rest is None else _guarded(rest, flow, self._answerer.fail_response)

    def error(self, flow: http.HTTPFlow) -> None:
        """Counts what was allowed and failed at the origin."""
        try:
            self._responses.forget(flow)
            allowed = flow.request.stream and (flow.response is None or flow.response.data.content is None)
            if allowed and flow.error is not None and is_origin_fault(flow.error.msg):
                self._counters.add("origin_errors")
        except Exception:  # noqa: BLE001  a hook must not raise
            self._answerer.report_failure()

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        """Drops the message: mitmproxy would keep all of them while the socket is open."""
        try:
            if flow.websocket is not None:
                flow.websocket.messages.clear()
                self._requests.note_message(flow)
        except Exception:  # noqa: BLE001  a hook must not raise
            self._answerer.report_failure()

    def udp_message(self, flow: udp.UDPFlow) -> None:
        """Drops the message: mitmproxy would keep all of them while the flow is open."""
        try:
            flow.messages.clear()
        except Exception:  # noqa: BLE001  a hook must not raise
            self._answerer.report_failure()


async def _guarded(rest: Coroutine[Any, Any, None], flow: http.HTTPFlow, fail: Callable[[http.HTTPFlow], None]) -> None:
    try:
        await rest
    except Exception:  # noqa: BLE001  a hook that raises fails open
        fail(flow)
