"""The Spark job over doubles of Spark: who reads and writes what, rules that change, the query, its folder of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import Source

pytest.importorskip("confluent_kafka")
pa = pytest.importorskip("pyarrow")
offset_ranges = pytest.importorskip("gatewayfilter.scaleout.spark.offset_ranges")
output_folder = pytest.importorskip("gatewayfilter.scaleout.spark.output_folder")
job_module = pytest.importorskip("gatewayfilter.scaleout.spark.job")
pytestmark = pytest.mark.services
ONE, OTHER = (offset_ranges.OffsetRange("in", partition, 1, 5) for partition in (0, 1))


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


@pytest.fixture(autouse=True)
def _planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "planned_ranges", lambda frame: frame.ranges)


def batch_of(*ranges: Any) -> Any:
    """A micro-batch with the ranges that Spark planned."""
    return SimpleNamespace(ranges=list(ranges))


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
    job.decide(batch_of(ONE, OTHER), 4)
    ranged, mapped = (next(call for call in spark.calls if call[0] == name) for name in ("range", "mapInArrow"))
    assert ranged == ("range", 0, 2, 1, 2)
    sent, version, off, wanted, brokers, ranges = mapped[1].args
    assert mapped[1].func is job_module.answer_task
    assert (sent, off, brokers, ranges) == (spark.answers["broadcast"], ("ads",), "b:1", [ONE, OTHER])
    assert version.startswith("rules-")
    work = str(tmp_path / "out" / "work") if output else ""
    assert wanted == job_module.Wanted(work, topic, "", 30)
    written = [call for call in spark.calls if call[0] in {"format", "option", "save", "mode"}]
    to_kafka = [("format", "kafka"), ("option", "kafka.bootstrap.servers", "b:1"), ("save",)]
    assert written == (to_kafka if topic else [("format", "noop"), ("mode", "overwrite"), ("save",)])
    assert Local.done == ([(tmp_path / "out" / "work", 4)] if output else [])
    spark.calls.clear()
    job.decide(batch_of(), 5)
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
    plan.ranges = None if reason == "plan" else [ONE]
    assert job._work_here(plan, 7) is False
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
        job.decide(batch_of(), number)
    assert [call for call in spark.calls if call[0] == "broadcast"] == [("broadcast", (tmp_path / "rules.gfs").read_bytes())]
    builder = SnapshotBuilder(created_at=1.0)
    builder.add_keys(builder.add_source(Source("other", category="ads")), [".b.test"])
    (tmp_path / "new").write_bytes(builder.build())
    (tmp_path / "new").replace(tmp_path / "rules.gfs")
    spark.answers["broadcast"] = Sent(b"")
    job.decide(batch_of(), 2)
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
    set_up: list[bool] = []
    monkeypatch.setattr(job_module, "set_up_process", lambda: set_up.append(True))
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
    assert len(set_up) == 3


def test_messages_become_rows_with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up: list[bool] = []
    monkeypatch.setattr(job_module, "set_up_process", lambda: set_up.append(True))
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
    assert len(set_up) == 2


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


def test_counts_are_added_up_into_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    files, answered, functions = Files(), Chain(), Chain()
    answered.__dict__["schema"] = "schema"
    monkeypatch.setattr(output_folder, "F", functions)
    files.present = {f"/out/_work/batch=4/part={part}" for part in ("records", "dead", "counts")}
    output_folder.OutputFolder(files.spark, "/out").write(answered, 4)
    calls = files.spark.calls
    assert calls[:3] == [("schema", "schema"), ("parquet", "/out/_work/batch=4/part=counts"), ("coalesce", 1)]
    assert [call[0] for call in calls[3:6]] == ["groupBy", "agg", "withColumn"]
    assert calls[6:] == [("mode", "overwrite"), ("parquet", "/out/counts/batch=4")]
    named = [call[1] for call in functions.calls if call[0] == "alias"]
    assert named == ["window", "rules_version", "dimension", "value", "records", "blocked"]
    assert [call[1] for call in functions.calls if call[0] == "cast"] == ["long", "long"]


class Column:
    """A column of Spark's, whose comparisons are columns."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> Any:
        return self.name, "is", other

    __hash__ = None  # type: ignore[assignment]


def test_answers_are_sent_to_the_topics_that_are_wanted(spark: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = SimpleNamespace(
        col=Column, struct=lambda *names: names, to_json=lambda names: SimpleNamespace(alias=lambda name: (name, names))
    )
    monkeypatch.setattr(job_module, "F", functions)
    for topics in ({"output_topic": "out"}, {"dead_topic": "dead"}, {"output_topic": "out", "dead_topic": "dead"}, {}):
        answered = Chain()
        make(spark, tmp_path, properties={"kafka.x": "y"}, **topics)._send(answered)
        fields = tuple(name for name in job_module._ANSWER_TYPE.names if name != "key")
        assert {"url", "action"} < {*fields}
        assert answered.calls == [
            call
            for topic, part in ((topics.get("output_topic"), "records"), (topics.get("dead_topic"), "dead"))
            if topic
            for call in (
                ("where", ("part", "is", part)), ("select", "key", ("value", fields)), ("format", "kafka"),
                ("option", "kafka.bootstrap.servers", "b:1"), ("options", ("kafka.x", "y")),
                ("option", "topic", topic), ("save",),
            )
        ]  # fmt: skip


def test_the_query_reads_files(spark: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Chain()
    monkeypatch.setattr(job_module, "F", functions)
    options = job_module.JobOptions("state", _rules(tmp_path), source="json", folder="in")
    job_module.SparkJob(spark, options)._records()
    assert spark.calls == [
        ("schema", job_module.RECORD_TYPE), ("format", "json"), ("option", "columnNameOfCorruptRecord", "_corrupt"),
        ("load", "in"), ("select", functions, *job_module.RECORD_TYPE.names),
    ]  # fmt: skip
    assert [call[1] for call in functions.calls if call[0] == "col"] == ["time", "client", "url"]
    assert functions.calls[-1] == ("alias", "key")
