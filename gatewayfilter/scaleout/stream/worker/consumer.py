"""The consumer of a group: batches of messages in; answers, counts and offsets out, in one Kafka transaction each.

A batch is answered, and its offsets are committed with the answers, or neither is: a reader of committed messages sees each
answer once, whatever was killed. Answers have the digest of their message's place as key, for readers that do not read by
transactions. Partitions are handed over between two batches, when nothing is under way.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from gatewayfilter.errors import GatewayFilterError, SnapshotError
from gatewayfilter.scaleout.stream.worker.answers import Places
from gatewayfilter.scaleout.stream.worker.bounded_call import BoundedCall, StuckCallError
from gatewayfilter.scaleout.unreadable_batches import UnreadableBatches

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Event

    from confluent_kafka import TopicPartition

    from gatewayfilter.scaleout.stream.rule_set import RuleFolder, RuleSet
    from gatewayfilter.scaleout.stream.worker.answers import Answering, Answers
    from gatewayfilter.scaleout.stream.worker.meters import Meters
    from gatewayfilter.scaleout.stream.worker.splicing import Letter

_log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
TRANSACTION_S: Final = 10.0
"""After this time the broker gives up a transaction whose worker was killed; until then readers wait behind it."""
STUCK_S: Final = 25.0
"""Longest end of a transaction: offsets and commit have 10 s each by librdkafka's own limits, which do not always hold."""
_QUEUED_KB: Final = 65_536
"""Messages that are fetched ahead: the bound of a worker's memory for them."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Where messages come from and go to; `""` for what is not wanted.

    Attributes:
        incoming: topics of records.
        decided: the records with their verdicts.
        dead: what held no request.
        counts: counts by window.
    """

    incoming: tuple[str, ...]
    decided: str = ""
    dead: str = ""
    counts: str = ""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How the worker runs.

    Attributes:
        brokers: `HOST:PORT`, with commas between them.
        group: the consumer group that shares the work.
        topics: in and out.
        batch: messages that are answered together.
        properties: further settings of librdkafka, as for encryption.
    """

    brokers: str
    group: str
    topics: Topics
    batch: int = 20_000
    properties: Mapping[str, str] = field(default_factory=dict)


class StreamWorker:
    """Answers messages until it is stopped. While the brokers are away it tries again, with growing pauses.

    Args:
        options: how it runs.
        answering: how messages are answered.
        rules: the rules in force, looked up before each batch.
        meters: counts what is done.
        stop: ends the work after the batch under way.
    """

    def __init__(self, options: WorkerOptions, answering: Answering, rules: RuleFolder, meters: Meters, stop: Event) -> None:
        self._options = options
        self._answering = answering
        self._folder = rules
        self._meters = meters
        self._stop = stop
        self._refused = ""
        self._rules: RuleSet | None = None

    def run(self) -> None:
        """Works until it is stopped.

        Raises:
            SnapshotError: there are no rules.
            GatewayFilterError: a setting of librdkafka is unknown or wrong.
        """
        self._rules = self._rules_in_force()
        pause_s = FIRST_PAUSE_S
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._work()
            except KafkaException as error:
                fault: KafkaError = error.args[0]
                if fault.code() == KafkaError._INVALID_ARG:  # noqa: SLF001  # the library's own name of the code
                    raise GatewayFilterError(f"Kafka: {fault.str()}") from error
                self._meters.outages.inc()
                if time.monotonic() - began > 2 * LONGEST_PAUSE_S:
                    pause_s = FIRST_PAUSE_S
                _log.warning("Kafka: %s; trying again in %.0f s, nothing is lost", fault.str(), pause_s)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except StuckCallError:
                self._meters.outages.inc()
                _log.warning("Kafka: a transaction did not end within %.0f s; it is made again, nothing is lost", STUCK_S)

    def _work(self) -> None:
        options = self._options
        # One line of log and a growing pause for an outage, not a line of librdkafka for each try.
        consumer = Consumer({**_common(options), **_CONSUMER, "group.id": options.group}, logger=_quiet)
        try:
            producer = Producer(
                {**_common(options), **_PRODUCER, "transactional.id": f"{options.group}-{uuid.uuid4()}"}, logger=_quiet
            )
            producer.init_transactions(10.0)
            consumer.subscribe(list(options.topics.incoming))
            _log.info("working on %s as a member of %s", ", ".join(options.topics.incoming), options.group)
            unreadable = UnreadableBatches(consumer)
            while not self._stop.is_set():
                messages = _good(consumer.consume(options.batch, 1.0), unreadable)
                if messages:
                    self._answer_all(consumer, producer, messages)
        finally:
            consumer.close()

    def _answer_all(self, consumer: Consumer, producer: Producer, messages: list[Message]) -> None:
        values = [value or b"" for value in map(Message.value, messages)]
        places = Places(self._partitions(messages), [offset or 0 for offset in map(Message.offset, messages)])
        rules = self._rules_in_force()
        began = time.process_time()
        answers = self._answering.answer(values, places, rules, time.time())
        producer.begin_transaction()
        try:
            self._send(producer, answers)
            places_behind, group = consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            BoundedCall(partial(_commit, producer, places_behind, group)).within(STUCK_S)
        except KafkaException as error:
            if not error.args[0].fatal():
                producer.abort_transaction(5.0)
            raise
        self._meters.done(len(messages), answers, rules.version, time.process_time() - began)

    def _partitions(self, messages: list[Message]) -> list[tuple[str, int]]:
        """Returns topic and partition of messages, one object for each partition."""
        incoming = self._options.topics.incoming
        numbers = [number or 0 for number in map(Message.partition, messages)]
        if len(incoming) == 1 and not incoming[0].startswith("^"):  # not a pattern: the name need not be made for each message
            known = {number: (incoming[0], number) for number in set(numbers)}
            return [known[number] for number in numbers]
        return [(message.topic() or "", number) for message, number in zip(messages, numbers, strict=True)]

    def _send(self, producer: Producer, answers: Answers) -> None:
        topics = self._options.topics
        for run in (run for spliced in answers.decided if topics.decided for run in spliced.runs()):
            _produce(producer, topics.decided, run)
        for topic, letters in ((topics.dead, answers.dead), (topics.counts, answers.counts)):
            if topic and letters:
                _produce(producer, topic, letters)

    def _rules_in_force(self) -> RuleSet:
        """Returns the newest rules; those in use stay when newer ones cannot be opened."""
        try:
            file = self._folder.current()
            if self._rules is None or file.version != self._rules.version:
                rules = file.open()
                _log.info("rules %s", rules.version)
                self._rules = rules
        except SnapshotError as error:
            if self._rules is None:
                raise
            if str(error) != self._refused:
                self._refused = str(error)
                self._meters.rules_refused.inc()
                _log.warning("rules stay at %s: %s", self._rules.version, error)
        return self._rules


_CONSUMER: Final = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "queued.max.messages.kbytes": _QUEUED_KB,
    "fetch.message.max.bytes": 4 << 20,
}
_PRODUCER: Final = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.num.messages": 10_000,
    "queue.buffering.max.kbytes": _QUEUED_KB,
    "compression.type": "lz4",
    "transaction.timeout.ms": int(TRANSACTION_S * 1000),
    "delivery.report.only.error": True,  # the end of a transaction fails with any of its messages
}
_quiet = logging.getLogger("gatewayfilter.librdkafka")
_quiet.setLevel(logging.CRITICAL)


def _common(options: WorkerOptions) -> dict[str, object]:
    return {"bootstrap.servers": options.brokers, "client.id": "gatewayfilter", **options.properties}


def _commit(producer: Producer, places: list[TopicPartition], group: object) -> None:
    """Ends the transaction. librdkafka's own limits do not always hold behind a restart of the broker."""
    producer.send_offsets_to_transaction(places, group, 10.0)
    producer.commit_transaction(10.0)


def _good(messages: list[Message], unreadable: UnreadableBatches) -> list[Message]:
    """Returns the messages among what was consumed; passes over what is unreadable.

    Raises:
        KafkaException: a fault that does not pass.
    """
    if unreadable.are_messages(messages):
        return messages
    found = []
    for message in messages:
        fault = message.error()
        passed = unreadable.passed(message)
        if fault is None:
            found.append(message)
        elif passed is not None:
            continue
        elif fault.fatal() or fault.name() == "_ALL_BROKERS_DOWN":
            raise KafkaException(fault)
        elif fault.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            _log.warning("Kafka: %s", fault.str())
    return found


def _produce(producer: Producer, topic: str, letters: list[Letter]) -> None:
    """Queues messages; waits while the queue is full."""
    while letters:
        try:
            sent = producer.produce_batch(topic, letters)
        except BufferError:
            sent = 0
        if sent == len(letters):
            return
        failed = [letter for letter in letters if letter.pop("_error", None) is not None] if sent else letters
        letters = failed or letters[sent:]
        producer.poll(0.1)
