"""A Kafka producer whose calls end: messages are acknowledged by all replicas in sync, or the call fails.

It is no idempotent producer of Kafka: what is sent again after a kill has another session in any case, so readers drop
repetitions by the key, and after an outage nothing waits for a producer id.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from gatewayfilter.errors import ConfigError, GatewayFilterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka import Message

DELIVERY_S: Final = 8.0
"""Longest wait for the acknowledgement of a message; then the call fails."""
_PRODUCER: Final = {
    "client.id": "gatewayfilter",
    "acks": "all",
    "linger.ms": 20,
    "reconnect.backoff.max.ms": 1_000,
    "batch.num.messages": 10_000,
    "compression.type": "lz4",
    "queue.buffering.max.kbytes": 32_768,
}
quiet = logging.getLogger("gatewayfilter.librdkafka")
quiet.setLevel(logging.CRITICAL)  # callers log an outage in one line


class KafkaAwayError(GatewayFilterError):
    """Kafka did not acknowledge messages; they may be sent again."""


class KafkaSender:
    """Sends batches of messages. The connection is opened at the first one, and given up after a failure.

    Args:
        brokers: `HOST:PORT`, with commas between them.
        properties: further settings of librdkafka.
        delivery_s: longest wait for acknowledgements.
    """

    def __init__(self, brokers: str, properties: Mapping[str, str], delivery_s: float = DELIVERY_S) -> None:
        given = {"bootstrap.servers": brokers, "message.timeout.ms": int(delivery_s * 1000)}
        self._properties = {**_PRODUCER, **given, **properties}
        self._delivery_s = delivery_s
        self._producer: Producer | None = None
        self._fault = ""

    def send(self, topic: str, letters: Sequence[tuple[bytes, bytes]]) -> None:
        """Sends messages, each a key and a value, and waits until all are acknowledged.

        Raises:
            KafkaAwayError: some were not acknowledged in time, or were refused.
            ConfigError: a property is unknown or wrong.
        """
        producer = self._opened()
        self._fault = ""
        try:
            for key, value in letters:
                self._put(producer, topic, key, value)
            left = producer.flush(self._delivery_s + 2)
        except (KafkaException, BufferError) as error:
            self.close()
            raise KafkaAwayError(_reason(error)) from error
        if left or self._fault:
            self.close()
            raise KafkaAwayError(self._fault or "messages were not acknowledged in time")

    def _put(self, producer: Producer, topic: str, key: bytes, value: bytes) -> None:
        try:
            producer.produce(topic, value, key, on_delivery=self._delivered)
        except BufferError:  # what is queued goes out first
            producer.flush(self._delivery_s + 2)
            producer.produce(topic, value, key, on_delivery=self._delivered)

    def _delivered(self, fault: KafkaError | None, _: Message) -> None:
        if fault is not None and not self._fault:
            self._fault = fault.str()[:200]

    def _opened(self) -> Producer:
        if self._producer is None:
            try:
                self._producer = Producer(dict[str, Any](self._properties), logger=quiet)
            except KafkaException as error:
                raise ConfigError(f"Kafka: {_reason(error)}") from error
        return self._producer

    def close(self) -> None:
        """Gives up the connection, and what is queued."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(1.0)


def _reason(error: Exception) -> str:
    fault = error.args[0] if error.args else None
    return (fault.str() if isinstance(fault, KafkaError) else type(error).__name__)[:200]
