"""What every road of a crawl must do: one process, modules in memory, modules over Kafka."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from gatewayfilter.crawl import outcomes
from tests.crawl.crawl_fakes import FakeFrontier
from tests.crawl.crawl_origin import Origin, loopback_settings, reply
from tests.crawl.modules.crawl_roads import NOW, Crawl, by_modules, in_one_process

type Road = Callable[[Crawl, int], Awaitable[None]]

ANSWERS = {
    "/harmless": reply(b"<p>knitting"),
    "/harmful": reply(b'casino <a href="/x"><a href="/y">'),
    "/moved": reply(b"", "Location: /harmless", status="302 Found"),
    "/gone": reply(status="404 Gone"),
    "/oops": reply(status="500 Oops"),
    "/image": reply(content_type="image/png"),
    "/no-http": b"What?\r\n\r\n",
    "/robots.txt": reply(b"User-agent: *\nDisallow: /private", content_type="text/plain"),
}
PATHS = [*list(ANSWERS)[:-1], "/private", "/logout"]
ROADS: dict[str, Road] = {
    "one process": in_one_process,
    "modules": by_modules,
    "modules, each message twice": partial(by_modules, copies=2),
}


@pytest.mark.parametrize("road", ROADS)
async def test_every_end_of_a_visit(road: str, origin: Origin) -> None:
    await check_every_end(ROADS[road], origin)


async def check_every_end(road: Road, origin: Origin) -> None:
    """Crawls a page for each end of a visit, and checks what became of it; called for Kafka, too."""
    origin.answers |= ANSWERS
    urls = [origin.url(path) for path in PATHS] + ["no URL", "http://10.0.0.1/"]
    crawl = Crawl(FakeFrontier(*urls), settings=loopback_settings(timeout_s=30.0))  # what is slow is tried again
    await road(crawl, len(urls))
    frontier = crawl.frontier
    rests = {origin.url(path): NOW + outcomes.JUDGED_REST_S for path in ("/harmless", "/harmful", "/moved")}
    rests |= {origin.url(path): NOW + outcomes.UNJUDGED_REST_S for path in ("/gone", "/image", "/no-http")}
    rests |= {origin.url(path): NOW + outcomes.REFUSED_REST_S for path in ("/private", "/logout")}
    assert frontier.finished == rests | {"http://10.0.0.1/": NOW + outcomes.REFUSED_REST_S}
    ((retried, at, error),) = frontier.retried
    assert (retried, error) == (origin.url("/oops"), "answered with status 500")
    assert NOW < at <= NOW + 1.5 * outcomes.BACK_OFF_S
    assert frontier.buried == {"no URL": "not a URL"}
    assert [offer.url for offer in frontier.added] == [origin.url("/x"), origin.url("/y")]
    judged = sorted((page.url, page.final_url, page.status) for page in crawl.sink.pages)
    assert judged == sorted(
        (origin.url(path), origin.url(final), status)
        for path, final, status in (
            ("/harmless", "/harmless", 200),
            ("/harmful", "/harmful", 200),
            ("/moved", "/harmless", 200),
            ("/gone", "/gone", 404),
            ("/image", "/image", 200),
        )
    )
    assert (crawl.counters.as_dict()["pages_refused"], crawl.counters.as_dict()["links_followed"]) == (4, 2)


async def test_what_is_on_its_way_is_bounded(origin: Origin) -> None:
    from tests.crawl.modules.crawl_roads import Outbox, modules_of, scheduler_of  # noqa: PLC0415

    crawl = Crawl(FakeFrontier(*(origin.url(f"/{number}") for number in range(7))), settings=loopback_settings(robots="never"))
    outbox = Outbox()
    scheduler = scheduler_of(crawl, outbox, on_the_way=3)
    async with modules_of(crawl) as modules:
        assert [scheduler.step(), scheduler.step()] == [3, 0]
        (first, *_) = outbox.letters
        for letter in await modules[first.channel].handle(first.value):
            for result in await modules[letter.channel].handle(letter.value):
                await modules[result.channel].handle(result.value)
        scheduler._look_at = 0.0
        assert [scheduler.step(), scheduler.step()] == [1, 0]
