"""Where Spark reads and writes itself, the rows of a partition are records with verdicts, dead letters and counts."""

from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import Source

pytestmark = pytest.mark.services

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")
spark_job = pytest.importorskip("gatewayfilter.scaleout.spark.job")

RECORDS = [
    {"key": "a", "url": "http://bad.test/x", "time": 61.0, "client": "192.0.2.1"},
    {"key": "b", "url": "http://a.test/", "time": 61.0, "client": None},
    {"key": "c", "url": "no url", "time": 61.0, "client": None},
]


def _sent() -> Any:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    return SimpleNamespace(value=builder.build())


@pytest.mark.parametrize("window_s", [60, 0])
def test_rows_are_records_dead_letters_and_counts(window_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_job, "set_up_process", lambda: None)  # this process goes on with other tests
    schema = pa.schema([("key", pa.string()), *spark_job.RECORD])
    batch = pa.RecordBatch.from_pylist(RECORDS, schema=schema)
    rows = [
        row
        for part in spark_job.decide_partition(_sent(), f"v{window_s}", (), window_s, [batch, batch])
        for row in part.to_pylist()
    ]
    answered = [(row["key"], row["part"], row["action"]) for row in rows if row["part"] != "counts"]
    assert answered == [("a", "records", "block"), ("b", "records", "allow"), ("c", "dead", None)] * 2
    counts = {
        (row["time"], row["category"], row["rule"]): (row["bytes"], row["status"]) for row in rows if row["part"] == "counts"
    }
    expected = {
        (60.0, "host", "bad.test"): (2, 2), (60.0, "host", "a.test"): (2, 0),
        (60.0, "category", "gambling"): (2, 2), (60.0, "category", ""): (2, 0),
        (60.0, "rule", "black: .bad.test"): (2, 2), (60.0, "rule", ""): (2, 0),
        (60.0, "network", "192.0.2.0/24"): (2, 2), (60.0, "network", ""): (2, 0),
    }  # fmt: skip
    assert counts == (expected if window_s else {})
    assert {row["rules_version"] for row in rows} == {f"v{window_s}"}
