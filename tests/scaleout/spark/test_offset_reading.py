"""Ranges of offsets over doubles of Kafka's library and of Spark: how they are planned and read, and what fails a task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import GatewayFilterError

kafka = pytest.importorskip("confluent_kafka")
py4j = pytest.importorskip("py4j.protocol")
offset_ranges = pytest.importorskip("gatewayfilter.scaleout.spark.offset_ranges")
pytestmark = pytest.mark.services
FAULT = kafka.KafkaError
RANGE = offset_ranges.OffsetRange("in", 3, 10, 15)


def message(offset: int, text: bytes | None = b"x", fault: Any = None) -> Any:
    return kafka.Message(topic="in", partition=3, offset=offset, value=text, error=fault)


class Consumer:
    """Gives its parts one after the other, then nothing."""

    def __init__(self, *parts: list[Any]) -> None:
        self.parts = list(parts)
        self.asked: list[tuple[int, float]] = []
        self.assigned: list[Any] = []
        self.is_closed = False
        self.config: dict[str, Any] = {}

    def __call__(self, config: dict[str, Any]) -> Consumer:
        self.config = config
        return self

    def assign(self, places: list[Any]) -> None:
        self.assigned = [(place.topic, place.partition, place.offset) for place in places]

    def consume(self, count: int, wait_s: float) -> list[Any]:
        self.asked.append((count, wait_s))
        return self.parts.pop(0) if self.parts else []

    def seek(self, _: Any) -> None: ...

    def close(self) -> None:
        self.is_closed = True


def read(
    monkeypatch: pytest.MonkeyPatch, *parts: list[Any], wanted: Any = RANGE
) -> tuple[list[tuple[list[bytes], list[int]]], Consumer]:
    consumer = Consumer(*parts)
    now = iter(range(1000))
    monkeypatch.setattr(offset_ranges, "Consumer", consumer)
    monkeypatch.setattr(offset_ranges, "time", SimpleNamespace(monotonic=lambda: float(next(now))))
    found = []
    for values, places in offset_ranges.read_range("b:1", wanted):
        assert set(places.partitions) == {("in", 3)}
        assert len(places.partitions) == len(values)
        found.append((values, places.offsets))
    assert consumer.is_closed
    return found, consumer


def test_a_range_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found, consumer = read(
        monkeypatch, [message(10, b"a"), message(11, None)], [], [message(13, b"c"), message(14, b"d"), message(15)]
    )
    assert found == [([b"a", b""], [10, 11]), ([b"c", b"d"], [13, 14])]
    assert consumer.assigned == [("in", 3, 10)]
    assert consumer.asked == [(5, 0.5), (3, 0.5), (3, 0.5)]
    assert (consumer.config["bootstrap.servers"], consumer.config["enable.partition.eof"]) == ("b:1", True)
    found, consumer = read(monkeypatch, wanted=offset_ranges.OffsetRange("in", 3, 10, 10))
    assert (found, consumer.asked) == ([], [])
    monkeypatch.setattr(offset_ranges, "MOST", 2)
    assert read(monkeypatch, [message(number) for number in range(10, 15)])[1].asked == [(2, 0.5)]


def test_ends_of_transactions_and_what_cannot_be_decompressed_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    end, bomb = FAULT(FAULT._PARTITION_EOF), FAULT(FAULT._BAD_COMPRESSION)
    assert read(monkeypatch, [message(10, b"a"), message(15, fault=end)])[0] == [([b"a"], [10])]
    found, consumer = read(monkeypatch, [message(10, b"a"), message(14, fault=end)], [message(14, b"e")])
    assert found == [([b"a"], [10]), ([b"e"], [14])]
    assert consumer.asked[1] == (4, 0.5), "a new leader may tell of an earlier end"
    found, _ = read(monkeypatch, [message(10, b"a"), message(12, fault=bomb), message(13, b"d"), message(15, b"z")])
    assert found == [([b"a", b"d"], [10, 13])]


def test_a_range_may_begin_at_the_first_message_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (offset_ranges.OffsetRange("in", 3, 0, end) for end in (1, 2))
    end, away = FAULT(FAULT._PARTITION_EOF), FAULT(FAULT._TRANSPORT)
    for told in ([message(0, fault=end)], [message(0, fault=away)], [message(-1001, fault=away)]):
        assert read(monkeypatch, told, [message(0, b"a")], wanted=one)[0] == [([b"a"], [0])]
        assert read(monkeypatch, [message(0, b"a"), *told], [message(1, b"b")], wanted=two)[0] == [([b"a"], [0]), ([b"b"], [1])]
    assert read(monkeypatch, [message(0, b"a")], [message(1, b"b")], wanted=two)[0] == [([b"a"], [0]), ([b"b"], [1])]


@pytest.mark.parametrize("fault", [FAULT(FAULT._AUTO_OFFSET_RESET), FAULT(FAULT._STATE, fatal=True)])
def test_messages_that_are_gone_fail_the_task(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    with pytest.raises(kafka.KafkaException):
        read(monkeypatch, [message(10, fault=fault)])


def test_silence_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_ranges, "SILENT_S", 4.0)
    away = [message(-1001, fault=FAULT(FAULT._TRANSPORT, "no broker"))]
    with pytest.raises(GatewayFilterError, match="from 11 on for 4 s: no broker") as caught:
        read(monkeypatch, away, [message(10)], *[away] * 50)
    assert "no broker has sent anything of OffsetRange" in str(caught.value)
    with pytest.raises(GatewayFilterError, match="no fault was told"):
        read(monkeypatch, *[[]] * 50)
    found, _ = read(monkeypatch, *[[], [], [], [message(10)]], *[[], [], [], [message(14)]])
    assert [offsets for _, offsets in found] == [[10], [14]]


class Plan:
    """What Spark tells of a micro-batch in Java."""

    def __init__(self, *partitions: list[tuple[str, int, int, int]], fails: bool = False) -> None:
        self._partitions, self._fails = partitions, fails

    def queryExecution(self) -> Plan:  # noqa: N802  Spark's name, as below
        if self._fails:
            raise py4j.Py4JError("no such method")
        return self

    def toRdd(self) -> Plan:  # noqa: N802
        return self

    def partitions(self) -> list[Any]:
        def of(found: tuple[str, int, int, int]) -> Any:
            topic, partition, begin, end = found
            place = SimpleNamespace(topic=lambda: topic, partition=lambda: partition)
            told = SimpleNamespace(topicPartition=lambda: place, fromOffset=lambda: begin, untilOffset=lambda: end)
            return SimpleNamespace(offsetRange=lambda: told)

        def parts(found: list[tuple[str, int, int, int]]) -> Any:
            return SimpleNamespace(size=lambda: len(found), apply=lambda number: of(found[number]))

        return [SimpleNamespace(inputPartitions=lambda found=found: parts(found)) for found in self._partitions]


def frame(plan: Plan) -> Any:
    return SimpleNamespace(_jdf=plan)


def test_ranges_are_those_that_spark_planned() -> None:
    planned = offset_ranges.planned_ranges(frame(Plan([("in", 0, 1, 5), ("in", 1, 2, 6)], [], [("to", 0, 3, 7)])))
    assert planned == [offset_ranges.OffsetRange(*found) for found in (("in", 0, 1, 5), ("in", 1, 2, 6), ("to", 0, 3, 7))]
    assert offset_ranges.planned_ranges(frame(Plan(fails=True))) is None
