"""The addon: asks the engine at each request's headers, answers what is blocked, lets everything else stream through.

A hook of mitmproxy must neither raise (it would fail open) nor wait (one worker serves all its clients in one loop): each is
wrapped, and does no I/O, takes no lock and never sleeps. Only `hold` waits, as a coroutine that holds up its own request alone.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mitmproxy import addonmanager, ctx, http, udp

from gatewayfilter.config import OnError, ProxySettings, Settings, UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import ChangeTraffic, CrawlRequestSink, Decide, DecideHost, Inspect, InternalPages, PassedSink
from gatewayfilter.model import Action, Reason, Request, Verdict
from gatewayfilter.proxy.listener.connection_deadlines import ConnectionDeadlines
from gatewayfilter.proxy.mitm import http_connections, origin_pool
from gatewayfilter.proxy.mitm.early_response import replace_response, respond_early, stream_of
from gatewayfilter.proxy.mitm.next_layer import NextLayer
from gatewayfilter.proxy.pages.block_page import CategoryTitle, bad_request_response, block_response, failure_response
from gatewayfilter.proxy.pages.internal_pages import internal_response
from gatewayfilter.proxy.pages.upstream_errors import is_origin_fault
from gatewayfilter.proxy.request.flow_request import FlowRequest, read_flow
from gatewayfilter.proxy.request.header_sanitizer import leave_trailers, mend
from gatewayfilter.proxy.request.named_address import NamedAddresses
from gatewayfilter.proxy.request.sent_request import make_ready
from gatewayfilter.proxy.request.unblock_form import UnblockForm
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.origin_name import has_body
from gatewayfilter.proxy.response.response_pipeline import PendingResponse, ResponsePipeline
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.proxy.tunnel.raw_tunnels import RawTunnels
from gatewayfilter.telemetry import Counters

if TYPE_CHECKING:
    from mitmproxy.addons.proxyserver import Proxyserver
    from mitmproxy.proxy.server import ConnectionHandler

_log = logging.getLogger(__name__)

_PASSING = "gatewayfilter"
"""Key in `flow.metadata` of what was let through, until its response is here."""
_ASKING = "gatewayfilter.unblock"
_HOLD_POLL_S = 0.02
_MOST_HELD = 256
"""Requests held at once in one worker; the next one is treated as `hold` treats a time-out: allowed."""
_COMPLAIN_EVERY_S = 10.0
_BODILESS = frozenset({"GET", "HEAD"})
_BAD_REQUEST = Verdict(Action.BLOCK, Reason.BAD_REQUEST)


def _plain_title(category: str, _language: str) -> str:
    return category


class GatewayAddon:
    """Filters what passes through mitmproxy.

    Args:
        decide: the engine.
        offers: takes URLs that nobody has an opinion on; `None` when nothing is learned.
        recorder: takes every decision for the log; `None` when nothing is logged.
        settings: what to do with unknown URLs and with failures of the filter itself.
        counters: `requests`, `blocked`, `unknown`, `origin_errors`, `hook_errors`.
        hosts: the engine for host names; `None` where nothing may pass unread.
        title_of: names a category for people, on the block page.
        internal_pages: what the filter answers for itself, before any decision; neither counted nor logged.
        whole: all settings, of which `settings` is a part; by default those of nobody.
        changes: says what Adblock modifiers change; `None` for nothing.
        inspect: looks at pages before they are delivered, for `unknown = "inspect"`.
        passed: takes public pages as they pass.
        desk: takes requests to unblock pages.
        on_start, on_stop: called when mitmproxy runs and when it ends; for use under mitmdump, where nobody else would.
    """

    name = "gatewayfilter"

    def __init__(  # noqa: PLR0913  each is a part that it is joined from
        self,
        decide: Decide,
        offers: CrawlRequestSink | None,
        recorder: DecisionRecorder | None,
        settings: ProxySettings,
        counters: Counters,
        *,
        hosts: DecideHost | None = None,
        title_of: CategoryTitle | None = None,
        internal_pages: InternalPages | None = None,
        whole: Settings | None = None,
        changes: ChangeTraffic | None = None,
        inspect: Inspect | None = None,
        passed: PassedSink | None = None,
        desk: UnblockForm | None = None,
        on_start: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._decide = decide
        self._addresses = NamedAddresses(decide, hosts, settings.unknown)
        self._url_reporter = UrlReporter(offers, settings.unknown) if offers is not None else None
        self._recorder = recorder
        self._settings = settings
        self._counters = counters
        self._title_of = title_of or _plain_title
        self._internal_pages = internal_pages
        whole = whole or Settings(proxy=settings)
        self._changes = TrafficChanges(changes, whole.filter, counters) if changes is not None else None
        self._responses = ResponsePipeline(
            whole, counters, changes=self._changes, url_reporter=self._url_reporter, inspect=inspect, passed=passed
        )
        self._desk = desk
        self._on_start = on_start
        self._on_stop = on_stop
        tunnels = RawTunnels(
            decide, hosts if whole.tls.splice else None, recorder, settings, counters, web_ports=frozenset(whole.gateway.ports)
        )
        deadlines = ConnectionDeadlines(counters)
        self.addons = (tunnels, deadlines, NextLayer(tunnels, deadlines))
        self._has_parent = settings.mode.startswith("upstream:")
        self._held = 0
        self._complained_at = -_COMPLAIN_EVERY_S
        self._proxyserver: Proxyserver | None = None

    def load(self, loader: addonmanager.Loader) -> None:
        """Sets what the filter needs of mitmproxy: a blocked site must not be contacted before the decision."""
        http_connections.install()
        origin_pool.install()
        if "connection_strategy" in loader.master.options:
            loader.master.options.update(connection_strategy="lazy")
        if "rawtcp" in loader.master.options:
            loader.master.options.update(rawtcp=False)  # whatever else guesses: what is no HTTP is our own next layer's to allow

    def is_internal_page(self, flow: http.HTTPFlow) -> bool:
        """Returns whether a request is for a page of the filter itself, which nobody has to log in for."""
        try:
            return self._internal_pages is not None and self._internal_pages.answers(read_flow(flow).request.url)
        except Exception as error:  # noqa: BLE001  asked in a hook, which must not raise
            if not isinstance(error, UrlError):
                self._complain()
            return False

    def running(self) -> None:
        """Starts what belongs to the addon."""
        self._proxyserver = ctx.master.addons.get("proxyserver")  # type: ignore[no-untyped-call]
        if self._on_start is not None:
            self._on_start()

    def done(self) -> None:
        """Stops what belongs to the addon."""
        if self._on_stop is not None:
            self._on_stop()

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Decides. Returns a coroutine only when the request is held for a verdict."""
        try:
            return self._judge(flow)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._fail(flow)
            return None

    def request(self, flow: http.HTTPFlow) -> None:
        """Answers a request to unblock a page, whose body is here. Of trailers, it leaves what may be sent on."""
        try:
            if flow.request.data.trailers is not None:
                leave_trailers(flow.request.data)
            asked = flow.metadata.pop(_ASKING, None)
            if asked is not None and self._desk is not None and flow.response is None:
                flow.response = self._desk.answer(asked, flow.request.raw_content or b"")
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._fail(flow)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Lets the origin's answer stream through, as the rules change it, unless it is looked at first."""
        try:
            response = flow.response
            if response is None or response.data.content is not None:  # an answer of ours, or of another addon
                return
            response.stream = True
            headers = response.headers
            mend(response)
            if "alt-svc" in headers:  # HTTP/3 would go past the filter
                del headers["alt-svc"]
            passing = flow.metadata.pop(_PASSING, None)
            if passing is not None:
                verdict = self._responses.begin(flow, passing, lambda: stream_of(flow, self._connection(flow)))
                if verdict is not None:
                    self._block_late(flow, passing.asked, verdict, time.perf_counter_ns())
                    replace_response(flow, self._connection(flow))
        except Exception:  # noqa: BLE001  a hook that raises would leave the body unstreamed
            self._fail_late(flow)

    def response(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Looks at a page that was held for it. Of trailers, it leaves what may be sent on."""
        try:
            if flow.response is not None and flow.response.data.trailers is not None:
                leave_trailers(flow.response.data)
            return self._look(flow) if self._responses.is_held(flow) else None
        except Exception:  # noqa: BLE001  a hook must not raise
            self._complain()
            return None

    def error(self, flow: http.HTTPFlow) -> None:
        """Counts what was allowed but came to nothing at the origin."""
        try:
            self._responses.forget(flow)
            allowed = flow.request.stream and (flow.response is None or flow.response.data.content is None)
            if allowed and flow.error is not None and is_origin_fault(flow.error.msg):
                self._counters.add("origin_errors")
        except Exception:  # noqa: BLE001  a hook must not raise
            self._complain()

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the socket is open."""
        self._forget(flow)

    def udp_message(self, flow: udp.UDPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the flow is open."""
        self._forget(flow)

    def _forget(self, flow: http.HTTPFlow | udp.UDPFlow) -> None:
        try:
            holder = flow.websocket if isinstance(flow, http.HTTPFlow) else flow
            if holder is not None:
                holder.messages.clear()
        except Exception:  # noqa: BLE001  a hook must not raise
            self._complain()

    def _judge(self, flow: http.HTTPFlow) -> Coroutine[Any, Any, None] | None:
        if flow.response is not None:  # another addon was first
            return None
        started = time.perf_counter_ns()
        if flow.error is not None:  # mitmproxy refuses it itself, with a 400
            self._bad_request(flow)
            return None
        try:
            asked = read_flow(flow)
        except UrlError:
            flow.response = bad_request_response(flow.request.method, flow.request.headers.get("accept-language", ""))
            self._bad_request(flow)
            self._answer_early(flow)
            return None
        if asked.target:
            flow.request.data.path = asked.target
        if self._speaks_for_itself(flow, asked):
            return None
        verdict = self._verdict(asked)
        if not verdict.unknown or verdict.blocked:
            self._carry_out(flow, asked, verdict, started)
            return None
        self._counters.add("unknown")
        waits = self._settings.unknown is not UnknownRule.BLOCK and self._responses.judged_from_response(asked)
        expected = not waits and self._url_reporter is not None and self._url_reporter.offer_page(asked)
        if self._settings.unknown is UnknownRule.BLOCK:
            verdict = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
        elif self._settings.unknown is UnknownRule.HOLD and expected and self._held < _MOST_HELD:
            return self._hold(flow, asked, started)
        self._carry_out(flow, asked, verdict, started)
        return None

    def _speaks_for_itself(self, flow: http.HTTPFlow, asked: FlowRequest) -> bool:
        """Answers what is asked of the filter rather than of a site."""
        if self._internal_pages is not None and self._internal_pages.answers(asked.request.url):
            flow.response = internal_response(self._internal_pages, asked.request, flow)
            if asked.request.method not in _BODILESS:
                self._answer_early(flow)
            return True
        if self._desk is None or not self._desk.is_for_us(asked):
            return False
        flow.response = self._desk.refuse(asked)
        if flow.response is None:
            flow.metadata[_ASKING] = asked  # its body is read, then it is answered
        else:
            self._answer_early(flow)
        return True

    def _verdict(self, asked: FlowRequest) -> Verdict:
        verdict = self._decide.decide(asked.request)
        for alias in asked.aliases:
            if verdict.blocked:
                break
            other = self._decide.decide(alias)
            # Where unknown URLs are blocked, one known name does not make up for another one that is not.
            if other.blocked or (other.unknown and self._settings.unknown is UnknownRule.BLOCK):
                verdict = other
        return self._addresses.verdict(asked, verdict) if asked.address and not verdict.blocked else verdict

    async def _hold(self, flow: http.HTTPFlow, asked: FlowRequest, started: int) -> None:
        self._held += 1
        try:
            deadline = time.monotonic() + self._settings.hold_ms / 1000
            verdict = self._verdict(asked)
            while verdict.unknown and not verdict.blocked and time.monotonic() < deadline and flow.error is None:
                await asyncio.sleep(_HOLD_POLL_S)
                verdict = self._verdict(asked)
            self._carry_out(flow, asked, verdict, started)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._fail(flow)
        finally:
            self._held -= 1

    def _carry_out(self, flow: http.HTTPFlow, asked: FlowRequest, verdict: Verdict, started: int) -> None:
        untouched = verdict.reason is Reason.MANUAL_ALLOW
        if not verdict.blocked and self._changes is not None and not untouched:
            flow.response, other = self._changes.before(flow, asked.request)
            if other is not None:
                now = self._decide.decide(replace(asked.request, url=other))
                verdict = now if now.blocked else verdict
        if verdict.blocked:
            language = flow.request.headers.get("accept-language", "")
            flow.response = block_response(asked.request, verdict, language, self._title_of, asked.headers.get(b"origin", ""))
            self._answer_early(flow)
        elif flow.response is None:
            if verdict.unknown or self._changes is not None or has_body(asked):
                flow.metadata[_PASSING] = PendingResponse(asked, verdict.unknown, untouched)
            if asked.address:
                self._addresses.lead(flow, asked, verdict)
            self._let_through(flow, asked)
        self._count(asked.request, verdict, started)

    async def _look(self, flow: http.HTTPFlow) -> None:
        started = time.perf_counter_ns()
        try:
            asked, verdict = await self._responses.look(flow)
            if verdict is not None:
                self._block_late(flow, asked, verdict, started)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._fail_late(flow)

    def _block_late(self, flow: http.HTTPFlow, asked: FlowRequest, verdict: Verdict, started: int) -> None:
        language = flow.request.headers.get("accept-language", "")
        if verdict.reason is Reason.FAILURE:
            flow.response = failure_response(flow.request.method, language)
        else:
            origin = asked.headers.get(b"origin", "")
            flow.response = block_response(asked.request, verdict, language, self._title_of, origin)
        self._count(asked.request, verdict, started, again=True)

    def _fail_late(self, flow: http.HTTPFlow) -> None:
        """A response on which the filter failed: it goes on as it came, or is answered in its place."""
        self._complain()
        if self._settings.on_error is OnError.ALLOW:
            return
        try:
            flow.response = failure_response(flow.request.method, flow.request.headers.get("accept-language", ""))
            replace_response(flow, self._connection(flow))
        except Exception:  # noqa: BLE001  even the answer failed: no answer at all is still no way through
            with suppress(Exception):
                flow.kill()  # type: ignore[no-untyped-call]

    def _connection(self, flow: http.HTTPFlow) -> "ConnectionHandler | None":
        return self._proxyserver.connections.get(flow.client_conn.id) if self._proxyserver is not None else None

    def _count(self, request: Request, verdict: Verdict, started: int, *, again: bool = False) -> None:
        if not again:
            self._counters.add("requests")
        if verdict.blocked:
            self._counters.add("blocked")
        if self._recorder is not None:
            self._recorder.record(request, verdict, (time.perf_counter_ns() - started) // 1000)

    def _let_through(self, flow: http.HTTPFlow, asked: FlowRequest) -> None:
        make_ready(flow.request, asked, has_parent=self._has_parent)
        flow.request.stream = True

    def _answer_early(self, flow: http.HTTPFlow) -> None:
        respond_early(flow, self._connection(flow))

    def _bad_request(self, flow: http.HTTPFlow) -> None:
        self._counters.add("requests")
        self._counters.add("blocked")
        if self._recorder is not None:
            client = flow.client_conn.peername[0] if flow.client_conn.peername else ""
            self._recorder.record_unreadable(client, flow.request.method, _BAD_REQUEST)

    def _fail(self, flow: http.HTTPFlow) -> None:
        self._complain()
        try:
            if flow.response is not None:
                return
            if self._settings.on_error is OnError.ALLOW:
                flow.request.stream = True
            else:
                flow.response = failure_response(flow.request.method, flow.request.headers.get("accept-language", ""))
        except Exception:  # noqa: BLE001  even the answer failed: no answer at all is still no way through
            with suppress(Exception):
                flow.kill()  # type: ignore[no-untyped-call]

    def _complain(self) -> None:
        self._counters.add("hook_errors")
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAIN_EVERY_S:
            self._complained_at = now
            _log.exception("a proxy hook failed; proxy.on_error decides")
