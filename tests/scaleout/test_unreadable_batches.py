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
