"""One request through an outbound proxy, seen from the proxy, the origin and the pool; and how the list is kept up."""

import asyncio
import gzip
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from gatewayfilter.crawl.net import outbound_proxies
from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.net.outbound_proxies import OutboundProxies, collect_proxies
from gatewayfilter.crawl.net.proxy_pool import ProxyPool
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, reply
from tests.crawl.crawl_proxy import Proxy


class Names:
    """Resolves each name to the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses or ("127.0.0.1",)
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> list[dict[str, str]]:
        self.asked.append((host, port))
        if self.addresses == ("none",):
            raise OSError("no such name")
        return [{"host": address} for address in self.addresses if address]


class Guard:
    """Lets every address pass, and notes it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def refusal(self, address: str, port: int) -> str:
        self.asked.append((address, port))
        return ""


def outbound(names: Names, counters: Counters | None = None, guard: Guard | None = None, **settings: object) -> OutboundProxies:
    known = cast("Any", names), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), {"User-Agent": "crawler/1"}
    return OutboundProxies(loopback_settings(**settings), cast("Any", guard or Guard()), *known, counters or Counters())


@pytest.fixture
async def proxies(proxy: Proxy) -> AsyncIterator[OutboundProxies]:
    async with outbound(Names(), proxies=(proxy.address,)) as opened:
        yield opened


async def test_the_url_is_asked_for_as_it_is_written(origin: Origin, proxy: Proxy, proxies: OutboundProxies) -> None:
    path = "/a%7Eb%2Fc?d=%41&e=+%20"
    origin.answers[path] = reply(b"found")
    async with await proxies.get(parse_url(origin.url(path, host="name.test")), {"X-Own": "1"}) as response:
        assert await response.read() == b"found"
    assert proxy.lines == [f"GET http://127.0.0.1:{origin.port}{path} HTTP/1.1"]
    (head,) = origin.heads
    assert "X-Own: 1\r\n" in head
    assert "User-Agent: crawler/1\r\n" in head


async def test_answers_come_as_they_were_sent(origin: Origin, proxies: OutboundProxies) -> None:
    packed = gzip.compress(b"words")
    origin.answers["/z"] = reply(packed, "Content-Encoding: gzip")
    async with await proxies.get(parse_url(origin.url("/z"))) as response:
        assert await response.read() == packed
    origin.answers["/r"] = reply(b"", "Location: /z", status="302 Found")
    async with await proxies.get(parse_url(origin.url("/r"))) as response:
        assert response.status == 302


async def test_each_request_has_a_connection_of_its_own(origin: Origin, proxy: Proxy, proxies: OutboundProxies) -> None:
    """Connections through a proxy are known by the address, which several names may share."""
    origin.answers["/"] = reply()
    for host in ("one.test", "two.test"):
        async with await proxies.get(parse_url(origin.url(host=host))) as response:
            await response.read()
    assert len(proxy.lines) == 2


async def test_requests_do_not_wait_for_each_other(origin: Origin, proxies: OutboundProxies) -> None:
    all_there = asyncio.Event()

    async def answers_when_all_are_there(writer: asyncio.StreamWriter) -> None:
        if len(origin.requests) == 3:
            all_there.set()
        await all_there.wait()
        writer.write(reply(b"hello", "Connection: close"))

    origin.answers["/"] = answers_when_all_are_there
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*(proxies.get(parse_url(origin.url())) for _ in range(3)))
    for answer in answers:
        answer.close()


async def test_credentials_of_this_machine_are_sent_to_nobody(
    origin: Origin, proxies: OutboundProxies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    origin.answers["/"] = reply()
    (await proxies.get(parse_url(origin.url()))).close()
    assert "authorization" not in origin.heads[0].lower()


async def test_an_answer_is_timed_in_milliseconds(
    origin: Origin, proxies: OutboundProxies, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.answers["/"] = reply()
    await proxies._ready.wait()
    moments = iter([100.0, 100.25])
    monkeypatch.setattr(outbound_proxies, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    (await proxies.get(parse_url(origin.url()))).close()
    (known,) = proxies.pool.proxies()
    assert known.response_ms == 250.0


async def test_a_proxy_that_asks_for_other_credentials(origin: Origin, proxy: Proxy) -> None:
    counters = Counters()
    origin.answers["/"] = reply(status="407 Proxy Authentication Required")
    async with outbound(Names(), counters, proxies=(proxy.address,)) as proxies:
        with pytest.raises(UnreachableError, match=r"^the outbound proxy requires other credentials$"):
            await proxies.get(parse_url(origin.url()))
        assert [known.failures for known in proxies.pool.proxies()] == [1]
    assert counters["proxies_failed"] == 1


async def test_a_request_that_is_given_up_counts_against_its_proxy(origin: Origin, proxy: Proxy) -> None:
    counters = Counters()
    asked = asyncio.Event()

    async def hangs(_: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    origin.answers["/"] = hangs
    async with outbound(Names(), counters, proxies=(proxy.address,)) as proxies:
        request = asyncio.create_task(proxies.get(parse_url(origin.url())))
        await asked.wait()
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        assert request.cancelled()
        assert [known.failures for known in proxies.pool.proxies()] == [1]
    assert counters["proxies_failed"] == 1


@pytest.mark.parametrize("addresses", ["none", ""])
async def test_a_name_without_an_address(proxy: Proxy, addresses: str) -> None:
    async with outbound(Names(addresses), proxies=(proxy.address,)) as proxies:
        with pytest.raises(UnreachableError, match=r"^the host name cannot be resolved$"):
            await proxies.get(parse_url("http://nowhere.test/"))
    assert proxy.lines == []


@pytest.mark.parametrize(
    ("url", "port"), [("http://a.test/", 80), ("https://a.test/", 443), ("http://a.test:8080/", 8080), ("http://192.0.2.9/", 80)]
)
async def test_every_address_is_judged_with_the_port(url: str, port: int) -> None:
    names, guard = Names("192.0.2.1", "192.0.2.2"), Guard()
    async with outbound(names, guard=guard) as proxies:
        with pytest.raises(UnreachableError, match="no outbound proxy is usable"):
            await proxies.get(parse_url(url))
    if "192" in url:
        assert guard.asked == [("192.0.2.9", port)]
        assert names.asked == []
    else:
        assert guard.asked == [("192.0.2.1", port), ("192.0.2.2", port)]
        assert names.asked == [("a.test", port)]


async def test_lists_are_read_now_and_then_and_checks_go_on_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[Sequence[str]] = []
    checks = 0
    done = asyncio.Event()

    async def collect(_: ProxyPool, sources: Sequence[str]) -> int:
        collected.append(sources)
        return 0

    async def check(_: OutboundProxies) -> int:
        nonlocal checks
        checks += 1
        if checks == 1:
            raise ValueError("a fault")
        if checks == 4:
            done.set()
        return 0

    monkeypatch.setattr(outbound_proxies, "CHECK_S", 0)
    monkeypatch.setattr(outbound_proxies, "collect_proxies", collect)
    monkeypatch.setattr(OutboundProxies, "check", check)
    async with outbound(Names(), proxies_from=("/lists",)) as proxies, asyncio.timeout(10):
        await done.wait()
        upkeep, session = proxies._upkeep, proxies._session
        assert collected == [("/lists",)]
        later = time.monotonic() + outbound_proxies.COLLECT_S
        monkeypatch.setattr(outbound_proxies, "time", SimpleNamespace(monotonic=lambda: later))
        done.clear()
        checks = 2
        await done.wait()
        assert len(collected) == 2
    assert upkeep is not None
    assert upkeep.done()
    assert session is not None
    assert session.closed


async def test_without_a_check_page_none_is_checked(origin: Origin, proxy: Proxy) -> None:
    async with outbound(Names(), proxies=(proxy.address,)) as proxies:
        assert await proxies.check() == 0
    origin.answers["/check"] = reply()
    async with outbound(Names(), proxies=(proxy.address,), proxy_check_url=origin.url("/check")) as proxies:
        await proxies._ready.wait()
        assert proxy.lines == [f"GET {origin.url('/check')} HTTP/1.1"]
        proxies.pool.remove(proxy.address)
        proxies.pool.add([proxy.address])
        assert await proxies.check() == 1


async def test_a_page_that_is_no_list_adds_none(origin: Origin, caplog: pytest.LogCaptureFixture) -> None:
    origin.answers["/gone"] = reply(b"127.0.0.1:3128\n", status="410 Gone")
    pool = ProxyPool()
    assert await collect_proxies(pool, [origin.url("/gone"), "ftp://127.0.0.1/list"]) == 0
    assert [record.getMessage().partition(": ")[2] for record in caplog.records][:1] == [aiohttp.ClientResponseError.__name__]
    assert len(caplog.records) == 2


async def test_lines_that_are_no_proxies_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "good").write_text("127.0.0.1:1\n127.0.0.1:2\n")
    (tmp_path / "bad").write_bytes(b"127.0.0.1:3\n\xff\nnonsense\n")
    assert await collect_proxies(ProxyPool(), [str(tmp_path / "good")]) == 2
    assert caplog.records == []
    assert await collect_proxies(ProxyPool(), [str(tmp_path / "good"), str(tmp_path / "bad")]) == 3
    assert caplog.messages == [f"{tmp_path / 'bad'}: 2 lines are no proxies, the first is line 2"]


async def test_the_name_of_a_secure_origin_is_asked_for(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    async def get(_: aiohttp.ClientSession, target: object, **options: object) -> SimpleNamespace:
        asked.append({"target": str(target), **options})
        return SimpleNamespace(status=200)

    monkeypatch.setattr(aiohttp.ClientSession, "get", get)
    async with outbound(Names("192.0.2.1"), proxies=(proxy.address,)) as proxies:
        await proxies.get(parse_url("https://name.test/a"))
        await proxies.get(parse_url("http://name.test:81/a"))
    secure, plain = asked
    assert (secure["target"], secure["server_hostname"]) == ("https://192.0.2.1/a", "name.test")
    assert (plain["target"], plain["server_hostname"]) == ("http://192.0.2.1:81/a", None)
    assert [options["headers"] for options in asked] == [{"Host": "name.test"}, {"Host": "name.test:81"}]
    assert {options["allow_redirects"] for options in asked} == {False}
