"""The search index of the log: in SQLite a full-text index of terms, in PostgreSQL indexes of its own.

The index is derived data, made in the background: no migration makes it, and it is rebuilt when it is missing. In SQLite it
holds no text, only sorted lists of row ids per term: some 80 bytes per decision.
"""

import logging
import time
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogRecord
from gatewayfilter.model.log_query import LONGEST_SEARCHED
from gatewayfilter.store.repositories.traffic.log_rows import (
    TERMS,
    TERMS_VERSION_ROW,
    ChunkSize,
    newest_settled,
    progress,
    records_after,
    set_progress,
    still_there,
)
from gatewayfilter.store.repositories.traffic.log_terms import TERMS_VERSION, terms_of
from gatewayfilter.store.sql.database import Area, Database

_log = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 2_000
_MAKE: Final = "CREATE VIRTUAL TABLE log_terms USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii')"
_IS_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name = 'log_terms'"
_ADD: Final = "INSERT INTO log_terms (rowid, terms) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO log_terms (log_terms, rowid, terms) VALUES ('delete', ?, ?)"
SEARCHED_URL: Final = f"lower(left(regexp_replace(url, '^[^/]*://', ''), {LONGEST_SEARCHED}))"
"""PostgreSQL's expression for `searched_part`."""
_VALID_INDEXES: Final = (
    "SELECT relname FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid "
    "WHERE indrelid = 'decisions'::regclass AND indisvalid"
)
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock(:area)"
_POSTGRES_INDEXES: Final = {
    "ix_decisions_search_url": f"USING gin (({SEARCHED_URL}) gin_trgm_ops)",
    "ix_decisions_search_client": "(client, id)",
    "ix_decisions_search_user": "(user_name, id) WHERE user_name <> ''",
    "ix_decisions_search_category": "(category, id) WHERE category <> ''",
    "ix_decisions_search_list": "(source_list, id) WHERE source_list <> ''",
    "ix_decisions_search_reason": "(reason, id)",
}


class SqlLogIndexer:
    """Brings the search index up to date."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chunk = ChunkSize(_MOST_AT_ONCE)
        self._impossible: set[str] = set()

    def step(self) -> int:
        """Indexes the next decisions, in one transaction. Returns their number, 0 when there is nothing to do.

        In PostgreSQL it creates missing indexes, without blocking writers; the server keeps them up to date.

        Raises:
            StoreError: the database refuses; nothing was indexed.
        """
        if not self._database.path:
            self._make_postgres_indexes()
            return 0
        if "log_terms" in self._impossible or not self._make_table():
            return 0
        newest = newest_settled(self._database)
        with self._database.read() as connection:
            after = progress(connection, TERMS)
            rows = records_after(connection, after, newest, self._chunk.rows)
        if not rows:
            return 0
        terms = {number: terms_of(record) for number, record in rows}
        with self._database.write(Area.LOG_COUNTS) as connection:
            begun = time.monotonic()
            if progress(connection, TERMS) != after:
                return len(rows)  # another process was faster
            kept = [(number, terms[number]) for number, _ in still_there(connection, rows)]
            connection.connection.cursor().executemany(_ADD, kept)
            set_progress(self._database, connection, TERMS, rows[-1][0])
        self._chunk.fit(time.monotonic() - begun)
        return len(rows)

    def _make_table(self) -> bool:
        """Creates the index where it is missing or of another version. Returns whether there is one."""
        with self._database.read() as connection:
            if connection.scalar(text(_IS_THERE)) and progress(connection, TERMS_VERSION_ROW) == TERMS_VERSION:
                return True
        try:
            with self._database.write(Area.LOG_COUNTS) as connection:
                connection.execute(text("DROP TABLE IF EXISTS log_terms"))
                try:
                    connection.execute(text(_MAKE))
                except DBAPIError as error:
                    raise _NoSearchIndexError(str(error.orig)) from error
                set_progress(self._database, connection, TERMS, 0)
                set_progress(self._database, connection, TERMS_VERSION_ROW, TERMS_VERSION)
        except _NoSearchIndexError as error:
            self._impossible.add("log_terms")
            _log.warning("the log cannot have a search index (%s): searches read the newest decisions only", error)
            return False
        return True

    def _make_postgres_indexes(self) -> None:
        with self._database.read() as connection:
            there = set(connection.scalars(text(_VALID_INDEXES)))
        for name, columns in _POSTGRES_INDEXES.items():
            if name in there or name in self._impossible:
                continue
            try:
                with self._database.autocommit() as connection:
                    self._make_postgres_index(connection, name, columns)
            except StoreError as error:
                self._impossible.add(name)  # until the process starts again
                _log.warning("the log cannot have the index %s: searches read more (%s)", name, error)

    def _make_postgres_index(self, connection: Connection, name: str, columns: str) -> None:
        if not connection.scalar(text(_TRY_LOCK), {"area": int(Area.LOG_INDEXES)}):
            return  # another process makes it
        try:
            if "gin_trgm_ops" in columns:
                connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(text(f"DROP INDEX IF EXISTS {name}"))  # left by a process that was killed
            connection.execute(text(f"CREATE INDEX CONCURRENTLY {name} ON decisions {columns}"))
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:area)"), {"area": int(Area.LOG_INDEXES)})


class _NoSearchIndexError(Exception):
    """SQLite was built without FTS5."""


def forget_terms(database: Database, connection: Connection, rows: Sequence[tuple[int, LogRecord]]) -> None:
    """Removes deleted records from the index of SQLite, in their transaction."""
    if database.path and rows and connection.scalar(text(_IS_THERE)):
        connection.connection.cursor().executemany(_REMOVE, [(number, terms_of(record)) for number, record in rows])


def has_terms(connection: Connection) -> bool:
    """Returns whether there is an index in SQLite."""
    return bool(connection.scalar(text(_IS_THERE)))
