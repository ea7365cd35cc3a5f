"""The counter of decisions, which also passes them to the log."""

import time

from mitmproxy import http

from gatewayfilter.model import Action, Reason, Request, Verdict
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters

_BAD_REQUEST = Verdict(Action.BLOCK, Reason.BAD_REQUEST)
_BLOCK = Action.BLOCK


class DecisionCounter:
    """Counts and records what was decided.

    Args:
        counters: `requests`, `blocked`.
        recorder: `None` without a log.
    """

    def __init__(self, counters: Counters, recorder: DecisionRecorder | None) -> None:
        self._counters = counters
        self._recorder = recorder
        self._take_time = counters.decision_times.take

    def request(self, request: Request, verdict: Verdict, started_ns: int) -> None:
        """Counts the verdict of a request; `started_ns` is `time.perf_counter_ns()` when its decision began."""
        self._counters.add("requests")
        if verdict.action is _BLOCK:
            self._counters.add("blocked")
        elapsed_us = (time.perf_counter_ns() - started_ns) // 1000
        self._take_time(elapsed_us)
        if self._recorder is not None:
            self._recorder.record(request, verdict, elapsed_us)

    def response(self, request: Request, verdict: Verdict, started_ns: int) -> None:
        """Counts a second verdict of a request, by its response."""
        if verdict.action is _BLOCK:
            self._counters.add("blocked")
        if self._recorder is not None:
            self._recorder.record(request, verdict, (time.perf_counter_ns() - started_ns) // 1000)

    def unreadable(self, flow: http.HTTPFlow, user: str) -> None:
        """Counts a request whose URL cannot be read; `user` is the name of the proxy user, `""` for none."""
        self._counters.add("requests")
        self._counters.add("blocked")
        if self._recorder is not None:
            client = flow.client_conn.peername[0] if flow.client_conn.peername else ""
            self._recorder.record_unreadable(client, flow.request.method, _BAD_REQUEST, user)
