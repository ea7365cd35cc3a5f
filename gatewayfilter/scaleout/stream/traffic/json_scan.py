"""Simple JSON records in columns: read by one compiled pass, without an object for each.

A message is simple when it is an object in plain ASCII with a URL, whose known fields are there once and have their types, as
texts without escapes and as exact numbers, and whose other members are no objects or lists. This is sufficient, not necessary:
what is not simple is left to the readers of `lines`, which give the same record for what is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from gatewayfilter.compiled import load
from gatewayfilter.scaleout.stream.batch import RECORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_compiled = load("gatewayfilter.scaleout.stream.traffic._json_scan")

_TEXTS: Final = ("source", "type", "method", "client", "server", "protocol")
_NUMBERS: Final = ("time", "client_port", "server_port", "status", "bytes")


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was read of messages.

    Attributes:
        batch: the simple records, in order; texts other than the URL are dictionaries.
        braces: int32[n]: where the brace that ends each message is in it; -1 for what is not simple, or has a name of `VERDICT`.
        rows: int64[n]: places of the simple messages.
        left: places of the others.
    """

    batch: pa.RecordBatch
    braces: NDArray[np.int32]
    rows: NDArray[np.int64]
    left: list[int]


def scan(messages: Sequence[bytes]) -> Scanned | None:
    """Returns what is simple among messages; `None` where nothing was compiled, or they are larger than 2 GB."""
    if _compiled is None:
        return None
    given, count = list(messages), len(messages)
    if sum(map(len, given)) >= 1 << 31:
        return None
    done, ends, named, urls, places, texts, words, times, numbers, has = _compiled.scan(given)
    most = max(count, 1)
    columns: dict[str, Any] = {"url": pa.StringArray.from_buffers(done, pa.py_buffer(places), pa.py_buffer(urls))}
    for number, (name, values) in enumerate(zip(_TEXTS, words, strict=True), 1):
        found = np.frombuffer(texts, np.int32, done, 4 * number * most)
        column = pa.array(found, mask=found < 0)
        columns[name] = pa.DictionaryArray.from_arrays(column, pa.array(values, pa.binary()).cast(pa.string()))
    for number, name in enumerate(_NUMBERS):
        known = np.frombuffer(has, np.bool_, done, number * most)
        kind = RECORD.field(name).type
        if not known.any():
            columns[name] = pa.nulls(done, kind)
            continue
        stored = (
            np.frombuffer(times, np.float64, done) if not number else np.frombuffer(numbers, np.int64, done, 8 * number * most)
        )
        columns[name] = pa.array(stored.astype(kind.to_pandas_dtype(), copy=False), mask=None if known.all() else ~known)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in RECORD.names], RECORD.names)
    braces = np.frombuffer(ends, np.int32, count)
    simple = braces >= 0
    braces = np.where(np.frombuffer(named, np.bool_, count), np.int32(-1), braces)
    return Scanned(batch, braces, np.flatnonzero(simple), np.flatnonzero(~simple).tolist())


def merged(scanned: Scanned, rest: pa.RecordBatch, read: Sequence[int]) -> tuple[pa.RecordBatch, list[int]]:
    """Returns simple records and others, in the order of their messages; and the place of each.

    Args:
        scanned: the simple ones, and the messages that were left.
        rest: the records that were read of those.
        read: their places among the messages that were left.
    """
    rows = np.concatenate([scanned.rows, np.array(scanned.left, np.int64)[np.array(read, np.int64)]])
    order = np.argsort(rows, kind="stable")
    table = pa.Table.from_batches([scanned.batch.cast(RECORD), rest.select(RECORD.names).cast(RECORD)])
    batch = table.take(pa.array(order)).combine_chunks().to_batches()
    return (batch[0] if batch else rest), rows[order].tolist()
