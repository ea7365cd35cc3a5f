"""The decision log: appended in batches, read from its end, truncated from its beginning."""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, bindparam, delete, or_, select

from gatewayfilter.model import LogRecord
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.store.repositories.traffic.log_counts import (
    drop_counts_before,
    drop_counts_of,
    subtract_counts,
    trim_counts,
)
from gatewayfilter.store.repositories.traffic.log_rows import (
    COLUMN_NAMES,
    COUNTS,
    RECORD,
    TERMS,
    newest_settled,
    numbered,
    progress,
)
from gatewayfilter.store.repositories.traffic.log_terms_table import forget_terms
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.log_size import measure_log
from gatewayfilter.store.sql.schema import DECISIONS

_PURGE_CHUNK: Final = 500
"""Rows deleted in one transaction with their index terms: some 30 ms in which no other process can write."""
_PURGE_PAUSE_S: Final = 0.01

_COLUMNS = DECISIONS.c
_ROWS = (128, 32, 8, 1)
"""Rows of one statement. After each statement the thread waits to be scheduled, which costs more than a row; few sizes, because
their statements are cached. SQLite takes 32,766 values in one.
"""
_INTO = f"INSERT INTO {DECISIONS.name} ({', '.join(COLUMN_NAMES)}) "
_PLACES = f"({', '.join('?' * len(COLUMN_NAMES))})"
_VALUES = [(rows, f"{_INTO}VALUES {', '.join([_PLACES] * rows)}") for rows in _ROWS]
_CASTS = {"at": "::double precision", "elapsed_us": "::integer"}
_FROM_JSON = (
    f"{_INTO}SELECT "  # noqa: S608  names of ours
    + ", ".join(f"(r->>{place}){_CASTS.get(name, '')}" for place, name in enumerate(COLUMN_NAMES))
    + " FROM json_array_elements(%s::json) AS r"
)
_SHRUNK = 0.95
"""The fraction of its bound to which an oversized log is truncated, so that it is not measured again after each record."""
_COUNTS_SHARE: Final = 0.2
_FEWEST_COUNTS: Final = 5_000
_COUNT_BYTES: Final = 90
"""Size of a row of `log_counts`; all of them take no more than a share of the bound beside the records."""
_LONGEST_ROW = 4096
"""Maximum size of a record: its texts are truncated at their creation (`proxy/sync/decision_recorder.py`)."""
_TAIL = RECORD.where(_COLUMNS.id > bindparam("after")).order_by(_COLUMNS.id.desc()).limit(bindparam("most"))
_NEWEST = select(_COLUMNS.id).order_by(_COLUMNS.id.desc()).limit(1)


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
        if not _is_storable("".join([text for row in rows for text in row if text.__class__ is str])):
            rows = [tuple(_storable(value) if isinstance(value, str) else value for value in row) for row in rows]
        with self._database.write(Area.LOG) as connection:
            for statement, values in self._batches(rows):
                connection.exec_driver_sql(statement, values)  # bypasses SQLAlchemy's parameters, which cost as much as the rest

    def tail(self, limit: int, after: int = 0) -> list[tuple[int, LogRecord]]:
        """Returns the newest `limit` records with an id above `after`, oldest first, each with its id."""
        with self._database.read() as connection:
            rows = connection.execute(_TAIL, {"after": after, "most": limit}).all()
        return [numbered(row) for row in reversed(rows)]

    def newest(self) -> int:
        """Returns the newest id below which no record can still appear, 0 for an empty log."""
        return newest_settled(self._database)

    def purge(self, before: float) -> int:
        """Removes records older than `before` (Unix seconds), and what was counted of that time. Returns their number.

        Uses short transactions with pauses between them, so that others can write meanwhile.
        """
        drop_counts_before(self._database, before)
        return self._remove(_COLUMNS.at < before, before, by_time=True)

    def purge_clients(self, clients: frozenset[str], before: float | None = None) -> int:
        """Removes the records of clients, and what was counted of them, like `purge`. Returns the number of records.

        Args:
            clients: addresses as logged, and users as `user:NAME`.
            before: only older records (Unix seconds); `None` for all.
        """
        addresses = [client for client in clients if not client.startswith(USER_PREFIX)]
        users = [client.removeprefix(USER_PREFIX) for client in clients if client.startswith(USER_PREFIX)]
        which = or_(_COLUMNS.client.in_(addresses), and_(_COLUMNS.user_name.in_(users), _COLUMNS.user_name != ""))
        if before is not None:
            which = and_(which, _COLUMNS.at < before)
        removed = self._remove(which, 0.0)
        if before is None:
            drop_counts_of(self._database, clients)
        return removed

    def shrink(self, most_bytes: float) -> int:
        """Removes the oldest records once all take more than `most_bytes` on disk, like `purge`. Returns their number.

        What was counted of them stays. Costs a read of the newest id, and a `measure_log` each time that the bound may have been
        exceeded.
        """
        with self._database.read() as connection:
            newest = connection.scalar(_NEWEST) or 0
            if newest < self._room_until.get(most_bytes, newest):
                return 0
            measured = measure_log(connection, most_bytes, most_bytes * _SHRUNK)
        trim_counts(self._database, max(int(most_bytes * _COUNTS_SHARE / _COUNT_BYTES), _FEWEST_COUNTS))
        kept_bytes = min(measured.size_bytes, most_bytes * _SHRUNK) if measured.surplus_up_to else measured.size_bytes
        self._room_until = {most_bytes: newest + int((most_bytes - kept_bytes) / _LONGEST_ROW)}
        return self._remove(_COLUMNS.id <= measured.surplus_up_to, None) if measured.surplus_up_to else 0

    def _remove(self, which: ColumnElement[bool], counted_from: float | None, *, by_time: bool = False) -> int:
        """Deletes in chunks until no row is left, with the index terms of the rows.

        Args:
            which: condition on the rows.
            counted_from: the time from which on the deleted rows are taken off the counts; `None` leaves the counts as they are.
            by_time: finds the rows by the index over the time, else in the order of their ids.
        """
        chunk = RECORD.where(which).limit(_PURGE_CHUNK)
        chunk = chunk.order_by(_COLUMNS.at) if by_time else chunk.where(_COLUMNS.id > bindparam("after")).order_by(_COLUMNS.id)
        removed, after = 0, 0
        while True:
            with self._database.read() as connection:
                rows = [numbered(row) for row in connection.execute(chunk, {} if by_time else {"after": after})]
            if not rows:
                return removed
            after = rows[-1][0]
            removed += self._remove_rows(rows, counted_from)
            if len(rows) < _PURGE_CHUNK:
                return removed
            time.sleep(_PURGE_PAUSE_S)

    def _remove_rows(self, rows: list[tuple[int, LogRecord]], counted_from: float | None) -> int:
        with self._database.write(Area.LOG_COUNTS) as connection:
            deleted = delete(DECISIONS).where(_COLUMNS.id.in_([number for number, _ in rows])).returning(_COLUMNS.id)
            gone = set(connection.scalars(deleted))
            rows = [pair for pair in rows if pair[0] in gone]
            indexed = progress(connection, TERMS)
            forget_terms(self._database, connection, [pair for pair in rows if pair[0] <= indexed])
            if counted_from is not None:
                counted = progress(connection, COUNTS)
                subtract_counts(connection, [record for number, record in rows if number <= counted], counted_from)
        return len(rows)


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
