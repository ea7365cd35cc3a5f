"""The crawler's modules over a real Kafka: kills of each lose nothing that was acknowledged and store nothing twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import Channel, CrawlRequest, QueueState
from gatewayfilter.model import ChangeKind
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import open_store
from tests.crawl.crawl_origin import Origin, reply, serving
from tests.crawl.modules.crawl_roads import Crawl, modules_of, scheduler_of
from tests.crawl.modules.test_crawl_roads import check_every_end
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

kafka = pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.services, pytest.mark.real, pytest.mark.timeout(900)]
PAGES = 240
SITES = 12
HARMFUL = b"<title>casino</title><p>" + b"online casino, slot machines, jackpot, roulette, betting bonus, free spins. " * 8


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    services_folder()
    found = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    found.start()
    yield found
    found.kill()


async def _over_kafka(broker: KafkaBroker, crawl: Crawl, count: int) -> None:
    from gatewayfilter.scaleout.kafka.module_runner import ModuleRunner, RunnerOptions  # noqa: PLC0415
    from gatewayfilter.scaleout.kafka.module_topics import JobSender, ModuleTopics  # noqa: PLC0415
    from gatewayfilter.scaleout.kafka.sender import KafkaSender  # noqa: PLC0415

    topics = ModuleTopics(broker.address, "roads")
    await asyncio.to_thread(topics.make, 4)
    sender = KafkaSender(broker.address, {}, 20.0)
    stop = asyncio.Event()
    async with modules_of(crawl) as modules:
        runners = [
            asyncio.create_task(
                ModuleRunner(RunnerOptions(topics, channel, f"roads.{channel}", 8), module, crawl.counters).run(stop)
            )
            for channel, module in modules.items()
        ]
        try:
            await asyncio.to_thread(scheduler_of(crawl, JobSender(sender, topics)).step)
            await crawl.settled(count)
        finally:
            stop.set()
            await asyncio.gather(*runners)
            sender.close()


async def test_every_end_of_a_visit_over_kafka(broker: KafkaBroker) -> None:
    async with serving() as origin:
        await check_every_end(lambda crawl, count: _over_kafka(broker, crawl, count), origin)


class Modules:
    """The modules of one crawl as processes."""

    def __init__(self, broker: KafkaBroker, folder: Path) -> None:
        self.folder = folder
        self._broker = broker
        self._running: list[subprocess.Popen[bytes]] = []
        self.settings = Settings(data_dir=folder)

    def start(self, role: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "GATEWAYFILTER_DATA_DIR": str(self.folder),
            "GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8",
            "GATEWAYFILTER_CRAWL__ROBOTS": "never",
            "GATEWAYFILTER_CRAWL__PER_HOST_DELAY_S": "0",
            "GATEWAYFILTER_CRAWL__PER_HOST_DELAY_MAX_S": "0",
            "GATEWAYFILTER_CRAWL__CONCURRENCY": "8",
            "GATEWAYFILTER_CRAWL__FOLLOW_LINKS": "0",
            "GATEWAYFILTER_CRAWL__MAX_ATTEMPTS": "9",
        }
        options = ["--on-the-way", "40", "--partitions", "6"] if role == "schedule" else []
        command = [sys.executable, "-m", "gatewayfilter.cli", "crawler", role, "--brokers", self._broker.address, *options]
        with (self.folder / f"{role}.log").open("ab") as log:
            found = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._running.append(found)
        return found

    def end(self) -> None:
        for one in self._running:
            one.send_signal(signal.SIGTERM)
        for one in self._running:
            assert one.wait(90) in {0, -signal.SIGKILL}

    @property
    def none_gave_up(self) -> bool:
        return all(one.poll() in {None, -signal.SIGKILL} for one in self._running)

    def logs(self) -> str:
        return "".join(path.read_text(encoding="utf-8")[-1500:] for path in self.folder.glob("*.log"))


async def _until(condition: Callable[[], bool], modules: Modules, limit_s: float = 200.0) -> float:
    began = time.monotonic()
    while not await asyncio.to_thread(condition):
        assert time.monotonic() - began < limit_s, modules.logs()
        assert modules.none_gave_up, modules.logs()
        await asyncio.sleep(0.1)
    return time.monotonic() - began


@asynccontextmanager
async def _site() -> AsyncIterator[tuple[Origin, list[str]]]:
    async with serving() as origin:
        for number in range(PAGES):
            words = HARMFUL if number % 4 == 0 else b"<title>wool</title><p>" + b"Knitting patterns for the winter. " * 9
            origin.answers[f"/{number}"] = reply(words + str(number).encode())
        others = [await asyncio.start_server(origin.serve, f"127.0.0.{site}", origin.port) for site in range(2, SITES + 1)]
        yield origin, [origin.url(f"/{number}", f"127.0.0.{1 + number % SITES}") for number in range(PAGES)]
        for server in others:
            server.close()


def _are_done(store: Store, count: int) -> bool:
    return store.frontier.stats(0.0)[QueueState.DONE] >= count


async def test_kills_lose_nothing_and_store_nothing_twice(
    broker: KafkaBroker, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    modules = Modules(broker, tmp_path)
    with closing(open_store(modules.settings)) as store:
        async with _site() as (origin, urls):
            store.frontier.add([CrawlRequest(url, 100) for url in urls[:60]], time.time())
            roles = {role: modules.start(role) for role in ("schedule", "fetch", "parse", "store")}
            await _until(partial(_are_done, store, 20), modules)
            _poison(broker)
            for part, killed in enumerate((("fetch",), ("parse", "store"), ("broker",)), 2):
                store.frontier.add([CrawlRequest(url, 100) for url in urls[60 * (part - 1) : 60 * part]], time.time())
                await asyncio.sleep(0.3)
                for role in killed:
                    if role == "broker":
                        broker.kill()
                        await asyncio.to_thread(broker.start)
                    else:
                        roles[role].kill()
                        roles[role] = modules.start(role)
                spent_s = await _until(partial(_are_done, store, 60 * part), modules)
                parts = " and ".join(killed)
                record_property("recovery", f"crawler over Kafka: {parts} | all pages are stored | {spent_s:.1f}")
            await _until(lambda: _dead_letters(broker) >= len(Channel), modules)
        modules.end()
        assert store.frontier.stats(0.0) == {"waiting": 0, "due": 0, "leased": 0, "done": PAGES, "dead": 0}
        _check_lists(store, urls)
    assert origin.requests
    assert "Traceback" not in modules.logs()


def _poison(broker: KafkaBroker) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker.address})
    for channel in Channel:
        producer.produce(f"gatewayfilter-crawl.{channel}", b"poison")
    assert producer.flush(120) == 0


def _dead_letters(broker: KafkaBroker) -> int:
    topic = "gatewayfilter-crawl.dead"
    consumer = kafka.Consumer({"bootstrap.servers": broker.address, "group.id": f"look-{time.monotonic()}"})
    try:
        return sum(consumer.get_watermark_offsets(kafka.TopicPartition(topic, number), 60)[1] for number in range(6))
    finally:
        consumer.close()


def _check_lists(store: Store, urls: list[str]) -> None:
    """Each page is on a list once, by its own verdict; only what a killed storage had in work was learned again in its place."""
    assert [url for url in urls if store.verdicts.find(url) is None] == []
    changes = [change for change in store.feed.read(0, 100_000) if change.learned is not None]
    added = Counter(change.learned.key for change in changes if change.learned and change.kind is ChangeKind.LEARNED_ADDED)
    removed = Counter(change.learned.key for change in changes if change.learned and change.kind is ChangeKind.LEARNED_REMOVED)
    assert set((added - removed).values()) == {1}
    assert {key for key, count in added.items() if count > 1} <= {parse_url(url).key for url in urls[120:180]}
    assert {parse_url(url).key for url in urls} <= added.keys()
