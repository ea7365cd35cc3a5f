"""Inspection of responses before they are delivered (`proxy.unknown = "inspect"`): kept whole, then judged in another process.

At most `MOST_INSPECTED` responses are kept at once in one worker; what is too long is streamed from where the limit was reached.
"""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from mitmproxy import http

from gatewayfilter.config import OnError, Settings
from gatewayfilter.content_encoding import EncodingError
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import Inspect, PassedResponse
from gatewayfilter.model import Action, Classification, Reason, Verdict
from gatewayfilter.proxy.mitm.buffered_response import hold_response
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.proxy.request.pending_flow import PENDING, InspectedFlow
from gatewayfilter.proxy.response.body_rewriter import EditedBody
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.proxy.response.response_answerer import ResponseAnswerer
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.settings import GrowthMode
from gatewayfilter.telemetry import Counters

MOST_INSPECTED: Final = 64
"""Of 2 MB each; the next one is treated as a response whose inspection failed."""
FAILURE: Final = Verdict(Action.BLOCK, Reason.FAILURE)


class ResponseInspection:
    """Keeps responses, has them judged, and blocks or releases them.

    Args:
        settings: `proxy`, `filter.disabled_categories` and `learn` count here.
        inspect: judges responses.
        answerer: answers what is blocked.
        counter: counts the verdicts of responses.
        counters: `inspected`, `inspect_failed`.
        reporter: queues the URLs of what could not be judged; `None` when nothing is learned.
    """

    def __init__(
        self,
        settings: Settings,
        inspect: Inspect,
        answerer: ResponseAnswerer,
        counter: DecisionCounter,
        counters: Counters,
        reporter: UrlReporter | None,
    ) -> None:
        self._blocks_failures = settings.proxy.on_error is OnError.BLOCK
        self._limit_s = settings.proxy.inspect_ms / 1000
        self._off_categories = frozenset(settings.filter.disabled_categories)
        self._learn = settings.learn
        self._inspect = inspect
        self._answerer = answerer
        self._counter = counter
        self._counters = counters
        self._reporter = reporter
        self._kept = 0

    def keep(self, flow: http.HTTPFlow, response: http.Response, flow_request: FlowRequest, page: PassedResponse) -> bool:
        """Has a response kept. Returns False, and counts it as failed, where that cannot be done."""
        stream = self._answerer.stream_of(flow)
        if stream is None or self._kept >= MOST_INSPECTED:
            self._counters.add("inspect_failed")
            return False
        self._kept += 1
        flow.metadata[PENDING] = InspectedFlow(flow_request, page, response.stream)
        hold_response(stream, response.stream, _Release(self, flow, flow_request).release)
        response.stream = False
        return True

    def forget(self, flow: http.HTTPFlow) -> None:
        """Drops the state of a response that will not be inspected: it is too long, or its connection failed."""
        if isinstance(flow.metadata.get(PENDING), InspectedFlow):
            del flow.metadata[PENDING]
            self._kept -= 1

    def give_up(self, flow: http.HTTPFlow, flow_request: FlowRequest) -> None:
        """Queues the URL of a response that is too long to be inspected."""
        self.forget(flow)
        if self._reporter is not None:
            self._reporter.queue_page(flow_request)

    def finish(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Returns a coroutine that judges a response which was kept, `None` for any other one."""
        kept = flow.metadata.get(PENDING)
        return self._judge(flow, kept) if isinstance(kept, InspectedFlow) else None

    async def _judge(self, flow: http.HTTPFlow, kept: InspectedFlow) -> None:
        started = time.perf_counter_ns()
        del flow.metadata[PENDING]
        try:
            verdict = await self._verdict(flow, kept)
        finally:
            self._kept -= 1
        stream_as = kept.stream_as
        if isinstance(stream_as, CheckedDownload):
            response = flow.response
            verdict = verdict or stream_as.judge((response.data.content if response is not None else b"") or b"")
            stream_as = stream_as.then
        if verdict is not None:
            self._answerer.block_response(flow, kept.flow_request, verdict)
            self._counter.response(kept.flow_request.request, verdict, started)
        elif flow.error is None:
            _rewrite_whole(flow, stream_as)

    async def _verdict(self, flow: http.HTTPFlow, kept: InspectedFlow) -> Verdict | None:
        response = flow.response
        assert response is not None
        page = replace(kept.page, body=response.data.content or b"")
        try:
            async with asyncio.timeout(self._limit_s):
                found = await self._inspect.inspect(page)
        except (InspectError, TimeoutError):
            self._counters.add("inspect_failed")
            if self._reporter is not None:
                self._reporter.queue_page(kept.flow_request)
            return FAILURE if self._blocks_failures else None
        self._counters.add("inspected")
        if page.public and self._reporter is not None:
            self._reporter.mark_queued(kept.flow_request)
        return self._block_of(found, public=page.public)

    def _block_of(self, found: Classification | None, *, public: bool) -> Verdict | None:
        if found is None or not found.harmful or found.category in self._off_categories:
            return None
        if self._learn.mode_of(found.category) is GrowthMode.REVIEW:  # a person decides first
            return None
        return found.block(unknown=not public)  # then it will be on no list: the page was for this visitor alone


class _Release:
    """Releases a response that is too long to be kept."""

    def __init__(self, inspection: ResponseInspection, flow: http.HTTPFlow, flow_request: FlowRequest) -> None:
        self._inspection = inspection
        self._flow = flow
        self._flow_request = flow_request

    def release(self) -> None:
        self._inspection.give_up(self._flow, self._flow_request)


def _rewrite_whole(flow: http.HTTPFlow, stream_as: object) -> None:
    """Rewrites the body of a response that was kept as it would have been rewritten in a stream, and sets its length."""
    response = flow.response
    assert response is not None
    body = response.data.content or b""
    if isinstance(stream_as, EditedBody):
        try:
            body = stream_as.whole(body)
        except EncodingError:
            return  # the exchange is broken off already
        response.headers.pop("transfer-encoding", None)
        response.headers["content-length"] = str(len(body))
        response.data.content = body
