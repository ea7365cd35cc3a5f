"""Values of a policy that act on requests, with a proxy and origins on loopback: what reaches them, and what comes back.

Each name leads to 127.0.0.1, each enforced address to 127.0.0.9, so that an origin sees where a request was led.
"""

import asyncio
import gzip
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
import brotli
import pytest
import trustme
from aiohttp import web

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import (
    APPROVED,
    DEFAULT,
    EntryKind,
    ListAction,
    LogRecord,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    with_value,
)
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.requests import granted
from gatewayfilter.wiring.proxy import assemble_components

NAMES = (
    "www.google.com", "www.google.co.uk", "www.bing.com", "duckduckgo.com", "html.duckduckgo.com", "yandex.ru", "www.ecosia.org",
    "search.brave.com", "www.youtube.com", "youtubei.googleapis.com", "music.youtube.com", "www.baidu.com", "en.wikipedia.org",
    "files.example",
)  # fmt: skip
ENFORCED = "127.0.0.9"
ADDRESSES = {
    "forcesafesearch.google.com", "strict.bing.com", "safe.duckduckgo.com", "213.180.193.56", "strict-safe-search.ecosia.org",
    "safesearch.brave.com", "restrict.youtube.com", "restrictmoderate.youtube.com",
}  # fmt: skip
EXE = b"MZ\x90\x00\x03\x00\x00\x00" + bytes(2000)
TWICE = brotli.compress(gzip.compress(EXE))


@dataclass
class Sites:
    """All sites, by HTTP and HTTPS.

    Attributes:
        ports: by scheme.
        seen: each request: address that it came to, host without its port, path with its query, header fields, body.
        answers: path → header fields and pieces of the body.
    """

    ports: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, str, str, Mapping[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, tuple[dict[str, str], tuple[bytes, ...]]] = field(default_factory=dict)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        address = request.transport.get_extra_info("sockname")[0]
        self.seen.append((address, request.host.partition(":")[0], request.raw_path, request.headers, await request.read()))
        headers, pieces = self.answers.get(request.path, ({"content-type": "text/plain"}, (b"site",)))
        status = int(headers.get(":status", "200"))
        response = web.StreamResponse(status=status, headers={name: headers[name] for name in headers if name != ":status"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.02)
        return response

    def url(self, scheme: str, host: str, path: str) -> str:
        return f"{scheme}://{host}:{self.ports[scheme]}{path}"


@pytest.fixture
async def sites(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sites]:
    usual = socket.getaddrinfo

    def led(host: Any, *rest: Any, **more: Any) -> Any:
        return usual("127.0.0.1" if host in NAMES else ENFORCED if host in ADDRESSES else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", led)
    monkeypatch.setattr("gatewayfilter.proxy.tunnel.resolver.known_addresses", lambda *_: None)
    found = Sites()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{name:.*}", found.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*NAMES).configure_cert(tls)
    for scheme, context in (("http", None), ("https", tls)):
        with socket.socket() as listener:
            listener.bind(("0.0.0.0", 0))
            found.ports[scheme] = listener.getsockname()[1]
            await web.SockSite(runner, listener.dup(), ssl_context=context).start()
    yield found
    await runner.cleanup()


class Filter:
    """A running proxy."""

    def __init__(
        self, state: Path, folder: Path, items: tuple[PolicyItem, ...], rules: tuple[ManualRule, ...], **more: Any
    ) -> None:
        builder = SnapshotBuilder()
        builder.set_policies(PolicySet.of(items))
        builder.set_rules(rules)
        snapshots = SnapshotFolder(folder / "snapshots")
        snapshots.publish(builder.build())
        proxy = {"listen": "127.0.0.1:0", "upstream_ca": state / "origin-ca.pem", "allow_networks": ("127.0.0.0/8",)}
        settings = Settings(
            data_dir=state,
            proxy=ProxySettings.model_validate(proxy),
            crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)),
        )
        self.store = Store.open(f"sqlite:///{folder}/log.sqlite3")
        self.engine = FilterEngine(snapshots.open_newest()[0])
        self.components = assemble_components(settings, self.engine, snapshots, self.store)
        self.master = LeanMaster(settings, self.components.addon, self.components.services)
        self.url = ""

    async def logged(self, reason: str) -> LogRecord:
        """Waits for a record with a reason."""
        for _ in range(200):
            for _, record in self.store.log.tail(100):
                if record.reason == reason:
                    return record
            await asyncio.sleep(0.05)
        raise AssertionError([record for _, record in self.store.log.tail(100)])


def policy(*values: str) -> Policy:
    found = Policy(DEFAULT)
    for value in values:
        key, _, text = value.partition("=")
        found = with_value(found, key, text, categories=(), sources=())
    return found


@asynccontextmanager
async def running(
    state: Path, folder: Path, *values: str, items: tuple[PolicyItem, ...] = (), rules: tuple[ManualRule, ...] = ()
) -> AsyncIterator[tuple[Filter, aiohttp.ClientSession]]:
    found = Filter(state, folder, (policy(*values), *items), rules)
    found.components.start()
    await found.master.start()
    found.url = f"http://127.0.0.1:{found.master.address[1]}"
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
            yield found, session
    finally:
        await found.master.stop(0.2)
        await asyncio.to_thread(found.components.stop)
        found.store.close()


def parameters(path: str) -> list[tuple[str, str]]:
    return parse_qsl(path.partition("?")[2], keep_blank_values=True)


ENGINES = [
    ("www.google.com", "/search?q=cats&safe=off", {"safe": "active", "ssui": "on", "q": "cats"}, {}),
    ("www.google.co.uk", "/search?q=cats&%73afe=off&SAFE=images&safe=off", {"safe": "active", "ssui": "on", "q": "cats"}, {}),
    ("www.google.com", "/", {"safe": "active", "ssui": "on"}, {}),
    ("www.google.com", "/search?tbm=isch&q=a%26b&s%C2%AD=1;safe=off", {"safe": "active", "q": "a&b", "tbm": "isch"}, {}),
    ("www.bing.com", "/images/search?q=cats&adlt=off", {"adlt": "strict", "q": "cats"}, {"prefer": "safe"}),
    ("duckduckgo.com", "/d.js?q=cats&kp=-2&kp=-1", {"kp": "1", "q": "cats"}, {}),
    ("yandex.ru", "/video/search?text=cats", {"text": "cats"}, {}),
    ("www.ecosia.org", "/images?q=cats", {"q": "cats"}, {}),
    ("search.brave.com", "/search?q=cats&safesearch=off", {"safesearch": "strict"}, {}),
]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("host", "path", "wanted", "fields"), ENGINES)
async def test_each_engine_gets_an_enforced_request(
    scheme: str,
    host: str,
    path: str,
    wanted: dict[str, str],
    fields: dict[str, str],
    sites: Sites,
    state: Path,
    tmp_path: Path,
    client_tls: ssl.SSLContext,
) -> None:
    async with running(state, tmp_path, "safesearch=on") as (found, session):
        for _ in range(2):  # the second one may take the fast path
            async with session.get(sites.url(scheme, host, path), proxy=found.url, ssl=client_tls) as response:
                assert response.status == 200
    assert len(sites.seen) == 2
    for address, seen_host, seen_path, headers, _ in sites.seen:
        assert (address, seen_host) == (ENFORCED, host)
        pairs = parameters(seen_path)
        for name, value in wanted.items():
            assert [text for key, text in pairs if key.lower() == name] == [value]
        assert {name: headers[name] for name in fields} == fields


@pytest.mark.parametrize("http_version", ["--http1.1", "--http2"])
async def test_cookies_and_versions_of_http(
    http_version: str, sites: Sites, state: Path, tmp_path: Path, client_tls: ssl.SSLContext
) -> None:
    assert client_tls is not None
    ca = state / "ca" / "mitmproxy-ca-cert.pem"
    async with running(state, tmp_path, "safesearch=bing", "youtube=strict") as (found, _):
        for host, path in (("www.bing.com", "/search?q=x&adlt=off"), ("www.youtube.com", "/results?search_query=x")):
            url = sites.url("https", host, path)
            options = ["-sS", http_version, "--proxy", found.url, "--cacert", str(ca), "-b", "SRCHHPGUSR=ADLT=OFF&x=1; other=2"]
            run = ["curl", *options, "-H", "YouTube-Restrict: none", "-w", "%{http_version}", url]
            done = await asyncio.to_thread(subprocess.run, run, capture_output=True, check=False, timeout=30)
            version = "2" if http_version == "--http2" else "1.1"
            assert done.stdout.decode() == f"site{version}", done.stderr
    bing, youtube = sites.seen
    assert bing[0] == youtube[0] == ENFORCED
    assert bing[3].getall("cookie") == ["other=2; SRCHHPGUSR=ADLT=STRICT"]  # type: ignore[attr-defined]
    assert parameters(bing[2]) == [("q", "x"), ("adlt", "strict")]
    assert youtube[3].getall("youtube-restrict") == ["Strict"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("mode", "host"), [("moderate", "www.youtube.com"), ("strict", "youtubei.googleapis.com")])
async def test_youtube(mode: str, host: str, sites: Sites, state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> None:
    async with running(state, tmp_path, f"youtube={mode}", "safesearch=google") as (found, session):
        for name in (host, "music.youtube.com", "www.bing.com"):
            async with session.get(sites.url("https", name, "/watch?v=1"), proxy=found.url, ssl=client_tls) as response:
                assert response.status == 200
    restricted = [(address, headers.get("youtube-restrict", "")) for address, _, _, headers, _ in sites.seen]
    assert restricted == [(ENFORCED, mode.capitalize()), ("127.0.0.1", mode.capitalize()), ("127.0.0.1", "")]


async def get(found: Filter, session: aiohttp.ClientSession, url: str) -> tuple[int, str, bytes]:
    async with session.get(url, proxy=found.url) as response:
        return response.status, response.headers.get("x-gatewayfilter", ""), await response.read()


async def test_a_manual_rule_does_not_lift_it_and_a_pause_does(sites: Sites, state: Path, tmp_path: Path) -> None:
    allowed = ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".google.com")
    async with running(state, tmp_path / "a", "safesearch=on", rules=(allowed,)) as (found, session):
        await get(found, session, sites.url("http", "www.google.com", "/search?q=x"))
    pause = Pause(PauseScope.ALL, "", 2e10)
    async with running(state, tmp_path / "b", "safesearch=on", items=(pause,)) as (found, session):
        await get(found, session, sites.url("http", "www.google.com", "/search?q=x"))
    assert [(address, parameters(path)) for address, _, path, _, _ in sites.seen] == [
        (ENFORCED, [("q", "x"), ("safe", "active"), ("ssui", "on")]),
        ("127.0.0.1", [("q", "x")]),
    ]


async def test_what_passes_unread_ends_at_the_enforced_address(
    sites: Sites, state: Path, tmp_path: Path, authority: trustme.CA
) -> None:
    trusts_origin = ssl.create_default_context()
    authority.configure_trust(trusts_origin)
    async with running(state, tmp_path, "safesearch=on", "youtube=strict", "tls=sni-only") as (found, session):
        for host in ("www.google.com", "www.youtube.com", "files.example"):
            async with session.get(sites.url("https", host, "/x?safe=off"), proxy=found.url, ssl=trusts_origin) as response:
                assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await session.get(sites.url("https", "music.youtube.com", "/"), proxy=found.url, ssl=trusts_origin)
        assert (await found.logged("safesearch")).action == "block"
        assert (await found.logged("policy")).action == "allow"
    assert [(address, path) for address, _, path, _, _ in sites.seen] == [
        (ENFORCED, "/x?safe=off"),
        (ENFORCED, "/x?safe=off"),
        ("127.0.0.1", "/x?safe=off"),
    ]


async def test_a_tunnel_to_one_name_with_another_one_inside(
    sites: Sites, state: Path, tmp_path: Path, authority: trustme.CA
) -> None:
    trusts_origin = ssl.create_default_context()
    authority.configure_trust(trusts_origin)
    async with running(state, tmp_path, "safesearch=on", "tls=sni-only") as (found, session):
        url = sites.url("https", "files.example", "/search?q=x")
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, proxy=found.url, ssl=trusts_origin, server_hostname="www.google.com")
    assert sites.seen == []


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_request_inside_a_tunnel_to_another_name_is_led(scheme: str, sites: Sites, state: Path, tmp_path: Path) -> None:
    async with running(state, tmp_path, "safesearch=on") as (found, _):
        trust = str(state / "ca" / "mitmproxy-ca-cert.pem")
        run = ["curl", "-sS", "--proxytunnel", "--proxy", found.url, "--cacert", trust, "-H", "Host: www.ecosia.org"]
        run.append(sites.url(scheme, "files.example", "/search?q=x"))
        await asyncio.to_thread(subprocess.run, run, capture_output=True, check=False, timeout=30)
    assert [(address, host) for address, host, *_ in sites.seen] == [(ENFORCED, "www.ecosia.org")]


SEARCHES = [
    ("www.google.com", "/search?q=CASINO", "casino"),
    ("www.google.com", "/search?%71=free+casino", "casino"),
    ("www.google.com", "/search?q=cats&q=%D1%81asino", "casino"),
    ("duckduckgo.com", "/casino?ia=web", "casino"),
    ("en.wikipedia.org", "/wiki/Online_casino", "casino"),
    ("www.baidu.com", "/s?wd=%E7%B6%B2%E4%B8%8A%E8%B3%AD%E5%8D%9A", "赌博"),
    ("www.baidu.com", "/s?wd=%B6%C4%B2%A9", "赌博"),
    ("www.youtube.com", "/results?search_query=c+a+s+i+n+o", "casino"),
    ("www.google.com.", "/search?q=casino", "casino"),
]


@pytest.mark.parametrize(("host", "path", "term"), SEARCHES)
async def test_searches_for_a_term_are_blocked(
    host: str, path: str, term: str, sites: Sites, state: Path, tmp_path: Path
) -> None:
    async with running(state, tmp_path, "search-terms=casino,赌博") as (found, session):
        async with session.get(sites.url("http", host, path), proxy=found.url) as response:
            assert response.headers["x-gatewayfilter"] == "block; reason=search-term"
            assert f"search for {term}" in await response.text()
        async with session.get(sites.url("http", host.rstrip("."), "/search?q=cats"), proxy=found.url) as response:
            assert response.status == 200
        assert (await found.logged("search-term")).action == "block"


async def test_searches_that_are_posted(sites: Sites, state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    json = {"content-type": "application/json"}

    async def chunked() -> AsyncIterator[bytes]:
        yield b"q=cats"

    cases: list[tuple[str, str, dict[str, str], Any, str]] = [
        ("html.duckduckgo.com", "/html/", form, b"q=cas%69no&kp=-2", "block; reason=search-term"),
        ("html.duckduckgo.com", "/html/", form, b"q=cats&%6bp=-2", ""),
        ("html.duckduckgo.com", "/html/", form, chunked(), "block; reason=search-term"),
        ("www.youtube.com", "/youtubei/v1/search?key=1", json, b'{"query": "c\\u0430sino"}', "block; reason=search-term"),
        ("www.youtube.com", "/youtubei/v1/search?key=1", json, b'{"query": "cats"}', ""),
        ("www.youtube.com", "/youtubei/v1/search?key=1", json, b'{"query', "block; reason=search-term"),
        ("www.google.com", "/log?format=json", json, chunked(), ""),
        (
            "www.youtube.com",
            "/youtubei/v1/search",
            {"content-type": "application/octet-stream"},
            b"casino",
            "block; reason=search-term",
        ),
        ("www.google.com", "/upload", {"content-type": "multipart/form-data; boundary=x"}, b"casino", ""),
    ]
    async with running(state, tmp_path, "search-terms=casino", "safesearch=on") as (found, session):
        for host, path, headers, body, wanted in cases:
            url = sites.url("https", host, path)
            async with session.post(url, data=body, headers=headers, proxy=found.url, ssl=client_tls) as response:
                assert response.headers.get("x-gatewayfilter", "") == wanted, (host, body)
    assert [body for *_, body in sites.seen] == [b"q=cats&kp=1", b'{"query": "cats"}', b"q=cats", b"casino"]


DOWNLOADS: list[tuple[str, dict[str, str], tuple[bytes, ...], str]] = [
    ("/setup.exe", {"content-type": "application/octet-stream"}, (EXE,), "file-type"),
    ("/get", {"content-type": "application/x-msdownload"}, (EXE,), "file-type"),
    ("/get", {"content-type": "text/plain", "content-disposition": "attachment; filename*=UTF-8''a%2Eexe"}, (EXE,), "file-type"),
    ("/a.txt", {"content-type": "text/plain"}, (b"text", b"more"), ""),
    ("/page.exe", {"content-type": "text/html"}, (b"<html>about exe",), ""),
    ("/film.zip", {"content-type": "application/zip"}, (b"PK\x03\x04" + bytes(100),), ""),
    ("/get", {"content-type": "multipart/byteranges; boundary=x"}, (b"--x\r\n\r\n" + EXE,), "file-type"),
    ("/long", {"content-type": "text/plain", "content-length": "3000000"}, (bytes(3_000_000),), "file-size"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "headers", "pieces", "reason"), DOWNLOADS)
async def test_downloads_are_blocked_by_their_head(
    path: str, headers: dict[str, str], pieces: tuple[bytes, ...], reason: str, sites: Sites, state: Path, tmp_path: Path
) -> None:
    sites.answers[path] = headers, pieces
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2") as (found, session):
        _, answer, body = await get(found, session, sites.url("http", "files.example", path))
        assert answer == (f"block; reason={reason}" if reason else "")
        assert reason or body == b"".join(pieces)


@pytest.mark.parametrize("site", [False, True])
async def test_an_approval_lifts_file_types_and_sizes(sites: Sites, state: Path, tmp_path: Path, *, site: bool) -> None:
    sites.answers["/setup.exe"] = {"content-type": "application/octet-stream"}, (EXE, bytes(3_000_000))
    url = sites.url("http", "files.example", "/setup.exe")
    kind, pattern = granted(parse_url(url), site=site)
    approved = ManualRule(1, ListAction.ALLOW, kind, pattern, "request 1", APPROVED)
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2", rules=(approved,)) as (found, session):
        status, answer, body = await get(found, session, url)
    assert (status, answer, len(body)) == (200, "", len(EXE) + 3_000_000)


CUT: list[tuple[str, dict[str, str], tuple[bytes, ...], str]] = [
    ("/cat.jpg", {"content-type": "image/jpeg"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg"}, (b"M", b"Z" + bytes(3000), bytes(3000)), "file-type"),
    ("/page", {"content-type": "text/html"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-range": "bytes 600-2607/2608"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "other"}, (EXE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "gzip"}, (b"M", EXE[1:]), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", "content-encoding": "gzip, br"}, (TWICE,), "file-type"),
    ("/cat.jpg", {"content-type": "image/jpeg", ":status": "201"}, (EXE,), "file-type"),
    ("/long", {"content-type": "text/plain"}, tuple(bytes(500_000) for _ in range(5)), "file-size"),
]


async def read_into(got: bytearray, content: aiohttp.StreamReader) -> None:
    while not content.at_eof():
        got += await content.readany()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("path", "headers", "pieces", "reason"), CUT)
async def test_downloads_are_cut_by_their_body(
    scheme: str,
    path: str,
    headers: dict[str, str],
    pieces: tuple[bytes, ...],
    reason: str,
    sites: Sites,
    state: Path,
    tmp_path: Path,
    client_tls: ssl.SSLContext,
) -> None:
    sites.answers[path] = headers, pieces
    got = bytearray()
    async with running(state, tmp_path, "file-types=programs", "max-download-mb=2") as (found, session):
        url = sites.url(scheme, "files.example", path)
        async with session.get(url, proxy=found.url, ssl=client_tls, auto_decompress=False) as response:
            with pytest.raises(aiohttp.ClientError):
                await read_into(got, response.content)
        record = await found.logged(reason)
    assert record.action == "block"
    assert b"MZ" not in got
    assert len(got) <= 2_000_000


async def test_downloads_are_cut_over_http_2(sites: Sites, state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> None:
    assert client_tls is not None
    sites.answers["/cat.jpg"] = {"content-type": "image/jpeg", "content-encoding": "gzip"}, (gzip.compress(EXE),)
    async with running(state, tmp_path, "file-types=programs") as (found, _):
        trust = str(state / "ca" / "mitmproxy-ca-cert.pem")
        url = sites.url("https", "files.example", "/cat.jpg")
        run = ["curl", "-sS", "--http2", "--proxy", found.url, "--cacert", trust, url]
        done = await asyncio.to_thread(subprocess.run, run, capture_output=True, check=False, timeout=30)
        assert (done.returncode != 0, done.stdout) == (True, b"")
        assert (await found.logged("file-type")).action == "block"


async def test_nothing_is_changed_without_such_a_value(sites: Sites, state: Path, tmp_path: Path) -> None:
    async with running(state, tmp_path, "unknown=allow") as (found, session):
        await get(found, session, sites.url("http", "www.google.com", "/search?q=casino&safe=off"))
    assert [(address, path) for address, _, path, _, _ in sites.seen] == [("127.0.0.1", "/search?q=casino&safe=off")]
