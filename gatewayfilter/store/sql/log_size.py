"""The size of the decision log on disk, and the row from which on it takes a given number of bytes, estimated by sampling.

A sum over all rows would read the whole log, and a running total would cost every request. Instead the ids are parted into
`STRATA` ranges of the same width, newest first, and one row of each, drawn at random, stands for its range. Ids ascend in order
of writing and only the oldest rows ever leave, so ranges are full or empty but for a few gaps. The sample is
unpredictable, so a client cannot write rows that are missed; tests bound the error of a sample to a tenth, that of a row's
size to a fifth.

What is stored for each record elsewhere in the database belongs to the size too: `_ROW_OVERHEAD` and `_TUPLE_OVERHEAD` hold it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import batched
from random import SystemRandom
from typing import Final

from sqlalchemy import ColumnElement, Connection, LargeBinary, Text, bindparam, cast, func, select

from gatewayfilter.store.sql.schema import DECISIONS

STRATA: Final = 2_000
_CHUNK: Final = 500
_PAGE: Final = 4_096
"""SQLite's page, which holds whole rows: one of 2.1 kB has a page of its own, and what is longer several."""
_PAGE_ROOM: Final = 4_088
_LONGEST_LOCAL: Final = 4_061
_ROW_OVERHEAD: Final = 48
"""Header, numbers and time of a row, and its share of the index over the time."""
_TUPLE_OVERHEAD: Final = 120
"""The same in PostgreSQL, with the head of a tuple (23 bytes), its pointers, two indexes, and dead rows until the next vacuum."""

_INDEXED: Final = 600
"""Bytes of a record's texts that the search index and the counts grow with."""
_INDEX_BYTES: Final = 1.5
_TRIGRAM_BYTES: Final = 3.0
"""Bytes that an index takes for each of them: lists of row ids, in SQLite (measured 1.2) and in PostgreSQL."""
_INDEX_OVERHEAD: Final = 40
_INDEXES_OVERHEAD: Final = 120

_COLUMNS = DECISIONS.c
_TEXTS = [column for column in _COLUMNS if isinstance(column.type, Text)]
_ENDS = select(func.min(_COLUMNS.id), func.max(_COLUMNS.id))


@dataclass(frozen=True, slots=True)
class LogSize:
    """The size of the log.

    Attributes:
        size_bytes: of all rows, with indexes and unused space in pages.
        surplus_up_to: the newest id of the rows in excess, 0 for none.
    """

    size_bytes: int
    surplus_up_to: int


def measure_log(connection: Connection, most_bytes: float, kept_bytes: float | None = None) -> LogSize:
    """Returns the log's size and its excess. Reads `STRATA` rows at most: some 20 ms.

    Args:
        connection: of the database.
        most_bytes: the log may take.
        kept_bytes: target size of a log that takes more, `most_bytes` by default.
    """
    first, last = connection.execute(_ENDS).one()
    if first is None:
        return LogSize(0, 0)
    is_sqlite = connection.dialect.name == "sqlite"
    ranges = _ranges(first, last)
    random = SystemRandom()
    lengths = _lengths(connection, [random.randrange(start, end) for start, end in ranges], is_sqlite=is_sqlite)
    size, surplus = 0, 0
    for (start, end), length in zip(ranges, lengths, strict=True):
        if length is not None:
            size += (end - start) * (_of_sqlite(length) if is_sqlite else _of_postgres(length))
        if not surplus and size > (most_bytes if kept_bytes is None else kept_bytes):
            surplus = end - 1
    return LogSize(size, surplus if size > most_bytes else 0)


def _ranges(first: int, last: int) -> list[tuple[int, int]]:
    """Returns the ids from first to last as ranges (start, end past it) of about the same width, newest first."""
    count = last - first + 1
    parts = min(STRATA, count)
    edges = [first + count * part // parts for part in range(parts + 1)]
    return [(edges[part], edges[part + 1]) for part in range(parts - 1, -1, -1)]


def _lengths(connection: Connection, ids: list[int], *, is_sqlite: bool) -> Iterable[int | None]:
    """Returns the bytes of text of each of these rows, `None` for a missing one."""
    rows = select(_COLUMNS.id, _text_bytes(is_sqlite=is_sqlite)).where(_COLUMNS.id.in_(bindparam("ids", expanding=True)))
    found: dict[int, int] = {}
    for chunk in batched(ids, _CHUNK):
        found.update((number, length) for number, length in connection.execute(rows, {"ids": chunk}))
    return [found.get(number) for number in ids]


def _text_bytes(*, is_sqlite: bool) -> ColumnElement[int]:
    length = _blob_length if is_sqlite else func.octet_length
    total: ColumnElement[int] = length(_TEXTS[0])
    for column in _TEXTS[1:]:
        total += length(column)
    return total


def _of_sqlite(length: int) -> int:
    return _in_pages(length) + int(_INDEX_BYTES * min(length, _INDEXED)) + _INDEX_OVERHEAD


def _of_postgres(length: int) -> int:
    return length + _TUPLE_OVERHEAD + int(_TRIGRAM_BYTES * min(length, _INDEXED)) + _INDEXES_OVERHEAD


def _in_pages(length: int) -> int:
    row = length + _ROW_OVERHEAD
    if row <= _LONGEST_LOCAL:
        return _PAGE // (_PAGE_ROOM // row)
    return (row // _PAGE + 1) * _PAGE


def _blob_length(text: ColumnElement[str]) -> ColumnElement[int]:
    return func.length(cast(text, LargeBinary))
