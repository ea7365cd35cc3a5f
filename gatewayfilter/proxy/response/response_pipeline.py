"""What happens to a response on its way to the client: changed by rules, looked at before it is delivered, or learned from.

Everything streams, unless it is looked at first (`unknown = "inspect"`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

from mitmproxy import http
from mitmproxy.connection import Server

from gatewayfilter.config import OnError, Settings, UnknownRule
from gatewayfilter.content_encoding import EncodingError
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import Inspect, PassedResponse, PassedSink
from gatewayfilter.model import Action, Classification, Reason, Verdict
from gatewayfilter.proxy.mitm.buffered_response import hold_response
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.proxy.response.adblock_modifiers import TrafficChanges
from gatewayfilter.proxy.response.body_rewriter import EditedBody
from gatewayfilter.proxy.response.origin_name import has_body, is_authenticated, shows_certificate
from gatewayfilter.proxy.response.page_capture import OpenNetworks, PassedCopy, is_page, is_public, passed_response, said_in
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.settings import GrowthMode
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import is_ip_literal

if TYPE_CHECKING:
    from mitmproxy.proxy.layers.http import HttpStream

_MOST_INSPECTED: Final = 64
"""Pages held at once in one worker, 2 MB each; the next one is treated as one that could not be looked at."""
_FAILURE: Final = Verdict(Action.BLOCK, Reason.FAILURE)
_LOOKED_AT: Final = "gatewayfilter.inspect"


@dataclass(frozen=True, slots=True)
class PendingResponse:
    """A request that was let through, until its response is here.

    Attributes:
        unknown: no list knows its URL.
        untouched: a person said that it is to be left alone: nothing is changed in it.
    """

    asked: FlowRequest
    unknown: bool
    untouched: bool = False


@dataclass(frozen=True, slots=True)
class _LookedAt:
    asked: FlowRequest
    page: PassedResponse
    stream_as: object


class ResponsePipeline:
    """Sets up what becomes of each response, and decides on those that are looked at.

    Args:
        settings: `proxy`, `filter`, `learn` and `crawl.allow_networks` count here.
        counters: `inspected`, `inspect_failed`, `passed_offered`, `passed_dropped`.
        changes: applies Adblock modifiers; `None` for none.
        url_reporter: offers URLs to the frontier; `None` when nothing is learned.
        inspect: looks at pages before they are delivered, for `unknown = "inspect"`.
        passed: takes pages as they pass; `None` to have all of them fetched.
    """

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        *,
        changes: TrafficChanges | None = None,
        url_reporter: UrlReporter | None = None,
        inspect: Inspect | None = None,
        passed: PassedSink | None = None,
    ) -> None:
        self._settings = settings.proxy
        self._off_categories = frozenset(settings.filter.disabled_categories)
        self._learn = settings.learn
        self._counters = counters
        self._changes = changes
        self._url_reporter = url_reporter
        self._inspect = inspect if settings.proxy.unknown is UnknownRule.INSPECT else None
        self._passed = passed if settings.learn.passive and settings.proxy.unknown is not UnknownRule.HOLD else None
        self._open = OpenNetworks(settings.crawl.allow_networks)
        self._has_parent = settings.proxy.mode.startswith("upstream:")
        self._looks = self._inspect is not None or self._passed is not None
        self._looking = 0
        self._with_bodies: WeakSet[Server] = WeakSet()

    def judged_from_response(self, asked: FlowRequest) -> bool:
        """Tells whether an unknown page is likely to be judged by its response, so that its URL need not be offered yet."""
        if self._url_reporter is None or not self._url_reporter.is_due(asked):
            return False
        return self._inspect is not None or (self._passed is not None and asked.anonymous and not asked.aliases)

    def begin(self, flow: http.HTTPFlow, passing: PendingResponse, stream: Callable[[], "HttpStream | None"]) -> Verdict | None:
        """Sets up what becomes of a response whose headers have arrived; `response.stream` is on.

        Args:
            flow: its response is the origin's.
            passing: what was let through.
            stream: finds the flow's stream on its connection.

        Returns:
            The verdict of a rule that blocks the response after all.
        """
        response = flow.response
        assert response is not None
        asked = passing.asked
        if self._looks and has_body(asked):
            self._with_bodies.add(flow.server_conn)
        page = None
        if passing.unknown and self._looks and is_page(asked, response):  # as it is now: what the client gets may be changed
            said = said_in(flow.request) if self._is_public(flow, asked, response) else None
            if said is not None or self._inspect is not None:
                page = passed_response(asked, response, said)
        if self._changes is not None and not passing.untouched:
            verdict = self._changes.after(flow, asked.request)
            if verdict is not None:
                return verdict
        return self._learn_from(flow, asked, page, stream) if passing.unknown else None

    def _learn_from(
        self,
        flow: http.HTTPFlow,
        asked: FlowRequest,
        page: PassedResponse | None,
        stream: Callable[[], "HttpStream | None"],
    ) -> Verdict | None:
        response = flow.response
        assert response is not None
        public = page is not None and page.public
        if page is not None and self._inspect is not None:
            if self._hold(flow, asked, page, stream()):
                if not public and self._url_reporter is not None:
                    self._url_reporter.offer_page(asked)
                return None
            self._counters.add("inspect_failed")
            if self._settings.on_error is OnError.BLOCK:
                return _FAILURE
        if self._url_reporter is None:
            return None
        if page is not None and public and self._passed is not None and self._url_reporter.is_due(asked):
            self._copy(asked, response, page)
            return None
        self._url_reporter.offer_page(asked)
        self._url_reporter.offer_html(asked, response.headers.get("content-type", ""))
        return None

    def _is_public(self, flow: http.HTTPFlow, asked: FlowRequest, response: http.Response) -> bool:
        """Tells whether what is found out of a response may be learned for its URL: certainly its host's, and for anybody."""
        if not is_public(asked, response) or shows_certificate() or not is_authenticated(flow, asked):
            return False
        if flow.server_conn in self._with_bodies:
            return False
        if self._has_parent:  # the peer is the parent, and where that went is not known unless the URL says so
            host = asked.request.url.host
            named_parent = b"proxy-authorization" in asked.headers
            return not named_parent and (not is_ip_literal(host) or host.strip("[]") in self._open)
        peer = flow.server_conn.peername
        return peer is not None and peer[0] in self._open

    def _hold(self, flow: http.HTTPFlow, asked: FlowRequest, page: PassedResponse, stream: "HttpStream | None") -> bool:
        response = flow.response
        if stream is None or response is None or self._looking >= _MOST_INSPECTED:
            return False
        self._looking += 1
        flow.metadata[_LOOKED_AT] = _LookedAt(asked, page, response.stream)

        def give_up() -> None:
            self.forget(flow)
            if self._url_reporter is not None:
                self._url_reporter.offer_page(asked)

        hold_response(stream, response.stream, give_up)
        response.stream = False
        return True

    def forget(self, flow: http.HTTPFlow) -> None:
        """Takes note that a response that was to be looked at never will be: it is too long, or broke off."""
        if flow.metadata.pop(_LOOKED_AT, None) is not None:
            self._looking -= 1

    def _copy(self, asked: FlowRequest, response: http.Response, page: PassedResponse) -> None:
        url_reporter, passed = self._url_reporter, self._passed
        assert url_reporter is not None
        assert passed is not None

        def done(body: bytes | None) -> None:
            if body is not None and passed.passed(replace(page, body=body)):
                self._counters.add("passed_offered")
                url_reporter.note(asked)
            else:
                if body is not None:
                    self._counters.add("passed_dropped")
                url_reporter.offer_page(asked)

        then = response.stream if callable(response.stream) else None
        response.stream = PassedCopy(cast("Callable[[bytes], list[bytes]] | None", then), done)

    def is_held(self, flow: http.HTTPFlow) -> bool:
        """Tells whether the response of a flow was kept to be looked at."""
        return _LOOKED_AT in flow.metadata

    async def look(self, flow: http.HTTPFlow) -> tuple[FlowRequest, Verdict | None]:
        """Looks at a response that was held, and makes it ready to go out.

        Returns:
            What was asked for, and a verdict where the response must not go out.
        """
        looked_at = cast("_LookedAt", flow.metadata.pop(_LOOKED_AT))
        try:
            verdict = await self._verdict(flow, looked_at)
        finally:
            self._looking -= 1
        if verdict is None and flow.error is None:
            _make_whole(flow, looked_at.stream_as)
        return looked_at.asked, verdict

    async def _verdict(self, flow: http.HTTPFlow, looked_at: _LookedAt) -> Verdict | None:
        response = flow.response
        assert response is not None
        assert self._inspect is not None
        asked = looked_at.asked
        page = replace(looked_at.page, body=response.data.content or b"")
        try:
            async with asyncio.timeout(self._settings.inspect_ms / 1000):
                found = await self._inspect.inspect(page)
        except (InspectError, TimeoutError):
            self._counters.add("inspect_failed")
            if self._url_reporter is not None:
                self._url_reporter.offer_page(asked)
            return _FAILURE if self._settings.on_error is OnError.BLOCK else None
        self._counters.add("inspected")
        if page.public and self._url_reporter is not None:
            self._url_reporter.note(asked)
        return self._blocks(found, public=page.public)

    def _blocks(self, found: Classification | None, *, public: bool) -> Verdict | None:
        if found is None or not found.harmful or found.category in self._off_categories:
            return None
        if self._learn.mode_of(found.category) is GrowthMode.REVIEW:  # a person shall say so first
            return None
        return Verdict(
            Action.BLOCK,
            Reason.LEARNED,
            source_list=f"learned:{found.category}",
            category=found.category,
            detail=found.summary(),
            unknown=not public,  # then no list will know it: it was this visitor's page alone
        )


def _make_whole(flow: http.HTTPFlow, stream_as: Any) -> None:
    """Gives a response that is here whole the body that the client gets, and the length of it."""
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
