"""What an origin, or a proxy, that does its worst may send through an outbound proxy. All is counted, none is timed."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.errors import FetchError
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, serving
from tests.crawl.crawl_proxy import Proxy, resolves_to
from tests.crawl.floods import BUDGET_S, BUFFERS, FLOODS, HEAD, LIMIT, Answer, Wire, offering


async def body_of(url: str, proxy: str, **changes: object) -> int:
    """Fetches through the proxy; returns the length of the body, 0 where it was given up."""
    settings = loopback_settings(proxies=(proxy,), **changes)
    async with Fetcher(settings, Politeness(settings)) as fetcher, asyncio.timeout(BUDGET_S):
        with suppress(FetchError):
            return len((await fetcher.fetch(parse_url(url))).body)
    return 0


@pytest.mark.parametrize("answer", FLOODS)
async def test_what_is_read_of_a_flood_through_a_proxy(origin: Origin, proxy: Proxy, wire: Wire, answer: Answer) -> None:
    origin.answers["/"] = answer
    assert await body_of(origin.url(), proxy.address) <= LIMIT
    assert wire.read <= 2 * LIMIT + BUFFERS
    assert origin.requests == ["/"]


@pytest.mark.parametrize("answer", FLOODS)
async def test_what_is_read_of_a_flood_through_a_tunnel(
    proxy: Proxy, wire: Wire, answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resolves_to(monkeypatch, "127.0.0.1")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("name.test").configure_cert(context)
    async with serving(context) as site:
        site.answers["/"] = answer
        url = f"https://name.test:{site.port}/"
        assert await body_of(url, proxy.address, upstream_ca=tmp_path / "ca.pem") <= LIMIT
        assert site.requests == ["/"]
    assert wire.read <= 2 * LIMIT + BUFFERS


@pytest.mark.parametrize(
    "answer",
    [
        offering(HEAD, b"X-Flood: yes\r\n" * 4000),
        offering(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
        offering(b"HTTP/1.1 502 Bad Gateway\r\n\r\n", b"a" * 50_000),
    ],
)
async def test_what_is_read_of_a_proxy_that_never_opens_the_tunnel(wire: Wire, answer: Answer) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer)
        writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await body_of("https://127.0.0.1:9/", address) == 0
    assert 0 < wire.read <= 2 * LIMIT + BUFFERS
