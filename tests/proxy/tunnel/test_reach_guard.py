"""No way in: what a client on this machine gets of internal addresses, by each way through the proxy and in each spelling.

Clients elsewhere are in tests/netns/test_no_way_in.py.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.flow import Error
from mitmproxy.proxy.server_hooks import ServerConnectionHookData
from mitmproxy.test import tflow

from gatewayfilter.addresses.links import NO_LINKS, Links
from gatewayfilter.config import ProxySettings
from gatewayfilter.model import LogDetail, LogRecord, Reason
from gatewayfilter.proxy.pages.upstream_errors import INTERNAL_MESSAGE
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.proxy.tunnel.reach_guard import InternalAddressError, ReachGuard
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import PASS, WireGateway, connect, tcp_server, wire_gateway
from tests.proxy.mitm.http.test_http1_shapes import OK, RawOrigin

REBIND = "rebind.attacker.com"
"""Nothing is local about it, and it answers with what its owner likes."""


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names resolve to, of those that a test names."""
    table: dict[str, list[str]] = {REBIND: ["127.0.0.1"]}
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *rest: Any, **more: Any) -> list[Any]:
        if host not in table:
            return real(host, port, *rest, **more)
        return [info for address in table[host] for info in real(address, port, *rest, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return table


@pytest.fixture
async def inner() -> AsyncIterator[RawOrigin]:
    """A service of this machine."""
    async with RawOrigin(OK).running() as running:
        yield running


async def ask(gateway: WireGateway, url: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(10):
        got = await reader.read()
    writer.close()
    return got


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "169.254.169.254", "10.1.2.3"])
async def test_a_public_name_with_an_internal_address(
    address: str, state: Path, inner: RawOrigin, names: dict[str, list[str]]
) -> None:
    names[REBIND] = [address]
    async with wire_gateway(state, {}) as gateway:
        got = await ask(gateway, f"http://{REBIND}:{inner.port}/admin?x=1")
        assert got.startswith(b"HTTP/1.1 403")
        assert b"x-gatewayfilter: block; reason=internal-address\r\n" in got
        assert b"proxy.allow_networks" in got
        assert address.encode() not in got
        assert not inner.heard
        assert inner.connections == 0
        assert gateway.counters["internal_refused"] == gateway.counters["blocked"] == 1
        assert gateway.counters["origin_errors"] == 0
        assert [record.reason for record in gateway.records].count(Reason.INTERNAL_ADDRESS) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "app.localhost", "2130706433", "0x7f.1", "0177.0.0.1"])
async def test_a_client_on_this_machine_reaches_its_own_services(
    host: str, state: Path, inner: RawOrigin, names: dict[str, list[str]]
) -> None:
    names["app.localhost"] = ["127.0.0.1"]
    async with wire_gateway(state, {}) as gateway:
        assert (await ask(gateway, f"http://{host}:{inner.port}/")).endswith(b"ok")
        assert gateway.counters["internal_refused"] == 0


async def test_of_mixed_answers_only_what_may_be_reached_is_tried(
    state: Path, inner: RawOrigin, names: dict[str, list[str]]
) -> None:
    names[REBIND] = ["127.0.0.1", "127.0.0.2", "10.1.2.3"]
    server = await asyncio.start_server(RawOrigin(OK.replace(b"ok", b"no")).serve, "127.0.0.2", inner.port)
    async with server, wire_gateway(state, {REBIND: PASS}, allow_networks=["127.0.0.2/32"]) as gateway:
        assert (await ask(gateway, f"http://{REBIND}:{inner.port}/")).endswith(b"no")
        _, writer, answer = await connect(gateway, f"{REBIND}:{inner.port}")
        assert answer.startswith(b"HTTP/1.1 200")
        writer.close()
        assert inner.connections == 0


@pytest.mark.parametrize("inside", ["tls", "http", "raw"])
async def test_a_tunnel_to_a_public_name_with_an_internal_address(inside: str, state: Path, names: dict[str, list[str]]) -> None:
    async with tcp_server() as inner, wire_gateway(state, {}, raw_tcp="on") as gateway:
        reader, writer, answer = await connect(gateway, f"{REBIND}:{inner.port}")
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 403"))
        if inside == "tls":
            context = ssl.create_default_context(cafile=str(state / "ca" / "mitmproxy-ca-cert.pem"))
            await writer.start_tls(context, server_hostname=REBIND)
        first = b"SSH-2.0-x\r\n" if inside == "raw" else f"GET / HTTP/1.1\r\nHost: {REBIND}\r\n\r\n".encode()
        writer.write(first)
        async with asyncio.timeout(10):
            got = await reader.read() if inside == "raw" else await reader.readuntil(b"</html>")
        if inside != "raw":
            assert got.startswith(b"HTTP/1.1 403")
            assert b"internal-address" in got
        writer.close()
        assert not inner.peers
        assert gateway.counters["internal_refused"] == 1
        assert Reason.INTERNAL_ADDRESS in [record.reason for record in gateway.records]


@pytest.mark.parametrize("times", [1, 3])
async def test_a_tunnel_that_would_pass_unread(times: int, state: Path, names: dict[str, list[str]]) -> None:
    """The second time its addresses are remembered."""
    async with tcp_server() as inner, wire_gateway(state, {REBIND: PASS}) as gateway:
        for _ in range(times):
            _, writer, answer = await connect(gateway, f"{REBIND}:{inner.port}")
            assert answer.startswith(b"HTTP/1.1 403")
            assert b"reason=internal-address" in answer
            writer.close()
        assert not inner.peers
        assert gateway.counters["internal_refused"] == gateway.counters["denied"] == times
        assert gateway.counters["origin_errors"] == gateway.counters["spliced"] == 0
        assert [record.reason for record in gateway.records] == [Reason.INTERNAL_ADDRESS] * times


async def test_a_name_that_changes_its_answer_is_judged_by_what_is_connected_to(
    state: Path, inner: RawOrigin, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.resolver._KEEP_S", 0.0)
    async with wire_gateway(state, {}, allow_networks=["127.0.0.2/32"]) as gateway:
        server = await asyncio.start_server(RawOrigin(OK).serve, "127.0.0.2", inner.port)
        async with server:
            for address, status in (("127.0.0.2", b"200"), ("127.0.0.1", b"403"), ("127.0.0.2", b"200")):
                names[REBIND] = [address]
                assert (await ask(gateway, f"http://{REBIND}:{inner.port}/")).split(b" ")[1] == status
        assert inner.connections == 0


async def test_the_parent_proxy_may_be_anywhere(state: Path, names: dict[str, list[str]]) -> None:
    names["parent.corp.com"] = ["127.0.0.1"]
    async with (
        RawOrigin(OK).running() as parent,
        wire_gateway(state, {}, mode=f"upstream:http://parent.corp.com:{parent.port}") as gateway,
    ):
        assert (await ask(gateway, "http://site.example/")).endswith(b"ok")


def guard_of(links: Callable[[], Links] = lambda: NO_LINKS, **settings: Any) -> tuple[ReachGuard, Counters]:
    counters = Counters()
    return ReachGuard(ProxySettings.model_validate(settings), counters, {}, links=links), counters


def test_what_is_refused_is_logged_as_the_users_policy_has_it() -> None:
    class Details:
        varies_log = True

        def log_detail(self, client: str, user: str = "") -> LogDetail | None:
            return LogDetail.OFF if user == "kim" else None

    flow, tunnel = tflow.tflow(err=Error(INTERNAL_MESSAGE)), tflow.ttcpflow(err=Error(INTERNAL_MESSAGE))
    for user, logged in (("", 2), ("kim", 0)):
        written: list[LogRecord] = []
        recorder = DecisionRecorder(written.append, details=Details())
        users = {one.client_conn.id: user for one in (flow, tunnel)}
        guard = ReachGuard(ProxySettings(), Counters(), {}, recorder, logged_in=users)
        guard.error(flow)
        guard.tcp_error(tunnel)
        assert len(written) == logged


def infos(*addresses: str) -> list[Any]:
    return [(socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80)) for one in addresses]


def test_the_order_of_addresses_stays() -> None:
    guard, counters = guard_of()
    found = infos("10.0.0.1", "8.8.8.8", "fe80::1%eth0", "2606:4700::1111", "127.0.0.1")
    assert [info[4][0] for info in guard.admitted("192.168.1.5", "x.com", found)] == ["8.8.8.8", "2606:4700::1111"]
    assert counters["internal_refused"] == 0
    with pytest.raises(InternalAddressError) as caught:
        guard.admitted("192.168.1.5", "x.com", infos("10.0.0.1"))
    assert str(caught.value) == INTERNAL_MESSAGE
    assert counters["internal_refused"] == 1


@all_cases("host", ["x.com", "10.0.0.1", "10.0.0.2"])
def test_a_redirected_connection_goes_to_where_it_was_going(host: str) -> None:
    guard, _ = guard_of(mode="transparent")
    found = infos("10.0.0.2", "10.0.0.1", "127.0.0.1")
    assert guard.admitted("192.168.1.5", host, found, destination="10.0.0.1") == infos("10.0.0.1")
    with pytest.raises(InternalAddressError):
        guard.admitted("192.168.1.5", host, found, destination="127.0.0.1")


@all_cases(
    ("client", "host", "ours", "theirs", "home"),
    [
        ("192.168.1.5", "x.com", "192.168.1.1", "8.8.8.8", False),
        ("192.168.1.5", "x.com", "8.8.8.8", "8.8.8.8", True),
        ("192.168.1.5", "8.8.8.8", "8.8.8.8", "8.8.8.8", True),
        ("127.0.0.1", "8.8.8.8", "8.8.8.8", "8.8.8.8", False),
        ("127.0.0.1", "x.com", "8.8.8.8", "8.8.8.8", True),
    ],
)
def test_an_own_address_that_nobody_has_heard_of(client: str, host: str, ours: str, theirs: str, *, home: bool) -> None:
    assert guard_of()[0].leads_home(client, host, ours, theirs) is home
    assert not guard_of(allow_networks=["8.8.8.8/32"])[0].leads_home(client, host, ours, theirs)


def test_a_client_without_an_address_reaches_public_ones_alone() -> None:
    guard, _ = guard_of()
    client = Client(peername=None, sockname=("127.0.0.1", 1), state=ConnectionState.OPEN)  # type: ignore[arg-type]

    def connect_for_it() -> None:
        guard.server_connect(ServerConnectionHookData(Server(address=("127.0.0.1", 80)), client))
        with pytest.raises(InternalAddressError):
            guard.admitted_here("127.0.0.1", infos("127.0.0.1"))
        assert guard.admitted_here("8.8.8.8", infos("8.8.8.8"))

    copy_context().run(connect_for_it)
