"""A module of the crawler as a member of a Kafka consumer group.

At least once: a message's offset is committed when what follows from it is acknowledged. Results carry the lease of their URL, so
that the storage drops what comes a second time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from gatewayfilter.errors import ConfigError
from gatewayfilter.scaleout.kafka.deliveries import Deliveries
from gatewayfilter.scaleout.kafka.module_topics import MESSAGE_BYTES
from gatewayfilter.scaleout.kafka.sender import quiet
from gatewayfilter.scaleout.unreadable_batches import UnreadableBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import Message

    from gatewayfilter.interfaces import Channel, CrawlModule, Letter
    from gatewayfilter.scaleout.kafka.module_topics import ModuleTopics
    from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

POLL_S: Final = 0.1
COMMIT_EVERY_S: Final = 0.5
PAUSE_S: Final = 2.0
GRACE_S: Final = 10.0
_DELIVERY_S: Final = 60.0
_FETCHED_KB: Final = 32_768
"""Messages that are fetched ahead: with the window, the bound of memory."""
_DEAD_KEY: Final = 1_000
_DEAD_BYTES: Final = MESSAGE_BYTES - 65_536
"""Of a message that a dead letter repeats: one that came compressed may be longer than a message that can be sent."""


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How a module runs.

    Attributes:
        topics: where messages come from and go to.
        channel: of the messages that it takes.
        group: members with one share the partitions.
        window: most messages in work.
    """

    topics: ModuleTopics
    channel: Channel
    group: str
    window: int


class ModuleRunner:
    """Runs a module until it is stopped. While the brokers are away it tries again.

    Counts `crawl_messages`, `crawl_dead_letters` and `crawl_kafka_away`.

    Args:
        options: how it runs.
        module: does the work.
        counters: where it is counted.
    """

    def __init__(self, options: RunnerOptions, module: CrawlModule, counters: Counters) -> None:
        self._options = options
        self._module = module
        self._counters = counters
        self._away_since = 0.0
        self._begun: dict[int, int] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set; what is in work is finished then, or comes to another member.

        Raises:
            ConfigError: a setting of librdkafka is unknown or wrong.
        """
        while not stop.is_set():
            try:
                session = _Session(self._options, self._module, self._counters, self._noted, self._begun)
            except KafkaException as error:
                raise ConfigError(f"Kafka: {error.args[0].str()}") from error
            try:
                await session.run(stop)
            except KafkaException as error:
                self._noted(error.args[0].str())
                try:
                    await asyncio.wait_for(stop.wait(), PAUSE_S)
                except TimeoutError:
                    continue

    def _noted(self, fault: str) -> None:
        """Notes that Kafka is away (why), or works (`""`): one line in the log at the begin and the end of an outage."""
        if fault and not self._away_since:
            self._away_since = time.monotonic()
            self._counters.add("crawl_kafka_away")
            _log.warning("Kafka: %s; the crawler's module tries again, nothing is lost", fault[:200])
        elif not fault and self._away_since:
            _log.warning("Kafka is back after %.1f s", time.monotonic() - self._away_since)
            self._away_since = 0.0


class _Session:
    """One connection of a module.

    Args:
        options: how it runs.
        module: does the work.
        counters: where it is counted.
        noted: is told of faults of Kafka, and of its answers.
        begun: at which offset of each partition this process has begun last, in this connection or one before.
    """

    def __init__(
        self,
        options: RunnerOptions,
        module: CrawlModule,
        counters: Counters,
        noted: Callable[[str], None],
        begun: dict[int, int],
    ) -> None:
        self._options = options
        self._module = module
        self._counters = counters
        self._noted = noted
        self._begun = begun
        self._deliveries = Deliveries(options.window)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: KafkaException | None = None
        topics = options.topics
        common: dict[str, Any] = {"bootstrap.servers": topics.brokers, "client.id": "gatewayfilter", **topics.properties}
        self._consumer = Consumer({**common, **_CONSUMER, "group.id": options.group}, logger=quiet)
        self._unreadable = UnreadableBatches(self._consumer)
        self._producer = Producer({**common, **_PRODUCER}, logger=quiet)
        self._topic = topics.of(options.channel)

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set or the connection has to be made again."""
        self._consumer.subscribe([self._topic], on_revoke=self._revoked, on_lost=self._lost)
        commit_at = 0.0
        try:
            try:
                while not stop.is_set() and self._failed is None:
                    await self._take(await asyncio.to_thread(self._poll))
                    if time.monotonic() >= commit_at:
                        await asyncio.to_thread(self._commit)
                        commit_at = time.monotonic() + COMMIT_EVERY_S
            except KafkaException as error:  # what is in work is finished all the same: begun again, it would be done twice
                self._failed = self._failed or error
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=GRACE_S)
            if self._failed is not None:
                raise self._failed
            await asyncio.to_thread(self._commit)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._producer.purge()
            await asyncio.to_thread(self._consumer.close)

    def _poll(self) -> list[Message]:
        """Returns new messages; serves acknowledgements. Runs in a thread, one at a time."""
        self._producer.poll(0)
        room = self._deliveries.room
        if room <= 0:
            self._producer.poll(POLL_S / 5)
            return []
        found: list[Message] = self._consumer.consume(room, POLL_S if not self._tasks else POLL_S / 10)
        return found

    async def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            fault, passed = message.error(), self._unreadable.passed(message)
            if fault is not None and passed is None:
                if fault.fatal():
                    raise KafkaException(fault)
                self._noted(fault.str())
                continue
            self._noted("")
            partition, offset = message.partition() or 0, message.offset() or 0 if passed is None else passed
            if not self._deliveries.knows(partition):
                await asyncio.to_thread(self._begin, partition, offset)
            if passed is not None:
                self._deliveries.take(partition, offset)
                self._deliveries.done(partition, offset)
                continue
            hopeless = not self._deliveries.take(partition, offset)
            task = asyncio.create_task(self._work(message, partition, offset, hopeless=hopeless))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, message: Message, partition: int, offset: int, *, hopeless: bool) -> None:
        value = message.value() or b""
        reason = ""
        letters: Sequence[Letter] = ()
        if hopeless:
            reason = "modules ended again and again while they worked on it"
        else:
            try:
                letters = await self._module.handle(value)
            except ValueError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001  a poison message must not stop the others
                reason = f"failed with {type(error).__name__}"
                _log.exception("a message of %s failed", self._topic)
        if reason:
            self._counters.add("crawl_dead_letters")
            _log.warning("a message of %s went to the dead letters: %s", self._topic, reason)
            letters = self._module.given_up(value, reason)
        try:
            if reason:
                place = _place(message, self._topic, reason)
                await self._sent(self._options.topics.dead, (message.key() or b"")[:_DEAD_KEY], value[:_DEAD_BYTES], place)
            for letter in letters:
                await self._sent(self._options.topics.of(letter.channel), letter.key, letter.value)
        except KafkaException as error:  # the offset stays: the message comes again
            self._failed = self._failed or error
            return
        self._counters.add("crawl_messages")
        self._deliveries.done(partition, offset)

    async def _sent(self, topic: str, key: bytes, value: bytes, headers: Mapping[str, str | bytes | None] | None = None) -> None:
        """Returns when a message is acknowledged.

        Raises:
            KafkaException: it was not.
        """
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[None] = loop.create_future()

        def settle(fault: KafkaError | None) -> None:
            if acknowledged.done():
                return
            if fault is None:
                acknowledged.set_result(None)
            else:
                acknowledged.set_exception(KafkaException(fault))

        def delivered(fault: KafkaError | None, _: Message) -> None:
            loop.call_soon_threadsafe(settle, fault)

        while True:
            try:
                self._producer.produce(topic, value, key, headers=dict(headers or {}), on_delivery=delivered)
                break
            except BufferError:
                await asyncio.sleep(POLL_S)
        await acknowledged

    def _begin(self, partition: int, offset: int) -> None:
        """Notes durably that reading begins here, before the first message is worked on."""
        place = TopicPartition(self._topic, partition)
        (found,) = self._consumer.committed([place], 10.0)
        at_it = found.offset == offset or (found.offset < 0 and offset == 0)
        again = self._begun.get(partition) == offset  # the connection ended, not the process: no message did that
        note = self._deliveries.begin(partition, offset, (found.metadata or "") if at_it else "", again=again)
        self._consumer.commit(offsets=[TopicPartition(self._topic, partition, offset, note)], asynchronous=False)
        self._begun[partition] = offset

    def _commit(self) -> None:
        """Commits what is done. A failure passes: the next time commits more."""
        moved = self._deliveries.to_commit()
        if not moved:
            return
        places = [TopicPartition(self._topic, partition, *place) for partition, place in moved.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            self._noted(error.args[0].str())
        else:
            self._deliveries.committed(moved)

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._commit()
        self._lost(_, places)

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        for place in places:
            self._deliveries.forget(place.partition)


_CONSUMER: Final = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "queued.max.messages.kbytes": _FETCHED_KB,
    "fetch.message.max.bytes": MESSAGE_BYTES,
    "reconnect.backoff.max.ms": 1_000,
}
_PRODUCER: Final = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "message.max.bytes": MESSAGE_BYTES,
    "message.timeout.ms": int(_DELIVERY_S * 1000),
    "reconnect.backoff.max.ms": 1_000,
}
"""Not compressed again: values are."""


def _place(message: Message, topic: str, reason: str) -> dict[str, str | bytes | None]:
    return {"reason": reason, "topic": topic, "partition": str(message.partition()), "offset": str(message.offset())}
