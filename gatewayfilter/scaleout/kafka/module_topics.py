"""The topics of the crawler's modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from gatewayfilter.interfaces import Channel
from gatewayfilter.scaleout.kafka.sender import KafkaAwayError, quiet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gatewayfilter.interfaces import Letter
    from gatewayfilter.scaleout.kafka.sender import KafkaSender

MESSAGE_BYTES: Final = 4_500_000
"""Most of a message, with what Kafka adds."""
_KEPT_MS: Final = 86_400_000
_MADE_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class ModuleTopics:
    """Where the modules of one crawler meet.

    Attributes:
        brokers: `HOST:PORT`, with commas between them.
        prefix: of the names of topics and groups.
        properties: further settings of librdkafka.
    """

    brokers: str
    prefix: str = "gatewayfilter-crawl"
    properties: Mapping[str, str] = field(default_factory=dict)

    def of(self, channel: Channel) -> str:
        """Returns the topic of a channel."""
        return f"{self.prefix}.{channel}"

    @property
    def dead(self) -> str:
        """The topic of messages that were given up."""
        return f"{self.prefix}.dead"

    def make(self, partitions: int) -> None:
        """Makes the topics that there are not yet. Messages are kept for a day.

        Raises:
            KafkaAwayError: the brokers do not answer, or refuse.
        """
        config = {"retention.ms": str(_KEPT_MS), "max.message.bytes": str(MESSAGE_BYTES)}
        names = [*(self.of(channel) for channel in Channel), self.dead]
        client = AdminClient({"bootstrap.servers": self.brokers, **self.properties}, logger=quiet)
        topics = [NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config) for name in names]
        for made in client.create_topics(topics, request_timeout=_MADE_S).values():
            try:
                made.result(_MADE_S + 5)
            except KafkaException as error:
                fault: KafkaError = error.args[0]
                if fault.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise KafkaAwayError(f"cannot make topics: {fault.str()[:200]}") from error
            except TimeoutError as error:
                raise KafkaAwayError("cannot make topics: no answer in time") from error


class JobSender:
    """Sends letters to the topics of their channels. Implements `interfaces.SendLetters`.

    Args:
        sender: sends.
        topics: to which.
    """

    def __init__(self, sender: KafkaSender, topics: ModuleTopics) -> None:
        self._sender = sender
        self._topics = topics

    def send(self, letters: Sequence[Letter]) -> None:
        """Sends letters, and returns when all are acknowledged.

        Raises:
            KafkaAwayError: not all were.
        """
        by_channel: dict[Channel, list[tuple[bytes, bytes]]] = {}
        for letter in letters:
            by_channel.setdefault(letter.channel, []).append((letter.key, letter.value))
        for channel, pairs in by_channel.items():
            self._sender.send(self._topics.of(channel), pairs)
