"""The policy for requests to URLs on no list (`proxy.unknown`): one class for each of allow, hold, inspect and block."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, Protocol

from mitmproxy import http

from gatewayfilter.model import PAGE_TYPES, Action, Reason, Verdict
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.proxy.request.request_judge import RequestJudge
from gatewayfilter.proxy.sync.url_reporter import UrlReporter

_BLOCKED: Final = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
_HOLD_POLL_S: Final = 0.02
_MOST_HELD: Final = 256
"""Requests held at once in one worker; the next one is allowed, as after a time-out."""


class UnknownPolicy(Protocol):
    """Treats requests to URLs on no list."""

    def treat(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> Verdict | Coroutine[Any, Any, Verdict]:
        """Queues the URL for classification where it is due, and returns the verdict, or a coroutine that waits for one.

        Args:
            flow: of the request.
            flow_request: the request.
            verdict: of the engine, which allows it as unknown.
        """
        ...


class AllowUnknown:
    """Allows the request. Its URL is queued unless its response will probably be judged as it passes.

    Args:
        reporter: queues URLs; `None` when nothing is learned.
        passive: public pages are judged as they pass.
    """

    def __init__(self, reporter: UrlReporter | None, *, passive: bool) -> None:
        self._reporter = reporter
        self._passive = passive

    def treat(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> Verdict:  # noqa: ARG002  the protocol
        """Returns the engine's verdict."""
        reporter = self._reporter
        if reporter is not None and flow_request.request.resource_type in PAGE_TYPES:
            passes = self._passive and flow_request.anonymous and not flow_request.aliases
            if not passes:  # what may not be queued, or was a moment ago, would not be queued here either
                reporter.queue_page(flow_request)
        return verdict


class InspectUnknown:
    """Allows the request: its response is kept until the inspector has judged it (response/inspection.py).

    Args:
        reporter: queues the URLs of what is inspected no more often than once a minute; `None` when nothing is learned.
    """

    def __init__(self, reporter: UrlReporter | None) -> None:
        self._reporter = reporter

    def treat(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> Verdict:  # noqa: ARG002  the protocol
        """Returns the engine's verdict."""
        if self._reporter is not None and not self._reporter.is_due(flow_request):
            self._reporter.queue_page(flow_request)
        return verdict


class BlockUnknown:
    """Queues the URL and blocks the request.

    Args:
        reporter: queues URLs; `None` when nothing is learned.
    """

    def __init__(self, reporter: UrlReporter | None) -> None:
        self._reporter = reporter

    def treat(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> Verdict:  # noqa: ARG002  the protocol
        """Returns a block."""
        if self._reporter is not None:
            self._reporter.queue_page(flow_request)
        return _BLOCKED


class HoldUnknown:
    """Queues the URL and holds the request until the crawler has judged the page, at most for a time.

    Args:
        reporter: queues URLs; `None` when nothing is learned.
        judge: decides requests.
        hold_s: how long a request is held, in seconds.

    Attributes:
        held: requests that are held now.
    """

    def __init__(self, reporter: UrlReporter | None, judge: RequestJudge, hold_s: float) -> None:
        self._reporter = reporter
        self._judge = judge
        self._hold_s = hold_s
        self.held = 0

    def treat(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict) -> Verdict | Coroutine[Any, Any, Verdict]:
        """Returns the engine's verdict where none is to be expected, else a coroutine that waits for it."""
        expected = self._reporter is not None and self._reporter.queue_page(flow_request)
        return self._wait(flow, flow_request) if expected and self.held < _MOST_HELD else verdict

    async def _wait(self, flow: http.HTTPFlow, flow_request: FlowRequest) -> Verdict:
        self.held += 1
        try:
            deadline = time.monotonic() + self._hold_s
            verdict = self._judge.verdict(flow_request)
            while verdict.unknown and not verdict.blocked and time.monotonic() < deadline and flow.error is None:
                await asyncio.sleep(_HOLD_POLL_S)
                verdict = self._judge.verdict(flow_request)
            return verdict
        finally:
            self.held -= 1
