"""The batch function: traffic records as an Arrow record batch in, the same with verdicts out.

Records of any source have the fields of `RECORD`; only `url` is needed, and other columns pass through. Added are the fields
of `VERDICT`. The paper's records are the six fields time to protocol, with host and URI, which are one column here: the URL.

Source: [ad-traffic §2.3]: records of the probe are matched in batches on many machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from gatewayfilter.errors import UrlError
from gatewayfilter.scaleout.stream.deciding import why_no_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.model import Verdict
    from gatewayfilter.scaleout.stream.rule_set import RuleSet

RECORD: Final = pa.schema(
    [
        ("time", pa.float64()),
        ("client", pa.string()),
        ("client_port", pa.int32()),
        ("server", pa.string()),
        ("server_port", pa.int32()),
        ("protocol", pa.string()),
        ("method", pa.string()),
        ("url", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("status", pa.int32()),
        ("bytes", pa.int64()),
    ]
)
"""Fields of a traffic record. Time in Unix seconds; client and server are addresses; `source` is the page that caused it."""

VERDICT: Final = pa.schema(
    [
        ("action", pa.string()),
        ("reason", pa.string()),
        ("rule", pa.string()),
        ("source_list", pa.string()),
        ("category", pa.string()),
        ("error", pa.string()),
        ("rules_version", pa.string()),
    ]
)
"""Fields that are added. A record that is no request has an error in place of action and reason."""

_NO_URL: Final = "no url"


class Decided:
    """The verdicts on a batch, as numbers into a table of distinct ones.

    Attributes:
        numbers: int32[rows], into `verdicts`, and behind them `faults`.
        verdicts: the distinct verdicts.
        faults: why rows have none, distinct.
    """

    __slots__ = ("faults", "numbers", "verdicts")

    def __init__(self, numbers: np.ndarray[Any, Any], verdicts: list[Verdict], faults: list[str]) -> None:
        self.numbers = numbers
        self.verdicts = verdicts
        self.faults = faults

    def columns(self, version: str) -> list[Any]:
        """Returns the columns of `VERDICT`."""
        known, faults = self.verdicts, self.faults
        rows = pa.array(self.numbers)
        missing: list[str | None] = [None] * len(faults)
        table = (
            [verdict.action.value for verdict in known] + missing,
            [verdict.reason.value for verdict in known] + missing,
            [verdict.rule for verdict in known] + missing,
            [verdict.source_list for verdict in known] + missing,
            [verdict.category for verdict in known] + missing,
            [None] * len(known) + list(faults),
        )
        columns = [pa.array(values, pa.string()).take(rows) for values in table]
        return [*columns, pa.array([version], pa.string()).take(pa.array(np.zeros(len(self.numbers), np.int32)))]


def match_batch(batch: pa.RecordBatch, rules: RuleSet) -> pa.RecordBatch:
    """Returns the batch with the verdict on each row, in order; verdicts are those of `FilterEngine.decide`.

    Columns of the names of `VERDICT` are replaced.

    Args:
        batch: with the column `url`; `source`, `type`, `method` and `client` are used where they are.
        rules: decide the whole batch: each row has their version.

    Raises:
        ValueError: there is no column `url`, or one of those is no text.
    """
    return with_verdicts(batch, decide_batch(batch, rules), rules.version)


def with_verdicts(batch: pa.RecordBatch, decided: Decided, version: str) -> pa.RecordBatch:
    """Returns the batch with the columns of `VERDICT`."""
    kept = [number for number, name in enumerate(batch.schema.names) if name not in VERDICT.names]
    fields = [batch.schema.field(number) for number in kept]
    columns = [batch.column(number) for number in kept]
    return pa.RecordBatch.from_arrays([*columns, *decided.columns(version)], schema=pa.schema([*fields, *VERDICT]))


def decide_batch(batch: pa.RecordBatch, rules: RuleSet) -> Decided:
    """Returns the verdicts on a batch; see `match_batch`.

    Raises:
        ValueError: as there.
    """
    if "url" not in batch.schema.names:
        raise ValueError("the records have no column url")
    rows = batch.num_rows
    urls = _texts(batch, "url", rows)
    numbers = np.empty(rows, np.int32)
    known: dict[int, int] = {}
    verdicts: list[Verdict] = []
    faulty: dict[int, str] = {}
    verdict_of = rules.decider.verdict
    columns = zip(urls, _texts(batch, "source", rows), _texts(batch, "type", rows), _texts(batch, "method", rows),
                  _texts(batch, "client", rows), strict=True)  # fmt: skip
    found: list[int] = []
    for url, source, kind, method, client in columns:
        if url is None:
            faulty[len(found)] = _NO_URL
            found.append(-1)
            continue
        try:
            verdict = verdict_of(url, source, kind, method or "GET", client or "")
        except UrlError as error:
            faulty[len(found)] = why_no_url(error)
            found.append(-1)
            continue
        number = known.get(id(verdict))
        if number is None:  # the list below keeps the object, so that no other one has its id
            number = known[id(verdict)] = len(verdicts)
            verdicts.append(verdict)
        found.append(number)
    numbers[:] = found
    faults = list(dict.fromkeys(faulty.values()))
    places = {why: len(verdicts) + place for place, why in enumerate(faults)}
    for row, why in faulty.items():
        numbers[row] = places[why]
    return Decided(numbers, verdicts, faults)


def _texts(batch: pa.RecordBatch, name: str, rows: int) -> Sequence[str | None]:
    """Returns a column as texts; one that is not there has no values."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return [None] * rows
    column = batch.column(place)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return [None] * rows
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)):
        raise ValueError(f"the column {name} holds {column.type}, not text")
    texts: list[str | None] = column.to_numpy(zero_copy_only=False).tolist()  # a fifth of the time of to_pylist
    return texts
