"""The answers to a partition of a micro-batch from Kafka, in Spark's Python workers: one pass from messages to files and letters.

Messages are read here and Parquet files are written here, where the columns are: through the JVM each record would be copied from
columns to rows and back. A task that is run again replaces the files of the one before it, which hold the same.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gatewayfilter.scaleout.spark.partition_counts import COUNTS, DEAD, RECORDS, PartitionCounts
from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT, decide_batch
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader
from gatewayfilter.scaleout.stream.worker.answers import Answering, dead_letter, divided
from gatewayfilter.scaleout.stream.worker.splicing import keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from gatewayfilter.scaleout.stream.batch import Decided
    from gatewayfilter.scaleout.stream.rule_set import RuleSet
    from gatewayfilter.scaleout.stream.worker.answers import Places
    from gatewayfilter.scaleout.stream.worker.splicing import Letter

LETTER: Final = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
"""What is sent to Kafka."""

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
_PLAIN: Final = ("key", "url")
ROWS: Final = pa.schema([("key", pa.string()), *RECORD, *VERDICT])
"""The columns of files of records and dead letters."""
_SURE: Final = ("key", "url", "action", "reason", "rule", "source_list", "category", "rules_version")
"""What each decided record has: columns that store nothing about values that are missing."""
_STORED: Final = pa.schema(
    [
        pa.field(of.name, _WORD if of.type == pa.string() and of.name not in _PLAIN else of.type, of.name not in _SURE)
        for of in ROWS
    ]
)
_URL_LEVEL: Final = -15
"""Of zstd, for URLs, the half of what is written: a fifth less CPU than snappy for a fourth more bytes of them."""
_PAGE: Final = 1 << 17
"""Bytes of a page: what is put together and compressed stays in the processor's cache, a tenth of the cost of writing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a partition.

    Attributes:
        folder: for Parquet files, with a folder for each kind of row; `""` for none.
        output_topic, dead_topic: of letters; `""` for none.
        window_s: length of a window of counts, 0 for none.
    """

    folder: str = ""
    output_topic: str = ""
    dead_topic: str = ""
    window_s: int = 60


def answer_partition(
    messages: Iterable[tuple[Sequence[bytes], Places]], rules: RuleSet, wanted: Wanted, number: int
) -> Iterator[pa.RecordBatch]:
    """Yields the letters of a partition, as `LETTER`, and writes its files.

    Args:
        messages: values of messages and their places, in parts.
        rules: decide all of them.
        wanted: what is wanted.
        number: of the partition: names its files.
    """
    partition = _Partition(rules, wanted, number)
    for values, places in messages:
        for found in divided(partition.answer, partition.refuse, values, places):
            yield partition.put_down(found)
    partition.finish()


@dataclass(frozen=True, slots=True)
class _Answered:
    """The answers to some messages: nothing of them is written yet."""

    answers: list[Letter] = field(default_factory=list)
    dead: list[tuple[Letter, dict[str, Any]]] = field(default_factory=list)
    records: pa.RecordBatch | None = None
    counted: tuple[pa.RecordBatch, Decided] | None = None


class _Partition:
    """Answers the messages of a partition."""

    def __init__(self, rules: RuleSet, wanted: Wanted, number: int) -> None:
        self._rules = rules
        self._wanted = wanted
        self._number = number
        self._answering = Answering(JsonReader())
        self._records = _File(wanted.folder, RECORDS, number)
        self._dead = _File(wanted.folder, DEAD, number)
        self._counts = PartitionCounts(wanted.window_s)

    def answer(self, values: Sequence[bytes], places: Places) -> _Answered:
        """Returns the answers to messages."""
        wanted, version = self._wanted, self._rules.version
        read = self._answering.reader.read(values)
        decided = decide_batch(read.batch, self._rules)
        known = len(decided.verdicts)
        rows = np.asarray(read.rows, np.int64) if len(read.rows) != len(values) else np.arange(len(values))  # they ascend
        answered = np.flatnonzero(decided.numbers < known) if decided.faults else np.arange(len(rows))
        letters, records = [], None
        if wanted.output_topic:
            spliced = self._answering.letters(values, places, read, answered, decided, version)
            letters = [letter for run in spliced.runs() for letter in run]
        if wanted.folder:
            columns = [
                keys_of(places, rows if len(rows) != len(values) else None),
                *read.batch.select(RECORD.names).columns,
                *decided.dictionaries(version),
            ]
            stored = [_stored(column, of.type) for column, of in zip(columns, _STORED, strict=True)]
            records = pa.RecordBatch.from_arrays(stored, schema=_STORED)
            records = records.take(pa.array(answered)) if decided.faults else records
        faulty = np.flatnonzero(decided.numbers >= known).tolist()
        bad = [*read.bad, *((int(rows[row]), decided.faults[decided.numbers[row] - known]) for row in faulty)]
        dead = [self._dead_letter(values[row], places, row, why) for row, why in bad]
        return _Answered(letters, dead, records, (read.batch, decided) if wanted.folder and wanted.window_s else None)

    def refuse(self, value: bytes, places: Places, why: str) -> _Answered:
        """Returns the answer to a message that makes deciding fail."""
        return _Answered(dead=[self._dead_letter(value, places, 0, why)])

    def _dead_letter(self, value: bytes, places: Places, row: int, why: str) -> tuple[Letter, dict[str, Any]]:
        text = value[:1000].decode(errors="replace")
        stored = {"key": places.key(row).decode(), "url": text, "error": why, "rules_version": self._rules.version}
        return dead_letter(value, places, row, why), stored

    def put_down(self, found: _Answered) -> pa.RecordBatch:
        """Writes and counts answers, and returns their letters, as `LETTER`."""
        if found.counted is not None:  # first: what it reads is still in the processor's cache
            self._counts.add(*found.counted, time.time())
        if found.records is not None:
            self._records.write(found.records)
        wanted = self._wanted
        if wanted.folder and found.dead:
            self._dead.write(pa.RecordBatch.from_pylist([stored for _, stored in found.dead], schema=ROWS))
        dead = [letter for letter, _ in found.dead] if wanted.dead_topic else []
        topics = [wanted.output_topic] * len(found.answers) + [wanted.dead_topic] * len(dead)
        sent = [*found.answers, *dead]
        keys, values = ([letter[name] for letter in sent] for name in ("key", "value"))
        columns = [pa.array(topics, pa.string()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
        return pa.RecordBatch.from_arrays(columns, schema=LETTER)

    def finish(self) -> None:
        """Completes the files."""
        self._records.close()
        self._dead.close()
        if self._wanted.folder:
            counts = _File(self._wanted.folder, COUNTS, self._number)
            counts.write(self._counts.table(self._rules.version))
            counts.close()


class _File:
    """A Parquet file of a task, in place when it is complete; there is none without rows.

    Args:
        folder: for the files of a micro-batch.
        part: the kind of its rows.
        number: of the partition.
    """

    def __init__(self, folder: str, part: str, number: int) -> None:
        self._path = Path(folder, part, f"part-{number:05d}.parquet")
        self._draft = self._path.with_name(f"_{self._path.name}-{uuid.uuid4().hex}")
        self._writer: parquet.ParquetWriter | None = None

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes rows, which all have one schema."""
        if not rows.num_rows:
            return
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = parquet.ParquetWriter(
                self._draft,
                rows.schema,
                compression={of.name: "zstd" if of.name == "url" else "snappy" for of in rows.schema},
                compression_level={"url": _URL_LEVEL} if "url" in rows.schema.names else None,
                store_schema=False,
                use_dictionary=_repeated(rows.schema),
                write_statistics=["time"],
                data_page_size=_PAGE,
            )
        self._writer.write_batch(rows)

    def close(self) -> None:
        """Puts the file into place."""
        if self._writer is not None:
            self._writer.close()
            self._draft.replace(self._path)


def _repeated(schema: pa.Schema) -> list[str]:
    """Returns the columns of which few values differ."""
    return [of.name for of in schema if of.name not in {*_PLAIN, "time"}]


def _stored(column: Any, kind: pa.DataType) -> Any:
    """Returns a column as it is stored: texts of which few differ as dictionaries."""
    if column.type == kind:
        return column
    return column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)


def keys_of(places: Places, rows: NDArray[np.int64] | None = None) -> Any:
    """Returns the keys of answers as a column: `Places.key` of each row, of all where none are named."""
    partitions, offsets = places.partitions, places.offsets
    alike = bool(partitions) and partitions.count(partitions[0]) == len(partitions)  # as in a range of offsets
    prefixes = places.part(0, 1).prefixes() * len(partitions) if alike else places.prefixes()
    if rows is not None:
        some = rows.tolist()
        prefixes, offsets = [prefixes[row] for row in some], [offsets[row] for row in some]
    begins = np.arange(len(offsets) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(offsets), pa.py_buffer(begins), pa.py_buffer(keys(prefixes, offsets)))
