"""SafeSearch and restricted YouTube, enforced through a proxy."""

import asyncio
import ssl
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl

import aiohttp
import pytest
import trustme

from gatewayfilter.model import (
    EntryKind,
    ListAction,
    ManualRule,
    Pause,
    PauseScope,
)
from tests.proxy.request.filtered_sites import ENFORCED, Sites, get, running


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


async def test_nothing_is_changed_without_such_a_value(sites: Sites, state: Path, tmp_path: Path) -> None:
    async with running(state, tmp_path, "unknown=allow") as (found, session):
        await get(found, session, sites.url("http", "www.google.com", "/search?q=casino&safe=off"))
    assert [(address, path) for address, _, path, _, _ in sites.seen] == [("127.0.0.1", "/search?q=casino&safe=off")]


CLAIMS = [
    ("music.youtube.com", "youtube-restrict", "Strict"),
    ("www.bing.com", "prefer", "safe"),
    ("search.brave.com", "cookie", "safesearch=strict"),
]


@pytest.mark.parametrize(("host", "name", "value"), CLAIMS)
async def test_a_client_cannot_name_an_enforced_field_as_one_of_its_connection(
    host: str, name: str, value: str, sites: Sites, state: Path, tmp_path: Path
) -> None:
    """What Connection names is taken out of a request; what the filter sets is not the client's to name."""
    async with running(state, tmp_path, "safesearch=on", "youtube=strict") as (found, session):
        url = sites.url("http", host, "/search?q=cats")
        for connection in (name, f"keep-alive, {name.upper()}"):
            headers = {"Connection": connection, name: "off"}
            async with session.get(url, proxy=found.url, headers=headers) as response:
                assert response.status == 200
    assert [headers.getall(name) for *_, headers, _ in sites.seen] == [[value]] * 2  # type: ignore[attr-defined]
