"""The filter's own responses in flows: to a blocked request, in place of a response, and where the filter itself failed."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mitmproxy import http
from mitmproxy.proxy.server import ConnectionHandler

from gatewayfilter.config import OnError
from gatewayfilter.model import Reason, Verdict
from gatewayfilter.proxy.mitm.early_response import replace_response, respond_early, stream_of
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.telemetry import Counters

if TYPE_CHECKING:
    from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream

_log = logging.getLogger(__name__)

_REPORT_EVERY_S: Final = 10.0


class ResponseAnswerer:
    """Answers flows. Not thread-safe: for the event loop alone.

    Args:
        pages: makes the answers.
        on_error: `proxy.on_error`: what a flow gets on which the filter failed.
        counters: `hook_errors`.

    Attributes:
        connections: the open connections of mitmproxy, by the id of their client; empty until it runs. Without its connection a
            flow is answered when its body has been read.
    """

    def __init__(self, pages: BlockPages, on_error: OnError, counters: Counters) -> None:
        self._pages = pages
        self._on_error = on_error
        self._counters = counters
        self._reported_at = -_REPORT_EVERY_S
        self.connections: Mapping[Any, ConnectionHandler] = {}

    def answer(self, flow: http.HTTPFlow, response: http.Response) -> None:
        """Sends a response of ours before the body of the request has arrived."""
        flow.response = response
        respond_early(flow, self._connection(flow))

    def block(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> None:
        """Answers a request that is blocked."""
        self.answer(flow, self._block_page(flow, flow_request, verdict))

    def bad_request(self, flow: http.HTTPFlow) -> None:
        """Answers a request whose URL cannot be read."""
        self.answer(flow, self._pages.bad_request(flow.request.method, _language(flow)))

    def block_response(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> None:
        """Puts a block page in the place of a response that must not go out and that has been kept."""
        if verdict.reason is Reason.FAILURE:
            flow.response = self._pages.failure(flow.request.method, _language(flow))
        else:
            flow.response = self._block_page(flow, flow_request, verdict)

    def replace_response(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> None:
        """Sends a block page in the place of a response of which only the headers have arrived."""
        self.block_response(flow, flow_request, verdict)
        replace_response(flow, self._connection(flow))

    def fail(self, flow: http.HTTPFlow) -> None:
        """Lets a request on which a hook failed pass, or answers it, as `proxy.on_error` has it. Never raises."""
        self.report_failure()
        try:
            if flow.response is not None:
                return
            if self._on_error is OnError.ALLOW:
                flow.request.stream = True
            else:
                flow.response = self._pages.failure(flow.request.method, _language(flow))
        except Exception:  # noqa: BLE001  even the answer failed: no answer at all is still no way through
            with suppress(Exception):
                flow.kill()

    def fail_response(self, flow: http.HTTPFlow) -> None:
        """Lets a response on which a hook failed pass as it came, or answers in its place. Never raises."""
        self.report_failure()
        if self._on_error is OnError.ALLOW:
            return
        try:
            flow.response = self._pages.failure(flow.request.method, _language(flow))
            replace_response(flow, self._connection(flow))
        except Exception:  # noqa: BLE001  even the answer failed: no answer at all is still no way through
            with suppress(Exception):
                flow.kill()

    def report_failure(self) -> None:
        """Counts a failed hook, and logs it at most every ten seconds; to be called where the exception is caught."""
        self._counters.add("hook_errors")
        now = time.monotonic()
        if now - self._reported_at >= _REPORT_EVERY_S:
            self._reported_at = now
            _log.exception("a proxy hook failed; proxy.on_error decides")

    def stream_of(self, flow: http.HTTPFlow) -> "GatewayHttpStream | None":
        """Returns the stream that carries a flow, `None` where it is not found."""
        return stream_of(flow, self._connection(flow))

    def _connection(self, flow: http.HTTPFlow) -> ConnectionHandler | None:
        return self.connections.get(flow.client_conn.id)

    def _block_page(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> http.Response:
        return self._pages.block(flow_request.request, verdict, _language(flow), flow_request.headers.get(b"origin", ""))


def _language(flow: http.HTTPFlow) -> str:
    return str(flow.request.headers.get("accept-language", ""))
