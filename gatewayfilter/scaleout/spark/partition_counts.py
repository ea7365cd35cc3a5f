"""Counts of a partition of a micro-batch, as rows among its answers: no shuffle is needed to add them up."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from gatewayfilter.scaleout.stream.counts import tallies_of, values_of

if TYPE_CHECKING:
    from gatewayfilter.scaleout.stream.batch import Decided
    from gatewayfilter.scaleout.stream.counts import Key

RECORDS: Final = "records"
DEAD: Final = "dead"
COUNTS: Final = "counts"
"""What a row of a job's output is, and the folder that it is for."""

COUNT: Final = pa.schema(
    [
        ("window", pa.int64()),
        ("rules_version", pa.string()),
        ("dimension", pa.string()),
        ("value", pa.string()),
        ("records", pa.int64()),
        ("blocked", pa.int64()),
    ]
)
"""The columns of files of counts."""

_FIRST_ROOM: Final = 1_024
"""Places that there is room for at first: few partitions need more."""


class PartitionCounts:
    """Counts by window, dimension and value; as many as the records of a partition have.

    Args:
        window_s: length of a window, 0 for none.
    """

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        number = count()
        self._places: defaultdict[tuple[int, str], defaultdict[Key, int]] = defaultdict(lambda: defaultdict(number.__next__))
        self._sums = np.zeros((2, _FIRST_ROOM), np.int64)
        """Records and blocked ones of each place."""

    def add(self, batch: pa.RecordBatch, decided: Decided, now: float) -> None:
        """Counts a batch.

        Args:
            batch: the records.
            decided: the verdicts on them.
            now: Unix seconds, for records without a time.
        """
        for start, tallies in tallies_of(batch, decided, self._window_s, now):
            for name, tally in tallies.items():
                places = np.fromiter(map(self._places[start, name].__getitem__, tally.keys), np.int64, len(tally.keys))
                if (last := int(places.max())) >= self._sums.shape[1]:
                    self._sums = np.pad(self._sums, ((0, 0), (0, last)))  # at least twice as many
                np.add.at(self._sums[0], places, tally.records)  # of equal keys each
                np.add.at(self._sums[1], places, tally.blocked)

    def table(self, version: str) -> pa.RecordBatch:
        """Returns a row for each count, as `COUNT`."""
        starts: list[int] = []
        names: list[str] = []
        texts: list[str] = []
        sums = np.zeros((2, 0), np.int64)
        for (start, name), places in self._places.items():
            values = values_of(name, places)
            rows = {value: row for row, value in enumerate(dict.fromkeys(values))}
            added = np.zeros((2, len(rows)), np.int64)
            at = np.fromiter(map(rows.__getitem__, values), np.int64, len(values))
            for total, counted in zip(added, self._sums[:, np.fromiter(places.values(), np.int64, len(places))], strict=True):
                np.add.at(total, at, counted)
            starts += [start] * len(rows)
            names += [name] * len(rows)
            texts += rows
            sums = np.concatenate([sums, added], axis=1)
        columns = [starts, [version] * len(starts), names, texts, *sums]
        return pa.RecordBatch.from_arrays([pa.array(of, to.type) for of, to in zip(columns, COUNT, strict=True)], schema=COUNT)
