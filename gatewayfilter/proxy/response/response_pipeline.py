"""The pipeline of responses: sanitized, changed by rules, and, of unknown URLs, kept for inspection or copied for the learner.

Everything streams, unless it is inspected first (inspection.py).
"""

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, cast
from weakref import WeakSet

from mitmproxy import http
from mitmproxy.connection import Server

from gatewayfilter.config import OnError, Settings, UnknownRule
from gatewayfilter.interfaces import PassedResponse, PassedSink
from gatewayfilter.model import Verdict
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.request.flow_request import FlowRequest, has_body
from gatewayfilter.proxy.request.header_sanitizer import sanitize_response
from gatewayfilter.proxy.request.pending_flow import PENDING, PendingFlow
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.inspection import FAILURE, ResponseInspection
from gatewayfilter.proxy.response.origin_name import is_authenticated, shows_certificate
from gatewayfilter.proxy.response.page_capture import OpenNetworks, PassedCopy, echoable_text, is_page, is_public, passed_response
from gatewayfilter.proxy.response.response_answerer import ResponseAnswerer
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import is_ip_literal

_HTTP2: Final = b"HTTP/2.0"


class ResponsePipeline:
    """Decides the treatment of each response.

    Args:
        settings: `proxy`, `filter`, `learn` and `crawl.allow_networks` count here.
        services: `inspect` and `passed` count here.
        answerer: answers what is blocked.
        counter: counts the verdicts of responses.
        counters: `inspected`, `inspect_failed`, `captures_queued`, `captures_dropped`.
        changes: applies Adblock modifiers; `None` for none.
        reporter: queues URLs for the crawler; `None` when nothing is learned.
    """

    def __init__(
        self,
        settings: Settings,
        services: FilterServices,
        answerer: ResponseAnswerer,
        counter: DecisionCounter,
        counters: Counters,
        *,
        changes: TrafficChanges | None,
        reporter: UrlReporter | None,
    ) -> None:
        unknown = settings.proxy.unknown
        self._answerer = answerer
        self._counter = counter
        self._counters = counters
        self._changes = changes
        self._reporter = reporter
        self._inspection: ResponseInspection | None = None
        if unknown is UnknownRule.INSPECT and services.inspect is not None:
            self._inspection = ResponseInspection(settings, services.inspect, answerer, counter, counters, reporter)
        self._passed = services.passed if settings.learn.passive and unknown is not UnknownRule.HOLD else None
        self._blocks_failures = settings.proxy.on_error is OnError.BLOCK
        self._open = OpenNetworks(settings.crawl.allow_networks)
        self._has_parent = settings.proxy.mode.startswith("upstream:")
        self._judges = self._inspection is not None or self._passed is not None
        self._with_bodies: WeakSet[Server] = WeakSet()

    def begin(self, flow: http.HTTPFlow, response: http.Response) -> None:
        """Decides the treatment of an origin's response when its headers have arrived."""
        response.stream = True
        sanitize_response(response.data)
        if flow.request.data.http_version == _HTTP2 and self._judges and "transfer-encoding" in flow.request.headers:
            self._with_bodies.add(flow.server_conn)  # a body that no field announced went to the origin in chunks
        pending: PendingFlow | None = flow.metadata.pop(PENDING, None)
        if pending is None:
            return
        flow_request = pending.flow_request
        page = None
        if self._judges:
            if has_body(flow_request):
                self._with_bodies.add(flow.server_conn)
            if pending.unknown and is_page(flow_request, response):  # as it is now: what the client gets may be changed
                page = self._page(flow, flow_request, response)
        verdict = None
        if self._changes is not None and not pending.untouched:
            verdict = self._changes.after(flow, flow_request.request)
        if verdict is None and pending.unknown and (page is not None or self._reporter is not None):
            verdict = self._learn_from(flow, response, flow_request, page)
        if verdict is not None:
            started = time.perf_counter_ns()
            self._answerer.replace_response(flow, flow_request, verdict)
            self._counter.response(flow_request.request, verdict, started)

    def finish(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Returns a coroutine that judges a response which was kept for it, `None` for any other one."""
        return self._inspection.finish(flow) if self._inspection is not None else None

    def forget(self, flow: http.HTTPFlow) -> None:
        """Drops the state of a kept response after its connection failed."""
        if self._inspection is not None:
            self._inspection.forget(flow)

    def _page(self, flow: http.HTTPFlow, flow_request: FlowRequest, response: http.Response) -> PassedResponse | None:
        """Returns a page that is judged from this response, without its body, `None` for one that is not."""
        repeatable = echoable_text(flow.request) if self._is_public(flow, flow_request, response) else None
        if repeatable is None and self._inspection is None:
            return None
        return passed_response(flow_request, response, repeatable)

    def _learn_from(
        self, flow: http.HTTPFlow, response: http.Response, flow_request: FlowRequest, page: PassedResponse | None
    ) -> Verdict | None:
        public = page is not None and page.public
        reporter = self._reporter
        if page is not None and self._inspection is not None:
            if self._inspection.keep(flow, response, flow_request, page):
                if not public and reporter is not None:
                    reporter.queue_page(flow_request)
                return None
            if self._blocks_failures:
                return FAILURE
        if reporter is None:
            return None
        if page is not None and public and self._passed is not None and reporter.is_due(flow_request):
            then = response.stream if callable(response.stream) else None
            done = _CopiedPage(self._passed, reporter, self._counters, flow_request, page).done
            response.stream = PassedCopy(cast("Callable[[bytes], list[bytes]] | None", then), done)
            return None
        reporter.queue_page(flow_request)
        if flow_request.plain_client:
            reporter.queue_html(flow_request, response.headers.get("content-type", ""))
        return None

    def _is_public(self, flow: http.HTTPFlow, flow_request: FlowRequest, response: http.Response) -> bool:
        """Returns whether a judgement of a response may be learned for its URL: its host is certain, and it is public."""
        if not is_public(flow_request, response) or shows_certificate() or not is_authenticated(flow, flow_request):
            return False
        if flow.server_conn in self._with_bodies:
            return False
        if self._has_parent:  # the peer is the parent, and where that went is not known unless the URL names it
            host = flow_request.request.url.host
            named_parent = b"proxy-authorization" in flow_request.headers
            return not named_parent and (not is_ip_literal(host) or host.strip("[]") in self._open)
        peer = flow.server_conn.peername
        return peer is not None and peer[0] in self._open


class _CopiedPage:
    """Gives the copy of a page to the learner when its body is complete; queues its URL where that fails."""

    def __init__(
        self, passed: PassedSink, reporter: UrlReporter, counters: Counters, flow_request: FlowRequest, page: PassedResponse
    ) -> None:
        self._passed = passed
        self._reporter = reporter
        self._counters = counters
        self._flow_request = flow_request
        self._page = page

    def done(self, body: bytes | None) -> None:
        if body is not None and self._passed.passed(replace(self._page, body=body)):
            self._counters.add("captures_queued")
            self._reporter.mark_queued(self._flow_request)
            return
        if body is not None:
            self._counters.add("captures_dropped")
        self._reporter.queue_page(self._flow_request)
