"""The files of a partition and of a folder: their names, columns and compression, and what is replaced or removed."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import Source
from gatewayfilter.scaleout.spark import partition_answers
from gatewayfilter.scaleout.spark.local_folder import LocalFolder
from gatewayfilter.scaleout.spark.partition_answers import LETTER, ROWS, Wanted, answer_partition
from gatewayfilter.scaleout.spark.partition_counts import COUNT
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.worker.answers import Places

VALUES = [b'{"url": "http://bad.test/", "time": 61}', b"{", b'{"url": "http://a.test/"}', b'{"url": "no"}']


def _rules() -> RuleSet:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    return RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")


RULES = _rules()
PLACES = Places([("in", 3)] * 4, [7, 8, 9, 10])


def answered(folder: Path | str, values: list[bytes] = VALUES, number: int = 7, **wanted: Any) -> list[dict[str, Any]]:
    parts = [(values, PLACES.part(0, len(values)))]
    batches = list(answer_partition(parts, RULES, Wanted(str(folder), **wanted), number))
    assert all(batch.schema.equals(LETTER) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_are_named_for_their_partition_and_kind(tmp_path: Path) -> None:
    assert answered(tmp_path) == []
    names = ["counts/part-00007.parquet", "dead/part-00007.parquet", "records/part-00007.parquet"]
    assert files(tmp_path) == names
    answered(tmp_path, number=8, window_s=0)
    assert files(tmp_path) == sorted([*names, names[1].replace("7", "8"), names[2].replace("7", "8")])
    other = tmp_path / "other"
    answered(other, VALUES[:1])
    assert files(other) == [names[0], names[2]], "there is none without rows"
    answered(tmp_path / "none", VALUES[1:2])
    assert files(tmp_path / "none") == [names[1]]


def test_rows_of_files(tmp_path: Path) -> None:
    answered(tmp_path)
    records = parquet.ParquetFile(tmp_path / "records" / "part-00007.parquet")
    rows = records.read().to_pylist()
    assert [(row["key"], row["url"], row["action"]) for row in rows] == [
        (PLACES.key(0).decode(), "http://bad.test/", "block"),
        (PLACES.key(2).decode(), "http://a.test/", "allow"),
    ]
    columns = {name: records.metadata.row_group(0).column(at) for at, name in enumerate(ROWS.names)}
    assert {name: column.compression for name, column in columns.items() if column.compression != "SNAPPY"} == {"url": "ZSTD"}
    assert [name for name, column in columns.items() if column.is_stats_set] == ["time"]
    assert {name for name, column in columns.items() if not column.has_dictionary_page} == {"key", "url", "time"}
    assert records.schema_arrow.metadata is None
    dead = parquet.ParquetFile(tmp_path / "dead" / "part-00007.parquet").read().to_pylist()
    assert [(row["key"], row["url"], row["error"], row["rules_version"]) for row in dead] == [
        (PLACES.key(1).decode(), "{", "not JSON", "v1"),
        (PLACES.key(3).decode(), '{"url": "no"}', dead[1]["error"], "v1"),
    ]
    counts = parquet.ParquetFile(tmp_path / "counts" / "part-00007.parquet").read()
    assert counts.schema.names == COUNT.names
    assert sum(row["records"] for row in counts.to_pylist() if row["dimension"] == "host") == 2
    long = b"\xff" + b"x" * 2_000
    answered(tmp_path / "long", [long])
    (row,) = parquet.ParquetFile(tmp_path / "long" / "dead" / "part-00007.parquet").read().to_pylist()
    assert row["url"] == "\ufffd" + "x" * 999


def test_letters_are_those_that_are_wanted(tmp_path: Path) -> None:
    rows = answered("", output_topic="out", dead_topic="dead")
    places = [(row["topic"], row["key"]) for row in rows]
    keys = [PLACES.key(row) for row in range(4)]
    assert places == [("out", keys[0]), ("out", keys[2]), ("dead", keys[1]), ("dead", keys[3])]
    assert [row["topic"] for row in answered("", output_topic="out")] == ["out"] * 2
    assert [row["topic"] for row in answered("", dead_topic="dead")] == ["dead"] * 2
    assert [row["topic"] for row in answered("", VALUES[:1], output_topic="out", dead_topic="dead")] == ["out"]
    assert files(tmp_path) == []


def test_poison_is_a_row_of_the_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("poison")

    monkeypatch.setattr(partition_answers, "decide_batch", fail)
    (letter,) = answered(tmp_path, VALUES[:1], dead_topic="dead")
    assert letter["key"] == PLACES.key(0)
    (row,) = parquet.ParquetFile(tmp_path / "dead" / "part-00007.parquet").read().to_pylist()
    assert (row["key"], row["error"]) == (PLACES.key(0).decode(), "internal error: RuntimeError: poison")
    assert files(tmp_path) == ["dead/part-00007.parquet"]


def test_a_try_removes_those_before_it(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    first = folder.begin()
    first.mkdir(parents=True)
    second = folder.begin()
    assert not first.exists()
    assert (first.parent, second.parent) == (tmp_path / "_work",) * 2
    assert first != second


def test_a_batch_without_rows_has_its_columns_and_no_counts(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    folder.commit(folder.begin(), 5)
    names = [f"{part}/batch=5/{name}" for part in ("dead", "records") for name in ("_SUCCESS", "part-00000.parquet")]
    assert files(tmp_path) == names
    for name in (names[1], names[3]):
        found = parquet.ParquetFile(tmp_path / name)
        assert (found.schema_arrow.names, found.metadata.num_rows) == (ROWS.names, 0)
        assert not found.metadata.metadata
    assert not (tmp_path / "_work").exists()


def test_counts_of_partitions_are_added_up_into_one_file(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    old = tmp_path / "counts" / "batch=5"
    old.mkdir(parents=True)
    (old / "part-00009.parquet").write_bytes(b"of a try before")
    work = folder.begin()
    (work / "counts").mkdir(parents=True)
    for number, blocked in ((0, 1), (1, 0)):
        rows = [
            {"window": 60, "rules_version": "v1", "dimension": "host", "value": value, "records": 2, "blocked": blocked}
            for value in ("a", f"only {number}")
        ]
        table = pa.Table.from_pylist(rows, schema=COUNT)
        parquet.write_table(table, work / "counts" / f"part-0000{number}.parquet")
    (work / "counts" / "_part-00002.parquet-x").write_bytes(b"of a task that failed")
    folder.commit(work, 5)
    assert sorted(path.name for path in old.iterdir()) == ["_SUCCESS", "part-00000.parquet"]
    file = parquet.ParquetFile(old / "part-00000.parquet")
    assert not file.metadata.metadata
    found = file.read()
    assert found.schema.names == COUNT.names
    assert sorted((row["value"], row["records"], row["blocked"]) for row in found.to_pylist()) == [
        ("a", 4, 1),
        ("only 0", 2, 1),
        ("only 1", 2, 0),
    ]
