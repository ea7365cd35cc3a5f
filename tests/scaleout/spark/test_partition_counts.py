"""Counts of a partition: rows that add up the batches of it."""

import pyarrow as pa
import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Source
from gatewayfilter.scaleout.spark import partition_counts
from gatewayfilter.scaleout.spark.partition_counts import PartitionCounts
from gatewayfilter.scaleout.stream.batch import RECORD, decide_batch
from gatewayfilter.scaleout.stream.rule_set import RuleSet


def test_there_is_room_for_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(SnapshotBuilder(created_at=0.0).build())), "v1")
    for room in range(1, 9):
        monkeypatch.setattr(partition_counts, "_FIRST_ROOM", room)
        counts = PartitionCounts(60)
        for host in ("a", "b", "a", "c"):
            batch = pa.RecordBatch.from_pylist([{"url": f"http://{host}.test/"}])
            counts.add(batch, decide_batch(batch, rules), 0.0)
        hosts = [row for row in counts.table("v1").to_pylist() if row["dimension"] == "host"]
        assert {row["value"]: row["records"] for row in hosts} == {"a.test": 2, "b.test": 1, "c.test": 1}


def test_the_counts_of_batches_are_added_up() -> None:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    rules = RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")
    counts = PartitionCounts(60)
    for time in (61.0, 61.0, 121.0):
        records = [
            {"url": "http://bad.test/x", "time": time, "client": "192.0.2.9"},
            {"url": "http://Bad.test:80/y", "time": time, "client": "2001:db8::1"},
            {"url": "no url", "time": time},
        ]
        batch = pa.RecordBatch.from_pylist(records, schema=RECORD)
        counts.add(batch, decide_batch(batch, rules), 0.0)
    found = {
        (row["window"], row["dimension"], row["value"]): (row["records"], row["blocked"])
        for row in counts.table("v1").to_pylist()
    }
    assert found == {
        (60, "host", "bad.test"): (2, 2), (60, "host", "bad.test:80"): (2, 2), (120, "host", "bad.test"): (1, 1),
        (120, "host", "bad.test:80"): (1, 1), (60, "category", "gambling"): (4, 4), (120, "category", "gambling"): (2, 2),
        (60, "rule", "black: .bad.test"): (4, 4), (120, "rule", "black: .bad.test"): (2, 2),
        (60, "network", "192.0.2.0/24"): (2, 2), (60, "network", "2001:db8::/48"): (2, 2),
        (120, "network", "192.0.2.0/24"): (1, 1), (120, "network", "2001:db8::/48"): (1, 1),
    }  # fmt: skip
    assert {row["rules_version"] for row in counts.table("v1").to_pylist()} == {"v1"}
