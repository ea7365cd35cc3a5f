"""One database, shared by threads and processes: connections, short reads, and serialised writes."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import IntEnum
from pathlib import Path
from typing import Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from gatewayfilter.errors import StoreError
from gatewayfilter.store.sql import sqlite_file
from gatewayfilter.store.sql.cut_log import LogWatch
from gatewayfilter.store.sql.db_errors import DATABASE_FAULTS, store_error

BUSY_TIMEOUT_S = 5.0
_DRIVERS = frozenset({"sqlite", "sqlite+pysqlite", "postgresql+psycopg"})
_FORMS = "sqlite:///FILE or postgresql+psycopg://…"
_MARK = "file"
_JSON = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
"""A sixth quicker than `json.dumps`, and a tenth shorter: a crawler writes two verdicts for each page."""


class Area(IntEnum):
    """The area of a write. Within one area writes are mutually exclusive, across processes.

    In SQLite this applies to the whole file (BEGIN IMMEDIATE). In PostgreSQL each area has an advisory lock that is held until
    the commit, so that a reader never sees feed step 12 before step 11, and a URL is leased to one crawler only.
    """

    SCHEMA = 0x6766_0000
    LISTS = 0x6766_0001
    FRONTIER = 0x6766_0002
    LOG = 0x6766_0003
    VERDICTS = 0x6766_0004
    FINGERPRINTS = 0x6766_0005
    REVIEWS = 0x6766_0006
    UNBLOCK = 0x6766_0007
    CRAWLERS = 0x6766_0008
    LOG_COUNTS = 0x6766_0009
    LOG_INDEXES = 0x6766_000A
    ACCESS = 0x6766_000B


class Database:
    """A database by its SQLAlchemy URL.

    Threads may share one; each process creates its own, also after a fork.

    Attributes:
        name: for messages: the file's path, or the URL without its password.
        path: the file of a SQLite database, else `None`.
    """

    def __init__(self, url: URL, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = Path(url.database).absolute() if url.get_backend_name() == "sqlite" and url.database else None
        self.name = str(self.path) if self.path else url.render_as_string(hide_password=True)
        # Threads queue here, in order, and not in SQLite's busy handler, which sleeps up to 100 ms at a time.
        self._turn: AbstractContextManager[object] = threading.Lock() if self.path else nullcontext()
        self._thread = threading.local()
        self._kept: dict[DBAPIConnection, threading.Lock] = {}
        self._watch: LogWatch | None = None
        if self.path:
            self._watch = LogWatch(self.path)
            self._engine = _file_engine(url, self.path, busy_timeout_s, self._watch)
        else:
            self._engine = _server_engine(url)

    @classmethod
    def from_url(cls, text: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Self:
        """Returns the database with this SQLAlchemy URL; nothing is opened yet.

        Raises:
            StoreError: not a URL, not SQLite in a file or PostgreSQL, or its driver is not installed.
        """
        try:
            url = make_url(text)
            if url.drivername not in _DRIVERS:
                raise StoreError(f"{url.drivername} is not supported: use {_FORMS}")
            if url.get_backend_name() == "sqlite" and (url.query or url.database in {None, "", ":memory:"}):
                raise StoreError("a SQLite database is a file that processes share, without options: use sqlite:///FILE")
            return cls(url, busy_timeout_s=busy_timeout_s)
        except (ArgumentError, ValueError) as error:  # ValueError: a port that is not a number
            raise StoreError(f"store.url is not the URL of a database: use {_FORMS}") from error
        except ModuleNotFoundError as error:
            raise StoreError(f"store.url needs the Python package {error.name}, which is not installed") from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yields a connection for reading; the next statement may see rows that another process commits meanwhile.

        Raises:
            StoreError: the database refuses.
        """
        if (joined := self._joined()) is not None:
            yield joined
            return
        with self._faults_told(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yields a connection for reading whose statements all see the same state, whatever others commit meanwhile.

        Raises:
            StoreError: the database refuses.
        """
        with self._faults_told(), self._engine.connect() as pooled:
            if self.path:
                pooled.exec_driver_sql("BEGIN")
                connection = pooled
            else:
                connection = pooled.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self, area: Area) -> Iterator[Connection]:
        """Yields a connection in a transaction that holds the area's lock and is committed at the end. Keep it short.

        Raises:
            StoreError: the database refuses, or the lock was not available in time. Nothing was written.
        """
        if (joined := self._joined()) is not None:
            self._lock(joined, area)
            yield joined
            return
        with self._faults_told(), self._turn, self._engine.connect() as connection:
            if self.path:
                # Begun as a writer: a read that becomes a write could not wait for the lock and would fail at once.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            self._lock(connection, area)
            yield connection
            connection.commit()

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Yields a connection whose statements are transactions of their own, as PostgreSQL needs it to build an index.

        Raises:
            StoreError: the database refuses.
        """
        with self._faults_told(), self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def together(self, area: Area) -> Iterator[None]:
        """Runs all reads and writes of this thread meanwhile in one transaction.

        Args:
            area: of the first write. Several areas are taken in the same order everywhere.

        Raises:
            StoreError: the database refuses. Nothing was written.
        """
        with self.write(area) as connection:
            before, self._thread.joined = self._joined(), connection
            try:
                yield
            finally:
                self._thread.joined = before

    @property
    def joined(self) -> bool:
        """Whether this thread is in a transaction, whose writes other connections do not see yet."""
        return self._joined() is not None

    def keep_connection(self, in_use: threading.Lock) -> DBAPIConnection:
        """Returns a connection of the driver outside the pool, without transactions, until `close` or `drop_connection`.

        Args:
            in_use: held while the connection is used. `close` waits for it: a thread whose connection is closed while it
                executes a statement crashes the process (in `sqlite3`, with a segmentation fault).

        Raises:
            StoreError: the database refuses.
        """
        with self._faults_told():
            pooled = self._engine.raw_connection()
            made = pooled.dbapi_connection
            pooled.detach()
            assert made is not None
            if not self.path:
                made.autocommit = True
        self._kept[made] = in_use
        return made

    def file_mark(self) -> sqlite_file.FileMark | None:
        """Returns what identifies the file of a SQLite database now; `None` when it is gone, and for a server."""
        if self._watch is None:
            return None
        self._watch.look()
        return sqlite_file.file_mark(self._watch.path)

    def drop_connection(self, connection: DBAPIConnection) -> None:
        """Closes a connection from `keep_connection`, which no other thread uses."""
        self._kept.pop(connection, None)
        with suppress(Exception):  # broken, and of a class of the driver
            connection.close()

    def _joined(self) -> Connection | None:
        return getattr(self._thread, "joined", None)

    def _lock(self, connection: Connection, area: Area) -> None:
        if not self.path:  # rows of the log depend on no others: its writers exclude only `await_writers`
            lock = func.pg_advisory_xact_lock_shared if area is Area.LOG else func.pg_advisory_xact_lock
            connection.execute(select(lock(int(area))))

    def await_writers(self, connection: Connection, area: Area) -> None:
        """Waits until all transactions that hold the shared lock of an area in PostgreSQL have ended; others begin afterwards.

        Args:
            connection: in a transaction, which is to end at once.
            area: `Area.LOG`.
        """
        if not self.path:
            connection.execute(select(func.pg_advisory_xact_lock(int(area))))

    def make_file(self) -> None:
        """Creates an empty SQLite file with mode 0600 if there is none; SQLite gives its side files the same mode.

        Raises:
            StoreError: it cannot be created.
        """
        if self.path is None or self.path.exists():
            return
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return  # another process was faster
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise StoreError(f"the database {self.name} cannot be made: {getattr(error, 'strerror', None) or error}") from error

    def limit_memory(self, size: int) -> None:
        """Has SQLite use pages of the file again before its memory in this process grows beyond so many bytes; no other database.

        Each connection would take up to 2 MB of pages. What it reads again comes from the system's cache.

        Raises:
            StoreError: the database refuses.
        """
        if self.path:
            with self.read() as connection:
                connection.exec_driver_sql(f"PRAGMA soft_heap_limit = {size:d}").close()

    def close_idle(self) -> None:
        """Closes the connections that are not in use: each keeps up to 2 MB of the file, and its statements."""
        self._engine.dispose()

    def close(self) -> None:
        """Closes all connections; waits for queries over those that are kept."""
        for connection, in_use in list(self._kept.items()):
            with in_use:
                self.drop_connection(connection)
        self._engine.dispose()

    @contextmanager
    def _faults_told(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_FAULTS as error:
            raise store_error(error, self.name) from error


def _file_engine(url: URL, path: Path, busy_timeout_s: float, watch: LogWatch) -> Engine:
    engine = create_engine(
        url,
        creator=lambda: sqlite_file.connect(path, busy_timeout_s),
        pool_size=4,
        max_overflow=32,
        pool_use_lifo=True,
        json_serializer=_JSON,
    )

    @event.listens_for(engine, "connect")
    def mark(_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info[_MARK] = sqlite_file.file_mark(path)

    @event.listens_for(engine, "checkout")
    def check(_connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
        watch.look()
        if record.info.get(_MARK) != sqlite_file.file_mark(path):
            raise DisconnectionError  # the file was replaced or removed: the pool connects again

    return engine


def _server_engine(url: URL) -> Engine:
    return create_engine(url, pool_size=4, max_overflow=32, pool_pre_ping=True, json_serializer=_JSON)
