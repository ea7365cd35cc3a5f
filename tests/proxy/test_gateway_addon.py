import asyncio
import logging
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import ctx, hooks, http
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook
from mitmproxy.test import taddons, tflow, tutils

from gatewayfilter.config import LogPrivacy, ProxySettings, Settings
from gatewayfilter.model import Request, RequestChange, Verdict
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.proxy.unknown_policy import HoldUnknown
from gatewayfilter.telemetry import Counters
from tests.proxy.proxy_fakes import ALLOW, BLOCK, FakeDecide, Gateway


def flow_for(url: str, *, method: str = "GET", **headers: str) -> http.HTTPFlow:
    flow = tflow.tflow(req=http.Request.make(method, url))
    flow.request.headers = http.Headers([(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()])
    flow.server_conn.address = None
    flow.client_conn.sni = None
    return flow


def answered(flow: http.HTTPFlow, content_type: str = "text/html") -> http.HTTPFlow:
    flow.response = tutils.tresp(headers=http.Headers(content_type=content_type), content=None)
    return flow


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def addon(gateway: Gateway) -> GatewayAddon:
    return gateway.addon(ProxySettings())


def test_allowed_requests_and_responses_stream(gateway: Gateway, addon: GatewayAddon) -> None:
    flow = flow_for("http://ok.example/", method="POST")
    assert addon.requestheaders(flow) is None
    assert not flow.response
    assert flow.request.stream is True
    response = answered(flow).response
    addon.responseheaders(flow)
    assert response is not None
    assert response.stream is True
    assert gateway.counters.as_dict() == {"requests": 1}


def test_blocked_requests_are_answered_and_never_streamed(gateway: Gateway, addon: GatewayAddon) -> None:
    flow = flow_for("http://blocked.example/")
    addon.requestheaders(flow)
    assert flow.response is not None
    assert flow.response.status_code == 403
    assert flow.request.stream is False
    addon.responseheaders(flow)
    assert flow.response.stream is False
    assert gateway.counters.as_dict() == {"blocked": 1, "requests": 1}
    assert [(record.action, record.reason, record.source_list) for record in gateway.records] == [("block", "blacklist", "test")]


def test_a_flow_with_an_answer_is_left_alone(gateway: Gateway, addon: GatewayAddon) -> None:
    flow = flow_for("http://blocked.example/")
    flow.response = mine = http.Response.make(418)
    addon.requestheaders(flow)
    assert flow.response is mine
    assert gateway.decide.asked == []


def test_every_alias_is_judged(gateway: Gateway, addon: GatewayAddon) -> None:
    flow = flow_for("https://x/p", Host="fine.example")
    flow.server_conn.address = ("blocked.example", 443)
    flow.request.data.host = "blocked.example"
    addon.requestheaders(flow)
    assert flow.response is not None
    assert [asked.url.host for asked in gateway.decide.asked] == ["fine.example", "blocked.example"]


def test_a_path_that_a_rule_changed_is_judged_under_every_name(gateway: Gateway, addon: GatewayAddon) -> None:
    gateway.changes.requests["/p?utm=1"] = RequestChange(url="https://fine.example/p")
    gateway.decide.table["https://other.example/p"] = BLOCK
    flow = flow_for("https://x/p?utm=1", Host="fine.example")
    flow.server_conn.address = ("other.example", 443)
    flow.request.data.host = "other.example"
    addon.requestheaders(flow)
    assert flow.response is not None
    assert flow.response.status_code == 403
    assert [record.action for record in gateway.records] == ["block"]


@pytest.mark.parametrize(
    "claim",
    [
        {"proxy_authorization": "Basic a2ltOnNlY3JldA=="},  # without proxy.auth_file no name is read
        {"authorization": "Basic a2ltOnNlY3JldA=="},
        {"x_forwarded_for": "10.0.0.7", "forwarded": "for=10.0.0.7", "x_real_ip": "10.0.0.7"},
        {"x_forwarded_user": "kim", "remote_user": "kim", "x_mac_address": "aa:bb:cc:dd:ee:ff"},
    ],
)
def test_what_a_client_claims_to_be_is_not_who_it_is(claim: dict[str, str], gateway: Gateway, addon: GatewayAddon) -> None:
    addon.requestheaders(flow_for("http://fine.example/", **claim))
    (asked,) = gateway.decide.asked
    assert (asked.client, asked.user) == ("127.0.0.1", "")
    (record,) = gateway.records
    assert (record.client, record.user) == ("127.0.0.1", "")


@pytest.mark.parametrize(
    ("url", "method", "headers", "offered"),
    [
        ("http://unknown.example/", "GET", {}, True),
        ("http://unknown.example/", "GET", {"sec_fetch_dest": "document"}, True),
        ("http://unknown.example/", "GET", {"sec_fetch_dest": "iframe"}, True),
        ("http://unknown.example/", "GET", {"sec_fetch_dest": "image"}, False),
        ("http://unknown.example/", "GET", {"sec_fetch_dest": "empty"}, False),
        ("http://unknown.example/", "POST", {}, False),
        ("http://unknown.example/", "HEAD", {}, False),
        ("http://unknown.example/", "GET", {"authorization": "Basic x"}, False),
        ("http://unknown.example/", "GET", {"range": "bytes=1-"}, False),
        ("http://unknown.example/", "GET", {"upgrade": "websocket"}, False),
        ("http://unknown.example/?" + "x" * 3000, "GET", {}, False),
        ("http://known.example/", "GET", {}, False),
        ("http://blocked.example/", "GET", {}, False),
    ],
)
def test_what_is_offered_at_once(
    url: str, method: str, headers: dict[str, str], *, offered: bool, gateway: Gateway, addon: GatewayAddon
) -> None:
    addon.requestheaders(flow_for(url, method=method, **headers))
    assert gateway.offers.urls == ([url] if offered else [])


@pytest.mark.parametrize(
    ("headers", "content_type", "offered"),
    [
        ({"referer": "http://p.example/"}, "text/html; charset=utf-8", True),
        ({"referer": "http://p.example/"}, "Application/XHTML+XML", True),
        ({"origin": "http://p.example"}, "text/html", True),
        ({"referer": "http://p.example/"}, "application/json", False),
        ({"accept": "image/png"}, "text/html", False),
        ({"sec_fetch_dest": "empty"}, "text/html", False),
    ],
)
def test_what_is_offered_when_it_turns_out_to_be_a_page(
    headers: dict[str, str], content_type: str, *, offered: bool, gateway: Gateway, addon: GatewayAddon
) -> None:
    flow = flow_for("http://unknown.example/thing", **headers)
    addon.requestheaders(flow)
    assert gateway.offers.urls == []
    addon.responseheaders(answered(flow, content_type))
    assert gateway.offers.urls == (["http://unknown.example/thing"] if offered else [])


def test_a_url_is_offered_once_a_minute_unless_the_queue_was_full(gateway: Gateway, addon: GatewayAddon) -> None:
    gateway.offers.full = True
    addon.requestheaders(flow_for("http://unknown.example/"))
    gateway.offers.full = False
    for _ in range(3):
        addon.requestheaders(flow_for("http://unknown.example/"))
    assert gateway.offers.urls == ["http://unknown.example/"]
    assert gateway.counters["unknown"] == 4


def test_the_memory_of_offers_is_bounded(gateway: Gateway, addon: GatewayAddon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.sync.url_reporter._MOST_REMEMBERED", 50)
    for number in range(60):
        addon.requestheaders(flow_for(f"http://unknown{number}.example/"))
    reporter = addon._responses._reporter
    assert reporter is not None
    assert len(reporter._offered) == 50
    addon.requestheaders(flow_for("http://unknown0.example/"))  # forgotten, so offered again
    assert gateway.offers.urls.count("http://unknown0.example/") == 2


@pytest.mark.parametrize("mode", ["allow", "block"])
def test_failures_of_the_engine(mode: str, gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"on_error": mode}))
    flow = flow_for("http://raise.example/")
    addon.requestheaders(flow)
    if mode == "block":
        assert flow.response is not None
        assert flow.response.headers["x-gatewayfilter"] == "block; reason=failure"
    else:
        assert flow.response is None
        assert flow.request.stream is True
    assert gateway.counters["hook_errors"] == 1


def test_complaints_are_few(addon: GatewayAddon, gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(50):
        addon.requestheaders(flow_for("http://raise.example/"))
    assert gateway.counters["hook_errors"] == 50
    assert len(caplog.records) == 1


class Hostile:
    """A flow on which nothing works."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError(name)


HOOKS = sorted(name for name in hooks.all_hooks if hasattr(GatewayAddon, name) and name not in {"load", "running", "done"})


def test_all_hooks_are_known() -> None:
    assert HOOKS == [
        "error",
        "request",
        "requestheaders",
        "response",
        "responseheaders",
        "udp_message",
        "websocket_message",
    ]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("on_error", ["allow", "block"])
def test_no_hook_raises_whatever_the_flow(hook: str, on_error: str, gateway: Gateway) -> None:
    call: Callable[[Any], object] = getattr(gateway.addon(ProxySettings.model_validate({"on_error": on_error})), hook)
    call(Hostile())
    assert gateway.counters["hook_errors"] == 1


def test_what_cannot_be_read_is_no_page_that_needs_no_log_in(gateway: Gateway) -> None:
    services = FilterServices(
        gateway.decide,
        recorder=DecisionRecorder(gateway.records.append, LogPrivacy.FULL),
        offers=gateway.offers,
        internal_pages=cast("Any", SimpleNamespace(answers=lambda url: url.host == "filter.internal")),
    )
    addon = GatewayAddon(Settings(), services, gateway.counters)
    assert addon.is_internal_page(flow_for("http://filter.internal/x"))
    nowhere = flow_for("http://filter.internal/x", method="CONNECT")
    nowhere.request.data.host = "a..b"
    assert addon.is_internal_page(nowhere) is False
    assert gateway.counters["hook_errors"] == 0
    assert addon.is_internal_page(cast("Any", Hostile())) is False
    assert gateway.counters["hook_errors"] == 1


def test_no_hook_waits_or_touches_the_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = Counters()
    writer = StoreWriter(lambda offers, at: 0, lambda records: None, counters)
    addon = GatewayAddon(
        Settings(), FilterServices(FakeDecide(), offers=writer.offers, recorder=DecisionRecorder(writer.log.write)), counters
    )
    urls = ["http://ok.example/", "http://blocked.example/", "http://unknown.example/", "http://raise.example/", "http://a b/"]
    flows = [flow_for(url) if " " not in url else flow_for("http://x/", host="a b") for url in urls]
    forbidden: list[str] = []

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event.partition(".")[0] in {"open", "os", "socket", "sqlite3", "subprocess", "time"}:
            forbidden.append(f"{event} {arguments}")

    watching = False
    sys.addaudithook(audit)
    for name in ("time.sleep", "threading.Lock", "threading.RLock", "threading.Condition"):
        monkeypatch.setattr(name, lambda *_: forbidden.append("waits"))
    logging.disable()
    try:
        for _ in range(2):  # the first time warms up: lists of languages, public suffixes
            forbidden.clear()
            for flow in flows:
                flow.response = None
                watching = True
                addon.requestheaders(flow)
                watching = False
                if flow.response is None:
                    answered(flow)
                watching = True
                addon.responseheaders(flow)
                addon.error(flow)
                watching = False
    finally:
        watching = False
        logging.disable(logging.NOTSET)
    assert counters["requests"] >= 8
    assert forbidden == []


async def test_hold_takes_the_verdict_that_comes(gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": "hold", "hold_ms": 5000}))
    flow = flow_for("http://unknown.example/")
    held = addon.requestheaders(flow)
    assert held is not None
    task = asyncio.ensure_future(held)
    await asyncio.sleep(0.03)
    assert flow.response is None
    assert not task.done()
    gateway.decide.table["http://unknown.example/"] = ALLOW
    await task
    assert flow.response is None
    assert flow.request.stream is True
    assert [record.reason for record in gateway.records] == ["whitelist"]


@pytest.mark.parametrize("headers", [{"sec_fetch_dest": "image"}, {"authorization": "Basic x"}])
def test_what_nobody_will_look_at_is_not_held(headers: dict[str, str], gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": "hold"}))
    assert addon.requestheaders(flow_for("http://unknown.example/", **headers)) is None


def test_nothing_is_held_when_the_queue_is_full(gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": "hold"}))
    gateway.offers.full = True
    assert addon.requestheaders(flow_for("http://unknown.example/")) is None


def test_a_failure_page_that_fails_kills_the_request(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockPages, "failure", None)
    addon = gateway.addon(ProxySettings.model_validate({"on_error": "block"}))
    flow = flow_for("http://raise.example/")
    addon.requestheaders(flow)
    assert flow.error is not None
    assert flow.error.msg == flow.error.KILLED_MESSAGE


async def test_the_number_of_held_requests_is_bounded(gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": "hold", "hold_ms": 1}))
    tasks = [
        asyncio.ensure_future(held)
        for number in range(300)
        if (held := addon.requestheaders(flow_for(f"http://unknown{number}.example/"))) is not None
    ]
    await asyncio.sleep(0)
    later = addon.requestheaders(flow_for("http://unknown.example/"))
    assert later is None
    await asyncio.gather(*tasks)
    policy = addon._requests._unknown
    assert isinstance(policy, HoldUnknown)
    assert policy.held == 0


async def test_a_failure_while_held_is_answered_as_configured(gateway: Gateway) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": "hold", "on_error": "block"}))
    flow = flow_for("http://unknown.example/")
    held = addon.requestheaders(flow)
    assert held is not None

    def broken(_request: Request) -> Verdict:
        raise RuntimeError("broken")

    gateway.decide.decide = broken  # type: ignore[method-assign, assignment]
    await held
    assert flow.response is not None
    assert flow.response.status_code == 503


def test_messages_are_not_kept(addon: GatewayAddon) -> None:
    websocket = tflow.twebsocketflow()
    assert websocket.websocket is not None
    assert websocket.websocket.messages
    addon.websocket_message(websocket)
    assert websocket.websocket.messages == []
    tcp = tflow.ttcpflow()
    addon.addons[0].tcp_message(tcp)
    assert tcp.messages == []
    udp = tflow.tudpflow()
    addon.udp_message(udp)
    assert udp.messages == []


async def test_under_stock_mitmproxy_it_sets_its_option_and_starts_and_stops() -> None:
    happened: list[str] = []
    gateway = Gateway()
    addon = GatewayAddon(
        Settings(),
        FilterServices(FakeDecide()),
        gateway.counters,
        on_start=lambda: happened.append("start"),
        on_stop=lambda: happened.append("stop"),
    )
    with taddons.context(addon) as context:
        ctx.options.add_option("connection_strategy", str, "eager", "")
        addon.addons[-1].load(type("Loader", (), {"master": context.master})())
        assert ctx.options.connection_strategy == "lazy"
        addon.running()
        flow = flow_for("http://unknown.example/")
        await context.master.addons.handle_lifecycle(HttpRequestHeadersHook(flow))
        assert flow.request.stream is True
        addon.done()
    assert happened == ["start", "stop"]


@pytest.mark.parametrize(("unknown", "offered"), [("allow", False), ("inspect", False), ("hold", True), ("block", True)])
def test_a_frame_in_a_page_of_another_site_is_offered_where_it_waits_for_a_verdict(
    unknown: str, *, offered: bool, gateway: Gateway
) -> None:
    addon = gateway.addon(ProxySettings.model_validate({"unknown": unknown, "hold_ms": 1}))
    flow = flow_for("http://unknown.example/", sec_fetch_dest="iframe", sec_fetch_site="cross-site")
    held = addon.requestheaders(flow)
    if held is not None:
        asyncio.run(held)  # type: ignore[arg-type]
    assert gateway.offers.urls == (["http://unknown.example/"] if offered else [])
