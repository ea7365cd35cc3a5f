"""Connections that the fast path takes from the pool, and the same ones opened by mitmproxy: the same hooks and records."""

import asyncio
import ssl
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.connection import Server
from mitmproxy.proxy.layers.http import HTTPMode

from gatewayfilter.proxy.mitm import adoption
from gatewayfilter.proxy.mitm.adoption import OriginAdoption
from gatewayfilter.proxy.mitm.origin_pool import _MOST_AT_ONCE, FairSemaphore
from tests.case_tables import all_cases
from tests.proxy.conftest import StartGateway
from tests.proxy.mitm.fastpath.test_tunnel_layer import Hooks, from_tunnel
from tests.proxy.mitm.test_shared_origins import CountingOrigin, left, origin_tls, visit

__all__ = ["origin_tls"]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@all_cases(
    ("mode", "url", "sni", "client_sni", "name"),
    [
        (HTTPMode.transparent, "https://a.example:443/", "own.example", "client.example", "own.example"),
        (HTTPMode.transparent, "https://a.example:443/", None, "client.example", "client.example"),
        (HTTPMode.transparent, "https://a.example:443/", None, None, "a.example"),
        (HTTPMode.transparent, "https://b.example:443/", "own.example", "client.example", "b.example"),
        (HTTPMode.transparent, "https://a.example:8443/", "own.example", "client.example", "a.example"),
        (HTTPMode.regular, "https://a.example:443/", "own.example", "client.example", "a.example"),
        (HTTPMode.transparent, "http://a.example:443/", "own.example", "client.example", None),
    ],
)
def test_the_name_of_the_connection_that_a_request_needs(
    mode: HTTPMode, url: str, sni: str | None, client_sni: str | None, name: str | None
) -> None:
    before = Server(address=("a.example", 443))
    before.sni = sni
    layer: Any = SimpleNamespace(mode=mode, context=SimpleNamespace(server=before, client=SimpleNamespace(sni=client_sni)))
    meant = http.Request.make("GET", url).data
    server = adoption._asked_for(layer, meant)
    assert (server.address, server.tls, server.sni) == ((meant.host, meant.port), name is not None, name)


@pytest.fixture
def adopted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request for a connection was served at once."""
    made: list[bool] = []
    adopt = OriginAdoption.adopt

    def note(self: OriginAdoption, *arguments: Any) -> Any:
        made.append((found := adopt(self, *arguments)) is not None)
        return found

    monkeypatch.setattr(OriginAdoption, "adopt", note)
    return made


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_both_ways_are_equal(
    start_gateway: StartGateway, origin_tls: ssl.SSLContext, client_tls: ssl.SSLContext, adopted: list[bool], *, secure: bool
) -> None:
    found = []
    async with CountingOrigin(OK, origin_tls if secure else None).running() as origin:
        for fast_path in (True, False):
            async with start_gateway(shared_origins=256, fast_path=fast_path) as gateway:
                hooks = Hooks()
                gateway.master.addons.add(hooks)
                answers = []
                for number in range(3):
                    answers.append(await visit(gateway, origin, str(number), tls=client_tls if secure else None))
                    await left(gateway, 1)
                (parked,) = gateway.master._shared._parked
                server, shared = parked.tls.before, gateway.master._shared._counters["origin_connections_shared"]
                facts = (server.sni, server.alpn, server.tls_version, server.tls, bool(server.certificate_list), server.address)
                found.append((answers, hooks.seen, from_tunnel(gateway), shared, facts))
    assert found[0] == found[1]
    assert found[0][3] == 2
    assert adopted == [False, True, True]
    assert Counter(name for name, *_ in found[0][1])["server_connected"] == 3


@pytest.mark.parametrize("kind", ["coroutine function", "function that returns one"])
async def test_a_hook_that_waits_is_waited_for(start_gateway: StartGateway, adopted: list[bool], kind: str) -> None:
    seen: list[str] = []

    async def later(_: object) -> None:
        await asyncio.sleep(0)
        seen.append("done")

    def begin(data: object) -> Any:
        return later(data)

    class Waits:
        name = "waits"
        server_connected = staticmethod(later if kind == "coroutine function" else begin)

    async with start_gateway(shared_origins=256) as gateway, CountingOrigin().running() as origin:
        gateway.master.addons.add(Waits())
        for number in range(2):
            assert (await visit(gateway, origin, str(number))).endswith(b"ok")
            assert seen == ["done"] * (number + 1)
            await left(gateway, 1)
    assert adopted == [False, False]


async def test_the_limit_of_connections_is_kept(start_gateway: StartGateway, adopted: list[bool]) -> None:
    limit = FairSemaphore()
    for _ in range(_MOST_AT_ONCE):
        assert limit.enter_at_once() is True
    assert limit.enter_at_once() is False
    limit.leave()
    assert limit.enter_at_once() is True
    async with start_gateway(shared_origins=256) as gateway, CountingOrigin().running() as origin:
        await visit(gateway, origin, "0")
        await left(gateway, 1)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET http://localhost:%d/1 HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (origin.port, origin.port))
        assert await reader.readexactly(len(OK)) == OK
        (handler,) = gateway.master._proxyserver.connections.values()
        (used,) = handler.max_conns.values()
        assert isinstance(used, FairSemaphore)
        assert used._open == 1
        writer.close()
        await left(gateway, 1)
        assert used._open == 0
    assert adopted == [False, True]


async def test_an_address_that_is_refused_by_now_is_not_used(start_gateway: StartGateway, adopted: list[bool]) -> None:
    async with start_gateway(shared_origins=256) as gateway, CountingOrigin().running() as origin:
        await visit(gateway, origin, "0")
        await left(gateway, 1)
        gateway.master._guard._reach.admits = lambda *_: False  # type: ignore[method-assign]
        assert (await visit(gateway, origin, "1")).startswith(b"HTTP/1.1 403")
        assert gateway.master._guard._counters["internal_refused"] == 1
    assert origin.requests == [(1, "0")]
    assert adopted == [False, False]


async def test_a_policy_that_leads_elsewhere_by_now_takes_nothing(start_gateway: StartGateway, adopted: list[bool]) -> None:
    """The address of an enforced SafeSearch counts for the client that asks, not for the one that left the connection."""

    class Enforces:
        def enforced_address(self, host: str, *_: str) -> str:
            return "127.0.0.9" if host == "localhost" else ""

    async with start_gateway(shared_origins=256) as gateway, CountingOrigin().running() as origin:
        await visit(gateway, origin, "0")
        await left(gateway, 1)
        guard: Any = gateway.master._guard
        usual, guard._hosts = guard._hosts, Enforces()
        assert (await visit(gateway, origin, "1")).startswith(b"HTTP/1.1 502")
        await left(gateway, 1)
        guard._hosts = usual
        assert (await visit(gateway, origin, "2")).endswith(b"ok")
    assert origin.requests == [(1, "0"), (1, "2")]
    assert adopted == [False, False, True]
