"""The runner of the crawler's modules over brokers that refuse: what it gives up, and what it never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gatewayfilter.interfaces import Channel, Letter
from gatewayfilter.scaleout.kafka.deliveries import GIVE_UP
from gatewayfilter.telemetry import Counters
from tests.e2e.e2e_gateway import until

kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.services
BOMB = b"bomb"


@dataclass
class Broker:
    """One partition of jobs, the offset that is committed with its note, and what was sent."""

    jobs: list[bytes]
    committed: tuple[int, str] = (0, "")
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    sessions: int = 0


class Reader:
    """A consumer of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._next = broker, broker.committed[0]
        broker.sessions += 1

    def consume(self, count: int, _: float) -> list[Any]:
        found: list[Any] = []
        while len(found) < count and self._next < len(self._broker.jobs):
            text = self._broker.jobs[self._next]
            if text == BOMB:  # it is told of by the first offset of its batch, and read again until it is passed over
                found.append(_Message(self._broker.jobs.index(BOMB), b"", kafka.KafkaError(kafka.KafkaError._BAD_COMPRESSION)))
                break
            found.append(_Message(self._next, text))
            self._next += 1
        return found

    def seek(self, place: Any) -> None:
        self._next = place.offset

    def committed(self, places: Sequence[Any], _: float) -> list[Any]:
        return [kafka.TopicPartition(places[0].topic, 0, *self._broker.committed)]

    def commit(self, offsets: Sequence[Any], **_: object) -> None:
        self._broker.committed = offsets[0].offset, offsets[0].metadata or ""

    def subscribe(self, *_: object, **__: object) -> None: ...
    def close(self) -> None: ...


@dataclass
class _Message:
    place: int
    text: bytes
    fault: Any = None

    def error(self) -> Any:
        return self.fault

    def topic(self) -> str:
        return "t.jobs"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes:
        return b"k" * 5_000_000

    def value(self) -> bytes:
        return self.text


class Writer:
    """A producer for the broker, with librdkafka's limit."""

    def __init__(self, broker: Broker, most: int) -> None:
        self._broker, self._most = broker, most

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[..., None], **_: object) -> None:
        if len(value) + len(key) > self._most:
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError.MSG_SIZE_TOO_LARGE))
        if topic in self._broker.missing:
            on_delivery(kafka.KafkaError(kafka.KafkaError.UNKNOWN_TOPIC_OR_PART), None)
            return
        self._broker.sent.append((topic, value))
        on_delivery(None, None)

    def poll(self, _: float) -> None: ...
    def purge(self) -> None: ...


class Pages:
    """A module that makes a page of each job, and refuses what is long."""

    async def handle(self, value: bytes) -> Sequence[Letter]:
        if len(value) > 100:
            raise ValueError("too long")
        return [Letter(Channel.PAGES, b"", value)]

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        del value, reason
        return []


async def worked(broker: Broker, monkeypatch: pytest.MonkeyPatch, done: Callable[[], bool]) -> dict[str, int]:
    """Runs the module until something holds. Returns its counters."""
    from gatewayfilter.scaleout.kafka import module_runner  # noqa: PLC0415  it needs confluent-kafka
    from gatewayfilter.scaleout.kafka.module_topics import ModuleTopics  # noqa: PLC0415

    monkeypatch.setattr(module_runner, "Consumer", lambda _, **__: Reader(broker))
    monkeypatch.setattr(module_runner, "Producer", lambda config, **_: Writer(broker, config["message.max.bytes"]))
    monkeypatch.setattr(module_runner, "PAUSE_S", 0.001)
    monkeypatch.setattr(module_runner, "COMMIT_EVERY_S", 0.0)
    counters, stop = Counters(), asyncio.Event()
    options = module_runner.RunnerOptions(ModuleTopics("b:1", "t"), Channel.JOBS, "g", 4)
    running = asyncio.create_task(module_runner.ModuleRunner(options, Pages(), counters).run(stop))
    await asyncio.to_thread(until, "the messages", done)
    stop.set()
    await running
    return counters.as_dict()


async def test_a_message_that_is_too_long_to_be_sent_again_does_not_stop_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([b"a", b"x" * 40_000_000, b"b"])
    counters = await worked(broker, monkeypatch, lambda: broker.committed[0] == 3)
    assert sorted((topic, len(value)) for topic, value in broker.sent) == [("t.dead", 4_434_464), ("t.pages", 1), ("t.pages", 1)]
    assert (counters["crawl_dead_letters"], broker.sessions) == (1, 1)


async def test_nothing_is_given_up_while_a_topic_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([b"a", b"b"], missing={"t.pages"})

    def enough() -> bool:
        if broker.sessions > 2 * GIVE_UP:
            broker.missing.clear()
        return broker.committed[0] == 2

    counters = await worked(broker, monkeypatch, enough)
    assert sorted(broker.sent) == [("t.pages", b"a"), ("t.pages", b"b")]
    assert "crawl_dead_letters" not in counters


async def test_batches_that_cannot_be_decompressed_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker([b"a", BOMB, BOMB, BOMB, b"b"])
    counters = await worked(broker, monkeypatch, lambda: broker.committed[0] == 5)
    assert broker.sent == [("t.pages", b"a"), ("t.pages", b"b")]
    assert (broker.sessions, counters) == (1, {"crawl_messages": 2})
    broker = Broker([BOMB])
    await worked(broker, monkeypatch, lambda: broker.committed[0] == 1)
