"""The process that sends decisions, against a real Kafka: kills and outages lose no decision, and a stream worker reads them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.model import LogRecord, Source
from gatewayfilter.store import Store
from gatewayfilter.use_cases.metrics.decision_stream import DecisionStream, decision_stream
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

kafka = pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.services, pytest.mark.real, pytest.mark.timeout(600)]


def until(condition: Callable[[], bool], what: str, limit_s: float = 180.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    services_folder()
    found = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    found.start()
    yield found
    found.kill()


class Filter:
    """A state folder, its log, and the process on it."""

    def __init__(self, folder: Path, broker: KafkaBroker) -> None:
        self.settings = Settings.model_validate(
            {"data_dir": folder, "kafka": {"brokers": broker.address, "decisions": "decisions"}}
        )
        self.store = Store.open(self.settings.store_url)
        self._context = multiprocessing.get_context("spawn")
        self.start()

    def start(self) -> None:
        from gatewayfilter.processes.entry_points import decisions  # noqa: PLC0415

        self.process = self._context.Process(target=decisions, args=(self.settings,))
        self.process.start()

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(10)

    def log(self, numbers: range) -> None:
        self.store.log.write(
            [
                LogRecord(time.time(), "192.0.2.1", "GET", f"http://{'bad' if n % 4 == 0 else 'good'}.test/{n}", "script",
                          "allow", "unknown")
                for n in numbers
            ]
        )  # fmt: skip

    def state(self) -> DecisionStream:
        return decision_stream(self.settings, self.store)


@pytest.fixture
def running(tmp_path: Path, broker: KafkaBroker) -> Iterator[Filter]:
    found = Filter(tmp_path, broker)
    yield found
    found.process.terminate()
    found.process.join(30)
    if found.process.is_alive():
        found.kill()
    found.store.close()


def messages(broker: KafkaBroker, topic: str, distinct: int) -> dict[bytes, bytes]:
    """The messages of a topic by key, once there are as many distinct ones as are expected."""
    consumer = kafka.Consumer(
        {"bootstrap.servers": broker.address, "group.id": f"reader-{time.time_ns()}", "auto.offset.reset": "earliest",
         "isolation.level": "read_committed"}
    )  # fmt: skip
    consumer.subscribe([topic])
    found: dict[bytes, bytes] = {}

    def read() -> bool:
        found.update({one.key(): one.value() for one in consumer.consume(5000, 1.0) if one.error() is None})
        return len(found) >= distinct

    until(read, f"{topic} holds {distinct}")
    consumer.close()
    return found


def test_kills_and_outages_lose_no_decision(
    running: Filter, broker: KafkaBroker, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    until(lambda: running.state().position is not None, "the process has begun")
    running.log(range(5_000))
    until(lambda: (running.state().position or 0) > 0, "the first are sent")
    running.kill()
    running.log(range(5_000, 10_000))
    running.start()
    until(lambda: running.state().waiting == 0, "all are sent after a kill")

    broker.kill()
    running.log(range(10_000, 12_000))
    until(lambda: running.state().state == "away", "the outage is told")
    assert running.state().waiting == 2_000
    assert running.process.is_alive()
    began = time.monotonic()
    broker.start()
    until(lambda: running.state().waiting == 0, "all are sent after the outage")
    words = "Kafka broker, of the filter's own decisions | all that waited are sent, after its start"
    record_property("recovery", f"{words} | {time.monotonic() - began:.1f}")
    until(lambda: running.state().state == "sending", "the end of the outage is told")

    found = messages(broker, "decisions", 12_000)
    urls = {json.loads(value)["url"] for value in found.values()}
    assert len(found) == len(urls) == 12_000  # keys tell repetitions

    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    SnapshotFolder(tmp_path / "rules").publish(builder.build())
    worker = subprocess.Popen(
        [sys.executable, "-m", "gatewayfilter.cli", "stream", "worker", "--brokers", broker.address, "--topic", "decisions",
         "--group", "again", "--output", "judged", "--rules", str(tmp_path / "rules")],
        env={**os.environ, "GATEWAYFILTER_DATA_DIR": str(tmp_path)},
    )  # fmt: skip
    try:
        judged = [json.loads(value) for value in messages(broker, "judged", 12_000).values()]
    finally:
        worker.terminate()
        assert worker.wait(90) == 0
    blocked = {one["url"] for one in judged if one["action"] == "block"}
    assert blocked == {url for url in urls if "bad.test" in url}
