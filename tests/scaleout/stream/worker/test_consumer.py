"""The stream worker against a real Kafka: kills of workers and of the broker lose nothing and count nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import Source
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

kafka = pytest.importorskip("confluent_kafka")
kafka_admin = pytest.importorskip("confluent_kafka.admin")
pytestmark = [pytest.mark.services, pytest.mark.real, pytest.mark.timeout(600)]
RECORDS = 40_000


def _rules(folder: Path, listed: str) -> SnapshotFolder:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [f".{listed}"])
    rules = SnapshotFolder(folder)
    rules.publish(builder.build())
    return rules


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    services_folder()
    found = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    found.start()
    yield found
    found.kill()


class Stream:
    """Topics of one test, and the workers on them."""

    def __init__(self, broker: KafkaBroker, name: str, rules: Path) -> None:
        self.broker, self.name, self._rules = broker, name, rules
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "gatewayfilter.cli", "stream", "worker", "--brokers", self.broker.address),
            *("--topic", f"{self.name}-in", "--group", self.name, "--output", f"{self.name}-out"),
            *("--dead", f"{self.name}-dead", "--counts", f"{self.name}-counts", "--rules", str(self._rules), "--batch", "1000"),
        ]
        log = (self._rules.parent / "worker.log").open("ab")
        worker = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "GATEWAYFILTER_DATA_DIR": str(self._rules.parent)}
        )
        self.workers.append(worker)
        return worker

    def create(self) -> None:
        admin = kafka_admin.AdminClient({"bootstrap.servers": self.broker.address})
        for future in admin.create_topics(
            [kafka_admin.NewTopic(f"{self.name}-{end}", 4, 1) for end in ("in", "out", "dead", "counts")]
        ).values():
            future.result(120)

    def send(self, values: Iterator[bytes]) -> None:
        producer = kafka.Producer(
            {"bootstrap.servers": self.broker.address, "acks": "all", "linger.ms": 50, "enable.idempotence": True}
        )
        for number, value in enumerate(values):
            producer.produce(f"{self.name}-in", value, partition=number % 4)
            if number % 10_000 == 0:
                producer.poll(0)
        assert producer.flush(120) == 0

    def send_bomb(self) -> None:
        """Sends a batch of 5 kB that would take 150 MB."""
        options = {"compression.type": "zstd", "message.max.bytes": 1_000_000_000, "queue.buffering.max.kbytes": 1_000_000}
        producer = kafka.Producer({"bootstrap.servers": self.broker.address, **options})
        producer.produce(f"{self.name}-in", bytes(150_000_000), partition=0)
        assert producer.flush(120) == 0

    def read(self, end: str, count: int, timeout_s: float = 180, size: Callable[[Any], int] = lambda _: 1) -> list[Any]:
        """Returns the committed messages of a topic: as many as are expected, and what comes in two seconds more.

        Args:
            end: of the topic's name.
            count: how many are expected.
            timeout_s: how long they are waited for.
            size: for how many a message counts.
        """
        consumer = kafka.Consumer(
            {"bootstrap.servers": self.broker.address, "group.id": f"{self.name}-{end}-reader", "auto.offset.reset": "earliest",
             "enable.auto.commit": False, "isolation.level": "read_committed"}
        )  # fmt: skip
        consumer.subscribe([f"{self.name}-{end}"])
        found: list[Any] = []
        limit = time.monotonic() + timeout_s
        while time.monotonic() < limit:
            found += [message for message in consumer.consume(5000, 2.0) if message.error() is None]
            if sum(map(size, found)) >= count:
                limit = min(limit, time.monotonic() + 2)
        consumer.close()
        return found

    def answers(self, count: int, timeout_s: float = 180) -> set[tuple[int, int]]:
        """Returns the places of committed answers, as soon as there are as many as are expected."""
        consumer = kafka.Consumer(
            {"bootstrap.servers": self.broker.address, "group.id": f"reader-{time.time_ns()}", "auto.offset.reset": "earliest",
             "enable.auto.commit": False, "isolation.level": "read_committed"}
        )  # fmt: skip
        consumer.subscribe([f"{self.name}-out"])
        found: set[tuple[int, int]] = set()
        limit = time.monotonic() + timeout_s
        while len(found) < count and time.monotonic() < limit:
            found |= {(one.partition(), one.offset()) for one in consumer.consume(5000, 0.2) if one.error() is None}
        consumer.close()
        return found

    def note(self, text: str) -> None:
        """Shows a figure with -s."""
        sys.stderr.write(f"\n{self.name}: {text}\n")

    def end(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.terminate()
                assert worker.wait(90) == 0


def _values(count: int) -> Iterator[bytes]:
    for number in range(count):
        host = "bad.test" if number % 4 == 0 else f"h{number % 50}.test"
        yield json.dumps(
            {"id": number, "url": f"http://{host}/{number}", "client": f"192.0.2.{number % 9}", "time": 60.0}
        ).encode()


@pytest.fixture
def stream(broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stream]:
    _rules(tmp_path / "rules", "bad.test")
    found = Stream(broker, request.node.name.replace("test_", ""), tmp_path / "rules")
    found.create()
    yield found
    for worker in found.workers:
        worker.kill()
        worker.wait(10)


def _complete(stream: Stream, count: int) -> None:
    """Every record has one answer, and counts hold each once."""
    out = stream.read("out", count)
    ids = sorted(json.loads(message.value())["id"] for message in out)
    assert ids == list(range(count))
    assert len({message.key() for message in out}) == count
    counted = stream.read("counts", count, size=lambda message: int(json.loads(message.value())["records"]))
    counts = [json.loads(message.value()) for message in counted]
    assert sum(one["records"] for one in counts) == count
    assert sum(one["counts"]["host"].get("bad.test", [0, 0])[1] for one in counts) == count // 4
    assert sum(row[0] for one in counts for row in one["counts"]["network"].values()) == count


def test_killed_workers_and_a_killed_broker_lose_nothing(stream: Stream) -> None:
    first, _ = stream.start(), stream.start()
    stream.send(_values(RECORDS // 2))
    time.sleep(4)
    first.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    stream.start()
    time.sleep(3)
    stream.broker.kill()
    time.sleep(2)
    stream.broker.start()
    stream.send(_after(_values(RECORDS), RECORDS // 2))
    _complete(stream, RECORDS)
    stream.note(f"complete {time.monotonic() - killed:.1f} s after the kill of a worker, {RECORDS:,} records")
    stream.end()


def test_a_killed_worker_and_a_killed_broker_are_made_good(
    stream: Stream, record_property: Callable[[str, object], None]
) -> None:
    first, second = stream.start(), stream.start()
    stream.send(_values(400))
    assert len(stream.read("out", 400)) == 400
    for fault in ("stream worker", "Kafka broker, started again at once"):
        began = time.monotonic()
        if fault == "stream worker":
            first.send_signal(signal.SIGKILL)
            expected = 800
        else:
            stream.broker.kill()
            stream.broker.start()
            expected = 1_200
        stream.send(_values(400))  # to each partition
        found = stream.answers(expected)
        record_property("recovery", f"{fault} | every partition is answered | {time.monotonic() - began:.1f}")
        assert len(found) == expected
    assert second.poll() is None
    stream.end()


def _after(values: Iterator[bytes], count: int) -> Iterator[bytes]:
    return (value for number, value in enumerate(values) if number >= count)


def test_bad_messages_go_to_the_dead_letters_and_new_rules_are_taken_up(stream: Stream) -> None:
    stream.send_bomb()  # is passed over
    stream.start()
    bad = [b"", b"{", b"\xff\xfe", b"[]", b'{"url": 7}', b'{"url": "ftp://x/"}', b'{"url":"http://x/\\ud800"}', b"[" * 100_000]
    stream.send(iter([*bad, *_values(100)]))
    dead = [json.loads(message.value()) for message in stream.read("dead", len(bad) - 1)]
    assert len(dead) == len(bad) - 1  # an empty message is no line
    assert {letter["error"].partition(":")[0] for letter in dead} >= {"not JSON", "not an object", "url is no text", "no url"} - {
        "url is no text"
    }
    assert all(letter["topic"].endswith("-in") and letter["offset"] >= 0 for letter in dead)
    first = [json.loads(message.value()) for message in stream.read("out", 100)]
    assert {row["action"] for row in first if "bad.test" in row["url"]} == {"block"}
    _rules(stream._rules, "h1.test")
    stream.send(iter([b'{"id": 100, "url": "http://h1.test/"}']))
    both = [json.loads(message.value()) for message in stream.read("out", 101)]
    last = next(row for row in both if row["id"] == 100)
    assert last["action"] == "block"
    assert last["rules_version"] != first[0]["rules_version"]
    stream.end()
