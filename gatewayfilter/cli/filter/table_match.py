"""`match` with Parquet in or out: the batch function over record batches, in one process."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gatewayfilter.cli.bulk.json_lines import REPORTED, Answers, dead_letter, read_batches
from gatewayfilter.errors import ListError
from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT, decide_batch, with_verdicts
from gatewayfilter.scaleout.stream.rule_set import RuleSet
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.scaleout.stream.batch import Decided

ROWS: Final = 5_000
"""Rows that are decided together."""

_GROUP_ROWS: Final = 100_000


class _Rows(NamedTuple):
    """Records that are decided together; `numbers` are the places of their rows or lines in the input, from 1."""

    batch: pa.RecordBatch
    numbers: range | list[int]
    bad: list[tuple[int, str, bytes]]
    size: int


class TableMatch:
    """Decides records of any format, batch by batch.

    Args:
        engine: decides them.
        output: takes Parquet; None for JSON lines among the answers.
        apart: records without a verdict are kept apart, not written with their fault.
    """

    def __init__(self, engine: FilterEngine, output: BinaryIO | None, *, apart: bool) -> None:
        self._rules = RuleSet.of_engine(engine)
        self._output = output
        self._apart = apart
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []

    def answers(self, file: Path, stream: BinaryIO, form: TrafficFormat | None) -> Iterator[Answers]:
        """Yields the answers to each batch; Parquet is complete when they are at their end.

        Args:
            file: the name of the input.
            stream: the input.
            form: format of its lines, None for Parquet.

        Raises:
            ListError: the input cannot be read as Parquet, has no column of URLs, or is not the same throughout.
        """
        try:
            for rows in _parquet_rows(stream) if form is None else _line_rows(stream, form):
                yield self._decided(rows)
            if self._output is not None:
                self._write_out()
                if self._writer is None:
                    self._writer = parquet.ParquetWriter(self._output, pa.schema([*RECORD, *VERDICT]))
                self._writer.close()
        except (pa.ArrowException, ValueError, OSError) as error:
            raise ListError(f"cannot use {file}: {str(error).splitlines()[0][:300]}") from error

    def _decided(self, rows: _Rows) -> Answers:
        decided = decide_batch(rows.batch, self._rules)
        known = len(decided.verdicts)
        faulty = np.flatnonzero(decided.numbers >= known).tolist()
        faults = [(rows.numbers[row], decided.faults[decided.numbers[row] - known]) for row in faulty]
        table = with_verdicts(rows.batch, decided, self._rules.version)
        dead = [dead_letter(*letter) for letter in rows.bad] if self._apart else []
        if self._apart and faulty:
            urls = rows.batch["url"]
            dead += [
                dead_letter(number, why, (urls[row].as_py() or "").encode(errors="backslashreplace"))
                for row, (number, why) in zip(faulty, faults, strict=True)
            ]
            table = table.filter(pa.array(decided.numbers < known))
        text = b"" if self._output is not None else b"".join(_json_line(row) for row in table.to_pylist())
        if self._output is not None:
            self._waiting.append(table)
            if sum(batch.num_rows for batch in self._waiting) >= _GROUP_ROWS:
                self._write_out()
        bad = sorted([*((number, why) for number, why, _ in rows.bad), *faults])
        counts = _counts(decided)
        for _, why in bad:
            counts["error", why.partition(":")[0]] += 1
        return Answers(text, counts, bad[:REPORTED], rows.size, 0.0, b"".join(dead))

    def _write_out(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._output, self._waiting[0].schema, compression="zstd")
        try:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        except OSError as error:
            raise ListError(f"cannot write Parquet: {error}") from error
        self._waiting = []


def _parquet_rows(stream: BinaryIO) -> Iterator[_Rows]:
    first = 1
    for batch in parquet.ParquetFile(stream).iter_batches(ROWS):
        yield _Rows(batch, range(first, first + batch.num_rows), [], batch.nbytes)
        first += batch.num_rows


def _line_rows(stream: BinaryIO, form: TrafficFormat) -> Iterator[_Rows]:
    reader = reader_of(form)
    for batch in read_batches(stream):
        read = reader.read(batch.lines)
        numbers = [batch.first + row for row in read.rows]
        bad = [(batch.first + row, why, batch.lines[row]) for row, why in read.bad]
        yield _Rows(read.batch.select(RECORD.names).cast(RECORD), numbers, bad, batch.size)


def _counts(decided: Decided) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for verdict, count in zip(
        decided.verdicts, np.bincount(decided.numbers, minlength=len(decided.verdicts)).tolist(), strict=False
    ):
        found[verdict.action, verdict.reason] += count
    return found


def _json_line(row: dict[str, Any]) -> bytes:
    """Returns a row as JSON; what JSON has no name for, such as NaN, is left out, and other types are written as text."""
    kept = {name: value for name, value in row.items() if value is not None and not _is_odd(value)}
    return json.dumps(kept, default=str).encode() + b"\n"


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
