"""The runner of the crawler's modules step by step over doubles of Kafka's library: faults, commits, notes, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import Channel, Letter
from gatewayfilter.scaleout.kafka.deliveries import CAREFUL, GIVE_UP
from gatewayfilter.telemetry import Counters

kafka = pytest.importorskip("confluent_kafka")
module = pytest.importorskip("gatewayfilter.scaleout.kafka.module_runner")
topics_module = pytest.importorskip("gatewayfilter.scaleout.kafka.module_topics")
pytestmark = pytest.mark.services
FAULT = kafka.KafkaError


class Library:
    """Consumer and producer of one: gives its parts one after the other, and acknowledges what is produced."""

    def __init__(self, *parts: list[Any]) -> None:
        self.parts: list[Any] = list(parts)
        self.calls: list[tuple[Any, ...]] = []
        self.configs: list[dict[str, Any]] = []
        self.commits: list[list[tuple[int, int, str]]] = []
        self.note: tuple[int, str | None] = (-1001, None)
        self.faults: list[Any] = []
        self.commit_fails = 0
        self.full = 0
        self.makes: list[Exception | None] = []
        self.hooks: dict[str, Any] = {}

    def made(self, config: dict[str, Any], *, logger: Any) -> Library:
        assert logger is module.quiet
        self.configs.append(config)
        if self.makes and (error := self.makes.pop(0)) is not None:
            raise error
        return self

    def subscribe(self, topics: list[str], **hooks: Any) -> None:
        self.calls.append(("subscribe", topics))
        self.hooks = hooks

    def consume(self, count: int, wait_s: float) -> list[Any]:
        self.calls.append(("consume", count, wait_s))
        found = self.parts.pop(0) if self.parts else []
        if isinstance(found, Exception):
            raise found
        return found

    def committed(self, places: Sequence[Any], wait_s: float) -> list[Any]:
        self.calls.append(("committed", places[0].topic, places[0].partition, wait_s))
        offset, note = self.note
        return [SimpleNamespace(offset=offset, metadata=note)]

    def commit(self, *, offsets: Sequence[Any], asynchronous: bool) -> None:
        assert not asynchronous
        if self.commit_fails:
            self.commit_fails -= 1
            raise kafka.KafkaException(FAULT(FAULT._TRANSPORT, "no commit"))
        self.commits.append([(place.partition, place.offset, place.metadata) for place in offsets])

    def produce(self, topic: str, value: bytes, key: bytes, *, headers: dict[str, Any], on_delivery: Callable[..., None]) -> None:
        if self.full:
            self.full -= 1
            raise BufferError
        self.calls.append(("produce", topic, value, key, headers))
        on_delivery(self.faults.pop(0) if self.faults else None, None)

    def poll(self, wait_s: float) -> None:
        self.calls.append(("poll", wait_s))

    def purge(self) -> None:
        self.calls.append(("purge",))

    def close(self) -> None:
        self.calls.append(("close",))

    def seek(self, place: Any) -> None:
        self.calls.append(("seek", place.offset))

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def last(self) -> tuple[Any, ...]:
        return self.calls[-1]

    def produced(self) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == "produce"]


class Work:
    """A module that makes a page of each job; one may wait, fail, or be refused."""

    def __init__(self) -> None:
        self.given: list[tuple[bytes, str]] = []
        self.go_on = asyncio.Event()
        self.begun = asyncio.Queue[bytes]()
        self.ends: list[tuple[Any, ...]] = []

    async def handle(self, value: bytes) -> Sequence[Letter]:
        self.begun.put_nowait(value)
        if value == b"bad":
            raise ValueError("unreadable")
        if value == b"fault":
            raise ZeroDivisionError
        if value == b"wait":
            try:
                await self.go_on.wait()
            finally:
                self.ends.append(("ended",))
        return [Letter(Channel.PAGES, b"k", value)]

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        self.given.append((value, reason))
        return [Letter(Channel.PAGES, b"g", b"given up")]


def job(offset: int, text: bytes | None = b"a", partition: int = 0, fault: Any = None, key: bytes | None = b"key") -> Any:
    return kafka.Message(topic="t.jobs", partition=partition, offset=offset, value=text, key=key, error=fault)


class Session:
    """A session of the runner."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, library: Library, window: int = 4) -> None:
        monkeypatch.setattr(module, "Consumer", library.made)
        monkeypatch.setattr(module, "Producer", library.made)
        monkeypatch.setattr(module, "POLL_S", 0.001)
        monkeypatch.setattr(module, "COMMIT_EVERY_S", 0.0)
        self.library, self.work, self.counters = library, Work(), Counters()
        self.faults: list[str] = []
        self.begun: dict[int, int] = {}
        topics = topics_module.ModuleTopics("b:1", "t", {"ssl.x": "y"})
        self.options = module.RunnerOptions(topics, Channel.JOBS, "g", window)
        self.session = module._Session(self.options, self.work, self.counters, self.faults.append, self.begun)

    async def took(self, *messages: Any) -> None:
        await self.session._take(list(messages))
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_message_is_worked_on_sent_and_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    here = Session(monkeypatch, library)
    consumer, producer = library.configs
    assert (consumer["bootstrap.servers"], consumer["group.id"], consumer["ssl.x"]) == ("b:1", "g", "y")
    assert (consumer["enable.auto.commit"], producer["acks"], producer["message.timeout.ms"]) == (False, "all", 60_000)
    await here.took(job(7), job(8, None))
    assert library.commits == [[(0, 7, "1")]], "the beginning is noted before the first is worked on"
    assert library.produced() == [("t.pages", b"a", b"k", {}), ("t.pages", b"", b"k", {})]
    assert ("committed", "t.jobs", 0, 10.0) in library.calls
    here.session._commit()
    here.session._commit()
    assert library.commits[1:] == [[(0, 9, "0")]]
    assert (here.counters.as_dict(), here.begun, here.faults) == ({"crawl_messages": 2}, {0: 7}, ["", ""])


@pytest.mark.parametrize(
    ("committed", "offset", "begun", "note"),
    [
        ((7, "2"), 7, {}, f"{CAREFUL}"), ((7, "2"), 8, {}, "1"), ((7, None), 7, {}, "1"), ((-1001, "2"), 0, {}, "3"),
        ((-1001, "2"), 1, {}, "1"), ((7, "2"), 7, {0: 7}, "2"), ((7, "2"), 7, {0: 6}, "3"),
    ],
)  # fmt: skip
async def test_beginnings_at_one_offset_are_counted(
    monkeypatch: pytest.MonkeyPatch, committed: Any, offset: int, begun: dict[int, int], note: str
) -> None:
    library = Library()
    library.note = committed
    here = Session(monkeypatch, library)
    here.begun.update(begun)
    await here.took(job(offset))
    assert library.commits == [[(0, offset, note)]]
    assert here.begun == {0: offset}


async def test_what_cannot_be_worked_on_goes_to_the_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    here = Session(monkeypatch, library)
    await here.took(job(7, b"bad", key=b"k" * 2_000), job(8, b"fault", key=None))
    dead = [sent for sent in library.produced() if sent[0] == "t.dead"]
    assert [(value, key, headers["reason"]) for _, value, key, headers in dead] == [
        (b"bad", b"k" * 1_000, "unreadable"), (b"fault", b"", "failed with ZeroDivisionError"),
    ]  # fmt: skip
    assert dead[0][3] == {"reason": "unreadable", "topic": "t.jobs", "partition": "0", "offset": "7"}
    assert here.work.given == [(b"bad", "unreadable"), (b"fault", "failed with ZeroDivisionError")]
    assert [sent[2] for sent in library.produced() if sent[0] == "t.pages"] == [b"g", b"g"]
    assert here.counters.as_dict() == {"crawl_dead_letters": 2, "crawl_messages": 2}
    library.note = (7, f"{GIVE_UP - 1}")
    again = Session(monkeypatch, library)
    await again.took(job(7), job(8))
    assert again.work.given == [(b"a", "modules ended again and again while they worked on it")]
    assert again.counters.as_dict() == {"crawl_dead_letters": 1, "crawl_messages": 2}


async def test_a_result_that_is_not_acknowledged_leaves_the_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    library.faults = [FAULT(FAULT._MSG_TIMED_OUT, "first"), FAULT(FAULT._TRANSPORT, "second")]
    library.full = 2
    here = Session(monkeypatch, library)
    await here.took(job(7), job(8), job(9))
    await asyncio.sleep(0.01)
    for _ in range(20):
        await asyncio.sleep(0)
    here.session._commit()
    assert library.commits == [[(0, 7, "1")]]
    assert here.session._failed.args[0].str() == "first"
    assert here.counters.as_dict() == {"crawl_messages": 1}
    with pytest.raises(kafka.KafkaException):
        await here.session.run(asyncio.Event())
    assert [call[0] for call in library.calls[-2:]] == ["purge", "close"]


async def test_faults_among_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    here = Session(monkeypatch, library)
    await here.took(job(7, fault=FAULT(FAULT._TRANSPORT, "away")), job(7))
    assert here.faults == ["away", ""]
    with pytest.raises(kafka.KafkaException):
        await here.took(job(8, fault=FAULT(FAULT._STATE, "over", fatal=True)))
    await here.took(job(8, fault=FAULT(FAULT._BAD_COMPRESSION, "bomb")))
    here.session._commit()
    assert library.commits[-1] == [(0, 9, "0")], "it is passed over"
    assert ("seek", 9) in library.calls
    assert here.counters.as_dict() == {"crawl_messages": 1}


async def test_no_more_is_taken_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([job(7, b"wait"), job(8, b"wait")])
    here = Session(monkeypatch, library, window=2)
    await here.took(*here.session._poll())
    assert here.session._poll() == []
    assert library.calls[0] == ("poll", 0)
    assert [call for call in library.calls if call[0] == "consume"] == [("consume", 2, 0.001)]
    assert library.last() == ("poll", 0.0002)
    here.work.go_on.set()
    for _ in range(20):
        await asyncio.sleep(0)
    here.session._poll()
    assert library.last() == ("consume", 2, 0.001)
    here.work.go_on.clear()
    library.parts = [[job(9, b"wait")]]
    await here.took(*here.session._poll())
    here.session._poll()
    assert library.last() == ("consume", 1, 0.0001), "something is in work: it is not waited for long"
    here.work.go_on.set()
    await here.took()


async def test_partitions_that_go_are_committed_and_lost_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    here = Session(monkeypatch, library)
    await here.took(job(7, partition=0), job(20, partition=1))
    library.commits.clear()
    here.session._lost(library, [kafka.TopicPartition("t.jobs", 1)])
    here.session._revoked(library, [kafka.TopicPartition("t.jobs", 0)])
    assert library.commits == [[(0, 8, "0")]]
    here.session._commit()
    assert len(library.commits) == 1
    await here.took(job(30, partition=0))
    library.commits.clear()
    library.commit_fails = 1
    here.session._commit()
    assert (library.commits, here.faults[-1]) == ([], "no commit")
    here.session._commit()
    assert library.commits == [[(0, 31, "0")]], "the next time commits it"


async def test_work_is_finished_or_given_up_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for goes_on in (True, False):
        monkeypatch.setattr(module, "GRACE_S", 60.0 if goes_on else 0.5)  # what goes on may be slow on a busy machine
        library = Library([job(7), job(8, b"wait")])
        here = Session(monkeypatch, library)
        here.work.ends = library.calls
        stop = asyncio.Event()
        running = asyncio.create_task(here.session.run(stop))
        await here.work.begun.get()
        await here.work.begun.get()
        if goes_on:
            here.work.go_on.set()
        stop.set()
        await running
        assert library.commits[-1] == [(0, 9 if goes_on else 8, "0")]
        assert [call[0] for call in library.calls[-2:]] == ["purge", "close"]
        assert library.names().index("ended") < library.names().index("purge")
        assert here.session._tasks == set()
        assert library.calls[0] == ("subscribe", ["t.jobs"])
        assert sorted(library.hooks) == ["on_lost", "on_revoke"]


async def test_work_is_finished_when_the_connection_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library([job(7, b"wait")])
    library.parts.append(kafka.KafkaException(FAULT(FAULT._TRANSPORT, "away")))
    here = Session(monkeypatch, library)
    running = asyncio.create_task(here.session.run(asyncio.Event()))
    await here.work.begun.get()
    while library.parts:  # noqa: ASYNC110  another thread consumes
        await asyncio.sleep(0.001)
    here.work.go_on.set()
    with pytest.raises(kafka.KafkaException):
        await running
    assert library.produced() == [("t.pages", b"wait", b"k", {})]
    assert library.names()[-2:] == ["purge", "close"]


async def test_an_outage_is_told_at_its_begin_and_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    library = Library()
    here = Session(monkeypatch, library)
    monkeypatch.setattr(module, "PAUSE_S", 0.001)
    away = kafka.KafkaException(FAULT(FAULT._TRANSPORT, "x" * 300))
    library.parts = [away, away, [job(7)], away, [job(8)]]
    stop, runner = asyncio.Event(), module.ModuleRunner(here.options, here.work, here.counters)
    running = asyncio.create_task(runner.run(stop))
    await here.work.begun.get()
    await here.work.begun.get()
    stop.set()
    await running
    assert here.counters["crawl_messages"] == 2
    assert here.counters["crawl_kafka_away"] == 2
    told = [message for message in caplog.messages if message.startswith("Kafka")]
    assert [message.split()[0:2] for message in told] == [["Kafka:", "x" * 200 + ";"], ["Kafka", "is"]] * 2
    assert len(library.configs) == 2 + 2 * 4, "each outage is another connection"
    stop.clear()
    library.makes = [kafka.KafkaException(FAULT(FAULT._INVALID_ARG, "no such thing"))]
    with pytest.raises(ConfigError, match=r"^Kafka: no such thing$"):
        await runner.run(stop)
