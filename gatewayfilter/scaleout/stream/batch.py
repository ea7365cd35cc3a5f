"""The batch function: traffic records as an Arrow record batch in, the same with verdicts out.

Records of any source have the fields of `RECORD`; only `url` is needed, and other columns pass through. Added are the fields
of `VERDICT`. The paper's records are the six fields time to protocol, with host and URI, which are one column here: the URL.

Source: [ad-traffic §2.3]: records of the probe are matched in batches on many machines.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from gatewayfilter.engine.batches.batch_decider import UNDECIDED, Column, RequestColumns
from gatewayfilter.engine.batches.plain_urls import PlainUrls, read_plain
from gatewayfilter.engine.batches.verdict_table import VerdictTable
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Action
from gatewayfilter.scaleout.stream.deciding import page_of, type_of, why_no_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gatewayfilter.model import Reason, Verdict
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

_READ: Final = ("url", "source", "type", "method", "client")
_NO_URL: Final = "no url"


class VerdictTexts(NamedTuple):
    """The columns of the distinct verdicts on a batch."""

    actions: tuple[Action, ...] = ()
    reasons: tuple[Reason, ...] = ()
    rules: tuple[str, ...] = ()
    source_lists: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


_texts_of = attrgetter("action", "reason", "rule", "source_list", "category")


class Decided:
    """The verdicts on a batch, as numbers into a table of distinct ones.

    Attributes:
        numbers: int32[rows], into `verdicts`, and behind them `faults`.
        verdicts: the distinct verdicts.
        faults: why rows have none, distinct.
        urls: the URLs as they were read.
    """

    def __init__(self, numbers: NDArray[np.int32], verdicts: list[Verdict], faults: list[str], urls: PlainUrls) -> None:
        self.numbers = numbers
        self.verdicts = verdicts
        self.faults = faults
        self.urls = urls

    @cached_property
    def texts(self) -> VerdictTexts:
        """The columns of `verdicts`."""
        return VerdictTexts(*zip(*map(_texts_of, self.verdicts), strict=True))

    @property
    def blocked(self) -> NDArray[np.bool_]:
        """Whether each row is blocked: bool[rows]."""
        known = [action is Action.BLOCK for action in self.texts.actions] + [False] * len(self.faults)
        return np.array(known, np.bool_).take(self.numbers) if known else np.zeros(0, np.bool_)

    def columns(self, version: str) -> list[Any]:
        """Returns the columns of `VERDICT`."""
        return [column.dictionary_decode() for column in self.dictionaries(version)]

    def dictionaries(self, version: str) -> list[Any]:
        """Returns the columns of `VERDICT` as dictionaries, without repetitions: writers of Parquet take such as they are."""
        texts, faults, numbers = self.texts, self.faults, self.numbers
        faulty = numbers >= len(self.verdicts) if faults else None
        of_verdicts = (
            [action._value_ for action in texts.actions],  # a third of the time of `value`
            [reason._value_ for reason in texts.reasons],
            texts.rules,
            texts.source_lists,
            texts.categories,
        )
        columns = [_dictionary(numbers, [*column, *[""] * len(faults)], faulty) for column in of_verdicts]
        if faulty is None:
            errors = pa.nulls(len(numbers), pa.dictionary(pa.int32(), pa.string()))
        else:
            errors = _dictionary(numbers, [*[""] * len(self.verdicts), *faults], ~faulty)
        same = np.zeros(len(numbers), np.int32)
        return [*columns, errors, _numbered(same, None, [version])]


def _dictionary(numbers: NDArray[np.int32], texts: list[str], missing: NDArray[np.bool_] | None) -> Any:
    """Returns a column of numbered texts as a dictionary.

    Args:
        numbers: int32[rows], into the texts.
        texts: of which several may be equal.
        missing: bool[rows]: has no text.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    table = np.fromiter(map(places.__getitem__, texts), np.int32, len(texts))
    return _numbered(table.take(numbers) if len(numbers) else numbers, missing, list(places))


def _numbered(numbers: NDArray[np.int32], missing: NDArray[np.bool_] | None, values: list[str]) -> Any:
    known = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    of = pa.dictionary(pa.int32(), pa.string())
    return pa.DictionaryArray.from_buffers(of, len(numbers), [known, pa.py_buffer(numbers)], pa.array(values, pa.string()))


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
    urls = _texts(batch, "url")
    _, offsets, data = urls.buffers()
    text = memoryview(data if data is not None else b"").cast("B")
    starts = np.frombuffer(offsets, np.int32, rows + 1, 4 * urls.offset) if rows else np.zeros(1, np.int32)
    columns = RequestColumns(
        read_plain(text, starts, hashed=rules.batches.wants_digests),
        text,
        starts,
        _values(batch, "source", page_of),
        _values(batch, "type", type_of),
        _values(batch, "method", lambda name: name or "GET"),
    )
    table = VerdictTable()
    numbers = rules.batches.decide(columns, table)
    left = np.flatnonzero(numbers == UNDECIDED)
    faults: dict[str, int] = {}
    faulty: dict[int, int] = {}
    read = batch.select([number for number, name in enumerate(batch.schema.names) if name in _READ])
    if any(pa.types.is_string_view(of.type) for of in read.schema):  # Arrow takes no rows of views
        plain = [of.with_type(pa.string()) if pa.types.is_string_view(of.type) else of for of in read.schema]
        read = read.cast(pa.schema(plain))
    some = read.take(pa.array(left))  # of dictionaries, their numbers alone
    texts = [_texts(some, name).to_pylist() for name in _READ]
    for row, url, source, kind, method, client in zip(left.tolist(), *texts, strict=True):
        why = _NO_URL
        if url is not None:
            try:
                numbers[row] = table.number(rules.decider.verdict(url, source, kind, method or "GET", client or ""))
                continue
            except UrlError as error:
                why = why_no_url(error)
        faulty[row] = faults.setdefault(why, len(faults))
    for row, number in faulty.items():
        numbers[row] = len(table.verdicts) + number
    return Decided(numbers, table.verdicts, list(faults), columns.urls)


def _values[T](batch: pa.RecordBatch, name: str, read: Callable[[str | None], T]) -> Column[T]:
    """Returns a column whose values are read once each."""
    place = batch.schema.get_field_index(name)
    encoded = None if place == -1 else batch.column(place)
    if encoded is None or not (pa.types.is_dictionary(encoded.type) and pa.types.is_string(encoded.type.value_type)):
        encoded = _texts(batch, name).dictionary_encode(null_encoding="encode")
    values = [read(text) for text in encoded.dictionary.to_pylist()]
    indices = encoded.indices
    if indices.null_count or not values:
        values.append(read(None))
        indices = indices.fill_null(len(values) - 1)
    return Column(np.asarray(indices.to_numpy(), np.int32), values)


def _texts(batch: pa.RecordBatch, name: str) -> Any:
    """Returns a column of texts; one that is not there has no values."""
    place = batch.schema.get_field_index(name)
    if place == -1:
        return pa.nulls(batch.num_rows, pa.string())
    column = batch.column(place)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        return column
    if not (pa.types.is_null(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)):
        raise ValueError(f"the column {name} holds {column.type}, not text")
    return column.cast(pa.string())
