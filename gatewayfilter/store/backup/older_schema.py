"""Backups of earlier schemas: their rows are put into an empty SQLite file of that schema, which is then migrated."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import batched
from pathlib import Path
from typing import Any, Final

from sqlalchemy import JSON, URL, MetaData, Table, insert

from gatewayfilter.errors import BackupError, StoreError
from gatewayfilter.store.backup.row_codec import RowCodec
from gatewayfilter.store.backup.sql_backup import RowSource, TablesInSnapshot
from gatewayfilter.store.backup.tables import BACKED_UP, Part
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import HEAD
from gatewayfilter.store.sql.schema_version import bring_to, bring_to_head, known_schemas

_CHUNK: Final = 500


class _Migrated:
    """The tables of the source, out of the migrated database. Implements `RowSource`."""

    def __init__(self, rows: TablesInSnapshot, tables: Sequence[str]) -> None:
        self._rows = rows
        self._tables = tables

    def tables(self) -> Sequence[str]:
        return self._tables

    def lines(self, table: str) -> Iterator[bytes]:
        return self._rows.lines(table)


def check_schema(schema: str) -> None:
    """Checks that this program can restore a backup of this schema.

    Raises:
        BackupError: it is newer.
    """
    if schema != HEAD and schema not in known_schemas():
        raise BackupError(f"the backup has schema {schema!r}, newer than this program's {HEAD}: update GatewayFilter first")


@contextmanager
def at_this_schema(source: RowSource, schema: str, folder: Path) -> Iterator[RowSource]:
    """Yields the rows of a backup at the schema of this program.

    Args:
        source: the rows at `schema`.
        schema: one that `check_schema` accepts.
        folder: for a temporary database.

    Raises:
        BackupError: a row is none of that schema.
        StoreError: the temporary database cannot be written.
    """
    if schema == HEAD:
        yield source
        return
    path = folder / "earlier.sqlite3"
    database = Database(URL.create("sqlite", database=str(path)))
    try:
        bring_to(database, schema)
        try:
            _fill(database, source)
            bring_to_head(database)
        except StoreError as error:
            raise BackupError(f"the backup cannot be brought from schema {schema} to {HEAD}: {error}") from error
        with database.snapshot() as connection:
            yield _Migrated(TablesInSnapshot(connection, frozenset(Part)), _names(source))
    finally:
        database.close()
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)


def _names(source: RowSource) -> list[str]:
    names = source.tables()
    return [item.table.name for item in BACKED_UP if item.table.name in names]


def _fill(database: Database, source: RowSource) -> None:
    with database.write(Area.SCHEMA) as connection:
        for name in source.tables():
            table = Table(name, MetaData(), autoload_with=connection)
            for column in table.columns:
                if isinstance(column.type, JSON):
                    column.type.none_as_null = column.nullable is True
            codec = RowCodec(table)
            for lines in batched(source.lines(name), _CHUNK):
                rows: list[dict[str, Any]] = [codec.row(line) for line in lines]
                connection.execute(insert(table), rows)
