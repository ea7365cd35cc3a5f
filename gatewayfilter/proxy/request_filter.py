"""The filter of requests: from a flow's headers to its verdict, and to the action on the flow."""

import time
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from mitmproxy import http

from gatewayfilter.config import Settings, UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.model import UNBLOCK_PATH, Action, JudgeForm, Reason, UnknownAction, Verdict
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.pages.internal_pages import internal_response
from gatewayfilter.proxy.request.flow_request import FlowRequest, has_body, read_flow
from gatewayfilter.proxy.request.named_address import NamedAddresses
from gatewayfilter.proxy.request.pending_flow import PENDING, PendingFlow
from gatewayfilter.proxy.request.request_judge import RequestJudge
from gatewayfilter.proxy.request.search_form import FormKind, form_kind, judge_body
from gatewayfilter.proxy.request.sent_request import CONNECTION_FIELDS, make_ready
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.response_answerer import ResponseAnswerer
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.proxy.unknown_policy import AllowUnknown, BlockUnknown, HoldUnknown, InspectUnknown, UnknownPolicy
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

_BLOCK: Final = Action.BLOCK
_MANUAL_ALLOW: Final = Reason.MANUAL_ALLOW
_BODILESS: Final = frozenset({"GET", "HEAD"})


class RequestFilter:
    """Decides requests, and answers those that do not go to an origin.

    Args:
        settings: `proxy` and `learn` count here.
        services: the engine, and where decisions and URLs go.
        answerer: answers flows.
        counter: counts decisions.
        counters: `unknown`.
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
        self._engine = services.decide
        self._internal_pages = services.internal_pages
        self._logged_in = services.logged_in
        self._usage = services.usage
        self._unblock_form = services.unblock_form
        self._addresses = NamedAddresses(services.decide, services.hosts, unknown)
        self._judge = RequestJudge(services.decide, self._addresses, unknown)
        self._unknown = _unknown_policy(unknown, settings, services, reporter, self._judge)
        waits = reporter.with_frames() if reporter is not None else None
        inspects = unknown is UnknownRule.INSPECT
        self._unknown_of: Final[Mapping[UnknownAction, UnknownPolicy]] = {
            UnknownAction.ALLOW: self._unknown
            if inspects
            else _unknown_policy(UnknownRule.ALLOW, settings, services, reporter, self._judge),
            UnknownAction.HOLD: _unknown_policy(UnknownRule.HOLD, settings, services, waits, self._judge),
            UnknownAction.BLOCK: _unknown_policy(UnknownRule.BLOCK, settings, services, waits, self._judge),
        }
        self._answerer = answerer
        self._counter = counter
        self._counters = counters
        self._changes = changes
        self._has_parent = settings.proxy.mode.startswith("upstream:")

    def is_internal_page(self, flow: http.HTTPFlow) -> bool:
        """Returns whether a request is for a page of the filter itself, or for a tunnel to one of its hosts.

        Raises:
            UrlError: its URL cannot be read.
        """
        if self._internal_pages is None:
            return False
        if flow.request.method == "CONNECT":
            return self._internal_pages.answers(parse_url(f"https://{flow.request.host}:{flow.request.port}/"))
        return self._internal_pages.answers(read_flow(flow).request.url)

    def begin(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        """Decides a request when its headers have arrived. Returns a coroutine only when it is held for a verdict."""
        if flow.response is not None:  # another addon was first
            return None
        started = time.perf_counter_ns()
        if flow.error is not None:  # mitmproxy refuses it itself, with a 400
            self._counter.unreadable(flow, self._logged_in.get(flow.client_conn.id, ""))
            return None
        try:
            logged_in = self._logged_in
            flow_request = read_flow(flow, logged_in.get(flow.client_conn.id, "")) if logged_in else read_flow(flow)
        except UrlError:
            self._answerer.bad_request(flow)
            self._counter.unreadable(flow, self._logged_in.get(flow.client_conn.id, ""))
            return None
        url = flow_request.request.url
        if flow_request.target:
            flow.request.data.path = flow_request.target
        if self._internal_pages is not None and self._internal_pages.answers(url):
            self._answer_internally(flow, flow_request, internal_response(self._internal_pages, flow_request.request, flow))
            return None
        if url.path == UNBLOCK_PATH and self._unblock_form is not None:
            self._begin_unblock(flow, flow_request)
            return None
        verdict = self._engine.decide(flow_request.request)
        if flow_request.aliases or flow_request.address:
            verdict = self._judge.under_all_names(flow_request, verdict)
        if verdict.unknown and verdict.action is not _BLOCK:
            self._counters.add("unknown")
            own = verdict.unknown_action
            treated = (self._unknown if own is None else self._unknown_of[own]).treat(flow, flow_request, verdict)
            if not isinstance(treated, Verdict):
                return self._carry_out_later(flow, flow_request, treated, started)
            verdict = treated
        self._carry_out(flow, flow_request, verdict, started)
        return None

    def _read_form(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict, form: JudgeForm, started: int) -> None:
        """Has the body of a request read that may hold a search; blocks it at once where that cannot be done."""
        kind, readable = form_kind(flow_request.headers)
        matters = form.is_search or kind is FormKind.FORM or (form.judges and kind is FormKind.TEXT)
        block = form.judge(None) if not readable and (form.is_search or kind is FormKind.FORM) else None
        if block is not None:
            self._answerer.block(flow, flow_request, block)
            self._counter.request(flow_request.request, block, started)
            return
        self._send(flow, flow_request, verdict, form if readable and matters else None)
        self._counter.request(flow_request.request, verdict, started)

    def note_message(self, flow: http.HTTPFlow) -> None:
        """Counts a message over a WebSocket as use of quotas."""
        if self._usage.active:
            self._usage.running(read_flow(flow, self._logged_in.get(flow.client_conn.id, "")).request)

    def finish(self, flow: http.HTTPFlow) -> None:
        """Answers a request to unblock a page when its body has arrived, and judges a search that was posted."""
        pending = flow.metadata.get(PENDING)
        if isinstance(pending, PendingFlow) and pending.form is not None:
            started = time.perf_counter_ns()
            block = judge_body(flow.request, pending.form)
            if block is not None:
                self._answerer.block_response(flow, pending.flow_request, block)
                self._counter.response(pending.flow_request.request, block, started)
        elif isinstance(pending, PendingFlow) and pending.unblocks:
            del flow.metadata[PENDING]
            if self._unblock_form is not None and flow.response is None:
                flow.response = self._unblock_form.answer(pending.flow_request, flow.request.raw_content or b"")

    def _answer_internally(self, flow: http.HTTPFlow, flow_request: FlowRequest, response: http.Response) -> None:
        if flow_request.request.method in _BODILESS:
            flow.response = response
        else:
            self._answerer.answer(flow, response)

    def _begin_unblock(self, flow: http.HTTPFlow, flow_request: FlowRequest) -> None:
        assert self._unblock_form is not None
        answer = self._unblock_form.answer_head(flow_request)
        if answer is None:
            flow.metadata[PENDING] = PendingFlow(flow_request, False, False, unblocks=True)
        else:
            self._answer_internally(flow, flow_request, answer)

    async def _carry_out_later(
        self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Coroutine[Any, Any, Verdict], started: int
    ) -> None:
        self._carry_out(flow, flow_request, await verdict, started)

    def _carry_out(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict, started: int) -> None:
        untouched = verdict.reason is _MANUAL_ALLOW
        if verdict.action is not _BLOCK and (flow_request.host_header or not CONNECTION_FIELDS.isdisjoint(flow_request.headers)):
            # Before anything is set in it: what the client names in Connection must not take that out again.
            make_ready(flow.request, flow_request, has_parent=self._has_parent)
        if self._changes is not None and verdict.action is not _BLOCK:
            other = form = None
            if untouched:
                self._changes.enforce(flow, flow_request.request)
            else:
                flow.response, other, form = self._changes.before(flow, flow_request.request)
            if other is not None:
                now = self._judge.verdict(flow_request.moved(other))
                verdict = now if now.blocked else verdict
            if form is not None and verdict.action is not _BLOCK and flow.response is None:
                self._read_form(flow, flow_request, verdict, form, started)
                return
        if verdict.action is _BLOCK:
            self._answerer.block(flow, flow_request, verdict)
        elif flow.response is None:
            self._send(flow, flow_request, verdict)
        self._counter.request(flow_request.request, verdict, started)

    def _send(self, flow: http.HTTPFlow, flow_request: FlowRequest, verdict: Verdict, form: JudgeForm | None = None) -> None:
        if verdict.unknown or self._changes is not None or has_body(flow_request):
            untouched = verdict.reason is _MANUAL_ALLOW
            flow.metadata[PENDING] = PendingFlow(flow_request, verdict.unknown, untouched, form=form)
        if flow_request.address:
            self._addresses.lead(flow, flow_request, verdict)
        flow.request.stream = form is None
        if self._usage.active:
            self._usage.request(flow_request.request, verdict)


def _unknown_policy(
    unknown: UnknownRule, settings: Settings, services: FilterServices, reporter: UrlReporter | None, judge: RequestJudge
) -> UnknownPolicy:
    if unknown is UnknownRule.BLOCK:
        return BlockUnknown(reporter)
    if unknown is UnknownRule.HOLD:
        return HoldUnknown(reporter, judge, settings.proxy.hold_ms / 1000)
    if unknown is UnknownRule.INSPECT and services.inspect is not None:
        return InspectUnknown(reporter)
    return AllowUnknown(reporter, passive=services.passed is not None and settings.learn.passive)
