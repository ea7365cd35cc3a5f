import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.modules import scheduler as scheduling
from gatewayfilter.crawl.modules.classified_ahead import ClassifiedAhead
from gatewayfilter.crawl.modules.fetch_module import FetchModule
from gatewayfilter.crawl.modules.messages import CrawlMessage, Failure
from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.errors import ClassifyError, GatewayFilterError, StoreError
from gatewayfilter.interfaces import Channel, Lease, Letter
from gatewayfilter.urls import Url
from tests.case_tables import all_cases
from tests.crawl.crawl_fakes import HARMFUL, HARMLESS, FakeFrontier
from tests.crawl.crawl_origin import loopback_settings
from tests.crawl.modules.crawl_roads import NOW, Crawl, FakeClassify, Outbox, modules_of, scheduler_of
from tests.crawl.modules.test_messages import FETCHED, PAGE

SITE = "http://127.0.0.1:9/a"


class AwaySender(Outbox):
    def send(self, letters: object) -> None:
        raise GatewayFilterError("Kafka is away")


def job(crawl: Crawl, url: str = SITE, token: str = "token") -> CrawlMessage:
    return CrawlMessage(Lease(url, 10, 1, token, NOW + 900))


def test_jobs_that_cannot_be_sent_wait_in_the_queue_again() -> None:
    crawl = Crawl(FakeFrontier(SITE))
    with pytest.raises(GatewayFilterError):
        scheduler_of(crawl, AwaySender()).step()
    assert [(url, at) for url, at, _ in crawl.frontier.retried] == [(SITE, NOW)]
    assert crawl.frontier.attempts[SITE] == 0


@all_cases("url", ["http://127.0.0.1/?token=abcdef", "http://127.0.0.1/reset", "http://192.168.1.1/", "no URL"])
def test_what_may_not_be_fetched_goes_into_no_topic(url: str) -> None:
    crawl, outbox = Crawl(FakeFrontier(url)), Outbox()
    assert scheduler_of(crawl, outbox).step() == 1
    assert not outbox.letters
    assert crawl.frontier.settled == 1


def test_urls_at_which_crawlers_ended_too_often_are_not_sent() -> None:
    crawl, outbox = Crawl(FakeFrontier(SITE), settings=loopback_settings(max_attempts=1)), Outbox()
    crawl.frontier.attempts[SITE] = 9
    scheduler_of(crawl, outbox).step()
    assert (crawl.frontier.buried, outbox.letters) == ({SITE: "crawlers ended 9 times during its visit"}, [])


@pytest.mark.parametrize("address", ["http://127.0.0.1/x", "http://[::1]/", "http://169.254.169.254/latest", "http://10.0.0.1/"])
async def test_a_fetcher_guards_addresses_itself(address: str) -> None:
    crawl = Crawl(FakeFrontier(), settings=loopback_settings(allow_networks=()))
    async with modules_of(crawl) as modules:
        (letter,) = await modules[Channel.JOBS].handle(crawl.codec.letter(Channel.JOBS, job(crawl, address)).value)
    failure = crawl.codec.read(Channel.RESULTS, letter.value).failure
    assert failure is not None
    assert failure.kind in {"refused", "forbidden"}


@pytest.mark.parametrize("channel", Channel)
async def test_what_is_no_message_is_refused(channel: Channel) -> None:
    crawl = Crawl(FakeFrontier())
    async with modules_of(crawl) as modules:
        with pytest.raises(ValueError, match="message"):
            await modules[channel].handle(b"poison")
        assert modules[channel].given_up(b"poison", "why") == []


@pytest.mark.parametrize(
    ("error", "ahead", "failure"),
    [(None, HARMFUL, None), (ClassifyError("odd"), None, None), (ValueError("odd"), None, Failure("crashed", "ValueError"))],
)
async def test_a_parser_never_ends_at_a_page(error: Exception | None, ahead: object, failure: object) -> None:
    crawl, classify = Crawl(FakeFrontier()), FakeClassify()
    classify.error = error
    async with modules_of(crawl, classify) as modules:
        page = crawl.codec.letter(Channel.PAGES, CrawlMessage(job(crawl).lease, FETCHED))
        (letter,) = await modules[Channel.PAGES].handle(page.value)
        (given,) = modules[Channel.PAGES].given_up(page.value, "ended parsers")
    result = crawl.codec.read(Channel.RESULTS, letter.value)
    assert (result.classification, result.failure) == (ahead, failure)
    assert crawl.codec.read(Channel.RESULTS, given.value).failure == Failure("crashed", "ended parsers")


def test_a_verdict_ahead_counts_for_its_page_and_its_words() -> None:
    classify, words = FakeClassify(), "v1"
    ahead = ClassifiedAhead(classify, lambda: words)
    with ahead.known(PAGE, HARMLESS, "v1"):
        assert ahead.classify_page(PAGE) is HARMLESS
        assert ahead.classify_page(FETCHED.page) is HARMLESS
        assert classify.pages == []
    words = "v2"
    with ahead.known(PAGE, HARMLESS, "v1"):
        assert ahead.classify_page(PAGE) is HARMFUL
    with ahead.known(PAGE, None, "v2"):
        assert ahead.classify_page(PAGE) is HARMFUL
    assert ahead.classify_text("casino") is classify.classify_text("casino")


async def test_results_are_stored_once_and_while_their_lease_is_held() -> None:
    crawl = Crawl(FakeFrontier(SITE))
    (lease,) = crawl.frontier.lease(1, 900, NOW)
    letter = crawl.codec.letter(Channel.RESULTS, CrawlMessage(lease, FETCHED))
    async with modules_of(crawl) as modules:
        store = modules[Channel.RESULTS]
        await asyncio.gather(*(store.handle(letter.value) for _ in range(5)))
        await store.handle(letter.value)
    assert (len(crawl.sink.pages), crawl.frontier.settled) == (1, 1)
    assert crawl.counters.as_dict()["results_stale"] == 5


async def test_a_result_that_the_database_refuses_is_fetched_again() -> None:
    crawl = Crawl(FakeFrontier(SITE))
    (lease,) = crawl.frontier.lease(1, 900, NOW)
    crawl.sink.error = StoreError("the database is gone")
    async with modules_of(crawl) as modules:
        letter: Letter = crawl.codec.letter(Channel.RESULTS, CrawlMessage(lease, FETCHED))
        await modules[Channel.RESULTS].handle(letter.value)
    assert [url for url, _, _ in crawl.frontier.retried] == [SITE]
    assert crawl.frontier.attempts[SITE] == 0


def test_what_is_on_its_way_is_asked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    crawl, outbox = Crawl(FakeFrontier(*(f"{SITE}{number}" for number in range(5)))), Outbox()
    now, asked = 1_000.0, list[int]()
    monkeypatch.setattr(scheduling, "time", SimpleNamespace(monotonic=lambda: now))
    still_held = crawl.frontier.still_held

    def counted(leases: Sequence[Lease]) -> list[Lease]:
        asked.append(len(leases))
        return still_held(leases)

    monkeypatch.setattr(crawl.frontier, "still_held", counted)
    scheduler = scheduler_of(crawl, outbox, on_the_way=2)
    assert [scheduler.step(), len(outbox.letters), asked] == [2, 2, []]
    assert [scheduler.step(), asked] == [0, [2]]
    crawl.frontier.finished[f"{SITE}0"] = 0.0
    now += scheduling._LOOK_EVERY_S - 0.1
    assert [scheduler.step(), asked] == [0, [2]]
    now += 0.1
    assert [scheduler.step(), asked] == [1, [2, 2]]
    assert crawl.counters["jobs_sent"] == len(outbox.letters) == 3


async def test_a_fetcher_waits_for_hosts_until_half_its_places_are_taken() -> None:
    crawl = Crawl(FakeFrontier())
    patience, may = list[float](), asyncio.Event()

    class Fetch:
        async def fetch(self, url: Url, _: int, *, patience_s: float) -> FetchedPage:
            patience.append(patience_s)
            await may.wait()
            if url.path == "/fails":
                raise UnreachableError("no answer")
            return FETCHED

    module = FetchModule(cast("Any", Fetch()), crawl.codec, 3)
    urls = [f"http://127.0.0.1:9/{path}" for path in ("a", "fails", "b")]
    letters = [crawl.codec.letter(Channel.JOBS, job(crawl, url)).value for url in urls]
    for _ in range(2):
        may.clear()
        running = []
        for value in letters:
            running.append(asyncio.create_task(module.handle(value)))
            await asyncio.sleep(0)
        may.set()
        answers = await asyncio.gather(*running)
        assert patience == [PATIENCE_S, PATIENCE_S, 0.0]
        patience.clear()
        sent = [letter.channel for (letter,) in answers]
        assert sent == [Channel.PAGES, Channel.RESULTS, Channel.PAGES]
