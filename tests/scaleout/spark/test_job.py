"""The Spark job on a real Spark: a killed driver loses nothing, and Parquet holds each record once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.model import Source
from tests.held_ports import hold_port, port_of
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

kafka = pytest.importorskip("confluent_kafka")
kafka_admin = pytest.importorskip("confluent_kafka.admin")
pytest.importorskip("pyspark")
offset_ranges = pytest.importorskip("gatewayfilter.scaleout.spark.offset_ranges")
spark_job = pytest.importorskip("gatewayfilter.scaleout.spark.job")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.services, pytest.mark.real, pytest.mark.timeout(500)]
RECORDS = 12_000
PER_BATCH = 500


def _publish(folder: Path, listed: str) -> None:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [f".{listed}"])
    SnapshotFolder(folder).publish(builder.build())


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    services_folder()
    found = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    found.start()
    yield found
    found.kill()


def _send(broker: KafkaBroker, values: list[bytes], topic: str = "spark-in") -> None:
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([kafka_admin.NewTopic(topic, 2, 1)]).values():
        future.result(120)
    _produce(broker, values, topic)


def _produce(broker: KafkaBroker, values: list[bytes], topic: str) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker.address, "acks": "all", "linger.ms": 50})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(120) == 0


def _job(
    broker: KafkaBroker, folder: Path, *more: str, topic: str = "spark-in", master: str = "local[2]", most: int = 6_000
) -> subprocess.Popen[bytes]:
    jars = ",".join(map(str, sorted((services_folder() / "spark").glob("*.jar"))))
    command = [
        *(sys.executable, "-m", "gatewayfilter.cli", "stream", "spark", "--brokers", broker.address, "--topic", topic),
        *("--output", str(folder / "out"), "--checkpoint", str(folder / "state"), "--rules", str(folder / "rules")),
        *("--master", master, "--jars", jars, "--most", str(most), "--every", "0.1", *more),
    ]
    log = (folder / "log").open("ab")
    return subprocess.Popen(
        command, stdout=log, stderr=log, env={**os.environ, "GATEWAYFILTER_DATA_DIR": str(folder)}, start_new_session=True
    )


def _batches(folder: Path) -> set[str]:
    return {path.parent.name for path in (folder / "out" / "counts").glob("batch=*/_SUCCESS")}


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(folder / "out" / name, partitioning=None).to_pylist()
    return rows


def test_a_killed_driver_loses_nothing_and_counts_nothing_twice(
    broker: KafkaBroker, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    _publish(tmp_path / "rules", "bad.test")
    urls = [f"http://{'bad' if number % 4 == 0 else 'h'}.test/{number}" for number in range(RECORDS)]
    _send(broker, [json.dumps({"url": url, "time": 60.0, "client": "192.0.2.1"}).encode() for url in urls] + [b"{", b"\xff"])
    first = _job(broker, tmp_path)
    try:
        end = time.monotonic() + 200
        while not _batches(tmp_path):
            assert time.monotonic() < end, (tmp_path / "log").read_text(encoding="utf-8")[-3000:]
            time.sleep(0.1)
    finally:
        os.killpg(first.pid, 9)  # the driver with its JVM and workers
        first.wait(30)
    killed = time.monotonic()
    _publish(tmp_path / "rules", "h.test")
    assert _job(broker, tmp_path, "--once").wait(250) == 0, (tmp_path / "log").read_text(encoding="utf-8")[-3000:]
    words = "Spark's driver with its executors, started again at once | all records are decided, the job has ended"
    record_property("recovery", f"{words} | {time.monotonic() - killed:.1f}")
    records = _rows(tmp_path, "records")
    assert sorted(row["url"] for row in records) == sorted(urls)
    assert len({row["key"] for row in records}) == RECORDS
    hosts = [row for row in _rows(tmp_path, "counts") if row["dimension"] == "host"]
    assert sum(row["records"] for row in hosts) == RECORDS
    assert len(_rows(tmp_path, "dead")) == 2
    for row in records:
        assert row["action"] == "block" or (row["rules_version"][:17] == "snapshot-00000001") is ("/h.test" in row["url"])


def test_a_task_without_a_broker_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library tells of the outage again and again: that is no progress."""
    monkeypatch.setattr(offset_ranges, "SILENT_S", 1.0)
    with hold_port() as nobody, pytest.raises(GatewayFilterError, match="no broker"):
        list(offset_ranges.read_range(f"127.0.0.1:{port_of(nobody)}", offset_ranges.OffsetRange("ranges", 1, 0, 5)))


def test_an_end_that_the_broker_does_not_tell_of_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a new leader, whose high watermark lags: the offsets were told by the old one."""
    producer = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none"})
    (mock,) = producer.list_topics(timeout=60).brokers.values()

    def send(count: int) -> None:
        for number in range(count):
            producer.produce("lagging", b"%d" % number, partition=0)
        producer.flush(10)

    def read(end: int) -> list[int]:
        parts = offset_ranges.read_range(f"{mock.host}:{mock.port}", offset_ranges.OffsetRange("lagging", 0, 5, end))
        return [at for _, places in parts for at in places.offsets]

    send(10)
    late = threading.Timer(2, send, [2])
    late.start()
    assert read(12) == [*range(5, 12)]
    late.join()
    monkeypatch.setattr(offset_ranges, "SILENT_S", 10.0)
    with pytest.raises(GatewayFilterError, match="end of partition"):
        read(13)


@pytest.mark.parametrize("secured", [False, True])
def test_tokens_of_spark_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, secured: bool) -> None:
    """Its workers would read without logging in."""
    configured = [("spark.kafka.clusters.main.auth.bootstrap.servers", "kafka:9093")] if secured else []
    context = SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: configured))
    asked: list[object] = []
    monkeypatch.setattr(spark_job, "planned_ranges", asked.append)
    options = spark_job.JobOptions(str(tmp_path), tmp_path, brokers="kafka:9093", topic="in", output_topic="out")
    spark: Any = SimpleNamespace(sparkContext=context)
    assert not spark_job.SparkJob(spark, options)._work_here(None, 0)
    assert bool(asked) is not secured


def test_a_range_of_offsets_is_read_without_its_neighbours(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction ends with a record of its own, which has an offset and is no message."""
    _send(broker, [], "ranges")
    producer = kafka.Producer({"bootstrap.servers": broker.address, "transactional.id": "ranges"})
    producer.init_transactions(60)
    for number in range(4):
        producer.begin_transaction()
        for offset in range(10):
            producer.produce("ranges", b"%d" % (number * 11 + offset), partition=1)
        producer.flush(120)  # an abort would drop what was not sent yet
        producer.commit_transaction(60) if number != 2 else producer.abort_transaction(60)

    def read(begin: int, end: int) -> list[int]:
        parts = list(offset_ranges.read_range(broker.address, offset_ranges.OffsetRange("ranges", 1, begin, end)))
        assert [int(value) for values, _ in parts for value in values] == [at for _, places in parts for at in places.offsets]
        assert {place for _, places in parts for place in places.partitions} <= {("ranges", 1)}
        return [at for _, places in parts for at in places.offsets]

    assert read(5, 12) == [5, 6, 7, 8, 9, 11]
    assert read(21, 33) == []
    assert read(0, 44) == [*range(10), *range(11, 21), *range(33, 43)]
    with monkeypatch.context() as patch:
        patch.setattr(offset_ranges, "SILENT_S", 10.0)
        with pytest.raises(GatewayFilterError, match="end of partition"):
            read(40, 45)
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.address})
    (deleted,) = admin.delete_records([kafka.TopicPartition("ranges", 1, 4)]).values()
    deleted.result(120)
    with pytest.raises(kafka.KafkaException):
        read(0, 10)


@pytest.mark.timeout(900)
def test_a_killed_executor_is_replaced_and_each_record_is_decided_once(
    broker: KafkaBroker, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Two executors in processes of their own; the driver goes on, and runs the tasks of the killed one again."""
    _publish(tmp_path / "rules", "bad.test")
    urls = [f"http://{'bad' if number % 4 == 0 else 'h'}.test/{number}" for number in range(RECORDS)]
    _send(broker, [json.dumps({"url": url, "time": 60.0}).encode() for url in urls], "executor-in")
    job = _job(broker, tmp_path, topic="executor-in", master="local-cluster[2,1,1024]", most=PER_BATCH)
    try:
        _until(lambda: len(_batches(tmp_path)) >= 2 and len(_executors(job)) == 2, tmp_path, job)
        _executors(job)[0].kill()
        killed, before = time.monotonic(), len(_batches(tmp_path))
        more = [f"http://h.test/{RECORDS + number}" for number in range(4 * PER_BATCH)]  # all before may be decided by now
        _produce(broker, [json.dumps({"url": url, "time": 60.0}).encode() for url in more], "executor-in")
        _until(lambda: len(_batches(tmp_path)) >= before + 2, tmp_path, job)  # one may have been under way without it
        words = "Spark executor, one of two | the second micro-batch after it is committed"
        record_property("recovery", f"{words} | {time.monotonic() - killed:.1f}")
    finally:
        os.killpg(job.pid, 9)
        job.wait(30)
    committed = _batches(tmp_path)
    records = [row for name in committed for row in _rows(tmp_path, f"records/{name}")]
    numbers = sorted(int(row["url"].rpartition("/")[2]) for row in records)
    for partition in (0, 1):  # what is committed is the beginning of each partition, without a gap and without a repetition
        found = [number for number in numbers if number % 2 == partition]
        assert found == list(range(partition, 2 * len(found), 2))
    assert len(numbers) >= 2 * PER_BATCH
    counts = [row for name in committed for row in _rows(tmp_path, f"counts/{name}")]
    assert sum(row["records"] for row in counts if row["dimension"] == "host") == len(numbers)


def _executors(job: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [one for one in psutil.Process(job.pid).children(recursive=True) if "CoarseGrainedExecutorBackend" in _command(one)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _until(condition: Callable[[], bool], folder: Path, job: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 400  # three JVMs start
    while not condition():
        words = (folder / "log").read_text(encoding="utf-8")[-3000:]
        assert time.monotonic() < end, words
        assert job.poll() is None, words
        time.sleep(0.1)
