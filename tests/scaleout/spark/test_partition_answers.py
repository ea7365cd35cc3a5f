"""Workers of Spark write the verdicts of match_batch, and the driver puts complete files into place."""

import json
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
from gatewayfilter.scaleout.spark.partition_answers import Wanted, answer_partition
from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT, decide_batch, match_batch
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.worker.answers import Places

VALUES = [
    b'{"url": "http://bad.test/x", "type": "script", "client": "192.0.2.1", "time": 61.5, "status": 200, "bytes": 7}',
    b'{"url": "http://a.test/", "source": "http://bad.test/", "user": "\xc3\xa9"}',
    b"{",
    b"\xff",
    b'{"url": "no url"}',
    b'{"url": "http://b.test/"}',
]
GOOD = [0, 1, 5]


def _rules() -> RuleSet:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black", category="gambling")), [".bad.test"])
    return RuleSet.of_engine(FilterEngine(Snapshot.from_bytes(builder.build())), "v1")


RULES = _rules()


def _messages(values: list[bytes], first: int = 0) -> tuple[list[bytes], Places]:
    return values, Places([("in", 3)] * len(values), list(range(first, first + len(values))))


def _rows(folder: Path, part: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.ParquetFile(folder / part / "batch=4" / "part-00000.parquet").read().to_pylist()
    return rows


def test_files_hold_the_verdicts_of_match_batch(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    (tmp_path / "records" / "batch=4").mkdir(parents=True)
    (tmp_path / "records" / "batch=4" / "part-00007.parquet").write_bytes(b"of a try that was killed")
    work = folder.begin()
    (work / "records").mkdir(parents=True)
    (work / "records" / "_part-00000.parquet-0").write_bytes(b"of a task that failed")
    wanted = Wanted(str(work))
    for _ in range(2):  # a task that is run again
        letters = list(answer_partition([_messages(VALUES), _messages(VALUES, 6)], RULES, wanted, 0))
    assert sum(batch.num_rows for batch in letters) == 0
    folder.commit(work, 4)
    records = [{name: json.loads(VALUES[at]).get(name) for name in RECORD.names} for at in GOOD]
    expected = match_batch(pa.RecordBatch.from_pylist(records, schema=RECORD), RULES).to_pylist() * 2
    places = Places([("in", 3)] * 12, list(range(12)))
    keys = [places.key(row).decode() for row in (*GOOD, *(6 + at for at in GOOD))]
    found = _rows(tmp_path, "records")
    assert found == [{"key": key, **row} for key, row in zip(keys, expected, strict=True)]
    assert [row["error"] for row in _rows(tmp_path, "dead")][:2] == ["not JSON", "not JSON"]
    assert len(_rows(tmp_path, "dead")) == 6
    counts = {
        (row["window"], row["dimension"], row["value"]): (row["records"], row["blocked"]) for row in _rows(tmp_path, "counts")
    }
    assert counts[60, "host", "bad.test"] == (2, 2)
    assert sum(records for (_, dimension, _), (records, _) in counts.items() if dimension == "host") == 6
    assert not (tmp_path / "_work").exists()
    assert sorted(path.name for path in (tmp_path / "records" / "batch=4").iterdir()) == ["_SUCCESS", "part-00000.parquet"]
    assert (tmp_path / "counts" / "batch=4" / "_SUCCESS").exists()


def test_letters_are_those_of_the_worker_and_poison_is_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(batch: pa.RecordBatch, rules: RuleSet) -> Any:
        if "http://b.test/" in batch["url"].to_pylist():
            raise RuntimeError("poison")
        return decide_batch(batch, rules)

    monkeypatch.setattr(partition_answers, "decide_batch", decide)
    batches = list(answer_partition([_messages(VALUES)], RULES, Wanted("", "out", "dead"), 0))
    rows = [row for batch in batches for row in batch.to_pylist()]
    answered = [json.loads(row["value"]) for row in rows if row["topic"] == "out"]
    assert [(row["url"], row["action"]) for row in answered] == [("http://bad.test/x", "block"), ("http://a.test/", "allow")]
    assert set(VERDICT.names) - {"error"} <= set(answered[0])
    dead = [json.loads(row["value"]) for row in rows if row["topic"] == "dead"]
    assert sorted(row["offset"] for row in dead) == [2, 3, 4, 5]
    assert next(row["error"] for row in dead if row["offset"] == 5) == "internal error: RuntimeError: poison"


def test_dead_letters_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    batches = [_messages([b"{"] * 3, first) for first in (0, 3)]
    answers = answer_partition(iter(batches), RULES, Wanted(str(tmp_path)), 0)
    next(answers)
    assert [path.name[:6] for path in (tmp_path / "dead").iterdir()] == ["_part-"]  # written while the task goes on
    assert list(answers)
    assert parquet.ParquetFile(tmp_path / "dead" / "part-00000.parquet").metadata.num_rows == 6


def test_a_full_disk_is_no_poison(tmp_path: Path) -> None:
    """A task that cannot write fails, and Spark runs it again; no message of it becomes a dead letter."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        list(answer_partition([_messages(VALUES)], RULES, Wanted(str(blocked)), 0))
