"""Fetching through outbound proxies: real ones on loopback."""

import ssl
from pathlib import Path

import pytest
import trustme

from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, UnreachableError
from gatewayfilter.crawl.net.outbound_proxies import collect_proxies
from gatewayfilter.crawl.net.proxy_pool import DROP_AFTER, ProxyPool
from gatewayfilter.errors import ConfigError, FetchError, ForbiddenAddressError
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, reply, serving
from tests.crawl.crawl_proxy import Proxy, proxying, resolves_to


async def test_a_page_comes_through_the_proxy_that_is_asked_for_the_judged_address(
    origin: Origin, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolves_to(monkeypatch, "127.0.0.1")
    origin.answers["/a?b"] = reply(b"hello")
    settings = loopback_settings(proxies=(proxy.address,))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        page = await fetcher.fetch(parse_url(origin.url("/a?b", host="name.test")))
    assert (page.body, page.final_url) == (b"hello", origin.url("/a?b", host="name.test"))
    assert page.secondhand  # the proxy could have written it
    assert proxy.lines == [f"GET http://127.0.0.1:{origin.port}/a?b HTTP/1.1"]
    assert f"Host: name.test:{origin.port}\r\n" in origin.heads[0]


@pytest.mark.parametrize("addresses", [("10.0.0.1",), ("127.0.0.1", "169.254.169.254"), ("::ffff:10.0.0.1",)])
async def test_a_name_with_an_internal_address_is_refused_before_any_proxy_is_asked(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    resolves_to(monkeypatch, *addresses)
    settings = loopback_settings(proxies=(proxy.address,))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        with pytest.raises(ForbiddenAddressError):
            await fetcher.fetch(parse_url("http://inside.test/"))
        for url in ("http://10.0.0.1/", "http://[::1]/"):
            with pytest.raises(FetchError, match="not a public address"):
                await fetcher.fetch(parse_url(url))
    assert proxy.lines == []


async def test_redirects_inside_are_refused_too(origin: Origin, proxy: Proxy) -> None:
    origin.answers["/"] = reply(b"", "Location: http://169.254.169.254/latest/", status="302 Found")
    settings = loopback_settings(proxies=(proxy.address,))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        with pytest.raises(FetchError, match="not a public address"):
            await fetcher.fetch(parse_url(origin.url()))
    assert len(proxy.lines) == 1


async def test_certificates_are_checked_for_the_name(proxy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    resolves_to(monkeypatch, "127.0.0.1")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("name.test").configure_cert(context)
    settings = loopback_settings(proxies=(proxy.address,), upstream_ca=tmp_path / "ca.pem")
    async with serving(context) as site, Fetcher(settings, Politeness(settings)) as fetcher:
        site.answers["/"] = reply(b"secure")
        page = await fetcher.fetch(parse_url(f"https://name.test:{site.port}/"))
        assert (page.body, page.secondhand) == (b"secure", False)
        with pytest.raises(BadAnswerError, match="certificate"):
            await fetcher.fetch(parse_url(f"https://other.test:{site.port}/"))
    assert proxy.lines[0] == f"CONNECT 127.0.0.1:{site.port} HTTP/1.1"


async def test_a_proxy_that_fails_is_dropped_and_none_is_gone_around(origin: Origin, proxy: Proxy) -> None:
    origin.answers["/"] = reply(b"hello")
    proxy.refuses = True
    counters = Counters()
    settings = loopback_settings(proxies=(proxy.address,))
    async with Fetcher(settings, Politeness(settings), counters) as fetcher:
        for _ in range(DROP_AFTER):
            with pytest.raises(UnreachableError, match="did not get through"):
                await fetcher.fetch(parse_url(origin.url()))
        asked = len(proxy.lines)
        with pytest.raises(UnreachableError, match="no outbound proxy is usable"):
            await fetcher.fetch(parse_url(origin.url()))
    assert len(proxy.lines) == asked
    assert counters["proxies_failed"] == DROP_AFTER
    assert origin.requests == []  # never without a proxy


async def test_another_proxy_takes_over(origin: Origin, proxy: Proxy) -> None:
    origin.answers["/"] = reply(b"hello")
    async with proxying() as bad:
        bad.refuses = True
        settings = loopback_settings(proxies=(bad.address, proxy.address))
        async with Fetcher(settings, Politeness(settings)) as fetcher:
            got = 0
            for _ in range(6):
                try:
                    got += (await fetcher.fetch(parse_url(origin.url()))).body == b"hello"
                except UnreachableError:
                    continue
    assert got >= 3
    assert bad.lines


async def test_proxies_are_collected_from_files_and_addresses(origin: Origin, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("# ours\n127.0.0.1:3128\nnonsense\nhttp://u:p@127.0.0.1:3129\n")
    origin.answers["/list"] = reply(b"127.0.0.1:3128\n127.0.0.1:3130\n")
    origin.answers["/gone"] = reply(status="404 Gone")
    pool = ProxyPool()
    sources = (str(tmp_path / "list.txt"), str(tmp_path / "none.txt"), origin.url("/list"), origin.url("/gone"))
    assert await collect_proxies(pool, sources) == 3
    assert await collect_proxies(pool, sources) == 0


async def test_collected_proxies_are_used(origin: Origin, proxy: Proxy, tmp_path: Path) -> None:
    origin.answers["/"] = reply(b"hello")
    (tmp_path / "list.txt").write_text(proxy.address)
    settings = loopback_settings(proxies_from=(str(tmp_path / "list.txt"),))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        assert (await fetcher.fetch(parse_url(origin.url()))).body == b"hello"
    assert len(proxy.lines) == 1


async def test_an_address_that_is_none_is_said_at_once() -> None:
    settings = loopback_settings(proxies=("nonsense",))
    with pytest.raises(ConfigError):
        async with Fetcher(settings, Politeness(settings)):
            pass
