"""The addon: asks the engine at each request's headers, answers what is blocked, lets everything else stream through.

A hook of mitmproxy must neither raise (it would fail open) nor wait (one worker serves all its clients in one loop): each is
wrapped, and does no I/O, takes no lock and never sleeps. Only `hold` waits, as a coroutine that holds up its own request alone.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mitmproxy import addonmanager, ctx, http, tcp, udp

from gatewayfilter.config import OnError, ProxySettings, UnknownRule
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide, OfferSink, OwnPages
from gatewayfilter.model import Action, Reason, Request, Verdict
from gatewayfilter.proxy import connections, origin_connections
from gatewayfilter.proxy.early_answer import answer_early
from gatewayfilter.proxy.faults import is_origin_fault
from gatewayfilter.proxy.flow_request import FlowRequest, read_flow, read_tunnel
from gatewayfilter.proxy.offering import Offering
from gatewayfilter.proxy.own_response import own_response
from gatewayfilter.proxy.privacy import DecisionRecorder
from gatewayfilter.proxy.responses import CategoryTitle, bad_request_response, block_response, failure_response
from gatewayfilter.telemetry import Counters

if TYPE_CHECKING:
    from mitmproxy.addons.proxyserver import Proxyserver

_log = logging.getLogger(__name__)

_ASKED = "gatewayfilter"
"""Key in `flow.metadata` of the `FlowRequest` of an unknown URL that may still turn out to be a page."""
_HOLD_POLL_S = 0.02
_MOST_HELD = 256
"""Requests held at once in one worker; the next one is treated as `hold` treats a time-out: allowed."""
_COMPLAIN_EVERY_S = 10.0
_FOR_A_PROXY = (b"proxy-connection", b"proxy-authorization")
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
        title_of: names a category for people, on the block page.
        own_pages: what the filter answers for itself, before any decision; neither counted nor logged.
        on_start, on_stop: called when mitmproxy runs and when it ends; for use under mitmdump, where nobody else would.
    """

    name = "gatewayfilter"

    def __init__(  # noqa: PLR0913  each is a part that it is joined from
        self,
        decide: Decide,
        offers: OfferSink | None,
        recorder: DecisionRecorder | None,
        settings: ProxySettings,
        counters: Counters,
        *,
        title_of: CategoryTitle | None = None,
        own_pages: OwnPages | None = None,
        on_start: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._decide = decide
        self._offering = Offering(offers) if offers is not None else None
        self._recorder = recorder
        self._settings = settings
        self._counters = counters
        self._title_of = title_of or _plain_title
        self._own_pages = own_pages
        self._on_start = on_start
        self._on_stop = on_stop
        self._has_parent = settings.mode.startswith("upstream:")
        self._held = 0
        self._complained_at = -_COMPLAIN_EVERY_S
        self._proxyserver: Proxyserver | None = None

    def load(self, loader: addonmanager.Loader) -> None:
        """Sets what the filter needs of mitmproxy: a blocked site must not be contacted before the decision."""
        connections.install()
        origin_connections.install()
        if "connection_strategy" in loader.master.options:
            loader.master.options.update(connection_strategy="lazy")

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

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Lets the origin's answer stream through, and has a look at whether it is a page."""
        try:
            response = flow.response
            if response is None or response.data.content is not None:  # an answer of ours, or of another addon
                return
            response.stream = True
            headers = response.headers
            if "alt-svc" in headers:  # HTTP/3 would go past the filter
                del headers["alt-svc"]
            asked = flow.metadata.pop(_ASKED, None)
            if asked is not None and self._offering is not None:
                self._offering.offer_html(asked, headers.get("content-type", ""))
        except Exception:  # noqa: BLE001  a hook that raises would leave the body unstreamed
            self._complain()

    def error(self, flow: http.HTTPFlow) -> None:
        """Counts what was allowed but came to nothing at the origin."""
        try:
            allowed = flow.request.stream and (flow.response is None or flow.response.data.content is None)
            if allowed and flow.error is not None and is_origin_fault(flow.error.msg):
                self._counters.add("origin_errors")
        except Exception:  # noqa: BLE001  a hook must not raise
            self._complain()

    def tcp_start(self, flow: tcp.TCPFlow) -> None:
        """Refuses a tunnel of something other than HTTP to a blocked site: its URLs will never be seen."""
        try:
            if flow.server_conn.timestamp_start is not None:  # an upgraded connection, whose URL was judged
                return
            started = time.perf_counter_ns()
            request = read_tunnel(flow)
            verdict = self._decide.decide(request)
            if verdict.blocked:
                flow.server_conn.error = "blocked by the filter"
            self._count(request, verdict, started)
        except Exception:  # noqa: BLE001  a hook that raises fails open
            self._complain()
            if self._settings.on_error is OnError.BLOCK:
                with suppress(Exception):
                    flow.server_conn.error = "the filter failed"

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the socket is open."""
        self._forget(flow)

    def tcp_message(self, flow: tcp.TCPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the connection is open."""
        self._forget(flow)

    def udp_message(self, flow: udp.UDPFlow) -> None:
        """Forgets the message: mitmproxy would keep all of them while the flow is open."""
        self._forget(flow)

    def _forget(self, flow: http.HTTPFlow | tcp.TCPFlow | udp.UDPFlow) -> None:
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
        if self._own_pages is not None and self._own_pages.answers(asked.request.url):
            flow.response = own_response(self._own_pages, asked.request, flow)
            if asked.request.method not in _BODILESS:
                self._answer_early(flow)
            return None
        verdict = self._verdict(asked)
        if not verdict.unknown or verdict.blocked:
            self._carry_out(flow, asked, verdict, started)
            return None
        self._counters.add("unknown")
        expected = self._offering is not None and self._offering.offer_page(asked)
        if self._settings.unknown is UnknownRule.BLOCK:
            verdict = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
        elif self._settings.unknown is UnknownRule.HOLD and expected and self._held < _MOST_HELD:
            return self._hold(flow, asked, started)
        self._carry_out(flow, asked, verdict, started)
        return None

    def _verdict(self, asked: FlowRequest) -> Verdict:
        verdict = self._decide.decide(asked.request)
        for alias in asked.aliases:
            if verdict.blocked:
                break
            other = self._decide.decide(alias)
            if other.blocked:
                verdict = other
        return verdict

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
        if verdict.blocked:
            language = flow.request.headers.get("accept-language", "")
            flow.response = block_response(asked.request, verdict, language, self._title_of)
            self._answer_early(flow)
        else:
            if verdict.unknown:
                flow.metadata[_ASKED] = asked
            self._let_through(flow, asked)
        self._count(asked.request, verdict, started)

    def _count(self, request: Request, verdict: Verdict, started: int) -> None:
        self._counters.add("requests")
        if verdict.blocked:
            self._counters.add("blocked")
        if self._recorder is not None:
            self._recorder.record(request, verdict, (time.perf_counter_ns() - started) // 1000)

    def _let_through(self, flow: http.HTTPFlow, asked: FlowRequest) -> None:
        if asked.host_header:
            flow.request.headers["Host"] = asked.host_header
        if not self._has_parent:  # they were for us, and the second one is a password (RFC 9110 §11.7.1)
            for name in _FOR_A_PROXY:
                if name in asked.headers:
                    del flow.request.headers[name]
        flow.request.stream = True

    def _answer_early(self, flow: http.HTTPFlow) -> None:
        connections = self._proxyserver.connections if self._proxyserver is not None else {}
        answer_early(flow, connections.get(flow.client_conn.id))

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
