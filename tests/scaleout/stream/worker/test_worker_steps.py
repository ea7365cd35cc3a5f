"""The stream worker over doubles of Kafka's library: transactions, pauses, rules that are refused, full queues."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import GatewayFilterError, SnapshotError
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader
from gatewayfilter.scaleout.stream.worker.answers import Answering, Answers, Places
from gatewayfilter.scaleout.stream.worker.meters import Meters

kafka = pytest.importorskip("confluent_kafka")
module = pytest.importorskip("gatewayfilter.scaleout.stream.worker.consumer")
pytestmark = pytest.mark.services

RULES = RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(SnapshotBuilder(created_at=0.0).build())), "v1")
FAULT = kafka.KafkaError
TRANSPORT = kafka.KafkaException(FAULT(FAULT._TRANSPORT, "hidden"))


class Stop:
    """Is set after so many looks; notes the pauses."""

    def __init__(self, looks: int) -> None:
        self.looks, self.waits = looks, list[float]()

    def is_set(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


class Rules:
    """A folder whose rules are told."""

    def __init__(self, *found: Any) -> None:
        self.found = list(found)
        self.opened = 0

    def current(self) -> Any:
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(version=found.version, open=lambda: self._open(found))

    def _open(self, found: Any) -> Any:
        self.opened += 1
        return found


class Library:
    """Consumer and producer of one: what is asked of them, and what they answer or raise."""

    def __init__(self, *batches: list[Any]) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.batches = list(batches)
        self.raises: dict[str, list[Exception | None]] = {}
        self.configs: list[dict[str, Any]] = []

    def made(self, config: dict[str, Any], *, logger: Any) -> Library:
        assert logger.name == "gatewayfilter.librdkafka"
        self.configs.append(config)
        self._note("made")
        return self

    def consume(self, count: int, wait_s: float) -> list[Any]:
        self._note("consume", count, wait_s)
        return self.batches.pop(0) if self.batches else []

    def produce_batch(self, topic: str, letters: list[Any]) -> int:
        self._note("produce_batch", topic, list(letters))
        return len(letters)

    def _note(self, name: str, *values: Any) -> None:
        self.calls.append((name, *values))
        raised = self.raises.get(name)
        if raised and (error := raised.pop(0)) is not None:
            raise error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self._note(name, *values)
            return name

        return call

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


def message(text: bytes | None, offset: int | None = 1, topic: str = "in", partition: int | None = 3) -> Any:
    return kafka.Message(topic=topic, partition=partition, offset=offset, value=text)


def fault(code: int, *, fatal: bool = False) -> Any:
    return kafka.Message(topic="in", partition=3, offset=-1001, error=FAULT(code, "why", fatal=fatal))


def worker(
    library: Library, looks: int, monkeypatch: pytest.MonkeyPatch, rules: Rules | None = None, **topics: Any
) -> tuple[Any, Stop, Meters]:
    monkeypatch.setattr(module, "Consumer", library.made)
    monkeypatch.setattr(module, "Producer", library.made)
    stop, meters, folder = Stop(looks), Meters(), rules or Rules(RULES)
    wanted = module.Topics(**{"incoming": ("in",), "decided": "out", "dead": "dead", "counts": "counts", **topics})
    options = module.WorkerOptions("b:1", "g", wanted, 50, {"ssl.x": "y"})
    return module.StreamWorker(options, Answering(JsonReader()), folder, meters, stop), stop, meters


def outages(meters: Meters) -> float | None:
    return meters.registry.get_sample_value("gatewayfilter_stream_outages_total")


VALUES = [b'{"url": "http://a.test/"}', None, b"{"]


def test_a_batch_is_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([message(text, 7 + number) for number, text in enumerate(VALUES)], [])
    found, stop, meters = worker(library, 4, monkeypatch)
    found.run()
    produced = [call[1:] for call in library.calls if call[0] == "produce_batch"]
    assert [topic for topic, _ in produced] == ["out", "dead", "counts"]
    places = Places([("in", 3)] * 3, [7, 8, 9])
    assert [letter["key"] for letter in produced[0][1]] == [places.key(0)]
    assert [json.loads(letter["value"])["offset"] for letter in produced[1][1]] == [9]
    assert [call for call in library.calls if call[0] in {"init_transactions", "subscribe", "consume"}] == [
        ("init_transactions", 10.0), ("subscribe", ["in"]), ("consume", 50, 1.0), ("consume", 50, 1.0), ("consume", 50, 1.0),
    ]  # fmt: skip
    after = library.names().index("begin_transaction")
    assert library.names()[after + 1 : after + 4] == ["produce_batch"] * 3
    assert library.calls[after + 4 : after + 9] == [
        ("assignment",), ("position", "assignment"), ("consumer_group_metadata",),
        ("send_offsets_to_transaction", "position", "consumer_group_metadata", 10.0), ("commit_transaction", 10.0),
    ]  # fmt: skip
    assert library.names()[-1] == "close"
    read = meters.registry.get_sample_value
    assert read("gatewayfilter_stream_messages_total") == 3
    assert read("gatewayfilter_stream_rules", {"version": "v1"}) == 1
    consumer, producer = library.configs
    assert (consumer["bootstrap.servers"], consumer["group.id"], consumer["ssl.x"]) == ("b:1", "g", "y")
    assert (consumer["isolation.level"], consumer["enable.auto.commit"]) == ("read_committed", False)
    assert producer["transactional.id"].startswith("g-")
    assert (producer["enable.idempotence"], producer["transaction.timeout.ms"]) == (True, 10_000)
    assert (stop.waits, outages(meters)) == ([], 0)


def test_what_is_not_wanted_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for left_out in ("decided", "dead", "counts"):
        library = Library([message(text, 7 + number) for number, text in enumerate(VALUES)])
        topics: dict[str, Any] = {left_out: ""}
        found, _, _ = worker(library, 2, monkeypatch, **topics)
        found.run()
        sent = [call[1] for call in library.calls if call[0] == "produce_batch"]
        assert sent == [topic for topic in ("out", "dead", "counts") if topic != {"decided": "out"}.get(left_out, left_out)]
    library = Library([message(VALUES[0])])
    worker(library, 2, monkeypatch)[0].run()
    assert "dead" not in [call[1] for call in library.calls if call[0] == "produce_batch"]


def test_pauses_of_an_outage_grow_and_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    library.raises["made"] = [TRANSPORT] * 9
    now = iter([*[0.0] * 14, 0.0, 60.0, 100.0, 160.1, 0.0, 0.0])
    clock = SimpleNamespace(monotonic=lambda: next(now), time=lambda: 90.0, process_time=lambda: 0.0)
    found, stop, meters = worker(library, 9, monkeypatch)
    monkeypatch.setattr(module, "time", clock)
    found.run()
    assert stop.waits == [1, 2, 4, 8, 16, 30, 30, 30, 1]
    assert outages(meters) == 9


def test_a_wrong_setting_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    library.raises["made"] = [kafka.KafkaException(FAULT(FAULT._INVALID_ARG, "no such thing"))]
    found, _, _ = worker(library, 9, monkeypatch)
    with pytest.raises(GatewayFilterError, match="no such thing"):
        found.run()


@pytest.mark.parametrize("fatal", [False, True])
def test_a_transaction_that_fails_is_aborted_and_the_consumer_closed(monkeypatch: pytest.MonkeyPatch, *, fatal: bool) -> None:
    library = Library([message(VALUES[0])])
    library.raises["commit_transaction"] = [kafka.KafkaException(FAULT(FAULT._STATE, "no", fatal=fatal))]
    found, stop, meters = worker(library, 2, monkeypatch)
    found.run()
    assert (("abort_transaction", 5.0) in library.calls) is not fatal
    assert library.names()[-1] == "close"
    assert (stop.waits, outages(meters)) == ([1.0], 1)
    assert meters.registry.get_sample_value("gatewayfilter_stream_messages_total") == 0


def test_a_transaction_that_does_not_end_is_made_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([message(VALUES[0])])
    library.raises["commit_transaction"] = [module.StuckCallError()]
    found, stop, meters = worker(library, 2, monkeypatch)
    found.run()
    assert (stop.waits, outages(meters), library.names()[-1]) == ([], 1, "close")
    assert "abort_transaction" not in library.names()


def test_partitions_have_the_names_of_their_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [message(b"", 1, "in", 3), message(b"", 1, "in", 4)]
    assert worker(Library(), 0, monkeypatch)[0]._partitions(some) == [("in", 3), ("in", 4)]
    other = [message(b"", 1, "other", 3), message(b"", 1, "in", 4)]
    for incoming in (("in", "other"), ("^o.*",)):
        assert worker(Library(), 0, monkeypatch, incoming=incoming)[0]._partitions(other) == [("other", 3), ("in", 4)]


def test_rules_that_cannot_be_used_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = RuleSet("v2", RULES.decider, RULES.batches)
    bad, worse = SnapshotError("damaged"), SnapshotError("gone")
    rules = Rules(RULES, RULES, bad, bad, worse, newer)
    found, _, meters = worker(Library(), 0, monkeypatch, rules)
    assert [found._rules_in_force().version for _ in range(6)] == ["v1"] * 5 + ["v2"]
    assert rules.opened == 2
    assert meters.registry.get_sample_value("gatewayfilter_stream_rules_refused_total") == 2
    found, _, _ = worker(Library(), 0, monkeypatch, Rules(bad))
    with pytest.raises(SnapshotError, match="damaged"):
        found.run()


class Unreadable:
    """Passes over what cannot be decompressed."""

    def are_messages(self, messages: list[Any]) -> bool:
        return not any(one.error() for one in messages)

    def passed(self, message: Any) -> int | None:
        found = message.error()
        return 5 if found is not None and found.code() == FAULT._BAD_COMPRESSION else None


def test_faults_among_messages(caplog: pytest.LogCaptureFixture) -> None:
    unreadable: Any = Unreadable()
    good = [message(b"a"), message(b"b")]
    assert module._good(good, unreadable) is good
    passing = [fault(code) for code in (FAULT._BAD_COMPRESSION, FAULT._PARTITION_EOF, FAULT.UNKNOWN_TOPIC_OR_PART)]
    assert module._good([good[0], *passing, good[1]], unreadable) == good
    assert len(caplog.messages) == 1
    for lasting in (fault(FAULT._ALL_BROKERS_DOWN), fault(FAULT._STATE, fatal=True)):
        with pytest.raises(kafka.KafkaException):
            module._good([good[0], lasting], unreadable)
    assert module._good([fault(FAULT._BAD_COMPRESSION, fatal=True)], unreadable) == []


class Full:
    """A producer whose queue is full: each try takes some letters, marks some as failed, or raises."""

    def __init__(self, *tries: int | str | None) -> None:
        self.tries = list(tries)
        self.asked: list[list[str]] = []
        self.polls: list[float] = []

    def produce_batch(self, topic: str, letters: list[dict[str, Any]]) -> int:
        assert topic == "out"
        self.asked.append([letter["key"] for letter in letters])
        told = self.tries.pop(0)
        if told is None:
            raise BufferError
        if isinstance(told, int):
            return told
        for letter in letters:
            if letter["key"] in told:
                letter["_error"] = "full"
        return len(letters) - len(told)

    def poll(self, seconds: float) -> None:
        self.polls.append(seconds)


@pytest.mark.parametrize(
    ("tries", "asked"),
    [
        ((3,), ["abc"]), ((2, 1), ["abc", "c"]), (("b", 1), ["abc", "b"]), ((None, 3), ["abc", "abc"]), ((0, 3), ["abc", "abc"]),
        (("ac", "c", 1), ["abc", "ac", "c"]),
    ],
)  # fmt: skip
def test_letters_wait_while_the_queue_is_full(tries: tuple[Any, ...], asked: list[str]) -> None:
    full = Full(*tries)
    letters = [{"key": key, "value": ""} for key in "abc"]
    module._produce(full, "out", letters)
    assert ["".join(keys) for keys in full.asked] == asked
    assert full.polls == [0.1] * (len(asked) - 1)
    module._produce(full, "out", [])
    assert len(full.asked) == len(asked)
    assert all("_error" not in letter for letter in letters)


def test_answers_add_up() -> None:
    whole, part = Answers(records=2, blocked=1), Answers(records=3, blocked=2)
    part.dead.append({"key": b"k", "value": b"v"})
    part.counts.append({"key": b"c", "value": b"v"})
    spliced: Any = "it is only kept"
    part.decided.append(spliced)
    whole.add(part)
    assert (whole.records, whole.blocked, len(whole.dead), len(whole.counts), whole.decided) == (5, 3, 1, 1, [spliced])
