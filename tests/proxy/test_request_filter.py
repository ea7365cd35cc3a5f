"""What the filter does with a request, step by step; everything that it calls is a stand-in."""

import asyncio
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.test import tflow

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.interfaces import InternalAnswer, InternalRequest
from gatewayfilter.model import UNBLOCK_PATH, Action, Reason, Request, ResourceType, UnknownAction, Verdict
from gatewayfilter.proxy import request_filter, unknown_policy
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.request.flow_request import FlowRequest, read_flow
from gatewayfilter.proxy.request.pending_flow import PENDING, PendingFlow
from gatewayfilter.proxy.request.request_judge import RequestJudge
from gatewayfilter.proxy.request_filter import RequestFilter
from gatewayfilter.proxy.unknown_policy import AllowUnknown, BlockUnknown, HoldUnknown, InspectUnknown, UnknownPolicy
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases

ALLOW, BLOCK = Verdict(Action.ALLOW, Reason.WHITELIST), Verdict(Action.BLOCK, Reason.BLACKLIST)
MANUAL, UNKNOWN = Verdict(Action.ALLOW, Reason.MANUAL_ALLOW), Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True)
SITE = "http://site.example/page"
PAGES = BlockPages()


@cache
def _settings(**proxy: Any) -> Settings:
    """Returns settings, which are read once: that takes longer than these tests."""
    return Settings(proxy=ProxySettings.model_validate(proxy))


class Form:
    """The rules of a policy for what is posted."""

    def __init__(self, *, judges: bool = True, is_search: bool = False, block: Verdict | None = None) -> None:
        self.judges, self.is_search, self.block = judges, is_search, block
        self.parameters: tuple[tuple[str, str], ...] = ()
        self.judged: list[bytes | None] = []

    def judge(self, body: bytes | None) -> Verdict | None:
        self.judged.append(body)
        return self.block


class Filter:
    """A filter, and what it did: `done` in order, `counted` with the verdicts."""

    def __init__(self, *, changes: bool = True, **proxy: Any) -> None:
        self.done: list[tuple[object, ...]] = []
        self.counted: list[tuple[object, ...]] = []
        self.verdicts: dict[str, Verdict] = {}
        self.change: tuple[object, object, object] = None, None, None
        self.counters, self.logged_in = Counters(), dict[str, str]()
        self.usage: Any = SimpleNamespace(active=False, request=self._note("use"), running=self._note("running"))
        self.queued: dict[str, bool] = {}
        self.unblock: Any = SimpleNamespace(answer_head=lambda _: None, answer=lambda _, body: http.Response.make(201, body))
        answerer = SimpleNamespace(
            block=self._note("block"),
            answer=self._note("answer"),
            bad_request=self._note("bad request"),
            block_response=self._note("block response"),
        )
        counter = SimpleNamespace(
            request=lambda request, verdict, started: self.counted.append((request.url.text, verdict)),
            response=lambda request, verdict, started: self.counted.append(("response", request.url.text, verdict)),
            unreadable=lambda flow, user: self.counted.append(("unreadable", user)),
        )
        traffic = SimpleNamespace(before=lambda flow, request: self.change, enforce=lambda *_: self.done.append(("enforce",)))
        self.services = FilterServices(
            cast("Any", self),
            internal_pages=cast("Any", self),
            logged_in=self.logged_in,
            usage=cast("Any", self.usage),
            unblock_form=cast("Any", self.unblock),
            inspect=cast("Any", object()),
            pages=PAGES,
        )
        self.filter = RequestFilter(
            _settings(**proxy),
            self.services,
            cast("Any", answerer),
            cast("Any", counter),
            self.counters,
            changes=cast("Any", traffic) if changes else None,
            reporter=cast("Any", self),
        )

    def _note(self, name: str) -> Any:
        return lambda *arguments: self.done.append(
            (name, *(one for one in arguments if isinstance(one, Verdict | http.Response)))
        )

    # the engine

    def decide(self, request: Request) -> Verdict:
        return self.verdicts.get(request.url.text, ALLOW)

    # the filter's own pages

    def answers(self, url: Url) -> bool:
        return url.host == "filter.internal"

    def respond(self, request: InternalRequest) -> InternalAnswer:
        return InternalAnswer(200, {"x-page": request.method}, b"own page")

    # the reporter

    def with_frames(self) -> "Filter":
        return self

    def is_due(self, flow_request: FlowRequest) -> bool:
        return self.queued.get("due", False)

    def queue_page(self, flow_request: FlowRequest) -> bool:
        self.done.append(("queue",))
        return self.queued.get("queued", True)

    # requests

    def begin(self, flow: http.HTTPFlow) -> Any:
        self.done.clear()
        self.counted.clear()
        return self.filter.begin(flow)


def flow_to(url: str = SITE, method: str = "GET", **headers: str) -> http.HTTPFlow:
    flow = tflow.tflow(req=http.Request.make(method, url))
    flow.request.headers = http.Headers((), **headers)
    flow.server_conn.address = None
    flow.client_conn.sni = None
    return flow


def pending_of(flow: http.HTTPFlow) -> PendingFlow | None:
    found = flow.metadata.get(PENDING)
    assert found is None or isinstance(found, PendingFlow)
    return found


def test_what_is_answered_or_refused_already_is_left_alone() -> None:
    found, flow = Filter(), flow_to()
    flow.response = http.Response.make(418)
    assert (found.begin(flow), found.done, found.counted) == (None, [], [])
    flow = flow_to()
    flow.error = mitmproxy_flow.Error("bad request")
    found.logged_in[flow.client_conn.id] = "kim"
    assert (found.begin(flow), found.done, found.counted) == (None, [], [("unreadable", "kim")])
    flow = flow_to()
    flow.error = mitmproxy_flow.Error("bad request")
    found.begin(flow)
    assert found.counted == [("unreadable", "")]


def test_a_url_that_cannot_be_read_is_refused() -> None:
    found, flow = Filter(), flow_to()
    flow.request.data.path = b"/a b"
    assert (found.begin(flow), found.done, found.counted) == (None, [("bad request",)], [("unreadable", "")])
    assert not flow.request.stream


def test_allowed_and_blocked_requests() -> None:
    found, flow = Filter(changes=False), flow_to()
    assert found.begin(flow) is None
    assert (found.done, found.counted) == ([], [(SITE, ALLOW)])
    assert (flow.request.stream, pending_of(flow), flow.response) == (True, None, None)
    found.verdicts[SITE] = BLOCK
    flow = flow_to()
    found.begin(flow)
    assert (found.done, found.counted) == ([("block", BLOCK)], [(SITE, BLOCK)])
    assert (flow.request.stream, pending_of(flow)) == (False, None)
    assert found.counters.as_dict() == {}


def test_a_block_under_another_name_is_a_block() -> None:
    for verdict, done in ((BLOCK, [("block", BLOCK)]), (ALLOW, [])):
        found, flow = Filter(), flow_to("https://x/p", host="fine.example")
        flow.server_conn.address, flow.request.data.host = ("other.example", 443), "other.example"
        found.verdicts["https://other.example/p"] = verdict
        found.begin(flow)
        assert (found.done, found.counted) == (done, [("https://fine.example/p", verdict)])


def test_what_is_kept_of_a_request_for_its_response() -> None:
    for changes, method, verdict, kept in (
        (False, "GET", ALLOW, None),
        (False, "POST", ALLOW, (False, False)),
        (False, "GET", UNKNOWN, (True, False)),
        (True, "GET", ALLOW, (False, False)),
        (True, "GET", MANUAL, (False, True)),
    ):
        found, flow = Filter(changes=changes), flow_to(method=method)
        found.verdicts[SITE] = verdict
        found.begin(flow)
        pending = pending_of(flow)
        assert (pending and (pending.unknown, pending.untouched)) == kept
        assert pending is None or (pending.form, pending.unblocks) == (None, False)
        assert flow.request.stream is True


def test_the_judged_path_is_sent() -> None:
    found, flow = Filter(), flow_to("http://site.example/a/../b")
    found.begin(flow)
    assert (flow.request.path, found.counted) == ("/b", [("http://site.example/b", ALLOW)])


def test_uses_are_counted_where_there_is_a_quota() -> None:
    found = Filter()
    for active in (False, True):
        found.usage.active = active
        found.begin(flow_to())
        assert found.done == [("use", ALLOW)] * active
        found.done.clear()
        found.filter.note_message(flow_to())
        assert found.done == [("running",)] * active
    found.verdicts[SITE] = BLOCK
    found.begin(flow_to())
    assert found.done == [("block", BLOCK)]


def test_own_pages_are_answered_before_any_decision() -> None:
    found = Filter()
    for method, at_once in (("GET", True), ("HEAD", True), ("POST", False)):
        flow = flow_to("http://filter.internal/x", method)
        found.verdicts["http://filter.internal/x"] = BLOCK
        assert (found.begin(flow), found.counted) == (None, [])
        answer = flow.response if at_once else found.done[0][1]
        assert isinstance(answer, http.Response)
        assert (answer.status_code, answer.headers["x-page"], answer.content) == (
            200,
            method,
            b"" if method == "HEAD" else b"own page",
        )
        assert (found.done == [], flow.request.stream) == (at_once, False)
    assert found.filter.is_internal_page(flow_to("http://filter.internal/x"))
    assert not found.filter.is_internal_page(flow_to())
    connect = flow_to("http://filter.internal:443/", "CONNECT")
    assert found.filter.is_internal_page(connect)
    connect.request.host = "site.example"
    assert not found.filter.is_internal_page(connect)
    without = replace(found.services, internal_pages=None)
    assert not RequestFilter(
        Settings(), without, cast("Any", None), cast("Any", None), Counters(), changes=None, reporter=None
    ).is_internal_page(flow_to("http://filter.internal/x"))


def test_requests_to_unblock_a_page_are_read_to_their_end() -> None:
    found, flow = Filter(), flow_to(f"http://site.example{UNBLOCK_PATH}", "POST")
    assert (found.begin(flow), found.counted, found.done) == (None, [], [])
    pending = pending_of(flow)
    assert pending is not None
    assert (pending.unblocks, pending.unknown, pending.untouched, flow.request.stream) == (True, False, False, False)
    flow.request.content = b"why"
    found.filter.finish(flow)
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.content, flow.metadata) == (201, b"why", {})
    mine = http.Response.make(418)
    flow = flow_to(f"http://site.example{UNBLOCK_PATH}", "POST")
    found.begin(flow)
    flow.request.content = None
    flow.response = mine
    found.filter.finish(flow)
    assert (flow.response, flow.metadata) == (mine, {})
    found.unblock.answer_head = lambda _: mine
    for method, done in (("GET", []), ("POST", [("answer", mine)])):
        flow = flow_to(f"http://site.example{UNBLOCK_PATH}", method)
        found.begin(flow)
        assert (found.done, flow.response, flow.metadata) == (done, None if done else mine, {})
    flow = flow_to(f"http://site.example{UNBLOCK_PATH}/x")
    found.begin(flow)
    assert len(found.counted) == 1, "another path"


def test_a_request_is_prepared_for_its_origin() -> None:
    for verdict, sent in ((ALLOW, False), (BLOCK, True)):
        found = Filter()
        found.verdicts[SITE] = verdict
        flow = flow_to(proxy_authorization="Basic x", host="site.example")
        found.begin(flow)
        assert ("proxy-authorization" in flow.request.headers) == sent
    parent = Filter(mode="upstream:http://parent.example:3128")
    flow = flow_to(proxy_authorization="Basic x", host="site.example")
    parent.begin(flow)
    assert "proxy-authorization" in flow.request.headers


def test_manual_rules_leave_a_request_as_it_is_but_for_policies() -> None:
    found, flow = Filter(), flow_to()
    found.verdicts[SITE] = MANUAL
    found.change = http.Response.make(307), None, None
    found.begin(flow)
    assert (found.done, flow.response, flow.request.stream, found.counted) == ([("enforce",)], None, True, [(SITE, MANUAL)])
    found.verdicts[SITE] = BLOCK
    found.begin(flow_to())
    assert found.done == [("block", BLOCK)], "nothing is changed in what is blocked"


def test_redirected_and_rewritten_requests() -> None:
    found, flow, moved = Filter(), flow_to(), http.Response.make(307)
    found.change = moved, None, None
    found.begin(flow)
    assert (flow.response, flow.request.stream, found.done, found.counted) == (moved, False, [], [(SITE, ALLOW)])
    found.change = None, parse_url("http://site.example/other"), None
    for verdict, done in ((ALLOW, []), (BLOCK, [("block", BLOCK)]), (UNKNOWN, [])):
        flow = flow_to()
        found.verdicts["http://site.example/other"] = verdict
        found.begin(flow)
        assert (found.done, flow.request.stream) == (done, not done)
        assert found.counted == [(SITE, BLOCK if done else ALLOW)]


@all_cases(
    ("kind", "length", "judges", "is_search", "read", "blocked"),
    [
        ("application/x-www-form-urlencoded", "5", True, False, True, False),
        ("application/x-www-form-urlencoded", "5", False, False, True, False),
        ("application/x-www-form-urlencoded", "x", False, False, False, True),
        ("text/plain", "5", True, False, True, False),
        ("text/plain", "5", False, False, False, False),
        ("text/plain", "5", False, True, True, False),
        ("text/plain", "x", True, False, False, False),
        ("text/plain", "x", False, True, False, True),
        ("image/png", "5", True, False, False, False),
        ("image/png", "5", True, True, False, True),
    ],
)
def test_which_bodies_of_searches_are_read(
    kind: str, length: str, *, judges: bool, is_search: bool, read: bool, blocked: bool
) -> None:
    for block in (BLOCK, None):
        found, form = Filter(), Form(judges=judges, is_search=is_search, block=block)
        found.change = None, None, form
        flow = flow_to(method="POST", content_type=kind, content_length=length)
        found.begin(flow)
        refused = blocked and block is not None
        assert found.done == [("block", BLOCK)] * refused
        assert found.counted == [(SITE, BLOCK if refused else ALLOW)]
        assert form.judged == [None] * blocked
        assert flow.request.stream == (not read and not refused)
        pending = pending_of(flow)
        assert (pending.form if pending is not None else None) is (form if read else None)


def test_a_search_that_was_posted_is_judged_with_its_body() -> None:
    for block in (None, BLOCK):
        found, form = Filter(), Form(block=block)
        found.change = None, None, form
        flow = flow_to(method="POST", content_type="text/plain", content_length="4")
        found.begin(flow)
        found.counted.clear()
        flow.request.data.content = b"word"
        found.filter.finish(flow)
        assert form.judged == [b"word"]
        assert found.done == [("block response", BLOCK)] * (block is not None)
        assert found.counted == [("response", SITE, BLOCK)] * (block is not None)
        assert pending_of(flow) is not None
    flow = flow_to()
    found.begin(flow)
    found.change = None, None, None
    kept = pending_of(flow)
    found.filter.finish(flow)
    assert (pending_of(flow), flow.response) == (kept, None)


@pytest.mark.parametrize(
    ("unknown", "own", "kind"),
    [
        ("allow", None, AllowUnknown),
        ("hold", None, HoldUnknown),
        ("block", None, BlockUnknown),
        ("inspect", None, InspectUnknown),
        ("inspect", UnknownAction.ALLOW, InspectUnknown),
        ("block", UnknownAction.ALLOW, AllowUnknown),
        ("allow", UnknownAction.HOLD, HoldUnknown),
        ("inspect", UnknownAction.BLOCK, BlockUnknown),
    ],
)
def test_how_unknown_urls_are_treated(
    unknown: str, own: UnknownAction | None, kind: type[UnknownPolicy], monkeypatch: pytest.MonkeyPatch
) -> None:
    treated: list[tuple[type, Verdict]] = []

    def treat(self: UnknownPolicy, flow: object, request: object, verdict: Verdict) -> Verdict:
        treated.append((type(self), verdict))
        return ALLOW

    for one in (AllowUnknown, HoldUnknown, BlockUnknown, InspectUnknown):
        monkeypatch.setattr(one, "treat", treat)
    found = Filter(unknown=unknown)
    found.verdicts[SITE] = asked = replace(UNKNOWN, unknown_action=own)
    found.begin(flow_to())
    assert (treated, found.counted, found.counters["unknown"]) == ([(kind, asked)], [(SITE, ALLOW)], 1)
    found.verdicts[SITE] = replace(asked, action=Action.BLOCK)
    found.begin(flow_to())
    assert (len(treated), found.counters["unknown"]) == (1, 1), "a block is one already"


def test_what_the_policies_for_unknown_urls_are_made_of() -> None:
    def made(unknown: str, *, passive: bool = True, passed: bool = True, inspects: bool = False) -> dict[str, object]:
        wanted = {"proxy": {"unknown": unknown, "hold_ms": 250}, "learn": {"passive": passive}}
        settings, some = Settings.model_validate(wanted), cast("Any", object())
        services = replace(Filter().services, inspect=some if inspects else None, passed=some if passed else None)
        policy = request_filter._unknown_policy(settings.proxy.unknown, settings, services, None, cast("Any", None))
        return {"kind": type(policy), **vars(policy)}

    assert made("inspect", inspects=True)["kind"] is InspectUnknown
    assert made("inspect")["kind"] is AllowUnknown, "without an inspector nothing is inspected"
    assert (made("hold")["kind"], made("hold")["_hold_s"]) == (HoldUnknown, 0.25)
    assert [made("allow", passive=one, passed=other)["_passive"] for one in (True, False) for other in (True, False)] == [
        *(True, False, False, False),
    ]


def test_a_held_request_is_carried_out_by_the_verdict_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_policy, "_HOLD_POLL_S", 0.0)
    for last in (ALLOW, BLOCK, UNKNOWN):
        found, flow = Filter(unknown="hold", hold_ms=5 if last is UNKNOWN else 30_000), flow_to()
        found.verdicts[SITE] = UNKNOWN
        held = found.begin(flow)
        assert held is not None
        assert found.counted == []

        async def carried_out(found: Filter = found, last: Verdict = last, held: Any = held) -> None:
            asyncio.get_running_loop().call_soon(found.verdicts.__setitem__, SITE, last)
            await held

        asyncio.run(carried_out())
        assert found.counted == [(SITE, last)]
        assert found.done == [("queue",)] + [("block", BLOCK)] * (last is BLOCK)


def read(url: str = SITE, **headers: str) -> FlowRequest:
    return read_flow(flow_to(url, **headers))


def test_what_the_policies_for_unknown_urls_queue() -> None:
    found, flow = Filter(), flow_to()
    reporter: Any = found

    def queued(policy: UnknownPolicy, request: FlowRequest, *, result: object = UNKNOWN) -> bool:
        found.done.clear()
        assert policy.treat(flow, request, UNKNOWN) == result
        return found.done == [("queue",)]

    page, image = read(), read(accept="image/png")
    assert page.anonymous
    personal = read(cookie="a=b")
    other = replace(page, aliases=(page.request,))
    for passive, asked, expected in (
        (False, page, True),
        (True, page, False),
        (True, personal, True),
        (True, other, True),
        (False, image, False),
        (True, image, False),
    ):
        assert queued(AllowUnknown(reporter, passive=passive), asked) == expected
        assert not queued(AllowUnknown(None, passive=passive), asked)
    for due in (True, False):
        found.queued["due"] = due
        assert queued(InspectUnknown(reporter), page) == (not due)
        assert not queued(InspectUnknown(None), page)
    blocked = Verdict(Action.BLOCK, Reason.UNKNOWN, unknown=True)
    assert queued(BlockUnknown(reporter), page, result=blocked)
    assert not queued(BlockUnknown(None), page, result=blocked)
    found.queued["queued"] = False
    assert queued(HoldUnknown(reporter, cast("Any", None), 1.0), page), "no verdict is to be expected"
    assert not queued(HoldUnknown(None, cast("Any", None), 1.0), page)


def test_how_long_a_request_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_policy, "_MOST_HELD", 2)
    found, page = Filter(), read()
    found.verdicts[SITE] = UNKNOWN
    judge: Any = SimpleNamespace(verdict=lambda _: found.verdicts[SITE])
    policy = HoldUnknown(cast("Any", found), judge, 20.0)
    now, gone = [7.0], flow_to()
    steps: list[float] = []

    async def sleep(seconds: float) -> None:
        steps.append(seconds)
        now[0] += 1.0
        if len(steps) == 3:
            gone.error = mitmproxy_flow.Error("gone")

    monkeypatch.setattr(unknown_policy, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(unknown_policy, "asyncio", SimpleNamespace(sleep=sleep))

    def treated(flow: http.HTTPFlow) -> Any:
        return policy.treat(flow, page, UNKNOWN)

    held = [treated(gone), treated(gone)]
    assert asyncio.run(held[0]) is UNKNOWN
    assert steps == [0.02] * 3, "its client left"
    assert asyncio.run(held[1]) is UNKNOWN
    assert (len(steps), policy.held) == (3, 0)
    assert asyncio.run(treated(flow_to())) is UNKNOWN
    assert len(steps) == 23, "20 s"
    found.verdicts[SITE] = blocked = replace(UNKNOWN, action=Action.BLOCK)
    assert asyncio.run(treated(flow_to())) is blocked
    assert len(steps) == 23
    policy.held = 1
    held = [treated(flow_to())]
    policy.held = 2
    assert treated(flow_to()) is UNKNOWN, "no more at once"
    asyncio.run(held[0])
    assert policy.held == 2


@all_cases(
    ("first", "others", "every_name", "last"),
    [
        (ALLOW, [ALLOW], False, 0),
        (ALLOW, [BLOCK], False, 1),
        (BLOCK, [ALLOW], False, 0),
        (ALLOW, [UNKNOWN], False, 0),
        (ALLOW, [UNKNOWN], True, 1),
        (ALLOW, [replace(UNKNOWN, unknown_action=UnknownAction.BLOCK)], False, 1),
        (ALLOW, [replace(UNKNOWN, unknown_action=UnknownAction.HOLD)], False, 0),
        (ALLOW, [BLOCK, ALLOW], False, 1),
        (ALLOW, [UNKNOWN, BLOCK], True, 2),
    ],
)
def test_each_name_of_a_request_is_judged(first: Verdict, others: list[Verdict], last: int, *, every_name: bool) -> None:
    asked: list[str] = []
    verdicts = {f"http://name{number}.example/": verdict for number, verdict in enumerate([first, *others])}

    def decide(request: Request) -> Verdict:
        asked.append(request.url.text)
        return verdicts[request.url.text]

    settings = ProxySettings.model_validate({"unknown": "block" if every_name else "allow"})

    def under_address(_: FlowRequest, verdict: Verdict) -> Verdict:
        asked.append("address")
        return verdict

    addresses: Any = SimpleNamespace(verdict=under_address)
    judge = RequestJudge(cast("Any", SimpleNamespace(decide=decide)), addresses, settings.unknown)
    names = [Request(parse_url(url), None, ResourceType.DOCUMENT) for url in verdicts]
    request = replace(read("http://name0.example/"), request=names[0], aliases=tuple(names[1:]))
    assert judge.verdict(request) == [first, *others][last]
    assert "address" not in asked
    asked.clear()
    judge.verdict(replace(request, address="192.0.2.1"))
    assert ("address" in asked) == ([first, *others][last].action is Action.ALLOW)
