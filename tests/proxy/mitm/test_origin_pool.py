"""One client connection and its many origins: nobody waits for ever, little stays open, an error is not for ever."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trustme
from mitmproxy.proxy.layers.http import HttpLayer

from gatewayfilter.proxy.mitm import origin_pool
from gatewayfilter.proxy.mitm.event_loop import limit_connecting
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore, leads_back
from tests.case_tables import all_cases
from tests.proxy.mitm.http.test_http1_shapes import OK, RawOrigin, exchange
from tests.proxy.mitm.http.test_http2 import Http2Client, closing, http2_tls
from tests.proxy.proxy_fakes import Gateway, Origin

__all__ = ["http2_tls"]


@asynccontextmanager
async def one_connection(gateway: Gateway) -> AsyncIterator[Any]:
    """Yields a function that asks for a URL, each time over the same connection, and returns what comes up to `ok`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)

    async def ask(url: str) -> bytes:
        writer.write(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(5):
            return await reader.readuntil(b"\r\n\r\nok")

    yield ask
    writer.close()


def to_origins(gateway: Gateway) -> int:
    """Returns how many connections the proxy has open beside its clients'."""
    return sum(len(handler.transports) - 1 for handler in gateway.master._proxyserver.connections.values())


def remembered(gateway: Gateway) -> int:
    """Returns how many connections mitmproxy's HTTP layers still know, clients' included."""
    layers = [
        found
        for handler in gateway.master._proxyserver.connections.values()
        for found in handler.layer.context.layers
        if isinstance(found, HttpLayer)
    ]
    return sum(len(layer.connections) for layer in layers)


async def test_one_client_connection_visits_many_sites(gateway: Gateway) -> None:
    async with AsyncExitStack() as stack:
        origins = [await stack.enter_async_context(RawOrigin(OK).running()) for _ in range(24)]
        async with one_connection(gateway) as ask:
            for origin in origins:
                assert await ask(f"http://127.0.0.1:{origin.port}/")
            assert to_origins(gateway) <= origin_pool._MOST_IDLE + 1
            assert await ask(f"http://127.0.0.1:{origins[-1].port}/")
            assert origins[-1].connections == 1  # the newest ones are used again
            assert await ask(f"http://127.0.0.1:{origins[0].port}/")
            assert origins[0].connections == 2


async def test_one_client_connection_visits_many_sites_through_a_parent(start_gateway: Any) -> None:
    async with RawOrigin(OK).running() as parent, start_gateway(mode=f"upstream:http://127.0.0.1:{parent.port}") as gateway:
        async with one_connection(gateway) as ask:
            for number in range(40):
                assert await ask(f"http://site{number}.example/")
            assert to_origins(gateway) <= origin_pool._MOST_IDLE + 1
            assert remembered(gateway) <= 2 * origin_pool._MOST_IDLE + 8
        assert parent.heard.count(b"GET http://site") == 40


async def test_a_site_whose_connection_was_idle_is_visited_again_through_a_parent(start_gateway: Any) -> None:
    """The oldest idle connection is given up just when it is wanted: the request must not be sent on it."""
    sites = origin_pool._MOST_IDLE + 2
    async with RawOrigin(OK).running() as parent, start_gateway(mode=f"upstream:http://127.0.0.1:{parent.port}") as gateway:
        async with one_connection(gateway) as ask:
            for step in (1, 1, 1, 3, 7):
                for number in range(sites):
                    assert await ask(f"http://site{number * step % sites}.example/")
        assert parent.heard.count(b"GET http://site") == 5 * sites


async def test_closed_connections_are_forgotten(gateway: Gateway) -> None:
    async with RawOrigin(OK).running() as origin:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for _ in range(30):
            writer.write(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % origin.port)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok"), 5)
            for handler in gateway.master._proxyserver.connections.values():  # as if the origin had closed it
                for connection, io in list(handler.transports.items()):
                    if connection is not handler.client and io.handler is not None:
                        io.handler.cancel()
            await asyncio.sleep(0.005)
        assert remembered(gateway) <= 4
        writer.close()


async def test_slow_streams_over_one_connection_do_not_starve_the_others(
    gateway: Gateway, origin: Origin, http2_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin_pool, "_PATIENCE_S", 0.05)
    with closing(await Http2Client.connect(gateway, origin.https, http2_tls)) as client:
        for _ in range(origin_pool._MOST_AT_ONCE + 4):
            client.ask("GET", "/events")
        assert (await client.answer(client.ask("GET", "/page")))[0] == "200"


async def test_a_dead_origin_is_tried_again(gateway: Gateway, authority: trustme.CA, http2_tls: ssl.SSLContext) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    origin = RawOrigin(OK)
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with closing(await Http2Client.connect(gateway, f"https://localhost:{port}", http2_tls)) as client:
        status, body = await client.answer(client.ask("GET", "/", body=False, **{"accept-language": "zh"}))
        assert status == "502"
        assert "其服务器拒绝连接".encode() in body
        async with await asyncio.start_server(origin.serve, "127.0.0.1", port, ssl=tls):
            assert await client.answer(client.ask("GET", "/")) == ("200", b"ok")
    assert gateway.counters["origin_errors"] == 1


@pytest.mark.parametrize("upload", [False, True])
async def test_an_untrusted_origin_is_refused_and_explained(*, upload: bool, gateway: Gateway, http2_tls: ssl.SSLContext) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(tls)
    origin = RawOrigin(OK)
    async with await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        with closing(await Http2Client.connect(gateway, f"https://localhost:{port}", http2_tls)) as client:
            stream = client.ask("POST" if upload else "GET", "/?secret", body=upload)
            status, body = await client.answer(stream)
    assert status == "502"
    assert b"cannot prove that it is genuine" in body
    assert b"<a " not in body  # no way on
    assert bytes(origin.heard) == b""


async def test_a_limit_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_pool, "_MOST_AT_ONCE", 2)
    monkeypatch.setattr(origin_pool, "_PATIENCE_S", 30.0)
    limit = FairSemaphore()
    order: list[int] = []
    gates = [asyncio.Event() for _ in range(4)]

    async def use(number: int) -> None:
        async with limit:
            order.append(number)
            await gates[number].wait()

    tasks = [asyncio.create_task(use(number)) for number in range(4)]
    await asyncio.sleep(0.01)
    assert order == [0, 1]
    tasks[2].cancel()
    await asyncio.sleep(0.01)
    gates[1].set()
    await asyncio.sleep(0.01)
    assert order == [0, 1, 3]  # the turn of one who has left is not lost
    monkeypatch.setattr(origin_pool, "_PATIENCE_S", 0.01)
    impatient = asyncio.create_task(use(2))
    await asyncio.sleep(0.05)
    assert order == [0, 1, 3, 2]
    for gate in gates:
        gate.set()
    await asyncio.gather(*tasks, impatient, return_exceptions=True)


@pytest.mark.parametrize(
    ("raised", "message"),
    [(UnicodeError("label too long"), "not a name"), (TimeoutError(), "timed out"), (OSError(1, "no"), "no")],
)
async def test_every_failure_to_connect_is_one_that_mitmproxy_expects(raised: Exception, message: str) -> None:
    async def look_up(*_: object, **__: object) -> None:
        raise raised

    loop = asyncio.new_event_loop()
    loop.getaddrinfo = look_up  # type: ignore[method-assign, assignment]
    limit_connecting(loop, lambda _, found: found)
    with pytest.raises(OSError, match=message):
        await loop.create_connection(asyncio.Protocol, "x", 1)
    loop.close()


@all_cases(
    ("ours", "theirs", "listening", "back"),
    [
        ("192.168.1.1", "192.168.1.1", "0.0.0.0", True),
        ("192.168.1.1", "192.168.1.1", "::", True),
        ("127.0.0.1", "127.0.0.2", "0.0.0.0", True),
        ("192.168.1.1", "192.168.1.2", "0.0.0.0", False),
        ("192.168.1.1", "192.168.1.1", "192.168.1.1", True),
        ("127.0.0.1", "127.0.0.1", "192.168.1.1", False),
    ],
)
def test_whatleads_back(ours: str, theirs: str, listening: str, *, back: bool) -> None:
    assert leads_back(ours, theirs, listening) == back


@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.1", "localhost"])
async def test_a_request_for_the_proxy_itself_does_not_go_round(host: str, start_gateway: Any) -> None:
    async with start_gateway(listen="0.0.0.0:0") as gateway:
        head = b"GET http://%s:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % (host.encode(), gateway.port)
        got = await exchange(gateway, head, lambda got: b"</html>" in got)
        assert got.startswith(b"HTTP/1.1 502")
        assert len(gateway.records) == 1
