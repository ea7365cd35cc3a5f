"""What the crawler, its modules, learning and what machines share are joined from: `gatewayfilter.wiring.crawling`,
`gatewayfilter.wiring.crawl_modules`, `gatewayfilter.wiring.learning`, `gatewayfilter.wiring.shared`,
`gatewayfilter.wiring.gateway_sync`, `gatewayfilter.wiring.fleet`.

The parts are doubles that only note what they are made of; what they do is tested in their rooms.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gatewayfilter import __version__
from gatewayfilter.errors import StartupError
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.interfaces import Page
from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import crawl_modules, crawling, fleet, gateway_sync, learning, shared
from tests.wiring.test_worker_wiring import Part, settings_of

STORE: Any = Part("store")
COUNTERS = Counters()
STATE = Path("/dev/null/state")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Puts doubles in the places of classes and functions; returns those that were made, by their names."""
    made: dict[str, Any] = {}

    def put(module: object, *names: str) -> dict[str, Any]:
        for name in names:

            def make(*given: object, name: str = name, **named: object) -> Any:
                made[name] = Part(name, *given, **named)
                return made[name]

            if isinstance(module, str):
                monkeypatch.setattr(f"{module}.{name}", make)
            else:
                monkeypatch.setattr(module, name, make)
        return made

    return put


@pytest.fixture
def crawled(double: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    double("gatewayfilter.crawl", "CrawlWorker", "CrawlContext", "DigestTree", "LinkFinder", "SeenFilter", "SpoolReader")
    double("gatewayfilter.crawl", "Backlog", "PageBuffer", "WarcArchive")
    monkeypatch.setattr(Part, "folder", STATE / "archive", raising=False)
    return double(crawling, "rule_book", "reloading_classifier", "learning_sink", "revisits")


def test_a_crawler_is_joined_with_its_archive_and_its_journal(crawled: dict[str, Any]) -> None:
    leases: Any = Part("leases")
    settings = settings_of(crawl={"archive_mb": 3}, learn={"block_days": 5})
    assert crawling.crawl_worker(settings, STORE, COUNTERS, backlog="backlog2", leases=leases) == crawled["CrawlWorker"]
    context, buffer = crawled["CrawlContext"], crawled["PageBuffer"]
    assert crawled["CrawlWorker"].given == (context,)
    assert context.given == (STORE.frontier, buffer, settings.crawl, COUNTERS)
    named = context.named
    assert (named["leases"], named["seen"], named["buffer"], named["links"]) == (
        leases,
        crawled["SeenFilter"],
        buffer,
        crawled["LinkFinder"],
    )
    assert (named["together"], named["task_sites"]) == (STORE.settling, STORE.task_sites)
    assert (named["revisits"], named["images"]) == (crawled["revisits"], crawled["learning_sink"].knows_images)
    assert crawled["SeenFilter"].given == (STATE / "seen2.bloom",)
    assert crawled["WarcArchive"].given == (STATE / "archive", 3_000_000)
    archive, journal = buffer.given[1], buffer.given[5]
    assert journal.given == (STATE / "archive" / "backlog2.log",)
    assert (archive, journal, buffer.given[3]) == (crawled["WarcArchive"], crawled["Backlog"], 7 * 86_400.0)
    assert (buffer.given[0], buffer.given[2], buffer.named) == (
        crawled["learning_sink"],
        STORE.verdicts,
        {"evidence_only": False},
    )
    assert crawled["learning_sink"].given == (settings, STORE, COUNTERS, crawled["reloading_classifier"], None)
    assert crawled["revisits"].given[2] == crawled["reloading_classifier"]


def test_a_crawler_without_an_archive_judges_at_once(crawled: dict[str, Any]) -> None:
    settings = settings_of(crawl={"archive_mb": 0, "dedup": "tree"})
    judge: Any = Part("judge")
    classify: Any = Part("classify")
    found: Any = crawling.crawl_context(settings, STORE, COUNTERS, judge=judge, classify=classify)
    assert found == crawled["CrawlContext"]
    assert (found.given[1], found.named["buffer"]) == (crawled["learning_sink"], None)
    assert (found.named["seen"], crawled["DigestTree"].given) == (crawled["DigestTree"], (STATE / "seen-modules.tree",))
    assert crawled["learning_sink"].given[3:] == (judge, classify)
    assert "reloading_classifier" not in crawled
    reader: Any = crawling.spool_reader(settings, STORE, COUNTERS)
    assert (reader == crawled["SpoolReader"], reader.given[1]) == (True, crawled["learning_sink"])


def test_of_pages_that_passed_the_proxy_harmful_ones_are_archived(crawled: dict[str, Any]) -> None:
    settings = settings_of(crawl={"archive_mb": 3})
    reader: Any = crawling.spool_reader(settings, STORE, COUNTERS)
    assert reader.given[:3] == (STATE / "spool", crawled["PageBuffer"], STORE.frontier)
    assert (crawled["PageBuffer"].named, crawled["PageBuffer"].given[5]) == ({"evidence_only": True}, None)


def test_learning_is_joined_with_the_second_look(double: Callable[..., dict[str, Any]]) -> None:
    learn = "gatewayfilter.learn"
    double(learn, "LearningPipeline", "ListGrowth", "TaskIntake", "load_image_classifier", "ReviewService", "Revisits")
    double(learn, "HostListing", "HostSecondLook", "TrustedHosts", "WordFeedback", "ContentIds", "Recognition", "load_key")
    made = double(learning, "reloading_classifier", "rule_book", "share_fingerprints")
    closing: list[Any] = []
    store: Any = Part("store")
    store.before_close = closing.append
    settings = settings_of()
    judge, classify = Part("judge"), Part("classify")
    assert learning.learning_sink(settings, store, COUNTERS, judge, classify) == made["LearningPipeline"]  # type: ignore[arg-type]
    assert (made["LearningPipeline"].given[0], made["LearningPipeline"].named["read_text"]) == (classify, judge)
    assert "reloading_classifier" not in made
    learning.learning_sink(settings, store, COUNTERS)
    pipeline = made["LearningPipeline"]
    assert (pipeline.given[0], pipeline.given[1]) == (made["reloading_classifier"], made["ListGrowth"])
    assert pipeline.named["recognition"] == made["Recognition"]
    assert (pipeline.named["intake"], pipeline.named["images"]) == (made["TaskIntake"], made["load_image_classifier"])
    assert made["ListGrowth"].named["second_look"] == made["HostSecondLook"]
    assert made["HostSecondLook"].given[3:] == (store.host_facts, made["HostListing"], made["WordFeedback"])
    assert closing[-1] == made["Recognition"].flush
    assert made["share_fingerprints"].given == (settings, store, COUNTERS)
    for given in ((settings, None), (settings_of(learn={"second_looks": False}), store)):
        assert learning.second_look(*given) == made["HostSecondLook"]
        assert len(made["HostSecondLook"].given) == 3
    found: Any = learning.revisits(settings, store, judge)  # type: ignore[arg-type]
    assert (found == made["Revisits"], found.given[:2]) == (True, (store.validators, store.verdicts))
    assert found.named == {"recognition": made["Recognition"], "read_text": judge}
    assert learning.review_service(settings, store) == made["ReviewService"]
    assert made["ReviewService"].given[3] == made["Recognition"]
    assert learning.recognition(settings, store) == made["Recognition"]


@pytest.fixture
def redis(double: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    root = "gatewayfilter.scaleout.redis"
    double(f"{root}.connection", "RedisConnection")
    double(f"{root}.circuit_breaker", "CircuitBreaker")
    double(f"{root}.cached_value", "ValueCodec")
    double(f"{root}.fingerprint_cache", "RedisFingerprintCache")
    double(f"{root}.crawlers", "RedisCrawlers")
    double(f"{root}.frontier", "RedisFrontier")
    double(f"{root}.shared_state", "RedisSharedState")
    double(f"{root}.shared_queue", "SharedQueue", "SharedCrawlers")
    double("gatewayfilter.scaleout.sync.local_state", "LocalState")
    double("gatewayfilter.scaleout.sync.shared_values", "SyncCodec")
    double("gatewayfilter.scaleout.sync.synchronizer", "Synchronizer")
    return double("gatewayfilter.learn", "load_key")


def test_a_shared_cache_is_put_before_the_fingerprints_once(redis: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    store: Any = SimpleNamespace(fingerprints="own", also_close=closed.append)
    shared.share_fingerprints(settings_of(), store)
    assert (store.fingerprints, closed) == ("own", [])
    settings = settings_of(cache={"url": "redis://127.0.0.1/0"})
    shared.share_fingerprints(settings, store, COUNTERS)
    assert isinstance(store.fingerprints, CachedFingerprints)
    assert closed == [redis["RedisConnection"].close]
    assert (redis["RedisConnection"].given[0], redis["RedisFingerprintCache"].given[2]) == ("redis://127.0.0.1/0", COUNTERS)
    assert redis["load_key"].given == (STATE / "fingerprints.key",)
    before = store.fingerprints
    shared.share_fingerprints(settings, store)
    assert (store.fingerprints is before, len(closed)) == (True, 1)
    store.fingerprints = "own"
    own_key = settings_of(cache={"url": "redis://127.0.0.1/0", "key_file": "/key"})
    shared.share_fingerprints(own_key, store)
    assert redis["load_key"].given == (Path("/key"),)
    assert isinstance(redis["RedisFingerprintCache"].given[2], Counters)
    monkeypatch.setitem(sys.modules, "redis", None)
    store.fingerprints = "own"
    with pytest.raises(StartupError, match=r"cache\.url needs the extra redis"):
        shared.share_fingerprints(settings, store)


def test_a_shared_queue_is_put_before_the_frontier(redis: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    frontier: Any = SimpleNamespace(max_waiting=7)
    store: Any = SimpleNamespace(frontier=frontier, crawlers="own", also_close=closed.append)
    shared.share_queue(settings_of(), store)
    assert (store.frontier, store.crawlers) == (frontier, "own")
    settings = settings_of(queue={"url": "redis://127.0.0.1/0"})
    shared.share_queue(settings, store, COUNTERS)
    assert (store.frontier, store.crawlers) == (redis["SharedQueue"], redis["SharedCrawlers"])
    assert redis["SharedQueue"].given == (redis["RedisFrontier"], frontier, COUNTERS)
    assert (redis["RedisFrontier"].named, closed) == ({"max_waiting": 7}, [redis["RedisConnection"].close])
    store.frontier = frontier
    shared.share_queue(settings, store)
    assert isinstance(redis["SharedQueue"].given[2], Counters)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StartupError, match=r"queue\.url needs the extra redis"):
        shared.share_queue(settings, store)


def test_gateways_are_kept_in_step(redis: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    store: Any = Part("store")
    store.also_close = closed.append
    monkeypatch.setattr(gateway_sync, "subscriptions", lambda _settings: "subscriptions")
    settings = settings_of(sync={"url": "redis://127.0.0.1/0"})
    found, crawlers = gateway_sync.gateway_sync(settings, store, COUNTERS)
    assert (found, crawlers) == (redis["Synchronizer"], redis["RedisCrawlers"])
    assert closed == [redis["RedisConnection"].close]
    assert redis["Synchronizer"].given[0] is redis["RedisSharedState"]
    assert redis["Synchronizer"].given[3:] == (STATE / "sync.json", COUNTERS)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StartupError, match=r"sync\.url needs the extra redis"):
        gateway_sync.gateway_sync(settings, store, COUNTERS)


def test_decisions_are_sent_to_kafka(
    double: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    senders: list[Any] = []

    def sender(*given: object) -> Any:
        senders.append(Part("KafkaSender", *given))
        return senders[-1]

    module = ModuleType("gatewayfilter.scaleout.kafka.sender")
    module.__dict__["KafkaSender"] = sender
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.kafka.sender", module)
    made = double("gatewayfilter.scaleout.kafka.decision_feed", "DecisionFeed")
    closed: list[Any] = []
    store: Any = Part("store")
    store.also_close = closed.append
    kafka = {"brokers": "k:9092", "decisions": "d"}
    assert shared.decision_feed(settings_of(kafka=kafka), store, COUNTERS) == made["DecisionFeed"]
    assert (senders[0].given, made["DecisionFeed"].given) == (("k:9092", {}), (store.log_followers, senders[0], "d", COUNTERS))
    assert closed == [senders[0].close]
    file = tmp_path / "kafka"
    file.write_text("security.protocol=ssl\n")
    shared.decision_feed(settings_of(kafka={**kafka, "config_file": file}), store, COUNTERS)
    assert senders[1].given == ("k:9092", {"security.protocol": "ssl"})
    monkeypatch.setitem(sys.modules, "gatewayfilter.scaleout.kafka.sender", None)
    with pytest.raises(StartupError, match=r"kafka\.decisions needs the extra stream"):
        shared.decision_feed(settings_of(kafka=kafka), store, COUNTERS)


@pytest.fixture
def modules(double: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    root = "gatewayfilter.crawl"
    double(f"{root}.modules.messages", "MessageCodec")
    double(f"{root}.modules.scheduler", "Scheduler")
    double(f"{root}.modules.fetch_module", "FetchModule")
    double(f"{root}.modules.parse_module", "ParseModule")
    double(f"{root}.modules.store_module", "StoreModule")
    double(f"{root}.modules.classified_ahead", "ClassifiedAhead")
    double(f"{root}.outcomes", "OutcomeHandler")
    double(f"{root}.outcome_batcher", "OutcomeBatcher")
    double(f"{root}.page_judge", "PageJudge")
    double(f"{root}.runtime", "HostState")
    double(root, "CrawlContext")
    double("gatewayfilter.learn", "load_key")
    return double(crawl_modules, "reloading_classifier", "rule_book", "crawl_context")


def test_a_scheduler_judges_nothing(modules: dict[str, Any]) -> None:
    settings = settings_of(crawl={"max_bytes": 123_456})
    leases: Any = Part("leases")
    send: Any = Part("send")
    assert crawl_modules.scheduler(settings, STORE, COUNTERS, leases, send, on_the_way=9) == modules["Scheduler"]
    context = modules["CrawlContext"]
    assert modules["Scheduler"].given == (context, modules["OutcomeHandler"], send, modules["MessageCodec"], 9)
    assert modules["MessageCodec"].given == (modules["load_key"], 123_456)
    assert (context.given[0], context.named) == (STORE.frontier, {"leases": leases, "together": STORE.settling})
    with pytest.raises(NotImplementedError, match=r"http://a\.example/"):
        context.given[1].page(Page("http://a.example/", "", 200, {}, b""))


@pytest.mark.parametrize(("pictures", "fetched"), [(0, False), (1, True)])
def test_a_fetcher_fetches_pictures_only_where_they_are_judged(
    modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, pictures: int, fetched: bool
) -> None:
    opened: list[Any] = []

    @asynccontextmanager
    async def open_fetch(*given: Any) -> AsyncIterator[str]:
        opened.append(given)
        yield "fetch"

    monkeypatch.setattr("gatewayfilter.crawl.runtime.open_fetch", open_fetch)
    settings = settings_of(crawl={"page_images": pictures, "concurrency": 5})

    async def run() -> object:
        async with crawl_modules.fetch_module(settings, COUNTERS) as module:
            return module

    assert asyncio.run(run()) == modules["FetchModule"]
    assert modules["FetchModule"].given == ("fetch", modules["MessageCodec"], 5)
    assert (opened[0][3](), opened[0][2]) == (fetched, modules["HostState"])


def test_a_parser_judges_in_one_thread(modules: dict[str, Any]) -> None:
    async def run() -> tuple[object, bool]:
        async with crawl_modules.parse_module(settings_of(), COUNTERS) as module:
            thread = modules["ParseModule"].given[3]
            first, second = thread.submit(threading.get_ident), thread.submit(threading.get_ident)
            return module, first.result() == second.result() and thread._max_workers == 1

    assert asyncio.run(run()) == (modules["ParseModule"], True)
    judge = modules["reloading_classifier"]
    given = modules["ParseModule"].given
    assert (given[0], given[1], given[2], given[4]) == (judge, judge.words_version, modules["MessageCodec"], COUNTERS)


@pytest.mark.parametrize("buffered", [True, False])
def test_a_storage_writes_all_before_it_ends(modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, buffered: bool) -> None:
    steps: list[object] = []
    threads: list[Any] = []

    async def finish() -> None:
        steps.append("finish")

    async def call(work: object) -> None:
        steps.append(work)

    context: Any = Part("context")
    context.buffer = SimpleNamespace(flush=lambda: steps.append("flush")) if buffered else None
    batcher = SimpleNamespace(finish=finish, call=call)

    def batcher_of(*given: Any) -> SimpleNamespace:
        threads.append(given[2])
        return batcher

    monkeypatch.setattr(crawl_modules, "crawl_context", lambda *_, **named: named["judge"] and context)
    monkeypatch.setattr("gatewayfilter.crawl.outcome_batcher.OutcomeBatcher", batcher_of)
    closing = threading.Event()

    async def run() -> object:
        async with crawl_modules.store_module(settings_of(), STORE, COUNTERS, closing) as module:
            assert steps == []
            threads.append(modules["PageJudge"].given[1])
            return module

    assert asyncio.run(run()) == modules["StoreModule"]
    assert steps == ["finish", context.seen.save, *["flush"] * buffered]
    assert [thread._max_workers for thread in threads] == [1, 1]
    given = modules["StoreModule"].given
    assert given[:2] == (context, modules["ClassifiedAhead"])
    assert given[2:] == (modules["PageJudge"], modules["OutcomeHandler"], batcher, modules["MessageCodec"])


def test_a_follower_is_joined_with_the_filter_here(double: Callable[..., dict[str, Any]]) -> None:
    made = double(fleet, "Transport", "Follower", "fleet_folder")
    settings = settings_of(fleet={"follow": "https://p.example/", "key": write_public_key(b"a" * 32)})
    assert fleet.follower(settings, STORE, COUNTERS) == made["Follower"]
    assert made["Transport"].given == ("https://p.example", "", None)
    given = made["Follower"].given
    assert (given[0], given[1], given[2]) == (made["fleet_folder"], settings.fleet, made["Transport"])
    assert isinstance(given[3], fleet.FilterHere)
    assert given[4:] == (COUNTERS, __version__)


def test_a_publisher_has_keys_and_members() -> None:
    assert fleet.members(settings_of()) is not None
    assert fleet.signing_keys(settings_of()) is not None
