"""What goes to an outbound proxy and what is noted of it: `gatewayfilter.crawl.net.outbound_proxies`, by doubles."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.net import outbound_proxies
from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.net.outbound_proxies import CHECK_S, COLLECT_S, MAX_HEADER_LINE, OutboundProxies
from gatewayfilter.errors import ForbiddenAddressError
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

PROXY = "http://192.0.2.1:3128"
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class World:
    """A session, a resolver, a clock and sleeps that a test decides on."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.connector: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer: Any = SimpleNamespace(status=200)
        self.closed: list[str] = []
        self.found: list[str] = []
        self.refused = ""
        self.now = 5.0

    async def get(self, url: Any, **options: Any) -> Any:
        self.asked.append((str(url), options))
        self.now += 0.25
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        self.closed.append("session")

    async def resolve(self, host: str, port: int) -> list[dict[str, str]]:
        self.asked.append((host, {"port": port}))
        if host == "none.test":
            raise OSError
        return [{"host": found} for found in self.found]

    def refusal(self, address: str, port: int) -> str:
        return f"{address} {port} is not public" if address == self.refused else ""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    def session(**options: Any) -> World:
        made.options = options
        return made

    def connector(**options: Any) -> str:
        made.connector = options
        return "connector"

    monkeypatch.setattr(aiohttp, "ClientSession", session)
    monkeypatch.setattr(outbound_proxies, "MeteredConnector", connector)
    monkeypatch.setattr(outbound_proxies, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def joined(world: World, **settings: Any) -> OutboundProxies:
    given = {"proxies": (PROXY,), "proxy_check_url": "", **settings}
    return OutboundProxies(CrawlSettings(**given), world, world, TLS, {"user-agent": "x"}, Counters())  # type: ignore[arg-type]


@pytest.fixture
async def proxies(world: World) -> AsyncIterator[OutboundProxies]:
    async with joined(world) as opened:
        yield opened


async def test_a_session_keeps_nothing_and_takes_nothing_from_the_environment(world: World) -> None:
    opened = joined(world)
    await opened.__aexit__()
    assert world.closed == []
    async with opened:
        assert world.connector == {"limit": 0, "ssl": TLS, "force_close": True}
        options = world.options
        assert (options["connector"], options["trust_env"], options["auto_decompress"]) == ("connector", False, False)
        assert (options["max_line_size"], options["max_field_size"]) == (MAX_HEADER_LINE, MAX_HEADER_LINE)
        assert (options["timeout"].total, options["timeout"].sock_connect, options["headers"]) == (
            None,
            None,
            {"user-agent": "x"},
        )
        assert isinstance(options["cookie_jar"], aiohttp.DummyCookieJar)
        upkeep = opened._upkeep
        assert upkeep is not None
    assert (world.closed, upkeep.cancelled()) == (["session"], True), "the upkeep has ended before the session"


async def test_the_judged_address_is_asked_for_by_the_name(world: World, proxies: OutboundProxies) -> None:
    world.found = ["192.0.2.7", "192.0.2.8"]
    for url, host, target, port, name in (
        ("http://a.test/x?y", "a.test", "http://192.0.2.7/x?y", 80, None),
        ("https://a.test:8443/", "a.test:8443", "https://192.0.2.7:8443/", 8443, "a.test"),
        ("https://a.test/", "a.test", "https://192.0.2.7/", 443, "a.test"),
    ):
        world.asked.clear()
        assert await proxies.get(parse_url(url), {"x": "1"}) is world.answer
        assert world.asked == [
            ("a.test", {"port": port}),
            (target, {
                "proxy": PROXY, "headers": {"Host": host, "x": "1"}, "server_hostname": name, "allow_redirects": False,
            }),
        ]  # fmt: skip
    known = proxies.pool.proxies()[0]
    assert (known.response_ms, known.successes, known.failures) == (250.0, 3, 0)
    world.asked.clear()
    await proxies.get(parse_url("http://[2001:db8::1]/"))
    assert [url for url, _ in world.asked] == ["http://[2001:db8::1]/"], "an address is not looked up"


async def test_each_address_of_a_name_is_judged(world: World, proxies: OutboundProxies) -> None:
    world.found, world.refused = ["192.0.2.7", "10.0.0.1"], "10.0.0.1"
    for url, port in (("http://a.test/", 80), ("http://a.test:81/", 81), ("http://10.0.0.1/", 80)):
        with pytest.raises(ForbiddenAddressError, match=rf"^10\.0\.0\.1 {port} is not public$"):
            await proxies.get(parse_url(url))
    world.found = []
    for url in ("http://a.test/", "http://none.test/"):
        with pytest.raises(UnreachableError, match=r"^the host name cannot be resolved$"):
            await proxies.get(parse_url(url))
    assert not any("proxy" in options for _, options in world.asked)
    assert proxies.pool.proxies()[0].failures == 0


async def test_faults_of_a_proxy_are_counted_and_those_of_an_origin_are_not(world: World, proxies: OutboundProxies) -> None:
    world.found = ["192.0.2.7"]
    url = parse_url("http://a.test/")
    info: Any = SimpleNamespace(real_url="x")
    key: Any = SimpleNamespace(host="h", port=1, ssl=True)
    faults = (
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientHttpProxyError(info, ()),
        aiohttp.ClientProxyConnectionError(key, OSError()),
    )
    for count, error in enumerate(faults, 1):
        world.answer = error
        with pytest.raises(UnreachableError, match=r"^the outbound proxy did not get through$"):
            await proxies.get(url)
        assert (proxies._counters["proxies_failed"], proxies.pool.proxies()[0].failures) == (count, count)
        if count == 2:
            proxies.pool.succeeded(PROXY, 1.0)
            proxies.pool.failed(PROXY)
            proxies.pool.failed(PROXY)
    with pytest.raises(UnreachableError, match=r"^no outbound proxy is usable$"):
        await proxies.get(url)
    proxies.pool.succeeded(PROXY, 1.0)
    world.answer = aiohttp.ClientPayloadError()
    with pytest.raises(aiohttp.ClientPayloadError):
        await proxies.get(url)
    assert proxies.pool.proxies()[0].failures == 0
    world.answer = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await proxies.get(url)
    assert proxies.pool.proxies()[0].failures == 1
    world.answer = SimpleNamespace(status=407, close=lambda: world.closed.append("answer"))
    with pytest.raises(UnreachableError, match=r"^the outbound proxy requires other credentials$"):
        await proxies.get(url)
    assert (world.closed, proxies.pool.proxies()[0].failures, proxies._counters["proxies_failed"]) == (["answer"], 2, 5)


async def test_lists_are_read_again_and_checks_go_on_whatever_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    opened = joined(world, proxies_from=("list",))

    async def collect(pool: Any, sources: Any) -> int:
        assert (pool, sources) == (opened.pool, ("list",))
        steps.append("collected")
        return 0

    async def check() -> int:
        steps.append("checked")
        if len(steps) == 2:
            raise ValueError
        return 0

    async def sleep(seconds: float) -> None:
        steps.append((seconds, opened._ready.is_set()))
        world.now = times.pop(0) if times else await asyncio.Event().wait()

    times: list[Any] = [5.0 + COLLECT_S - 0.5, 5.0 + COLLECT_S]
    monkeypatch.setattr(outbound_proxies, "collect_proxies", collect)
    monkeypatch.setattr(opened, "check", check)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    task = asyncio.create_task(opened._keep_up())
    for _ in range(9):
        await asyncio.wait({task}, timeout=0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    pause = (CHECK_S, True)
    assert steps == ["collected", "checked", pause, "checked", pause, "collected", "checked", pause]


async def test_proxies_are_checked_where_there_is_a_page_for_it(world: World) -> None:
    assert await joined(world).check() == 0
    checking = joined(world, proxy_check_url="http://check.test/")
    assert checking._checker is not None

    async def check_due() -> int:
        return 3

    checking._checker.check_due = check_due  # type: ignore[method-assign]
    assert await checking.check() == 3
