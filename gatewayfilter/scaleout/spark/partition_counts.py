"""Counts of a partition of a micro-batch, as rows among its answers: no shuffle is needed to add them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gatewayfilter.scaleout.stream.counts import dimensions_of, windows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gatewayfilter.scaleout.stream.batch import Decided

RECORDS: Final = "records"
DEAD: Final = "dead"
COUNTS: Final = "counts"
"""What a row of a job's output is, and the folder that it is for."""


class PartitionCounts:
    """Counts by window, dimension and value; as many as the records of a partition have.

    Args:
        window_s: length of a window, 0 for none.
    """

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        self._counts: dict[tuple[int, str, str], list[int]] = {}

    def add(self, batch: pa.RecordBatch, decided: Decided, now: float) -> None:
        """Counts a batch.

        Args:
            batch: the records.
            decided: the verdicts on them.
            now: Unix seconds, for records without a time.
        """
        starts = windows_of(batch, self._window_s, now)
        counted = decided.numbers < len(decided.verdicts)
        blocked = decided.blocked
        dimensions = dimensions_of(batch, decided)
        for start in np.unique(starts).tolist():
            rows = np.flatnonzero((starts == start) & counted)
            for name, dimension in dimensions.items():
                for value, (records, refused) in dimension.counts(rows, blocked).items():
                    count = self._counts.setdefault((start, name, value), [0, 0])
                    count[0] += records
                    count[1] += refused

    def rows(self, version: str) -> list[dict[str, Any]]:
        """Returns a row for each count."""
        return [
            {
                "window": start,
                "rules_version": version,
                "dimension": name,
                "value": value,
                "records": records,
                "blocked": blocked,
            }
            for (start, name, value), (records, blocked) in self._counts.items()
        ]
