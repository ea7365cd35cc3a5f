"""What an origin that does its worst may take: bytes off the wire, memory, requests. All are counted, none is timed."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import brotli
import pytest
import zstandard

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.crawl import CrawlContext, CrawlWorker
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.links import page_links
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError
from gatewayfilter.errors import FetchError
from gatewayfilter.interfaces import CrawlRequest, Page
from gatewayfilter.learn.page_kind import is_readable
from gatewayfilter.model import Classification
from gatewayfilter.settings import CrawlSettings, RobotsRule
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_fakes import HARMFUL
from tests.crawl.crawl_origin import Origin, loopback_settings, reply
from tests.crawl.floods import (
    BUDGET_S,
    BUFFERS,
    CHUNKED,
    FLOODS,
    HEAD,
    LIMIT,
    OFFERED,
    Answer,
    Wire,
    noise,
    offering,
)

MEMORY = 12_000_000
"""Of one page, whatever it says: a fraction of what the origin offers."""


@pytest.mark.parametrize("answer", FLOODS)
async def test_what_is_read_of_a_flood(origin: Origin, fetcher: Fetcher, wire: Wire, answer: Answer) -> None:
    origin.answers["/"] = answer
    page = None
    async with asyncio.timeout(BUDGET_S):
        with suppress(FetchError):
            page = await fetcher.fetch(parse_url(origin.url()))
    assert wire.read <= 2 * LIMIT + BUFFERS
    assert page is None or len(page.body) <= LIMIT


@pytest.mark.parametrize(
    "answer",
    [
        offering(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
        offering(CHUNKED, b"0" * 50_000),
        offering(CHUNKED + b"1;", b"x=y;" * 10_000),
    ],
)
async def test_what_never_becomes_a_body_is_no_reason_to_come_again(origin: Origin, wire: Wire, answer: Answer) -> None:
    settings = loopback_settings(timeout_s=BUDGET_S)  # by what was read, not by the time that a loaded machine takes for it
    origin.answers["/"] = answer
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        with pytest.raises(BadAnswerError, match="longer than is read"):
            await fetcher.fetch(parse_url(origin.url()))
        assert wire.read <= 2 * LIMIT + BUFFERS
        origin.answers["/"] = reply(b"x" * LIMIT)
        for _ in range(8):  # over one connection: each answer counts for itself
            assert len((await fetcher.fetch(parse_url(origin.url()))).body) == LIMIT


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip in gzip": lambda data: gzip.compress(gzip.compress(data)),
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "zstd with a window of 128 MB": lambda data: zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27)
    ).compress(data),
}


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("traced")
async def test_memory_that_a_bomb_takes(origin: Origin, name: str) -> None:
    settings = loopback_settings(max_bytes=2_000_000)
    origin.answers["/"] = reply(BOMBS[name](bytes(OFFERED)), f"Content-Encoding: {name.split(maxsplit=1)[0]}")
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        async with asyncio.timeout(BUDGET_S):
            with suppress(FetchError):
                page = await fetcher.fetch(parse_url(origin.url()))
                assert len(page.body) <= settings.max_bytes
        assert tracemalloc.get_traced_memory()[1] - before <= MEMORY


@pytest.mark.usefixtures("traced")
async def test_memory_that_header_lines_take(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers["/"] = offering(HEAD, b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(100_000)))
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    async with asyncio.timeout(BUDGET_S):
        with pytest.raises(FetchError):
            await fetcher.fetch(parse_url(origin.url()))
    assert tracemalloc.get_traced_memory()[1] - before <= MEMORY


async def test_redirects_in_a_circle_and_redirects_that_grow(origin: Origin, fetcher: Fetcher) -> None:
    origin.answers |= {
        path: reply(b"", f"Location: {to}", status="302 Found") for path, to in (("/a", "/b"), ("/b", "/c"), ("/c", "/a"))
    }
    with pytest.raises(FetchError, match="circle"):
        await fetcher.fetch(parse_url(origin.url("/a")))
    assert origin.requests == ["/a", "/b", "/c"]

    origin.requests.clear()
    origin.answers["/first"] = reply(b"", "Location: /a", status="302 Found")
    with pytest.raises(FetchError, match="circle"):
        await fetcher.fetch(parse_url(origin.url("/first")))
    assert origin.requests == ["/first", "/a", "/b", "/c"]

    origin.requests.clear()
    for number in range(20):
        origin.answers["/x" * (number + 1)] = reply(b"", f"Location: {'/x' * (number + 2)}", status="302 Found")
    with pytest.raises(FetchError, match="redirects"):
        await fetcher.fetch(parse_url(origin.url("/x")))
    assert len(origin.requests) == 6


async def test_a_redirect_does_not_carry_its_body(origin: Origin, fetcher: Fetcher, wire: Wire) -> None:
    origin.answers["/"] = offering(b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n", b"a" * 50_000)
    origin.answers["/there"] = reply(b"arrived")
    assert (await fetcher.fetch(parse_url(origin.url()))).body == b"arrived"
    assert wire.read <= BUFFERS


GAMBLING = "<html><title>网上赌场</title><p>真人赌场 欢迎投注"
LIES = [
    pytest.param(GAMBLING.encode("gb18030"), "text/html; charset=utf-8", id="gb18030 as utf-8"),
    pytest.param(GAMBLING.encode(), "text/html; charset=shift_jis", id="utf-8 as shift_jis"),
    pytest.param(GAMBLING.encode("utf-16"), "text/html; charset=iso-8859-1", id="utf-16 as latin-1"),
    pytest.param(GAMBLING.encode(), "text/html; charset=idna", id="a codec that is no charset"),
    pytest.param(GAMBLING.encode(), f"text/html; charset={'x' * 3000}", id="a charset without end"),
    pytest.param(GAMBLING.encode() + noise(), "text/html; charset=utf-8", id="noise behind the text"),
    pytest.param(b"<!--" + noise() + b"-->" + GAMBLING.encode("gb18030"), "text/html; charset=gbk", id="noise before the text"),
    pytest.param(GAMBLING.encode(), "text/plain", id="HTML as plain text"),
    pytest.param(b"<!DOCTYPE html>" + GAMBLING.encode(), "application/xml", id="HTML as XML"),
]


@pytest.mark.parametrize(("body", "content_type"), LIES)
async def test_lying_charsets_and_types(origin: Origin, body: bytes, content_type: str) -> None:
    settings = loopback_settings(max_bytes=2_000_000)
    origin.answers["/"] = reply(body, content_type=content_type)
    judge = PageClassifier(Lexicon.of([WordFile("gambling", words={"赌场": 30.0}, min_words=1)]))
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        page = await fetcher.fetch(parse_url(origin.url()))
    assert is_readable(page)
    assert judge.classify_page(page).category == "gambling"


class Trap:
    """A calendar: each page links to twenty that nobody has seen."""

    def __init__(self) -> None:
        self.pages = 0

    def page(self, page: Page) -> Classification:
        del page
        self.pages += 1
        return HARMFUL


async def test_a_calendar_without_end(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_links, "SITE_LINKS_A_DAY", 30)
    served = 0

    async def month(writer: asyncio.StreamWriter) -> None:
        nonlocal served
        served += 1
        body = "".join(f"<a href='/?month={served}-{day}'>{day}</a>" for day in range(20)).encode()
        writer.write(reply(body, "Connection: close"))
        await writer.drain()

    class Endless(dict[str, Answer]):
        def get(self, *_: object) -> Answer:
            return month

    origin.answers = Endless()  # type: ignore[assignment]
    store = Store.open(f"sqlite:///{tmp_path / 'test.sqlite3'}")
    settings = CrawlSettings(
        allow_networks=("127.0.0.0/8",), per_host_delay_s=0.0, per_host_concurrency=8, robots=RobotsRule.NEVER, follow_links=20
    )
    trap, stop = Trap(), asyncio.Event()
    worker = CrawlWorker(CrawlContext(store.frontier, trap, settings, Counters()))
    store.frontier.add([CrawlRequest(origin.url("/"))], 0.0)
    running = asyncio.create_task(worker.run(stop))
    try:
        async with asyncio.timeout(BUDGET_S):
            while store.frontier.stats(0.0)["done"] < 31:  # noqa: ASYNC110  the queue's thread writes it
                await asyncio.sleep(0.01)
    finally:
        stop.set()
        await running
    assert trap.pages == served == 31
    assert store.frontier.stats(0.0)["waiting"] == 0
    store.close()
