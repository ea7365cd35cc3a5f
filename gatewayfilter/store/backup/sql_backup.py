"""Backup and restore of the database: rows out of one consistent snapshot, and back in one transaction."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import batched
from pathlib import Path
from typing import IO, Any, Final, Protocol

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select, text

from gatewayfilter.store.backup.differences import Difference, differences, rows_of
from gatewayfilter.store.backup.feed_steps import check_policies, entry_of, in_feed, step
from gatewayfilter.store.backup.row_checks import check_row
from gatewayfilter.store.backup.row_codec import RowCodec
from gatewayfilter.store.backup.tables import BACKED_UP, BackedUpTable, Part
from gatewayfilter.store.repositories.change_feed import append_changes
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import (
    ACCOUNTS,
    DECISIONS,
    HEAD,
    LOG_COUNTS,
    LOG_DEVICES,
    LOG_HOURS,
    LOG_PROGRESS,
    POLICY_ITEMS,
    WEB_SESSIONS,
)

_CHUNK: Final = 500
_AREAS: Final = (
    Area.VERDICTS,
    Area.REVIEWS,
    Area.FINGERPRINTS,
    Area.LISTS,
    Area.UNBLOCK,
    Area.ACCESS,
    Area.LOG,
    Area.LOG_COUNTS,
)
"""The order in which the locks are taken; that of the learner and of decisions on reviews."""

DERIVED_OF_LOG: Final = (LOG_COUNTS, LOG_HOURS, LOG_DEVICES, LOG_PROGRESS)
"""Made from the decisions in the background; without progress, counts and the search index are made again from the first one."""

_DEPENDENT: Final[Mapping[Table, Sequence[Table]]] = {
    DECISIONS: DERIVED_OF_LOG,
    ACCOUNTS: (WEB_SESSIONS,),  # the number of an account may be that of another person afterwards
}
"""Tables that are emptied when a restore changes another one."""

_LAST_NUMBER: Final = text("SELECT pg_sequence_last_value(CAST(:sequence AS regclass))")


class RowSource(Protocol):
    """The rows of a backup, at the schema of this program."""

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables that it has."""
        ...

    def lines(self, table: str) -> Iterator[bytes]:
        """Yields the rows of a table, as `RowCodec` writes them, in the order of their keys."""
        ...


@dataclass(slots=True)
class TableChanges:
    """How many rows of a table a restore adds, changes and removes.

    Attributes:
        name: of the table.
        title: what its rows are, for people.
    """

    name: str
    title: str
    added: int = 0
    changed: int = 0
    removed: int = 0

    def count(self, difference: Difference) -> None:
        """Counts one row."""
        if difference.now is None:
            self.added += 1
        elif difference.then is None:
            self.removed += 1
        else:
            self.changed += 1


class TablesInSnapshot:
    """The tables as they were at one instant. Implements `RowSource`.

    Args:
        connection: reads one state.
        parts: which tables.
    """

    def __init__(self, connection: Connection, parts: frozenset[Part]) -> None:
        self._connection = connection
        self._tables = {item.table.name: item.table for item in BACKED_UP if item.part in parts}

    def tables(self) -> Sequence[str]:
        """Returns the names of the tables."""
        return tuple(self._tables)

    def lines(self, table: str) -> Iterator[bytes]:
        """Yields the rows of a table in the order of their keys."""
        codec = RowCodec(self._tables[table])
        yield from map(codec.line, rows_of(self._connection, self._tables[table]))


class SqlBackup:
    """Reads all tables of a backup at once, compares them with a backup, and replaces them by it.

    Args:
        database: of the tables.
    """

    schema: Final = HEAD

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def snapshot(self, parts: frozenset[Part]) -> Iterator[TablesInSnapshot]:
        """Yields the tables as they are now; what is written meanwhile is not seen.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._database.snapshot() as connection:
            yield TablesInSnapshot(connection, parts)

    def compare(self, source: RowSource) -> list[TableChanges]:
        """Returns what `replace` would change; every row of the backup is checked.

        Raises:
            BackupError: a row cannot be used.
            StoreError: the database cannot be read.
        """
        with self._database.snapshot() as connection:
            return [self._compared(connection, item, source) for item in _tables_of(source)]

    @contextmanager
    def replace(self, source: RowSource, folder: Path) -> Iterator[list[TableChanges]]:
        """Replaces the tables of the backup in one transaction, and yields what changes.

        The transaction is committed at the end of the context, and undone when it is left by an exception. Tables that the
        backup does not have stay as they are. The rows keep their numbers; only rows that differ are written. Changes of lists
        and policies are appended to the feed.

        Args:
            source: the rows.
            folder: for temporary files.

        Raises:
            BackupError: a row cannot be used.
            StoreError: the database cannot be written.
        """
        with self._database.together(_AREAS[0]), ExitStack() as locks:
            for area in _AREAS:
                connection = locks.enter_context(self._database.write(area))
            yield [_replace_table(connection, item, source, folder) for item in _tables_of(source)]

    def _compared(self, connection: Connection, item: BackedUpTable, source: RowSource) -> TableChanges:
        changes = TableChanges(item.table.name, item.title)
        for difference in _differences(connection, item.table, source):
            changes.count(difference)
        return changes


def _tables_of(source: RowSource) -> Iterator[BackedUpTable]:
    names = source.tables()
    return (item for item in BACKED_UP if item.table.name in names)


def _differences(connection: Connection, table: Table, source: RowSource) -> Iterator[Difference]:
    codec = RowCodec(table)
    then: Iterator[Mapping[str, Any]] = map(codec.row, source.lines(table.name))
    if table is POLICY_ITEMS:
        then = check_policies(then)
    for difference in differences(table, rows_of(connection, table), then):
        if difference.then is not None:
            check_row(table, difference.then)
            if in_feed(table):
                entry_of(table, difference.then)
        yield difference


def _replace_table(connection: Connection, item: BackedUpTable, source: RowSource, folder: Path) -> TableChanges:
    """Writes what differs: first all that goes, then all that comes, so that no two rows collide in between."""
    table, codec = item.table, RowCodec(item.table)
    changes = TableChanges(table.name, item.title)
    with tempfile.TemporaryFile(dir=folder) as leaving, tempfile.TemporaryFile(dir=folder) as coming:
        for difference in _differences(connection, table, source):
            changes.count(difference)
            if difference.now is not None:
                leaving.write(codec.line(difference.now))
            if difference.then is not None:
                coming.write(codec.line(difference.then))
        for rows in _chunks(leaving, codec):
            _delete(connection, table, rows)
        for rows in _chunks(coming, codec):
            connection.execute(insert(table), rows)
            if in_feed(table):
                append_changes(connection, [step(table, row, put=True) for row in rows])
    _advance_numbers(connection, table)
    if any((changes.added, changes.changed, changes.removed)):
        for derived in _DEPENDENT.get(table, ()):
            connection.execute(delete(derived))
    return changes


def _chunks(file: IO[bytes], codec: RowCodec) -> Iterator[list[dict[str, Any]]]:
    file.seek(0)
    for lines in batched(file, _CHUNK):
        yield [codec.row(line) for line in lines]


def _delete(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    keys = list(table.primary_key)
    condition = and_(*(column == bindparam(f"key_{column.name}") for column in keys))
    connection.execute(
        delete(table).where(condition), [{f"key_{column.name}": row[column.name] for column in keys} for row in rows]
    )
    if in_feed(table):
        append_changes(connection, [step(table, row, put=False) for row in rows])


def _advance_numbers(connection: Connection, table: Table) -> None:
    """Lets PostgreSQL number further rows after the restored ones; SQLite does so by itself. It never goes back."""
    column = table.autoincrement_column
    if column is None or connection.dialect.name != "postgresql":
        return
    sequence = connection.scalar(select(func.pg_get_serial_sequence(table.name, column.name)))
    highest = connection.scalar(select(func.max(column)))
    if sequence is not None and highest is not None:
        last = connection.scalar(_LAST_NUMBER, {"sequence": sequence})
        if highest > (last or 0):
            connection.execute(select(func.setval(sequence, highest)))
