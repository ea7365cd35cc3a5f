"""Searches for terms of a policy are blocked."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.request.filtered_sites import Sites, running

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


@pytest.mark.slow
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
