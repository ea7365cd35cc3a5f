"""Origins that take connections and never complete a TLS handshake."""

import asyncio
import ssl

import aiohttp
import pytest

from gatewayfilter.proxy.tunnel import origin_handshakes
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway, Origin


@pytest.mark.parametrize("fast_path", [True, False])
async def test_an_origin_that_says_nothing_is_left(
    fast_path: bool,  # noqa: FBT001
    start_gateway: StartGateway,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(origin_handshakes, "HANDSHAKE_S", 0.1)
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1_000):
            pass
        left.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
    async with server, start_gateway(fast_path=fast_path) as gateway, asyncio.timeout(9):
        async with client.get(url, proxy=gateway.url, ssl=client_tls) as answer:
            assert answer.status == 502
            assert "reason=" in answer.headers["x-gatewayfilter"]
        await left.wait()


async def test_a_handshake_in_time_lifts_its_limit(
    gateway: Gateway,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gateway.master is not None
    limits = gateway.master.addons.get("originhandshakes")._limits
    begun: list[object] = []
    add = limits.add

    def noted(item: object) -> None:
        begun.append(item)
        add(item)

    monkeypatch.setattr(limits, "add", noted)
    async with client.get(f"{origin.https}/", proxy=gateway.url, ssl=client_tls) as answer:
        assert answer.status == 200
    assert len(begun) == 1
    assert len(limits) == 0
