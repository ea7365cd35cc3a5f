"""Real origins that are slow, busy or wish to be left alone, and what the crawler makes of them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch import politeness
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.fetch.robots import MAX_SITEMAPS, Robots
from gatewayfilter.crawl.net.fetch_errors import HostBusyError, UnreachableError
from gatewayfilter.interfaces import Priority
from gatewayfilter.urls import parse_url
from tests.crawl.crawl_origin import Origin, loopback_settings, reply

SLOW_S = 10.0


class Watch:
    """The fetcher's clock: it moves when an origin is slow, and not when the machine is."""

    def __init__(self) -> None:
        self.now, self.looks = 0.0, 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.now


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    monkeypatch.setattr("gatewayfilter.crawl.fetch.fetcher.time", made)
    monkeypatch.setattr(politeness, "SLOW_S", SLOW_S)
    return made


def adapting(**changes: object) -> CrawlSettings:
    return loopback_settings(**{"per_host_delay_max_s": 30.0, **changes})


def slowly(answer: bytes, wait_s: float) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def write(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(wait_s)
        writer.write(answer)
        await writer.drain()

    return write


async def fetch(fetcher: Fetcher, url: str, *, urgent: bool = True) -> int:
    return (await fetcher.fetch(parse_url(url), urgent=urgent, patience_s=0.0)).status


async def test_a_slow_origin_is_asked_as_seldom_as_it_answers(origin: Origin, watch: Watch) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        watch.now += 2 * SLOW_S
        writer.write(reply())
        await writer.drain()

    origin.answers["/slow"] = slow
    origin.answers["/quick"] = reply()
    settings = adapting()
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        netloc = parse_url(origin.url()).netloc
        await fetch(fetcher, origin.url("/quick"))
        assert fetcher.politeness.delay_s(netloc) == 0.0
        for _ in range(3):
            await fetch(fetcher, origin.url("/slow"))
        assert fetcher.politeness.delay_s(netloc) >= 1.5 * SLOW_S
        await fetch(fetcher, origin.url("/quick"))  # urgent: it counts, and the next one waits
        with pytest.raises(HostBusyError):
            await fetch(fetcher, origin.url("/quick"), urgent=False)


async def test_the_body_is_not_the_host_s_slowness(origin: Origin, watch: Watch) -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n")
        await writer.drain()
        while watch.looks < 3:  # noqa: ASYNC110  the third is when the head has come
            await asyncio.sleep(0.001)
        watch.now += 3 * SLOW_S
        writer.write(b"end")
        await writer.drain()

    origin.answers["/long"] = trickle
    settings = adapting()
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        await fetch(fetcher, origin.url("/long"))
        assert fetcher.politeness.delay_s(parse_url(origin.url()).netloc) == 0.0


@pytest.mark.parametrize("status", ["429 Too Many", "503 Busy"])
async def test_a_busy_origin_gets_one_connection_and_a_pause_until_it_is_well(
    origin: Origin, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(politeness, "FIRST_PENALTY_S", 20.0)  # more than the machine may stall
    origin.answers["/busy"] = reply(status=status)
    origin.answers["/well"] = slowly(reply(), 0.02)
    settings = adapting(per_host_concurrency=4)
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        await fetch(fetcher, origin.url("/busy"))
        assert fetcher.politeness.delay_s(parse_url(origin.url()).netloc) == politeness.FIRST_PENALTY_S
        with pytest.raises(HostBusyError):
            await fetch(fetcher, origin.url("/well"), urgent=False)
        visits = [asyncio.create_task(fetcher.fetch(parse_url(origin.url("/well")), urgent=True)) for _ in range(4)]
        await asyncio.wait(visits, return_when=asyncio.FIRST_COMPLETED)
        assert origin.most_running == 1
        assert {(await visit).status for visit in visits} == {200}
        assert fetcher.politeness.delay_s(parse_url(origin.url()).netloc) == 0.0


async def test_an_origin_that_breaks_off_is_left_alone_for_a_while(origin: Origin) -> None:
    async def break_off(writer: asyncio.StreamWriter) -> None:
        writer.close()

    origin.answers["/broken"] = break_off
    settings = adapting()
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        for expected in (1.0, 2.0, 4.0):
            with pytest.raises(UnreachableError):
                await fetch(fetcher, origin.url("/broken"))
            assert fetcher.politeness.delay_s(parse_url(origin.url()).netloc) == expected


@pytest.mark.parametrize(("wish", "delay_s"), [(b"7", 7.0), (b"0.5", 0.5), (b"100000", 30.0), (b"-1", 0.0), (b"soon", 0.0)])
async def test_crawl_delay_is_kept_within_bounds(origin: Origin, wish: bytes, delay_s: float) -> None:
    origin.answers["/robots.txt"] = reply(b"User-agent: *\nCrawl-delay: " + wish + b"\n")
    settings = adapting()
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        url = parse_url(origin.url("/a"))
        await Robots(settings).check(url, fetcher, priority=Priority.LINK, patience_s=5.0)
        assert fetcher.politeness.delay_s(url.netloc) == delay_s


async def test_the_sitemaps_of_robots_txt_are_known_once_it_was_asked(origin: Origin) -> None:
    lines = [f"Sitemap: http://a.test/{number}.xml" for number in range(MAX_SITEMAPS + 5)]
    origin.answers["/robots.txt"] = reply("\n".join(["User-agent: other", "Disallow: /", *lines]).encode())
    settings = adapting()
    robots = Robots(settings)
    async with Fetcher(settings, Politeness(settings)) as fetcher:
        assert robots.sitemaps(origin.url("/a")) == ()
        await robots.check(parse_url(origin.url("/a")), fetcher, priority=Priority.LINK, patience_s=5.0)
    assert robots.sitemaps(origin.url("/b")) == tuple(f"http://a.test/{number}.xml" for number in range(MAX_SITEMAPS))
    assert robots.sitemaps("http://other.test/") == ()
