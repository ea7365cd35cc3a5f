"""Ranges of offsets: planned and remembered by Spark's Kafka source, read by the Python worker of the task itself.

Spark's source finds topics and offsets, bounds a micro-batch, writes its ranges into the checkpoint before it runs, and plans the
same ones when it is run again. Only the messages do not pass through the JVM, where each costs more than to decide it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from py4j.protocol import Py4JError

from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.scaleout.stream.worker.answers import Places
from gatewayfilter.scaleout.unreadable_batches import UnreadableBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import KafkaError
    from pyspark.sql import DataFrame

MOST: Final = 40_000
"""Messages that are answered together. What is done once for each host, client and rule of a batch costs a tenth less with them
than with 20,000; more would not fit into what is fetched ahead."""
SILENT_S: Final = 60.0
"""A task fails, and Spark runs it again, when no broker has sent anything of its range for so long.

A new leader may tell of an earlier end of its log at first: that alone is no loss.
"""
_WAIT_S: Final = 0.5
_CONSUMER: Final = {
    "group.id": "gatewayfilter-spark",  # the library wants one; nothing is committed to it
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # What is fetched ahead goes beyond the end of the range, for nothing.
    "queued.min.messages": MOST,
    "queued.max.messages.kbytes": 16_384,
    "fetch.message.max.bytes": 1 << 20,
}


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A part of a partition: from `begin` to before `end`."""

    topic: str
    partition: int
    begin: int
    end: int


def planned_ranges(frame: DataFrame) -> list[OffsetRange] | None:
    """Returns what Spark has planned for a micro-batch; `None` where its plan has another form.

    Args:
        frame: a micro-batch from Kafka, whose rows are not read here.
    """
    try:
        plan = frame._jdf.queryExecution().toRdd().partitions()  # noqa: SLF001  # Spark tells of offsets in Java alone
        inputs = [partition.inputPartitions() for partition in plan]
        ranges = [parts.apply(number).offsetRange() for parts in inputs for number in range(parts.size())]
        places = [(of.topicPartition(), of.fromOffset(), of.untilOffset()) for of in ranges]
        return [OffsetRange(place.topic(), place.partition(), begin, end) for place, begin, end in places]
    except Py4JError:
        return None


def read_range(brokers: str, wanted: OffsetRange) -> Iterator[tuple[list[bytes], Places]]:
    """Yields the messages of a range and their places, in parts. A batch that cannot be decompressed is passed over.

    Raises:
        GatewayFilterError: some of the messages are not there any more, or no broker answers.
        KafkaException: a fault that does not pass.
    """
    with closing(Consumer({"bootstrap.servers": brokers, "client.id": "gatewayfilter-spark", **_CONSUMER})) as consumer:
        consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.begin)])
        unreadable = UnreadableBatches(consumer)
        at, heard, last = wanted.begin, time.monotonic(), "no fault was told"
        while at < wanted.end:
            messages = consumer.consume(min(MOST, wanted.end - at), _WAIT_S)
            before = at
            values: list[bytes] = []
            offsets: list[int] = []
            if messages and unreadable.are_messages(messages):
                offsets = [message.offset() or 0 for message in messages]
                at = offsets[-1] + 1
                inside = bisect_left(offsets, wanted.end)  # as below
                values, offsets, messages = [message.value() or b"" for message in messages[:inside]], offsets[:inside], []
            for message in messages:
                offset = message.offset() or 0
                passed = unreadable.passed(message)
                if (fault := message.error()) is None:
                    at = offset + 1
                    if offset < wanted.end:  # the last offsets may be of no message: ends of transactions
                        values.append(message.value() or b"")
                        offsets.append(offset)
                else:
                    at, last = max(at, _behind(fault, message.offset(), passed, wanted)), fault.str()
            if values:
                yield values, Places([(wanted.topic, wanted.partition)] * len(values), offsets)
            if at > before:
                heard = time.monotonic()  # behind the work on what was sent
            elif time.monotonic() - heard > SILENT_S:
                raise GatewayFilterError(f"no broker has sent anything of {wanted} from {at} on for {SILENT_S:.0f} s: {last}")


def _behind(fault: KafkaError, offset: int | None, passed: int | None, wanted: OffsetRange) -> int:
    """Returns the offset that reading goes on from behind a fault, 0 where it does not tell."""
    if passed is not None:
        return passed + 1
    if fault.fatal() or fault.name() == "_AUTO_OFFSET_RESET":
        raise KafkaException(fault)
    return wanted.end if fault.name() == "_PARTITION_EOF" and (offset or 0) >= wanted.end else 0
