"""An origin that does its worst: each case ends within its budget, with our own error, or with a bounded page."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable

import brotli
import pytest
import trustme
import zstandard
from aiohttp.abc import ResolveResult

from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, UnreachableError
from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.errors import FetchError, ForbiddenAddressError
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, reply, serving

BUDGET_S = 20.0
"""Far above the fetcher's own limits: only a hang reaches it."""


async def refusal(fetcher: Fetcher, url: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        async with asyncio.timeout(BUDGET_S):
            await fetcher.fetch(parse_url(url))
    return caught.value


def chunks(head: bytes, *, forever: bytes, pause_s: float = 0.0) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(forever)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return answer


async def silence(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

SLOW = [
    pytest.param(silence, id="never answers"),
    pytest.param(chunks(b"HTTP/1.1 200 OK\r\n", forever=b"X: y\r\n", pause_s=0.05), id="slow loris headers"),
    pytest.param(chunks(HTML + b"\r\n", forever=b".", pause_s=0.05), id="slow loris body"),
    pytest.param(chunks(b"H", forever=b"", pause_s=0.05), id="one byte"),
]


@pytest.mark.parametrize("answer", SLOW)
async def test_slow_origins_end_at_the_time_limit(origin: Origin, answer: object) -> None:
    settings = loopback_settings(timeout_s=0.3)
    origin.answers["/"] = answer  # type: ignore[assignment]
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        assert isinstance(await refusal(fetcher, origin.url()), UnreachableError)


BROKEN = [
    pytest.param(chunks(b"HTTP/1.1 200 OK\r\n", forever=b"X-Flood: y\r\n" * 100), BadAnswerError, id="endless headers"),
    pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", BadAnswerError, id="giant header"),
    pytest.param(b"HTTP/1.1 200 " + b"y" * 200_000 + b"\r\n\r\n", BadAnswerError, id="giant status line"),
    pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", BadAnswerError, id="not HTTP"),
    pytest.param(HTML + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", FetchError, id="broken chunk size"),
    pytest.param(HTML + b"Content-Length: -5\r\n\r\n", FetchError, id="negative length"),
    pytest.param(HTML + b"Content-Length: 3\r\nContent-Length: 9\r\n\r\nabc", FetchError, id="two lengths"),
    pytest.param(reply(b"hello", "Content-Encoding: gzip"), BadAnswerError, id="lying gzip"),
    pytest.param(reply(b"\xff" * 20, "Content-Encoding: br"), BadAnswerError, id="lying br"),
    pytest.param(reply(b"hello", "Content-Encoding: zstd"), BadAnswerError, id="lying zstd"),
    pytest.param(reply(b"\xff" * 20, "Content-Encoding: gzip, br"), BadAnswerError, id="two encodings"),
    pytest.param(reply(b"", "Location: http://[::", status="302 Found"), BadAnswerError, id="redirect to no URL"),
    pytest.param(reply(b"", "Location: file:///etc/passwd", status="302 Found"), BadAnswerError, id="redirect to a file"),
    pytest.param(reply(b"", "Location: data:text/html,x", status="302 Found"), BadAnswerError, id="redirect to data"),
    pytest.param(reply(b"", "Location: gopher://127.0.0.1:6379/_x", status="302 Found"), BadAnswerError, id="redirect to gopher"),
    pytest.param(reply(b"", "Location: /", status="302 Found"), BadAnswerError, id="redirect to itself"),
]


@pytest.mark.parametrize(("answer", "error"), BROKEN)
async def test_broken_answers(origin: Origin, fetcher: Fetcher, answer: bytes, error: type[FetchError]) -> None:
    origin.answers["/"] = answer
    assert isinstance(await refusal(fetcher, origin.url()), error)


@pytest.mark.parametrize(
    "head", [HTML + b"Content-Length: 5000\r\n\r\nshort", HTML + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"]
)
async def test_an_answer_that_breaks_off_may_be_tried_again(origin: Origin, fetcher: Fetcher, head: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await writer.drain()

    origin.answers["/"] = answer
    assert isinstance(await refusal(fetcher, origin.url()), UnreachableError)


BOMB_BYTES = 30_000_000
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("encoding", BOMBS)
async def test_of_a_bomb_no_more_is_read_than_its_beginning(origin: Origin, encoding: str) -> None:
    settings = loopback_settings(max_bytes=20_000_000)
    text = b"<p>shown before the bomb" * 10
    origin.answers["/"] = reply(BOMBS[encoding](text + bytes(BOMB_BYTES)), f"Content-Encoding: {encoding}")
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        page = await fetcher.fetch(parse_url(origin.url()))
    assert page.truncated
    assert page.body.startswith(text)
    assert len(page.body) < 10_000_000


@pytest.mark.parametrize("encoding", BOMBS)
async def test_bytes_behind_an_encoded_page_hide_nothing(origin: Origin, fetcher: Fetcher, encoding: str) -> None:
    """Browsers show such a page."""
    origin.answers["/"] = reply(BOMBS[encoding](b"<p>shown") + b"behind it", f"Content-Encoding: {encoding}")
    page = await fetcher.fetch(parse_url(origin.url()))
    assert page.body == b"<p>shown"
    assert page.truncated is (encoding == "zstd")


async def test_an_endless_body_is_cut(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = chunks(HTML + b"\r\n", forever=b"a" * 50_000)
    page = await fetcher.fetch(parse_url(origin.url()))
    assert page.truncated
    assert page.body == b"a" * 100_000


async def test_an_endless_encoded_nothing_is_refused(origin: Origin, fetcher: Fetcher) -> None:
    empty_frames = (zstandard.ZstdCompressor().compress(b"")) * 1000
    origin.answers["/"] = chunks(HTML + b"Content-Encoding: zstd\r\n\r\n", forever=empty_frames)
    assert isinstance(await refusal(fetcher, origin.url()), BadAnswerError)


async def test_redirects_are_counted(origin: Origin, fetcher: Fetcher) -> None:
    for step in range(9):
        origin.answers[f"/{step}"] = reply(b"", f"Location: /{step + 1}", status="301 Moved")
    assert "more than 5 redirects" in str(await refusal(fetcher, origin.url("/0")))
    assert len(origin.requests) == 6


INTERNAL = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
    "http://10.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:a00:1::]/",
    "http://0x0a000001/",
    "http://0/",
    "http://[fe80::1]/",
]


@pytest.mark.parametrize("target", INTERNAL)
async def test_redirects_to_internal_addresses_are_refused(origin: Origin, fetcher: Fetcher, target: str) -> None:
    origin.answers["/"] = reply(b"", f"Location: {target}", status="302 Found")
    assert "not a public address" in str(await refusal(fetcher, origin.url()))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://user:password@10.0.0.1/", "not a public address"),
        ("http://example.com@10.0.0.1/", "not a public address"),
        ("http://224.0.0.1/", "not a public address"),
        ("http://239.255.255.250:1900/", "not a public address"),
        ("http://[ff02::1]/", "not a public address"),
        ("http://255.255.255.255/", "not a public address"),
        ("http://168.63.129.16/", "not a public address"),
        ("http://8.8.8.8:25/", "port 25 may not be crawled"),
        ("http://8.8.8.8:0/", "port 0 may not be crawled"),
        ("https://8.8.8.8:65535/", "port 65535 may not be crawled"),
    ],
)
async def test_redirects_to_odd_places_are_refused(origin: Origin, fetcher: Fetcher, target: str, reason: str) -> None:
    origin.answers["/"] = reply(b"", f"Location: {target}", status="302 Found")
    assert reason in str(await refusal(fetcher, origin.url()))


async def test_credentials_in_a_url_are_not_sent(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = reply(b"", f"Location: http://user:password@127.0.0.1:{origin.port}/next", status="302 Found")
    origin.answers["/next"] = reply(b"hello", "Connection: close")
    assert (await fetcher.fetch(parse_url(f"http://user:password@127.0.0.1:{origin.port}/"))).body == b"hello"
    assert len(origin.heads) >= 2
    assert not any("authorization:" in head.lower() for head in origin.heads)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.1"])
async def test_loopback_is_refused_unless_allowed(origin: Origin, host: str) -> None:
    settings = loopback_settings(allow_networks=(), allow_ports=(80, origin.port))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        assert "not a public address" in str(await refusal(fetcher, origin.url(host=host)))
    assert origin.requests == []


async def test_names_are_refused_at_the_socket(origin: Origin) -> None:
    settings = loopback_settings(allow_networks=("192.0.2.0/24",))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        assert isinstance(await refusal(fetcher, origin.url(host="localhost")), ForbiddenAddressError)
    assert origin.requests == []


def resolved(*addresses: str) -> Callable[..., Awaitable[list[ResolveResult]]]:
    async def resolve(self: object, host: str, port: int, family: int) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=6, flags=socket.AI_NUMERICHOST)
            for address in addresses
        ]

    return resolve


async def test_names_that_move_to_an_internal_address(origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    origin.answers["/"] = reply(b"hello", "Connection: close")
    url = origin.url(host="rebinding.test")
    monkeypatch.setattr(PooledResolver, "resolve", resolved("10.0.0.1", "127.0.0.1"))
    assert (await fetcher.fetch(parse_url(url))).body == b"hello"  # the internal one is passed over
    monkeypatch.setattr(PooledResolver, "resolve", resolved("10.0.0.1", "169.254.169.254"))
    settings = loopback_settings()
    async with Fetcher(settings, Politeness(settings)) as later:
        assert isinstance(await refusal(later, url), ForbiddenAddressError)


async def test_self_signed_certificates_are_not_trusted() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    settings = loopback_settings()
    async with serving(context) as site, Fetcher(settings, Politeness(settings)) as fetcher:
        error = await refusal(fetcher, f"https://127.0.0.1:{site.port}/")
        plain = await refusal(fetcher, f"http://127.0.0.1:{site.port}/")
    assert "certificate" in str(error)
    assert isinstance(error, BadAnswerError)
    assert isinstance(plain, FetchError)


async def test_tls_against_a_plain_server(origin: Origin, fetcher: Fetcher) -> None:
    assert isinstance(await refusal(fetcher, f"https://127.0.0.1:{origin.port}/"), FetchError)
