"""The decision log: appended in batches, read from its end, truncated from its beginning."""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, delete, select

from gatewayfilter.model import LogRecord
from gatewayfilter.renamed_codes import RENAMED_CODES, current_code
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.log_size import measure_log
from gatewayfilter.store.sql.schema import DECISIONS

_PURGE_CHUNK = 2000
"""Rows deleted in one transaction: some 15 ms in which no other process can write, 30 ms where each row fills a page."""
_PURGE_PAUSE_S = 0.01

_FIELDS = LogRecord._fields
_COLUMNS = DECISIONS.c
_ROWS = (128, 32, 8, 1)
"""Rows of one statement. After each statement the thread waits to be scheduled, which costs more than a row; few sizes, because
their statements are cached. SQLite takes 32,766 values in one.
"""
_INTO = f"INSERT INTO {DECISIONS.name} ({', '.join(_FIELDS)}) "
_PLACES = f"({', '.join('?' * len(_FIELDS))})"
_VALUES = [(rows, f"{_INTO}VALUES {', '.join([_PLACES] * rows)}") for rows in _ROWS]
_FROM_JSON = (
    f"{_INTO}SELECT (r->>0)::double precision, "  # noqa: S608  names of ours
    + "".join(f"r->>{place}, " for place in range(1, len(_FIELDS) - 1))
    + f"(r->>{len(_FIELDS) - 1})::integer FROM json_array_elements(%s::json) AS r"
)
_SHRUNK = 0.95
"""The fraction of its bound to which an oversized log is truncated, so that it is not measured again after each record."""
_LONGEST_ROW = 4096
"""Maximum size of a record: its texts are truncated at their creation (`proxy/sync/decision_recorder.py`)."""
_TEXTS = slice(1, -1)
"""The text fields of a row: all but the first and the last."""
_TAIL = (
    select(_COLUMNS.id, *(_COLUMNS[name] for name in _FIELDS))
    .where(_COLUMNS.id > bindparam("after"))
    .order_by(_COLUMNS.id.desc())
    .limit(bindparam("most"))
)
_NEWEST = select(_COLUMNS.id).order_by(_COLUMNS.id.desc()).limit(1)
_OLD = select(_COLUMNS.id).where(_COLUMNS.at < bindparam("before")).limit(bindparam("most"))
_FIRST = select(_COLUMNS.id).where(_COLUMNS.id <= bindparam("up_to")).order_by(_COLUMNS.id).limit(bindparam("most"))


class SqlDecisionLog:
    """Implements `interfaces.DecisionLog`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._room_until: dict[float, int] = {}  # the log cannot exceed its bound before this id is written
        self._batches = _batches_of_values if database.path else _batch_of_json

    def write(self, records: Sequence[LogRecord]) -> None:
        """Appends a batch, in one transaction. Characters that no database accepts are replaced by `?`."""
        if not records:
            return
        rows: Sequence[tuple[Any, ...]] = records
        if not _is_storable("".join([text for row in rows for text in row[_TEXTS]])):
            rows = [(row[0], *map(_storable, row[_TEXTS]), row[-1]) for row in rows]
        with self._database.write(Area.LOG) as connection:
            for statement, values in self._batches(rows):
                connection.exec_driver_sql(statement, values)  # bypasses SQLAlchemy's parameters, which cost as much as the rest

    def tail(self, limit: int, after: int = 0) -> list[tuple[int, LogRecord]]:
        """Returns the newest `limit` records with an id above `after`, oldest first, each with its id."""
        with self._database.read() as connection:
            rows = connection.execute(_TAIL, {"after": after, "most": limit}).all()
        return [(row[0], _record(row)) for row in reversed(rows)]

    def purge(self, before: float) -> int:
        """Removes records older than `before` (Unix seconds). Returns their number.

        Uses short transactions with pauses between them, so that others can write meanwhile.
        """
        return self._remove(_COLUMNS.id.in_(_OLD), {"before": before})

    def shrink(self, most_bytes: float) -> int:
        """Removes the oldest records once all take more than `most_bytes` on disk, like `purge`. Returns their number.

        Costs a read of the newest id, and a `measure_log` each time that the bound may have been exceeded.
        """
        with self._database.read() as connection:
            newest = connection.scalar(_NEWEST) or 0
            if newest < self._room_until.get(most_bytes, 0):
                return 0
            measured = measure_log(connection, most_bytes, most_bytes * _SHRUNK)
        kept_bytes = min(measured.size_bytes, most_bytes * _SHRUNK) if measured.surplus_up_to else measured.size_bytes
        self._room_until = {most_bytes: newest + int((most_bytes - kept_bytes) / _LONGEST_ROW)}
        return self._remove(_COLUMNS.id.in_(_FIRST), {"up_to": measured.surplus_up_to}) if measured.surplus_up_to else 0

    def _remove(self, which: ColumnElement[bool], values: dict[str, float]) -> int:
        """Deletes in chunks until a chunk is not full."""
        statement = delete(DECISIONS).where(which)
        removed = 0
        while True:
            with self._database.write(Area.LOG) as connection:
                count = connection.execute(statement, {**values, "most": _PURGE_CHUNK}).rowcount
            removed += count
            if count < _PURGE_CHUNK:
                return removed
            time.sleep(_PURGE_PAUSE_S)


def _record(row: Row[Any]) -> LogRecord:
    record = LogRecord._make(row[1:])
    return record._replace(reason=current_code(record.reason)) if record.reason in RENAMED_CODES else record


def _batches_of_values(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """For SQLite: several rows per statement."""
    start = 0
    for size, statement in _VALUES:
        while start + size <= len(rows):
            yield statement, tuple(chain.from_iterable(rows[start : start + size]))
            start += size


def _batch_of_json(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """For PostgreSQL: its driver takes longer per parameter than JSON takes per row."""
    yield _FROM_JSON, (json.dumps(rows, ensure_ascii=False, separators=(",", ":")),)


def _is_storable(text: str) -> bool:
    """Returns whether every database accepts a text: no lone surrogate, no NUL."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(text: str) -> str:
    """Clients choose the content of a request; one that cannot be stored must not cost the whole batch."""
    return text if _is_storable(text) else text.encode(errors="replace").decode().replace("\0", "?")
