"""Batches of Kafka's messages that cannot be decompressed, or only into far too much: passed over, one offset at a time.

librdkafka asks for such a batch again and again: 5 kB from somebody who may write to a topic would stop its partition for good.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from confluent_kafka import Message, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_log = logging.getLogger(__name__)


class UnreadableBatches:
    """Passes over them.

    Args:
        consumer: reads.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._told: dict[tuple[str, int], tuple[int, int]] = {}

    def are_messages(self, consumed: list[Message]) -> bool:
        """Returns whether all that was consumed are messages, and none is behind what was passed over: nearly always."""
        return not self._told and not any(map(Message.error, consumed))  # the library's errors are true as all objects

    def passed(self, message: Message) -> int | None:
        """Returns the offset that is passed over, `None` for a message, and for a fault that is of no batch.

        Raises:
            KafkaException: the partition is another reader's meanwhile.
        """
        fault, offset = message.error(), message.offset()
        if fault is None and not self._told:
            return None
        place = message.topic() or "", message.partition() or 0
        if fault is None:
            self._told.pop(place, None)
            return None
        if fault.name() != "_BAD_COMPRESSION" or offset is None or offset < 0:
            return None
        known = self._told.get(place)
        if known is not None and known[0] == offset:  # a batch of several may be told of by its first offset each time
            passed = known[1] + 1
        else:
            passed = offset
            _log.warning("%s of partition %d cannot be decompressed at offset %d: passed over", *place, offset)
        self._told[place] = offset, passed
        self._consumer.seek(TopicPartition(*place, passed + 1))
        return passed
