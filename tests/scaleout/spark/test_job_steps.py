"""The Spark job over doubles of Spark and of Kafka's library: ranges of offsets, who writes what, restarts, the session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.model import Source

kafka = pytest.importorskip("confluent_kafka")
pa = pytest.importorskip("pyarrow")
pyspark_errors = pytest.importorskip("pyspark.errors")
py4j = pytest.importorskip("py4j.protocol")
offset_ranges = pytest.importorskip("gatewayfilter.scaleout.spark.offset_ranges")
output_folder = pytest.importorskip("gatewayfilter.scaleout.spark.output_folder")
job_module = pytest.importorskip("gatewayfilter.scaleout.spark.job")
service = pytest.importorskip("gatewayfilter.scaleout.spark.service")
pytestmark = pytest.mark.services
FAULT = kafka.KafkaError
RANGE = offset_ranges.OffsetRange("in", 3, 10, 15)


def message(offset: int, text: bytes | None = b"x", fault: Any = None) -> Any:
    return kafka.Message(topic="in", partition=3, offset=offset, value=text, error=fault)


class Consumer:
    """Gives its parts one after the other, then nothing."""

    def __init__(self, *parts: list[Any]) -> None:
        self.parts = list(parts)
        self.asked: list[tuple[int, float]] = []
        self.assigned: list[Any] = []
        self.is_closed = False
        self.config: dict[str, Any] = {}

    def __call__(self, config: dict[str, Any]) -> Consumer:
        self.config = config
        return self

    def assign(self, places: list[Any]) -> None:
        self.assigned = [(place.topic, place.partition, place.offset) for place in places]

    def consume(self, count: int, wait_s: float) -> list[Any]:
        self.asked.append((count, wait_s))
        return self.parts.pop(0) if self.parts else []

    def seek(self, _: Any) -> None: ...

    def close(self) -> None:
        self.is_closed = True


def read(
    monkeypatch: pytest.MonkeyPatch, *parts: list[Any], wanted: Any = RANGE
) -> tuple[list[tuple[list[bytes], list[int]]], Consumer]:
    consumer = Consumer(*parts)
    now = iter(range(1000))
    monkeypatch.setattr(offset_ranges, "Consumer", consumer)
    monkeypatch.setattr(offset_ranges, "time", SimpleNamespace(monotonic=lambda: float(next(now))))
    found = []
    for values, places in offset_ranges.read_range("b:1", wanted):
        assert set(places.partitions) == {("in", 3)}
        assert len(places.partitions) == len(values)
        found.append((values, places.offsets))
    assert consumer.is_closed
    return found, consumer


def test_a_range_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found, consumer = read(
        monkeypatch, [message(10, b"a"), message(11, None)], [], [message(13, b"c"), message(14, b"d"), message(15)]
    )
    assert found == [([b"a", b""], [10, 11]), ([b"c", b"d"], [13, 14])]
    assert consumer.assigned == [("in", 3, 10)]
    assert consumer.asked == [(5, 0.5), (3, 0.5), (3, 0.5)]
    assert (consumer.config["bootstrap.servers"], consumer.config["enable.partition.eof"]) == ("b:1", True)
    found, consumer = read(monkeypatch, wanted=offset_ranges.OffsetRange("in", 3, 10, 10))
    assert (found, consumer.asked) == ([], [])
    monkeypatch.setattr(offset_ranges, "MOST", 2)
    assert read(monkeypatch, [message(number) for number in range(10, 15)])[1].asked == [(2, 0.5)]


def test_ends_of_transactions_and_what_cannot_be_decompressed_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    end, bomb = FAULT(FAULT._PARTITION_EOF), FAULT(FAULT._BAD_COMPRESSION)
    assert read(monkeypatch, [message(10, b"a"), message(15, fault=end)])[0] == [([b"a"], [10])]
    found, consumer = read(monkeypatch, [message(10, b"a"), message(14, fault=end)], [message(14, b"e")])
    assert found == [([b"a"], [10]), ([b"e"], [14])]
    assert consumer.asked[1] == (4, 0.5), "a new leader may tell of an earlier end"
    found, _ = read(monkeypatch, [message(10, b"a"), message(12, fault=bomb), message(13, b"d"), message(16, b"z")])
    assert found == [([b"a", b"d"], [10, 13])]


@pytest.mark.parametrize("fault", [FAULT(FAULT._AUTO_OFFSET_RESET), FAULT(FAULT._STATE, fatal=True)])
def test_messages_that_are_gone_fail_the_task(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    with pytest.raises(kafka.KafkaException):
        read(monkeypatch, [message(10, fault=fault)])


def test_silence_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_ranges, "SILENT_S", 4.0)
    away = [message(-1001, fault=FAULT(FAULT._TRANSPORT, "no broker"))]
    with pytest.raises(GatewayFilterError, match="from 11 on for 4 s: no broker") as caught:
        read(monkeypatch, away, [message(10)], *[away] * 50)
    assert "no broker has sent anything of OffsetRange" in str(caught.value)
    with pytest.raises(GatewayFilterError, match="no fault was told"):
        read(monkeypatch, *[[]] * 50)
    found, _ = read(monkeypatch, *[[], [], [], [message(10)]], *[[], [], [], [message(14)]])
    assert [offsets for _, offsets in found] == [[10], [14]]


class Plan:
    """What Spark tells of a micro-batch in Java."""

    def __init__(self, *partitions: list[tuple[str, int, int, int]], fails: bool = False) -> None:
        self._partitions, self._fails = partitions, fails

    def queryExecution(self) -> Plan:  # noqa: N802  Spark's name, as below
        if self._fails:
            raise py4j.Py4JError("no such method")
        return self

    def toRdd(self) -> Plan:  # noqa: N802
        return self

    def partitions(self) -> list[Any]:
        def of(found: tuple[str, int, int, int]) -> Any:
            topic, partition, begin, end = found
            place = SimpleNamespace(topic=lambda: topic, partition=lambda: partition)
            told = SimpleNamespace(topicPartition=lambda: place, fromOffset=lambda: begin, untilOffset=lambda: end)
            return SimpleNamespace(offsetRange=lambda: told)

        def parts(found: list[tuple[str, int, int, int]]) -> Any:
            return SimpleNamespace(size=lambda: len(found), apply=lambda number: of(found[number]))

        return [SimpleNamespace(inputPartitions=lambda found=found: parts(found)) for found in self._partitions]


def frame(plan: Plan) -> Any:
    return SimpleNamespace(_jdf=plan)


def test_ranges_are_those_that_spark_planned() -> None:
    planned = offset_ranges.planned_ranges(frame(Plan([("in", 0, 1, 5), ("in", 1, 2, 6)], [], [("to", 0, 3, 7)])))
    assert planned == [offset_ranges.OffsetRange(*found) for found in (("in", 0, 1, 5), ("in", 1, 2, 6), ("to", 0, 3, 7))]
    assert offset_ranges.planned_ranges(frame(Plan(fails=True))) is None


class Chain:
    """Notes the calls of a chain of Spark's, each of which returns it."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        if name in {"read", "write", "readStream", "writeStream", "sparkContext", "schema_of"}:
            return self

        def call(*values: Any, **named: Any) -> Any:
            self.calls.append((name, *values, *named.items()))
            return self.answers.get(name, self)

        return call

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


def _rules(folder: Path) -> Path:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    path = folder / "rules.gfs"
    path.write_bytes(builder.build())
    return path


class Sent:
    """A broadcast."""

    def __init__(self, blob: bytes) -> None:
        self.value, self.is_released = blob, False

    def unpersist(self) -> None:
        self.is_released = True


@pytest.fixture
def spark() -> Chain:
    found = Chain(getAll=[("spark.master", "local")])
    found.answers["broadcast"] = Sent(b"")
    return found


def make(spark: Chain, folder: Path, **options: Any) -> Any:
    wanted = {"checkpoint": "state", "rules": _rules(folder), "brokers": "b:1", "topic": "in", **options}
    return job_module.SparkJob(spark, job_module.JobOptions(**wanted))


class Local:
    """The folder of files in place of `LocalFolder`."""

    done: list[tuple[Any, ...]] = []  # noqa: RUF012  emptied by each test

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self) -> Path:
        return self.path / "work"

    def commit(self, work: Path, number: int) -> None:
        Local.done.append((work, number))


@pytest.mark.parametrize(("topic", "output"), [("out", "file"), ("", "file"), ("out", ""), ("", "")])
def test_workers_read_and_write_themselves(
    spark: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str, output: str
) -> None:
    Local.done = []
    monkeypatch.setattr(job_module, "LocalFolder", Local)
    folder = SimpleNamespace(local_path=lambda: tmp_path / "out", write=None)
    monkeypatch.setattr(job_module, "OutputFolder", lambda *_: folder)
    job = make(spark, tmp_path, output=output, output_topic=topic, window_s=30, off_categories=("ads",))
    job.decide(frame(Plan([("in", 0, 1, 5)], [("in", 1, 2, 6)])), 4)
    ranged, mapped = (next(call for call in spark.calls if call[0] == name) for name in ("range", "mapInArrow"))
    assert ranged == ("range", 0, 2, 1, 2)
    sent, version, off, wanted, brokers, ranges = mapped[1].args
    assert mapped[1].func is job_module.answer_task
    assert (sent, off, brokers, len(ranges)) == (spark.answers["broadcast"], ("ads",), "b:1", 2)
    assert version.startswith("rules-")
    work = str(tmp_path / "out" / "work") if output else ""
    assert wanted == job_module.Wanted(work, topic, "", 30)
    written = [call for call in spark.calls if call[0] in {"format", "option", "save", "mode"}]
    to_kafka = [("format", "kafka"), ("option", "kafka.bootstrap.servers", "b:1"), ("save",)]
    assert written == (to_kafka if topic else [("format", "noop"), ("mode", "overwrite"), ("save",)])
    assert Local.done == ([(tmp_path / "out" / "work", 4)] if output else [])
    spark.calls.clear()
    job.decide(frame(Plan()), 5)
    assert next(call for call in spark.calls if call[0] == "range") == ("range", 0, 0, 1, 1)
    assert "broadcast" not in spark.names(), "the rules are those of before"


@pytest.mark.parametrize("reason", ["source", "properties", "tokens", "remote", "plan"])
def test_spark_reads_and_writes_where_workers_cannot(
    spark: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    written: list[tuple[Any, int]] = []
    place = None if reason == "remote" else tmp_path
    folder = SimpleNamespace(local_path=lambda: place, write=lambda frame, number: written.append((frame, number)))
    monkeypatch.setattr(job_module, "OutputFolder", lambda *_: folder)
    sent: list[Any] = []
    options: dict[str, Any] = {"output": "out"}
    options |= {"source": "json"} if reason == "source" else {}
    options |= {"properties": {"kafka.x": "y"}} if reason == "properties" else {}
    if reason == "tokens":
        spark.answers["getAll"] = [("spark.x", "y"), ("spark.kafka.clusters.c", "z")]
    job = make(spark, tmp_path, **options, output_topic="t")
    monkeypatch.setattr(job, "_send", sent.append)
    answered = Chain()
    plan: Any = Chain(mapInArrow=answered)
    plan._jdf = Plan(fails=reason == "plan")
    job.decide(plan, 7)
    assert answered.names() == ["persist", "unpersist"], "decided once, written to two places"
    assert (written, sent) == ([(answered, 7)], [answered])
    ((_, rules, _),) = plan.calls
    assert rules.func is job_module.decide_partition
    assert rules.args[2:] == ((), 60)
    assert "range" not in spark.names()
    single = make(spark, tmp_path, **options)
    answered.calls.clear()
    single.decide(plan, 8)
    assert answered.calls == [], "of one place it is not kept"


def test_new_rules_are_broadcast_and_the_old_ones_released(spark: Chain, tmp_path: Path) -> None:
    job = make(spark, tmp_path)
    first = spark.answers["broadcast"]
    for number in range(2):
        job.decide(frame(Plan()), number)
    assert [call for call in spark.calls if call[0] == "broadcast"] == [("broadcast", (tmp_path / "rules.gfs").read_bytes())]
    builder = SnapshotBuilder(created_at=1.0)
    builder.add_keys(builder.add_source(Source("other", category="ads")), [".b.test"])
    (tmp_path / "new").write_bytes(builder.build())
    (tmp_path / "new").replace(tmp_path / "rules.gfs")
    spark.answers["broadcast"] = Sent(b"")
    job.decide(frame(Plan()), 2)
    assert (spark.names().count("broadcast"), first.is_released) == (2, True)


def test_the_query_reads_from_kafka_behind_its_checkpoint(spark: Chain, tmp_path: Path) -> None:
    make(spark, tmp_path, every_s=2.5, most=70, properties={"kafka.x": "y"}).start()
    assert spark.calls[:6] == [
        ("format", "kafka"), ("option", "kafka.bootstrap.servers", "b:1"), ("option", "subscribe", "in"),
        ("option", "startingOffsets", "earliest"), ("option", "maxOffsetsPerTrigger", 70),
        ("option", "kafka.isolation.level", "read_committed"),
    ]  # fmt: skip
    assert spark.calls[6:9] == [("options", ("kafka.x", "y")), ("load",), ("select", "topic", "partition", "offset", "value")]
    assert spark.names()[9:] == ["foreachBatch", "option", "trigger", "start"]
    assert spark.calls[10:12] == [("option", "checkpointLocation", "state"), ("trigger", ("processingTime", "2.5 seconds"))]


def _blob() -> bytes:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    return builder.build()


def test_a_task_answers_its_ranges_by_rules_that_are_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "set_up_process", lambda: None)
    monkeypatch.setattr(job_module, "read_range", lambda brokers, wanted: (brokers, wanted))
    asked: list[tuple[Any, ...]] = []

    def answer(messages: Any, rules: Any, wanted: Any, number: int) -> Iterator[str]:
        asked.append((messages, rules, wanted, number))
        yield f"letters {number}"

    monkeypatch.setattr(job_module, "answer_partition", answer)
    batches = [pa.RecordBatch.from_pydict({"id": ids}) for ids in ([1], [0, 1])]
    for version in ("v9", "v9", "v8"):  # each task has a broadcast of its own
        rest = (version, (), "wanted", "b:1", ["first", "second"], iter(batches))
        assert list(job_module.answer_task(Sent(_blob()), *rest)) == ["letters 1", "letters 0", "letters 1"]
    assert [asked[0][part] for part in (0, 2, 3)] == [("b:1", "second"), "wanted", 1]
    assert [rules.version for _, rules, _, _ in asked] == ["v9"] * 6 + ["v8"] * 3
    assert len({id(rules) for _, rules, _, _ in asked}) == 2


def test_messages_become_rows_with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "set_up_process", lambda: None)
    values = [b"{", b'{"url": "http://bad.test/"}', None, b"http://x/", b'{"url": "http://a.test/"}']
    places = {"topic": ["in"] * 5, "partition": [3] * 5, "offset": [7, 8, 9, 10, 11]}
    batch = pa.RecordBatch.from_pydict({**places, "value": pa.array(values, pa.binary())})
    keys = job_module.Places([("in", 3)] * 5, places["offset"])
    expected = [
        (1, "http://bad.test/", "records"), (4, "http://a.test/", "records"), (0, "{", "dead"), (3, "http: //x/", "dead"),
    ]  # fmt: skip
    for some, wanted in ((batch, expected), (batch.slice(1, 1), expected[:1])):
        found = job_module.decide_partition(Sent(_blob()), "v-messages", (), 0, iter([some]))
        rows = [(row["key"], row["url"], row["part"]) for part in found for row in part.to_pylist()]
        assert rows == [(keys.key(row).decode(), url, part) for row, url, part in wanted]


class Query:
    """A query that ends, fails, or runs until it is stopped."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.calls: list[str] = []

    def awaitTermination(self, _: int) -> bool:  # noqa: N802  Spark's name, as below
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return bool(end)

    def processAllAvailable(self) -> None:  # noqa: N802
        self.calls.append("all")

    def stop(self) -> None:
        self.calls.append("stop")


class Event:
    """Is set by a signal, or after so many waits."""

    def __init__(self) -> None:
        self.waits, self.most = 0, 9

    def wait(self, _: float) -> bool:
        self.waits += 1
        return self.waits > self.most

    def set(self) -> None:
        self.most = 0


def served(
    monkeypatch: pytest.MonkeyPatch, queries: list[Query], now: list[float], *, once: bool = False
) -> tuple[Any, dict[int, Any]]:
    left, handlers = iter(queries), dict[int, Any]()
    event, times = Event(), iter(now)
    spark: Any = SimpleNamespace(stop=lambda: handlers.setdefault(0, "stopped"))
    monkeypatch.setattr(service, "SparkJob", lambda *_: SimpleNamespace(start=lambda: next(left)))
    monkeypatch.setattr(service, "Event", lambda: event)
    monkeypatch.setattr(service, "signal", SimpleNamespace(
        SIGTERM=signal.SIGTERM, SIGINT=signal.SIGINT, signal=handlers.setdefault
    ))  # fmt: skip
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=times.__next__))
    try:
        service.serve(spark, SimpleNamespace(), once=once)
    finally:
        assert handlers[0] == "stopped"
    return event, handlers


def test_a_job_that_fails_is_started_again_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> Query:
        return Query(pyspark_errors.PySparkException("why\nmore"))

    with pytest.raises(GatewayFilterError, match=r"^the Spark job ended: why$"):
        served(monkeypatch, [failing() for _ in range(3)], [0.0] * 9)
    ended = Query(False, True)
    event, handlers = served(monkeypatch, [failing(), failing(), ended], [0.0] * 9)
    assert (ended.calls, event.waits) == ([], 4)
    for number in (signal.SIGTERM, signal.SIGINT):
        event.most = 9
        handlers[number]()
        assert event.most == 0
    # one that ran for long counts as started well
    steady = [0.0, 0.0, 0.0, 301.0, 0.0, 0.0, 0.0]
    served(monkeypatch, [failing(), failing(), failing(), Query(True)], steady)
    with pytest.raises(GatewayFilterError):
        served(monkeypatch, [failing() for _ in range(3)], [0.0, 300.0] * 3)


def test_a_job_is_stopped_or_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Query(*[False] * 20)
    event, _ = served(monkeypatch, [running], [0.0] * 9)
    assert (running.calls, event.waits) == (["stop"], 10)
    once = Query()
    served(monkeypatch, [once], [0.0] * 9, once=True)
    assert once.calls == ["all", "stop"]


def test_a_session_has_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # what the session sets goes with the test
        monkeypatch.delenv(name)
    builder = Chain()
    monkeypatch.setattr(service, "SparkSession", SimpleNamespace(builder=builder))
    service.session()
    bare = dict(call[1:] for call in builder.calls if call[0] == "config")
    assert {"spark.master", "spark.driver.host", "spark.jars"}.isdisjoint(bare)
    assert (bare["spark.ui.enabled"], bare["spark.sql.session.timeZone"]) == ("false", "UTC")
    assert builder.names()[0] == "appName"
    assert builder.names()[-1] == "getOrCreate"
    assert Path(os.environ["PYSPARK_PYTHON"]).name.startswith("python")
    builder.calls.clear()
    service.session("local[2]", "a.jar", {"spark.ui.enabled": "true", "spark.x": "y"})
    chosen = dict(call[1:] for call in builder.calls if call[0] == "config")
    assert chosen == bare | {
        "spark.master": "local[2]", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": "a.jar", "spark.ui.enabled": "true", "spark.x": "y",
    }  # fmt: skip
    builder.calls.clear()
    service.session("spark://m:7077")
    assert "spark.driver.host" not in dict(call[1:] for call in builder.calls if call[0] == "config")


class Files:
    """A file system of Hadoop's, and its paths."""

    def __init__(self, scheme: str = "file") -> None:
        self.scheme = scheme
        self.present: set[str] = set()
        self.calls: list[tuple[Any, ...]] = []
        self.can_rename = True
        hadoop = SimpleNamespace(fs=SimpleNamespace(Path=self._path))
        context: Any = SimpleNamespace(hadoopConfiguration=lambda: "conf")
        jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=hadoop)))
        self.spark: Any = Chain()
        self.spark.__dict__["sparkContext"] = SimpleNamespace(_jvm=jvm, _jsc=context)

    def _path(self, text: str) -> Any:
        uri = SimpleNamespace(getPath=lambda: text)
        return SimpleNamespace(text=text, getFileSystem=self._of, toUri=lambda: uri, getParent=lambda: text.rpartition("/")[0])

    def _of(self, configuration: str) -> Files:
        assert configuration == "conf"
        return self

    def getUri(self) -> Any:  # noqa: N802  Hadoop's name
        return SimpleNamespace(getScheme=lambda: self.scheme)

    def exists(self, place: Any) -> bool:
        return place.text in self.present

    def delete(self, place: Any, recursive: bool) -> None:  # noqa: FBT001  Hadoop's
        assert recursive
        self.calls.append(("delete", place.text))

    def mkdirs(self, text: str) -> None:
        self.calls.append(("mkdirs", text))

    def rename(self, source: Any, target: Any) -> bool:
        self.calls.append(("rename", source.text, target.text))
        return self.can_rename

    def create(self, place: Any) -> Any:
        self.calls.append(("create", place.text))
        return SimpleNamespace(close=lambda: self.calls.append(("close",)))


def test_a_folder_of_this_machine_has_a_path() -> None:
    for scheme, path in (("file", Path("/data/out")), ("hdfs", None)):
        assert output_folder.OutputFolder(Files(scheme).spark, "/data/out").local_path() == path


def test_rows_are_moved_into_place_and_an_empty_part_has_its_columns() -> None:
    files, answered = Files(), Chain()
    answered.__dict__["schema"] = "schema"
    folder = output_folder.OutputFolder(files.spark, "/out")
    files.present = {"/out/_work/batch=4/part=records"}
    folder.write(answered, 4)
    assert answered.calls[:4] == [
        ("mode", "overwrite"), ("option", "compression", "snappy"), ("partitionBy", "part"), ("parquet", "/out/_work/batch=4"),
    ]  # fmt: skip
    assert files.calls == [
        ("delete", "/out/records/batch=4"), ("mkdirs", "/out/records"),
        ("rename", "/out/_work/batch=4/part=records", "/out/records/batch=4"), ("create", "/out/records/batch=4/_SUCCESS"),
        ("close",), ("delete", "/out/dead/batch=4"), ("delete", "/out/_work/batch=4"),
    ]  # fmt: skip
    assert files.spark.calls == [("createDataFrame", [], "schema"), ("coalesce", 1), ("parquet", "/out/dead/batch=4")]
    files.can_rename = False
    with pytest.raises(OSError, match="cannot be moved to /out/records/batch=4"):
        folder.write(answered, 4)
