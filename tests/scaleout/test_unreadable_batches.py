"""What was consumed is taken as it is while nothing was passed over; a batch that cannot be decompressed is passed over."""

from typing import Any, cast

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, Message

from gatewayfilter.scaleout.unreadable_batches import UnreadableBatches

pytestmark = pytest.mark.services


def consumed(offset: int, fault: int | None = None) -> Message:
    """Returns a message, or a fault in its place."""
    error = None if fault is None else KafkaError(fault)
    return Message(topic="traffic", partition=1, offset=offset, error=error)


class Seeker:
    """A consumer that notes where it is sent."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def seek(self, place: Any) -> None:
        self.offsets.append(place.offset)


def test_messages_are_told_from_faults_and_from_what_is_behind_them() -> None:
    seeker = Seeker()
    unreadable = UnreadableBatches(cast("Any", seeker))

    def are_messages(*messages: Message) -> bool:
        return unreadable.are_messages(list(messages))

    assert are_messages()
    assert are_messages(consumed(1), consumed(2))
    assert not are_messages(consumed(1), consumed(2, KafkaError._PARTITION_EOF))
    assert unreadable.passed(consumed(2, KafkaError._PARTITION_EOF)) is None
    assert are_messages(consumed(1))
    assert unreadable.passed(consumed(3, KafkaError._BAD_COMPRESSION)) == 3
    assert not are_messages(consumed(5))
    assert unreadable.passed(consumed(3, KafkaError._BAD_COMPRESSION)) == 4
    assert unreadable.passed(consumed(5)) is None
    assert are_messages(consumed(6))
    assert seeker.offsets == [4, 5]


def test_partitions_are_passed_over_each_by_itself() -> None:
    places: list[tuple[str, int, int]] = []

    class Places:
        def seek(self, place: Any) -> None:
            places.append((place.topic, place.partition, place.offset))

    def told(partition: int, fault: int | None, offset: int = 5, topic: str = "traffic") -> int | None:
        error = None if fault is None else KafkaError(fault)
        return unreadable.passed(Message(topic=topic, partition=partition, offset=offset, error=error))

    unreadable, bomb = UnreadableBatches(cast("Any", Places())), KafkaError._BAD_COMPRESSION
    assert [told(1, bomb), told(2, bomb), told(1, bomb), told(1, bomb, topic="other"), told(0, bomb, 0)] == [5, 5, 6, 5, 0]
    assert places == [("traffic", 1, 6), ("traffic", 2, 6), ("traffic", 1, 7), ("other", 1, 6), ("traffic", 0, 1)]
    assert told(2, None) is None
    assert [told(1, bomb), told(2, bomb)] == [7, 5], "behind a message another batch begins"
    assert told(1, bomb, -1001) is None
    assert len(places) == 7
