"""However a client cuts its first bytes into segments, and whatever line ends precede them, the verdict is that of the whole.

Each request of a corpus goes over each way into the proxy: explicit, through CONNECT to a host and to an address, and redirected;
in the clear and inside TLS. A site at the other end notes what reaches it.
"""

import asyncio
import math
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import pytest
from mitmproxy import platform

from gatewayfilter.model import HostVerdict
from gatewayfilter.proxy.listener import listener
from tests.proxy.connection_fakes import NAMED, PASS, WireGateway, wire_gateway
from tests.proxy.split_clients import PATIENCE_S, Site, channel, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.filterwarnings("ignore::ResourceWarning")]

CUTS = range(65)
LEADS = (b"", b"\r\n", b"\n", b"\r\n\r\n", b"\n\n", b"\r\n\r\n\r\n", b"\n\n\n")
MOST_AT_ONCE = 150
type Try = Callable[[int], Awaitable[str]]


@pytest.fixture
async def target() -> AsyncIterator[Site]:
    async with site() as found:
        yield found


@pytest.fixture(params=["regular", "transparent"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine many connections are an overload, and clients are silent for seconds; neither is meant here."""
    monkeypatch.setattr(listener, "_BEHIND_S", math.inf)
    monkeypatch.setattr(listener, "SILENT_S", PATIENCE_S)


@pytest.fixture
async def gateway(mode: str, state: Path, target: Site, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WireGateway]:
    """A proxy in either mode; what the kernel says of a redirected connection's destination is made up."""
    if mode == "transparent":
        monkeypatch.setattr(platform, "original_addr", lambda _: ("127.0.0.1", target.port))
    be_patient(monkeypatch)
    table: dict[str, HostVerdict] = {"localhost": NAMED}
    async with wire_gateway(state, table, mode=mode, max_connections_per_client=10_000) as running:
        yield running


async def all_tries(tries: Iterable[Awaitable[str]]) -> Counter[str]:
    """Returns how often each verdict came."""
    room = asyncio.Semaphore(MOST_AT_ONCE)

    async def one(trying: Awaitable[str]) -> str:
        async with room:
            return await trying

    return Counter(await asyncio.gather(*(one(trying) for trying in tries)))


def ways(mode: str, port: int) -> tuple[str, ...]:
    """Targets of CONNECT; `""` for a connection without one."""
    return ("",) if mode == "transparent" else (f"localhost:{port}", f"127.0.0.1:{port}")


def requests(mode: str, host: str, path: str) -> Iterator[tuple[bytes, bool]]:
    """Yields requests, and whether they are for a proxy itself."""
    yield f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), False
    yield f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode(), False
    yield f"g-!T {path} HTTP/1.1\nhost:{host}\n\n".encode(), False
    yield f"GET\t{path}\tHTTP/1.1\r\nHost:\t{host}\r\n\r\n".encode(), False
    if mode == "regular":
        yield f"GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), True


@pytest.mark.parametrize(
    ("host", "path", "want"),
    [
        ("blocked.test", "/index.html", "403 blacklist"),
        ("ok.test", "/blocked/by/path", "403 blacklist"),
    ],
)
async def test_plain_requests(host: str, path: str, want: str, mode: str, gateway: WireGateway, target: Site) -> None:
    async def ask(data: bytes, cut: int, connect: str) -> str:
        async with channel(gateway.port, connect) as client:
            await client.send(data, cut)
            return await client.status()

    for number, (request, to_proxy) in enumerate(requests(mode, host, path)):
        leads = LEADS if host == "blocked.test" and (to_proxy or not number) else LEADS[:2]
        for connect in ("",) if to_proxy else ways(mode, target.port):
            tries = (ask(lead + request, cut, connect) for lead in leads for cut in CUTS)
            assert await all_tries(tries) == {want: len(leads) * len(CUTS)}, (request, connect)
    assert target.heard == []


async def test_allowed_requests_reach_the_site_all_the_same(mode: str, gateway: WireGateway, target: Site) -> None:
    async def ask(data: bytes, cut: int, connect: str) -> str:
        async with channel(gateway.port, connect) as client:
            await client.send(data, cut)
            return await client.status()

    host = f"localhost:{target.port}"
    found = list(requests(mode, host, "/page"))
    for request, to_proxy in (found[0], found[-1]):
        tries = (
            ask(lead + request, cut, connect)
            for connect in (("",) if to_proxy else ways(mode, target.port))
            for lead in LEADS
            for cut in CUTS[::7]
        )
        assert set(await all_tries(tries)) == {"200"}
    assert all(heard.startswith(b"GET /page HTTP/1.1\r\n") for heard in target.heard)


@pytest.mark.parametrize("alpn", [(), ("http/1.1",), ("foo",), ("h3",), ("h2", "http/1.1")], ids=repr)
async def test_client_hellos(
    alpn: tuple[str, ...], mode: str, gateway: WireGateway, target: Site, client_tls: ssl.SSLContext
) -> None:
    """A name that is blocked whole, in a tunnel to another host or an address."""
    if alpn:
        client_tls.set_alpn_protocols(list(alpn))

    async def ask(cut: int, connect: str) -> str:
        async with channel(gateway.port, connect) as client:
            chosen = await client.begin_tls(client_tls, "blocked.test", cut)
            if chosen == "h2":
                return await client.status_by_http2("blocked.test", "/", cut)
            await client.send(b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n")
            return await client.status()

    for connect in ways(mode, target.port):
        tries = await all_tries(ask(cut, connect) for cut in CUTS)
        assert tries == ({"400 not-http": len(CUTS)} if alpn == ("h3",) else {"403 blacklist": len(CUTS)})
    assert target.heard == []


async def test_requests_inside_tls(mode: str, gateway: WireGateway, target: Site, client_tls: ssl.SSLContext) -> None:
    """Without ALPN the protocol has to be told from the first bytes once more; a path alone is blocked."""

    async def ask(data: bytes, cut: int, connect: str) -> str:
        async with channel(gateway.port, connect) as client:
            assert await client.begin_tls(client_tls, "ok.test") == ""
            await client.send(data, cut)
            return await client.status()

    request = b"GET /blocked/path HTTP/1.1\r\nHost: ok.test\r\n\r\n"
    [*_, connect] = ways(mode, target.port)
    tries = (ask(lead + request, cut, connect) for lead in LEADS for cut in (*CUTS[:8], *CUTS[8::8]))
    assert set(await all_tries(tries)) == {"403 blacklist"}
    assert target.heard == []


async def test_the_preface_of_http2_without_alpn(
    mode: str, gateway: WireGateway, target: Site, client_tls: ssl.SSLContext
) -> None:
    async def ask(cut: int, connect: str, *, tls: bool) -> str:
        async with channel(gateway.port, connect) as client:
            if tls:
                await client.begin_tls(client_tls, "ok.test")
            await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), cut)
            return await client.status()

    for connect in {"", *ways(mode, target.port)}:
        for tls in (False, True):
            if connect or mode == "transparent":
                found = await all_tries(ask(cut, connect, tls=tls) for cut in range(34))
                assert set(found) - {"closed"} == {"400 bad-request"}, (connect, tls)  # bytes that come later may cost the answer
    assert target.heard == []


@pytest.mark.parametrize("sni", ["ok.test", "blocked.test", "unknown.test"])
@pytest.mark.parametrize("host", ["ok.test", "unknown.test"])
async def test_each_name_has_to_be_known_where_unknown_ones_are_blocked(
    host: str, sni: str, mode: str, state: Path, target: Site, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the clear and inside TLS; a name that is known does not make up for another."""
    monkeypatch.setattr(platform, "original_addr", lambda _: ("127.0.0.1", target.port))
    be_patient(monkeypatch)

    async def ask(cut: int, connect: str, *, tls: bool) -> str:
        async with channel(running.port, connect) as client:
            if tls:
                await client.begin_tls(client_tls, sni)
            await client.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), cut)
            return await client.status()

    async with wire_gateway(state, {}, mode=mode, unknown="block", max_connections_per_client=10_000) as running:
        for connect in ways(mode, target.port):
            if "unknown.test" in {host, sni} or sni == "blocked.test":
                found = await all_tries(ask(cut, connect, tls=True) for cut in range(6))
                assert set(found) == {"403 blacklist" if sni == "blocked.test" else "403 unknown"}
            if host == "unknown.test":
                assert set(await all_tries(ask(cut, connect, tls=False) for cut in range(6))) == {"403 unknown"}
        if mode == "regular":  # the tunnel's target is a name as well
            assert await ask(1, f"unknown.test:{target.port}", tls=False) == "403 unknown"
            assert await ask(1, f"blocked.test:{target.port}", tls=False) == "403 blacklist"
    assert target.heard == []


@pytest.mark.parametrize("mode", ["regular"], indirect=True)
async def test_a_blocked_target_with_another_name_inside(gateway: WireGateway, client_tls: ssl.SSLContext) -> None:
    for lead in LEADS:
        async with channel(gateway.port, "blocked.test:443") as client:
            await client.begin_tls(client_tls, "ok.test")
            await client.send(lead + b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", 1)
            assert await client.status() == "403 blacklist"


@pytest.mark.parametrize(("outer", "inner"), [("blocked.test", "ok.test"), ("ok.test", "blocked.test"), ("ok.test", "ok.test")])
async def test_tls_within_tls_is_refused(
    outer: str, inner: str, mode: str, gateway: WireGateway, target: Site, client_tls: ssl.SSLContext
) -> None:
    """The outer name would be judged nowhere."""
    for connect in {"", *ways(mode, target.port)}:
        async with channel(gateway.port, connect) as client:
            await client.begin_tls(client_tls, outer)
            assert (await client.begin_tls(client_tls, inner, 1)).startswith("closed")
    assert gateway.counters["not_http"] == len({"", *ways(mode, target.port)})
    assert target.heard == []


@pytest.mark.parametrize("mode", ["regular"], indirect=True)
async def test_tls_to_the_proxy_itself(gateway: WireGateway, target: Site, client_tls: ssl.SSLContext) -> None:
    async with channel(gateway.port) as client:
        await client.begin_tls(client_tls, "proxy.test", 2)
        await client.send(f"CONNECT 127.0.0.1:{target.port} HTTP/1.1\r\n\r\n".encode(), 2)
        assert await client.status() == "200"
        await client.begin_tls(client_tls, "blocked.test", 2)
        await client.send(b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n")
        assert await client.status() == "403 blacklist"
    assert target.heard == []


async def test_connect_within_a_connection(mode: str, gateway: WireGateway, target: Site, client_tls: ssl.SSLContext) -> None:
    for tls in (False, True):
        async with channel(gateway.port, ways(mode, target.port)[-1]) as client:
            if tls:
                await client.begin_tls(client_tls, "ok.test")
            await client.send(b"CONNECT blocked.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\n\r\n", 3)
            assert await client.status() == "400 bad-request"
    assert target.heard == []


@pytest.mark.parametrize("mode", ["regular"], indirect=True)
async def test_a_connect_in_pieces(gateway: WireGateway, target: Site, client_tls: ssl.SSLContext) -> None:
    gateway.hosts.table["localhost"] = PASS

    async def ask(lead: bytes, cut: int) -> str:
        async with channel(gateway.port) as client:
            connect = f"CONNECT localhost:{target.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            await client.send(lead + connect, cut)
            assert await client.status() == "200"
            await client.begin_tls(client_tls, "blocked.test", cut)
            await client.send(b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n")
            return await client.status()

    assert set(await all_tries(ask(lead, cut) for lead in LEADS[:3] for cut in CUTS)) == {"403 blacklist"}
    assert b"".join(target.heard) == b""


@pytest.mark.parametrize("length", [30_000, 66_000, 70_000, 200_000, 400_000])
@pytest.mark.parametrize("host", ["blocked.test", "localhost"])
async def test_long_urls_are_never_raw(host: str, length: int, mode: str, gateway: WireGateway, target: Site) -> None:
    """The first read of one send has no line end."""
    path = "/" + "x" * length
    for connect in ways(mode, target.port):
        async with channel(gateway.port, connect) as client:
            await client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            status = await client.status()
        if length < 65_000:
            assert status == ("403 blacklist" if host == "blocked.test" else "200")
        else:
            assert status.startswith(("400", "403", "431", "closed"))  # what is closed with unread data may lose its answer
    assert len(target.heard) == (len(ways(mode, target.port)) if host == "localhost" and length < 65_000 else 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\0GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"\x1cGET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"GET / HTTP/1.1\rHost: blocked.test\r\r\r\n\r\n",
        b"G\0ET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"SSH-2.0-x / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\r" * 30 + b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"\r\n" * 200 + b"GET / HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        b"blocked /\r\n\r\n",
    ],
)
async def test_what_other_servers_might_read(data: bytes, mode: str, gateway: WireGateway, target: Site) -> None:
    """Also where raw TCP is allowed to the host that the connection leads to."""
    gateway.hosts.table.update({"localhost": PASS, "127.0.0.1": PASS})

    async def ask(cut: int, connect: str) -> str:
        async with channel(gateway.port, connect) as client:
            await client.send(data, cut)
            return await client.status()

    if data.startswith(b"\0"):  # no server reads that, and it may pass to a host that passes unread anyway
        gateway.hosts.table.clear()
    for connect in ways(mode, target.port):
        found = await all_tries(ask(cut, connect) for cut in range(12))
        assert set(found) <= {"400 bad-request", "400 not-http", "403 blacklist", "closed"}, found
    assert b"".join(target.heard) == b""
