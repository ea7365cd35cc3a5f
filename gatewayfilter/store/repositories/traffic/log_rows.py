"""Log records as rows of the table `decisions`, and the ids up to which the log is counted and indexed."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, select

from gatewayfilter.model import LogRecord
from gatewayfilter.renamed_codes import RENAMED_CODES, current_code
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import DECISIONS, LOG_PROGRESS
from gatewayfilter.store.sql.upsert import upsert

COLUMN_NAMES: Final = tuple("user_name" if name == "user" else name for name in LogRecord._fields)
"""The columns of a record, in the order of its fields (`user` is a reserved word of PostgreSQL)."""
COUNTS: Final = "counts"
TERMS: Final = "terms"
TERMS_VERSION_ROW: Final = "terms-version"

_LONGEST_S: Final = 0.045
"""Duration of a transaction from which on the next one takes fewer rows: others shall wait less than 100 ms."""
_FIRST_CHUNK: Final = 250
_SMALLEST_CHUNK: Final = 50

_COLUMNS = DECISIONS.c
RECORD: Final = select(_COLUMNS.id, *(_COLUMNS[name] for name in COLUMN_NAMES))
"""Selects records with their ids, for `numbered`."""
_AFTER = (
    RECORD.where(_COLUMNS.id > bindparam("after"), _COLUMNS.id <= bindparam("up_to"))
    .order_by(_COLUMNS.id)
    .limit(bindparam("most"))
)
_THERE = select(_COLUMNS.id).where(_COLUMNS.id.between(bindparam("first"), bindparam("last")))
_NEWEST = select(func.max(_COLUMNS.id))


def numbered(row: Row[Any]) -> tuple[int, LogRecord]:
    """Returns a row of `RECORD` as id and record."""
    record = LogRecord._make(row[1:])
    return row[0], record._replace(reason=current_code(record.reason)) if record.reason in RENAMED_CODES else record


def records_after(connection: Connection, after: int, up_to: int, most: int) -> list[tuple[int, LogRecord]]:
    """Returns the oldest records with `after < id <= up_to`."""
    return [numbered(row) for row in connection.execute(_AFTER, {"after": after, "up_to": up_to, "most": most})]


def still_there(connection: Connection, records: Sequence[tuple[int, LogRecord]]) -> list[tuple[int, LogRecord]]:
    """Returns those of these records, in the order of their ids, that were not deleted meanwhile."""
    found = set(connection.scalars(_THERE, {"first": records[0][0], "last": records[-1][0]}))
    return [pair for pair in records if pair[0] in found]


def progress(connection: Connection, name: str) -> int:
    """Returns the id up to which the log is counted or indexed, 0 for none."""
    return connection.scalar(select(LOG_PROGRESS.c.up_to).where(LOG_PROGRESS.c.name == name)) or 0


def set_progress(database: Database, connection: Connection, name: str, up_to: int) -> None:
    """Stores the id up to which the log is counted or indexed."""
    connection.execute(upsert(database, LOG_PROGRESS, lambda _: LOG_PROGRESS.c.name == name), {"name": name, "up_to": up_to})


def newest_settled(database: Database) -> int:
    """Returns the newest id below which no record can still appear, 0 for an empty log.

    PostgreSQL gives out ids before the transactions are committed: those that are under way are awaited.
    """
    if database.path:
        with database.read() as connection:
            return connection.scalar(_NEWEST) or 0
    with database.write(Area.LOG_COUNTS) as connection:
        database.await_writers(connection, Area.LOG)
        return connection.scalar(_NEWEST) or 0


class ChunkSize:
    """The number of rows for one transaction, fitted to the time for which it may keep other writers waiting.

    Args:
        most: upper bound.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows = min(_FIRST_CHUNK, most)

    def fit(self, took_s: float) -> None:
        """Fits the size after a transaction of this duration."""
        if took_s > _LONGEST_S:
            self.rows = max(self.rows // 2, _SMALLEST_CHUNK)
        elif took_s < _LONGEST_S / 3:
            self.rows = min(self.rows * 2, self._most)
