"""Where connections that cannot be read may lead, and what is said of those that may not."""

import asyncio
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Client, Server
from mitmproxy.test import tflow

from gatewayfilter.config import ProxySettings, Settings, TlsSettings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    Action,
    Group,
    HostVerdict,
    Policy,
    PolicySet,
    Reason,
    Request,
    Service,
    UnknownAction,
    Verdict,
    parse_matcher,
)
from gatewayfilter.model import Client as KnownClient
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.tunnel.raw_tunnels import RawTunnels
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import DENY, LOOK, PASS, FakeHosts, tcp_server, until, wire_gateway
from tests.proxy.proxy_fakes import Gateway
from tests.proxy.split_clients import channel

GREETING = b"SSH-2.0-OpenSSH_9.6\r\n"
BINARY = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


def client(sni: str | None = None) -> Client:
    return Client(peername=("192.0.2.7", 1), sockname=("192.0.2.1", 8080), sni=sni)


def tunnels(gateway: Gateway, table: dict[str, HostVerdict], **proxy: Any) -> RawTunnels:
    settings = ProxySettings.model_validate(proxy)
    recorder = DecisionRecorder(gateway.records.append)
    ports = frozenset({8443})
    return RawTunnels(gateway.decide, FakeHosts(table), recorder, settings, gateway.counters, web_ports=ports)


@all_cases(
    ("rule", "host", "sni", "port", "admitted"),
    [
        ("known", "pass.example", None, 22, True),
        ("known", "pass.example", "pass.example", 993, True),
        ("known", "pass.example", "other.example", 993, False),
        ("known", "other.example", "pass.example", 993, False),
        ("known", "other.example", None, 22, False),
        ("known", "denied.example", None, 22, False),
        ("on", "other.example", None, 22, True),
        ("off", "pass.example", None, 22, False),
        *((rule, "pass.example", None, port, False) for rule, port in itertools.product(("known", "on"), (80, 443, 8443))),
        ("known", "a b", None, 22, False),
    ],
)
def test_what_the_setting_admits(rule: str, host: str, sni: str | None, port: int, *, admitted: bool) -> None:
    table = {"pass.example": PASS, "denied.example": DENY, "other.example": LOOK}
    assert tunnels(Gateway(), table, raw_tcp=rule).admits(client(sni), Server(address=(host, port))) is admitted


@all_cases(
    ("host", "sni", "unknown", "blocked"),
    [
        ("ok.example", None, "allow", False),
        ("ok.example", "blocked.example", "allow", True),
        ("blocked.example", "ok.example", "allow", True),
        ("unknown.example", None, "allow", False),
        ("unknown.example", None, "block", True),
        ("unknown.example", "ok.example", "block", True),
        ("ok.example", "unknown.example", "block", True),
        ("ok.example", "ok.example", "block", False),
        ("raise.example", None, "allow", True),
        ("unknown-pass.example", None, "block", False),
        ("", None, "allow", True),
    ],
)
def test_each_name_is_judged(host: str, sni: str | None, unknown: str, *, blocked: bool) -> None:
    gateway = Gateway()
    flow = tflow.ttcpflow(client_conn=client(sni), server_conn=Server(address=(host, 22)))
    tunnels(gateway, {"unknown-pass.example": PASS}, raw_tcp="on", unknown=unknown).tcp_start(flow)
    assert (flow.server_conn.error is not None) is blocked
    assert gateway.counters["hook_errors"] == int(host in {"raise.example", ""})
    if not gateway.counters["hook_errors"]:
        [record] = gateway.records
        assert record.action == ("block" if blocked else "allow")


@all_cases(
    ("host", "counted"),
    [("ok.example", {"requests": 1, "blocked": 0}), ("blocked.example", {"requests": 1, "blocked": 1})],
)
def test_a_tunnel_is_counted_and_logged_with_the_time_of_its_decision(host: str, counted: dict[str, int]) -> None:
    gateway = Gateway()
    clock = iter([5_000_000, 9_002_500])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewayfilter.proxy.tunnel.raw_tunnels.time.perf_counter_ns", clock.__next__)
        flow = tflow.ttcpflow(client_conn=client(), server_conn=Server(address=(host, 22)))
        tunnels(gateway, {}, raw_tcp="on").tcp_start(flow)
    assert {name: gateway.counters[name] for name in counted} == counted
    [record] = gateway.records
    assert record.elapsed_us == 4_002


@all_cases(
    ("action", "unknown", "blocked"),
    [
        (UnknownAction.BLOCK, "allow", True),
        (UnknownAction.ALLOW, "block", False),
        (None, "block", True),
        (None, "allow", False),
    ],
)
def test_the_policy_of_the_client_comes_before_the_setting(action: UnknownAction | None, unknown: str, *, blocked: bool) -> None:
    verdict = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True, unknown_action=action)
    decides: Any = SimpleNamespace(decide=lambda _: verdict)
    settings = ProxySettings.model_validate({"unknown": unknown, "raw_tcp": "on"})
    found = RawTunnels(decides, None, None, settings, Counters())
    flow = tflow.ttcpflow(client_conn=client(), server_conn=Server(address=("any.example", 22)))
    found.tcp_start(flow)
    assert (flow.server_conn.error is not None) is blocked


@all_cases("active", [True, False, None])
def test_messages_are_forgotten_and_count_as_use(*, active: bool | None) -> None:
    used: list[tuple[str, str]] = []

    class Usage:
        def running(self, request: Request) -> None:
            used.append((request.url.host, request.user))

    usage: Any = Usage() if active is not None else None
    if usage is not None:
        usage.active = active
    flow = tflow.ttcpflow(client_conn=client("inside.example"), server_conn=Server(address=("any.example", 22)))
    logged_in = {flow.client_conn.id: "ada"}
    found = RawTunnels(Gateway().decide, None, None, ProxySettings(), Counters(), usage=usage, logged_in=logged_in)
    assert flow.messages
    found.tcp_message(flow)
    assert (flow.messages, used) == ([], [("any.example", "ada")] if active else [])


def test_what_fails_is_counted_each_time_and_logged_every_ten_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = Counters()
    usage: Any = SimpleNamespace(active=True, running=lambda _: 1 // 0)
    found = RawTunnels(Gateway().decide, None, None, ProxySettings(), counters, usage=usage)
    for now, logged in ((3.0, 1), (12.9, 1), (13.0, 2), (22.9, 2), (23.0, 3)):
        monkeypatch.setattr("gatewayfilter.proxy.tunnel.raw_tunnels.time.monotonic", lambda now=now: now)
        found.tcp_message(tflow.ttcpflow(client_conn=client(), server_conn=Server(address=("any.example", 22))))
        assert len(caplog.records) == logged
    assert counters["hook_errors"] == 5


@all_cases("host", ["any.example", "a b"])
def test_a_connection_that_is_refused_is_counted_and_logged(host: str) -> None:
    gateway = Gateway()
    tunnels(gateway, {}).refused(client(), Server(address=(host, 22)))
    assert [gateway.counters[name] for name in ("requests", "blocked", "not_http")] == [1, 1, 1]
    [record] = gateway.records
    readable = host == "any.example"
    assert (record.url, record.client) == ("https://any.example:22/" if readable else "", "192.0.2.7")
    assert (record.action, record.reason, record.elapsed_us) == ("block", "not-http", 0)


@pytest.mark.parametrize(("port", "blocked"), [(25565, True), (22, False)])
def test_the_port_of_a_blocked_service_is_blocked_at_hosts_that_pass_unread(port: int, *, blocked: bool) -> None:
    items = (Group("kids", "kids"), KnownClient("child", (parse_matcher("192.0.2.7"),), "kids"))
    builder = SnapshotBuilder()
    builder.set_policies(PolicySet.of((*items, Policy("kids", requests={"tls": "sni-only"}, services={"blocks": True}))))
    services = {"blocks": Service("blocks", "Blocks", "方块", "games", ("blocks.example",), ports=(25565,))}
    engine = FilterEngine(Snapshot.from_bytes(builder.build()), services=services)
    found = RawTunnels(engine, engine, None, ProxySettings(), Counters())
    flow = tflow.ttcpflow(client_conn=client(), server_conn=Server(address=("any.example", port)))
    found.tcp_start(flow)
    assert (flow.server_conn.error is not None) is blocked


@pytest.mark.parametrize("data", [GREETING, BINARY])
@pytest.mark.parametrize("cut", [0, 1, 3, 5])
@pytest.mark.parametrize(
    ("rule", "table", "passes"),
    [("known", {"localhost": PASS}, True), ("known", {}, False), ("on", {}, True), ("off", {"localhost": PASS}, False)],
)
async def test_other_protocols_in_a_tunnel(
    *, data: bytes, cut: int, rule: str, table: dict[str, HostVerdict], passes: bool, state: Path
) -> None:
    async with (
        tcp_server() as server,
        wire_gateway(state, table, raw_tcp=rule) as gateway,
        channel(gateway.port, f"localhost:{server.port}") as tunnel,
    ):
        await tunnel.send(data, cut)
        if passes:
            await until(lambda: bytes(server.heard) == data)
            assert [record.action for record in gateway.records] == ["allow"]
            return
        assert await tunnel.status() in {"400 not-http", "closed"}
        assert not server.heard
        [record] = gateway.records
        assert (record.url, record.reason) == (f"https://localhost:{server.port}/", "not-http")
        assert gateway.counters["not_http"] == gateway.counters["blocked"] == gateway.counters["requests"] == 1


async def test_nothing_is_known_where_nothing_is_spliced(state: Path) -> None:
    async with tcp_server() as server, wire_gateway(state, {"localhost": PASS}, tls=TlsSettings(splice=False)) as gateway:
        async with channel(gateway.port, f"localhost:{server.port}") as tunnel:
            await tunnel.send(GREETING)
            assert await tunnel.status() == "400 not-http"
        assert not server.heard


async def test_what_is_no_http_is_refused_by_the_proxy_itself(state: Path) -> None:
    async with wire_gateway(state, {}, raw_tcp="on") as gateway:
        async with channel(gateway.port) as direct:
            await direct.send(b"\x05\x01\x00")
            assert await direct.status() == "400 not-http"
        [record] = gateway.records
        assert (record.url, record.reason, record.client) == ("", "not-http", "127.0.0.1")


async def test_a_failure_refuses(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bool:
        raise RuntimeError("broken")

    async with tcp_server() as server, wire_gateway(state, {}, raw_tcp="on") as gateway:
        monkeypatch.setattr(RawTunnels, "admits", fails)
        async with channel(gateway.port, f"localhost:{server.port}") as tunnel:
            await tunnel.send(BINARY)
            assert await tunnel.status() == "400 not-http"
        assert gateway.counters["hook_errors"] == 1
        await asyncio.sleep(0)
        assert not server.heard


def test_the_settings_have_it() -> None:
    assert Settings().proxy.raw_tcp == "known"
