"""Producers and topics over doubles of Kafka's library: acknowledgements, faults, full queues, topics that are there."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import Channel, Letter

kafka = pytest.importorskip("confluent_kafka")
sender_module = pytest.importorskip("gatewayfilter.scaleout.kafka.sender")
topics_module = pytest.importorskip("gatewayfilter.scaleout.kafka.module_topics")
pytestmark = pytest.mark.services
FAULT = kafka.KafkaError


class Producer:
    """Acknowledges what is flushed, but for what it is told."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.sent: list[tuple[str, bytes, bytes]] = []
        self.flushes: list[float] = []
        self.faults: list[Any] = []
        self.raises: list[Exception | None] = []
        self.left = self.purges = 0
        self._acknowledge: list[Callable[..., None]] = []

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[..., None]) -> None:
        if self.raises and (error := self.raises.pop(0)) is not None:
            raise error
        self.sent.append((topic, value, key))
        self._acknowledge.append(on_delivery)

    def flush(self, seconds: float) -> int:
        self.flushes.append(seconds)
        for acknowledge in self._acknowledge:
            acknowledge(self.faults.pop(0) if self.faults else None, None)
        self._acknowledge = []
        return self.left

    def purge(self) -> None:
        self.purges += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Producer]:
    found: list[Producer] = []

    def make(config: dict[str, Any], *, logger: Any) -> Producer:
        assert logger is sender_module.quiet
        if config.get("wrong"):
            raise kafka.KafkaException(FAULT(FAULT._INVALID_ARG, "no such property"))
        found.append(Producer(config))
        return found[-1]

    monkeypatch.setattr(sender_module, "Producer", make)
    return found


LETTERS = [(b"k1", b"v1"), (b"k2", b"v2")]


def test_letters_are_sent_and_waited_for(made: list[Producer]) -> None:
    sender = sender_module.KafkaSender("b:1", {"acks": "1", "ssl.x": "y"}, 5.5)
    sender.send("t", LETTERS)
    sender.send("u", [])
    (producer,) = made
    assert producer.sent == [("t", b"v1", b"k1"), ("t", b"v2", b"k2")]
    assert (producer.flushes, producer.purges) == ([7.5, 7.5], 0)
    config = producer.config
    assert (config["bootstrap.servers"], config["acks"], config["ssl.x"], config["message.timeout.ms"]) == ("b:1", "1", "y", 5500)
    sender.close()
    sender.close()
    assert (producer.purges, producer.flushes[-1], len(producer.flushes)) == (1, 1.0, 3)
    sender.send("t", LETTERS)
    assert len(made) == 2


def test_what_is_not_acknowledged_is_told_and_the_connection_given_up(made: list[Producer]) -> None:
    sender = sender_module.KafkaSender("b:1", {})
    sender.send("t", [])
    made[-1].left = 1
    with pytest.raises(sender_module.KafkaAwayError, match="not acknowledged in time"):
        sender.send("t", LETTERS)
    assert made[-1].purges == 1
    sender.send("t", [])
    made[-1].faults = [FAULT(FAULT._MSG_TIMED_OUT, "x" * 300), FAULT(FAULT._TRANSPORT, "second")]
    with pytest.raises(sender_module.KafkaAwayError) as caught:
        sender.send("t", LETTERS)
    assert str(caught.value) == "x" * 200
    sender.send("t", LETTERS)  # the fault before is forgotten
    assert len(made) == 3
    for error, why in (
        (kafka.KafkaException(FAULT(FAULT._STATE, "bad state")), "bad state"),
        (kafka.KafkaException(), "KafkaException"),
    ):
        made[-1].raises = [error]
        with pytest.raises(sender_module.KafkaAwayError, match=why):
            sender.send("t", LETTERS)
        assert made[-1].purges == 1
        sender.send("t", LETTERS)
        assert made[-1].purges == 0
    with pytest.raises(ConfigError, match=r"^Kafka: no such property$"):
        sender_module.KafkaSender("b:1", {"wrong": "1"}).send("t", LETTERS)


def test_a_full_queue_goes_out_first(made: list[Producer]) -> None:
    sender = sender_module.KafkaSender("b:1", {}, 5.0)
    sender.send("t", [])
    made[-1].raises = [None, BufferError()]
    sender.send("t", LETTERS)
    assert [value for _, value, _ in made[-1].sent] == [b"v1", b"v2"]
    assert made[-1].flushes == [7.0, 7.0, 7.0]
    made[-1].raises = [BufferError(), BufferError()]
    with pytest.raises(sender_module.KafkaAwayError, match="BufferError"):
        sender.send("t", LETTERS)


class Admin:
    """Makes topics, but for what it is told."""

    def __init__(self, **results: Exception) -> None:
        self.results = results
        self.topics: list[Any] = []
        self.config: dict[str, Any] = {}

    def __call__(self, config: dict[str, Any], *, logger: Any) -> Admin:
        assert logger is topics_module.quiet
        self.config = config
        return self

    def create_topics(self, topics: list[Any], *, request_timeout: float) -> dict[str, Any]:
        assert request_timeout == 20.0
        self.topics = topics
        return {
            topic.topic: SimpleNamespace(result=lambda wait_s, name=topic.topic: self._result(name, wait_s)) for topic in topics
        }

    def _result(self, name: str, wait_s: float) -> None:
        assert wait_s == 25.0
        if (error := self.results.get(name)) is not None:
            raise error


def test_topics_that_are_there_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = topics_module.ModuleTopics("b:1", "t", {"ssl.x": "y"})
    names = [*(f"t.{channel}" for channel in Channel), "t.dead"]
    assert [*map(topics.of, Channel), topics.dead] == names
    exists = kafka.KafkaException(FAULT(FAULT.TOPIC_ALREADY_EXISTS))
    admin = Admin(**{"t.dead": exists})
    monkeypatch.setattr(topics_module, "AdminClient", admin)
    topics.make(6)
    assert admin.config == {"bootstrap.servers": "b:1", "ssl.x": "y"}
    assert [(topic.topic, topic.num_partitions, topic.replication_factor) for topic in admin.topics] == [
        (name, 6, -1) for name in names
    ]
    assert admin.topics[0].config == {"retention.ms": "86400000", "max.message.bytes": "4500000"}
    refused = kafka.KafkaException(FAULT(FAULT.POLICY_VIOLATION, "no " + "x" * 300))
    for error, why in ((refused, "^cannot make topics: no x{197}$"), (TimeoutError(), "no answer in time")):
        monkeypatch.setattr(topics_module, "AdminClient", Admin(**{names[1]: error}))
        with pytest.raises(sender_module.KafkaAwayError, match=why):
            topics.make(6)


def test_letters_go_to_the_topics_of_their_channels() -> None:
    sent: list[tuple[str, list[tuple[bytes, bytes]]]] = []
    sender: Any = SimpleNamespace(send=lambda topic, pairs: sent.append((topic, pairs)))
    first, second = list(Channel)[:2]
    letters = [Letter(first, b"1", b"a"), Letter(second, b"2", b"b"), Letter(first, b"3", b"c")]
    topics_module.JobSender(sender, topics_module.ModuleTopics("b:1", "t")).send(letters)
    assert sent == [(f"t.{first}", [(b"1", b"a"), (b"3", b"c")]), (f"t.{second}", [(b"2", b"b")])]
