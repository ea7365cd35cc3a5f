import asyncio
import gzip
import socket
import ssl
from pathlib import Path

import brotli
import pytest
import trustme
import zstandard
from aiohttp.abc import ResolveResult

from gatewayfilter.crawl.fetch.fetcher import Fetcher, _reason
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, RefusedError, UnreachableError
from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.errors import ConfigError
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import Origin, loopback_settings, reply, serving

TEXT = "<p>赌场 casino ".encode() * 50


async def test_a_page(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/a"] = reply(TEXT, "X-Twice: 1", "x-twice: 2", content_type="Text/HTML; charset=utf-8")
    page = await fetcher.fetch(parse_url(origin.url("/a")))
    assert (page.status, page.body, page.truncated) == (200, TEXT, False)
    assert page.url == page.final_url == origin.url("/a")
    assert page.headers["x-twice"] == "2"
    assert page.content_type == "text/html"


async def test_what_is_sent(origin: Origin, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    origin.answers["/"] = reply(TEXT, "Set-Cookie: a=b", "Location: /x", status="302 Found")
    origin.answers["/x"] = reply(TEXT, "Set-Cookie: c=d")
    for path in ("/", "/x"):
        await fetcher.fetch(parse_url(origin.url(path)))
    heads = "".join(origin.heads).lower()
    assert heads.count("user-agent: gatewayfilter/") == 3
    assert "cookie" not in heads
    assert "referer" not in heads
    assert "authorization" not in heads


ENCODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT[:100]) + zstandard.ZstdCompressor().compress(TEXT[100:]),
    "identity": TEXT,
    "GZIP": gzip.compress(TEXT) + b"trailing garbage",
}


@pytest.mark.parametrize("encoding", ENCODED)
async def test_encodings(origin: Origin, fetcher: Fetcher, encoding: str) -> None:
    origin.answers["/"] = reply(ENCODED[encoding], f"Content-Encoding: {encoding}")
    assert (await fetcher.fetch(parse_url(origin.url()))).body == TEXT


TYPES = [
    ("text/html", True),
    ("TEXT/PLAIN; charset=gbk", True),
    ("application/xhtml+xml", True),
    ("application/rss+xml", True),
    ("", True),
    ("image/svg+xml", False),
    ("image/png", False),
    ("application/zip", False),
    ("text/javascript", False),
    ("video/mp4", False),
]


@pytest.mark.parametrize(("content_type", "is_read"), TYPES)
async def test_only_text_is_read(origin: Origin, fetcher: Fetcher, content_type: str, *, is_read: bool) -> None:
    origin.answers["/"] = reply(TEXT, content_type=content_type)
    page = await fetcher.fetch(parse_url(origin.url()))
    assert page.body == (TEXT if is_read else b"")
    assert page.status == 200


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "403 Forbidden", "302 Found"])
async def test_bodies_of_errors_are_not_read(origin: Origin, fetcher: Fetcher, status: str) -> None:
    origin.answers["/"] = reply(TEXT, status=status)
    page = await fetcher.fetch(parse_url(origin.url()))
    assert (page.status, page.body) == (int(status[:3]), b"")


async def test_redirects_are_followed(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/a/b"] = reply(b"", "Location: ../c?q=1#part", status="307 Temporary")
    origin.answers["/c?q=1"] = reply(b"", f"Location: //127.0.0.1:{origin.port}/d", status="303 See Other")
    origin.answers["/d"] = reply(TEXT)
    page = await fetcher.fetch(parse_url(origin.url("/a/b")))
    assert (page.url, page.final_url, page.body) == (origin.url("/a/b"), origin.url("/d"), TEXT)


async def test_headers_that_are_no_utf8_are_read_as_browsers_read_them(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = reply(b"", "Location: /caf\udce9/\u00e9?\udcff", status="302 Found")
    origin.answers["/caf%E9/%C3%A9?%FF"] = reply(
        TEXT, 'ETag: "caf\udce9"', "X-Right: caf\u00e9", content_type="text/html; x=\udce9"
    )
    page = await fetcher.fetch(parse_url(origin.url()))
    assert (page.final_url, page.body) == (origin.url("/caf%E9/%C3%A9?%FF"), TEXT)
    assert (page.headers["etag"], page.headers["x-right"]) == ('"caf\u00e9"', "caf\u00e9")
    assert page.headers["content-type"] == "text/html; x=\u00e9"


async def test_each_hop_passes_policy_and_permit(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = reply(b"", "Location: /account/logout", status="302 Found")
    origin.answers["/b"] = reply(b"", "Location: /secret", status="302 Found")
    asked: list[str] = []

    async def permit(url: Url) -> None:
        asked.append(url.path)
        if url.path == "/secret":
            raise RefusedError("no")

    with pytest.raises(RefusedError, match="logout"):
        await fetcher.fetch(parse_url(origin.url()), permit=permit)
    with pytest.raises(RefusedError, match="no"):
        await fetcher.fetch(parse_url(origin.url("/b")), permit=permit)
    assert asked == ["/", "/b", "/secret"]
    assert origin.requests == ["/", "/b"]


async def test_connections_are_kept(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = reply(TEXT)
    for _ in range(3):
        await fetcher.fetch(parse_url(origin.url()))
    assert len(origin.tasks) == 1


async def test_authorities_of_the_settings_are_trusted(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    settings = loopback_settings(upstream_ca=tmp_path / "ca.pem")
    async with serving(context) as site, Fetcher(settings, Politeness(settings)) as fetcher:
        site.answers["/"] = reply(TEXT)
        assert (await fetcher.fetch(parse_url(f"https://127.0.0.1:{site.port}/"))).body == TEXT


@pytest.mark.parametrize("content", [None, b"not a certificate"])
def test_authorities_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    settings = loopback_settings(upstream_ca=path)
    with pytest.raises(ConfigError, match="upstream_ca"):
        Fetcher(settings, Politeness(settings))


async def test_names_and_ports_that_do_not_answer(fetcher: Fetcher, origin: Origin) -> None:
    async with serving() as gone:
        port = gone.port
    with pytest.raises(UnreachableError, match=r"^cannot connect: Connection refused$"):
        await fetcher.fetch(parse_url(f"http://127.0.0.1:{port}/"))
    with pytest.raises(UnreachableError, match="resolved"):
        await fetcher.fetch(parse_url("http://no-such-host.invalid/"))


@all_cases(
    ("error", "reason"),
    [
        (OSError(111, "Connect call failed ('192.0.2.1', 80)"), "Connection refused"),
        (OSError(None, "no such name"), "no such name"),
        (OSError(), "unknown reason"),
    ],
)
def test_the_reason_of_a_failure_is_the_systems(error: OSError, reason: str) -> None:
    assert _reason(error) == reason


async def test_five_redirects_are_followed_and_no_more(origin: Origin, fetcher: Fetcher) -> None:
    for number in range(6):
        origin.answers[f"/{number}"] = reply(b"", f"Location: /{number + 1}", status="302 Found")
    origin.answers["/6"] = reply(TEXT)
    page = await fetcher.fetch(parse_url(origin.url("/1")))
    assert (page.url, page.final_url, page.body) == (origin.url("/1"), origin.url("/6"), TEXT)
    with pytest.raises(BadAnswerError, match="more than 5 redirects"):
        await fetcher.fetch(parse_url(origin.url("/0")))


async def test_credentials_of_this_machine_are_not_sent(
    origin: Origin, fetcher: Fetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    origin.answers["/"] = reply(TEXT)
    await fetcher.fetch(parse_url(origin.url()))
    assert "authorization" not in origin.heads[0].lower()


async def test_the_settings_alone_bound_connections(origin: Origin) -> None:
    all_there = asyncio.Event()

    async def answers_when_all_are_there(writer: asyncio.StreamWriter) -> None:
        if len(origin.requests) == 3:
            all_there.set()
        await all_there.wait()
        await asyncio.sleep(0.02)
        writer.write(reply(TEXT))

    origin.answers.update({f"/{number}": answers_when_all_are_there for number in range(3)})
    settings = loopback_settings(per_host_concurrency=3, timeout_s=20.0)
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        pages = await asyncio.gather(*(fetcher.fetch(parse_url(origin.url(f"/{number}"))) for number in range(3)))
    assert [page.body for page in pages] == [TEXT] * 3
    assert all(20 <= page.elapsed_ms < 20_000 for page in pages)


async def test_a_name_is_asked_for_as_long_as_the_settings_want(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    async def resolve(_: object, host: str, port: int, __: int) -> list[ResolveResult]:
        nonlocal asked
        asked += 1
        found = ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=6, flags=0)
        return [found]

    monkeypatch.setattr(PooledResolver, "resolve", resolve)
    for path in ("/1", "/2"):
        origin.answers[path] = reply(TEXT, "Connection: close")
    for ttl_s, times in ((0.0, 2), (60.0, 1)):
        asked = 0
        settings, counters = loopback_settings(dns_ttl_s=ttl_s), Counters()
        async with Fetcher(settings, Politeness(settings), counters) as fetcher:
            for path in ("/1", "/2"):
                await fetcher.fetch(parse_url(origin.url(path, host="name.test")))
        assert asked == counters["dns_misses"] == times


async def test_a_body_that_cannot_be_read_ends_its_connection(origin: Origin, fetcher: Fetcher) -> None:
    """Not only when the error is forgotten, which refers to the answer."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n" + b"x" * 1_000)
        while True:
            await writer.drain()
            await asyncio.sleep(0.002)
            writer.write(b"x")

    origin.answers["/"] = endless
    with pytest.raises(BadAnswerError) as error:
        await fetcher.fetch(parse_url(origin.url()))
    async with asyncio.timeout(10):
        await asyncio.wait(origin.tasks)
    assert error.value.__cause__ is not None


async def test_which_limit_was_reached_is_told(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def begins(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nx")
        await asyncio.sleep(3600)

    origin.answers |= {"/never": never, "/begins": begins}
    for path, first_byte_s, timeout_s, told in (
        ("/never", 0.05, 60.0, r"^no answer began within 0\.05 s$"),
        ("/begins", 60.0, 1.0, r"^not answered within 1 s$"),
    ):
        monkeypatch.setattr("gatewayfilter.crawl.fetch.fetcher.FIRST_BYTE_S", first_byte_s)
        settings = loopback_settings(timeout_s=timeout_s, robots="never")
        async with Fetcher(settings, Politeness(settings)) as fetcher:
            with pytest.raises(UnreachableError, match=told):
                await fetcher.fetch(parse_url(origin.url(path)))


async def test_it_ends_with_its_connections(origin: Origin) -> None:
    settings = loopback_settings()
    origin.answers["/"] = reply(TEXT)
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        await fetcher.fetch(parse_url(origin.url()))
        session = fetcher._session
    assert session is not None
    assert (session.closed, fetcher._session, fetcher._outbound) == (True, None, None)
