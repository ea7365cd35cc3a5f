"""Connections and files of a database at their edges: pools, locks of a server, headers of a log's index, faults in words."""

import os
import shutil
import sqlite3
import struct
import sys
import threading
import time
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gatewayfilter.errors import StoreError, StoreUnavailableError
from gatewayfilter.store.backup import upgrade_copies
from gatewayfilter.store.sql import cut_log, sqlite_file
from gatewayfilter.store.sql.cut_log import LogWatch, beside, mend
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.db_errors import sentence_of, store_error

SERVER = "postgresql+psycopg://ada:secret@db.example/filter"


def test_a_database_is_named_without_its_password(tmp_path: Path) -> None:
    server = Database.from_url(SERVER)
    assert (server.path, server.name) == (None, "postgresql+psycopg://ada:***@db.example/filter")
    assert server.file_mark() is None
    server.make_file()  # neither is for a server, nor is it asked
    server.limit_memory(7)
    file = Database.from_url(f"sqlite:///{tmp_path}/a.sqlite3")
    assert (file.path, file.name) == (tmp_path / "a.sqlite3", f"{tmp_path}/a.sqlite3")
    for database in (server, file):
        pool: Any = database._engine.pool
        assert (pool.size(), pool._max_overflow) == (4, 32)
        assert (pool._pre_ping, pool._pool.use_lifo) == (database is server, database is file)
        assert database.joined is False


def test_writers_of_a_server_share_the_log_and_exclude_each_other_elsewhere(tmp_path: Path) -> None:
    asked: list[str] = []

    class Connection:
        def execute(self, statement: Any) -> None:
            compiled = statement.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]
            asked.append(str(compiled))

    connection: Any = Connection()
    for area in (Area.LOG, Area.LISTS):
        Database.from_url(SERVER)._lock(connection, area)
        Database.from_url(f"sqlite:///{tmp_path}/a.sqlite3")._lock(connection, area)
    assert [one.partition(" AS ")[0] for one in asked] == [
        f"SELECT pg_advisory_xact_lock_shared({int(Area.LOG)})", f"SELECT pg_advisory_xact_lock({int(Area.LISTS)})",
    ]  # fmt: skip


class Pooled:
    """A connection to a server, and the pool that it comes from: keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def connect(self) -> AbstractContextManager["Pooled"]:
        return nullcontext(self)

    def execute(self, statement: Any) -> None:
        compiled = statement.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]
        self.told.append(str(compiled).partition(" AS ")[0])

    def execution_options(self, **options: object) -> "Pooled":
        self.told.append(str(options))
        return self

    def commit(self) -> None:
        self.told.append("commit")

    def rollback(self) -> None:
        self.told.append("rollback")


def test_each_write_to_a_server_takes_the_lock_of_its_area(monkeypatch: pytest.MonkeyPatch) -> None:
    pooled: Any = Pooled()
    database = Database.from_url(SERVER)
    monkeypatch.setattr(database, "_engine", pooled)
    locks = {area: f"SELECT pg_advisory_xact_lock({int(area)})" for area in (Area.LISTS, Area.UNBLOCK, Area.VERDICTS)}
    with database.write(Area.LISTS) as connection:
        assert (connection, pooled.told) == (pooled, [locks[Area.LISTS]])
    assert pooled.told.pop() == "commit"
    pooled.told.clear()
    with database.together(Area.VERDICTS):
        with database.write(Area.LISTS) as connection, database.read() as reader:
            assert (connection, reader) == (pooled, pooled)
        with database.write(Area.UNBLOCK):
            pass
    assert pooled.told == [locks[Area.VERDICTS], locks[Area.LISTS], locks[Area.UNBLOCK], "commit"]
    pooled.told.clear()
    with database.read():
        pass
    assert pooled.told == []
    with database.snapshot():
        pass
    with database.autocommit():
        pass
    assert pooled.told == [
        "{'isolation_level': 'REPEATABLE READ', 'postgresql_readonly': True}", "rollback", "{'isolation_level': 'AUTOCOMMIT'}",
    ]  # fmt: skip


def test_a_kept_connection_of_a_server_has_no_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        autocommit = False
        closed = 0

        def close(self) -> None:
            self.closed += 1

    detached: list[bool] = []
    driver: Any = Driver()
    pooled = SimpleNamespace(dbapi_connection=driver, detach=lambda: detached.append(True))
    database = Database.from_url(SERVER)
    monkeypatch.setattr(type(database._engine), "raw_connection", lambda _: pooled)
    lock = threading.Lock()
    assert database.keep_connection(lock) is driver
    assert (driver.autocommit, detached) == (True, [True])
    database.close()
    assert (driver.closed, lock.locked()) == (1, False)
    database.close()
    assert driver.closed == 1


def test_a_transaction_that_fails_is_left(tmp_path: Path) -> None:
    database = Database.from_url(f"sqlite:///{tmp_path}/a.sqlite3")
    database.make_file()
    assert (tmp_path / "a.sqlite3").stat().st_mode & 0o777 == 0o600
    database.make_file()
    with closing(database):
        with pytest.raises(StoreError, match="no such table"), database.together(Area.LISTS), database.read() as connection:
            connection.exec_driver_sql("SELECT * FROM none" if database.joined else "SELECT 1")
        assert not database.joined
        with database.write(Area.LISTS) as connection:
            connection.exec_driver_sql("CREATE TABLE a (b)")
        with database.snapshot() as connection, database.write(Area.LISTS) as writer:
            assert connection.exec_driver_sql("SELECT count(*) FROM a").scalar() == 0
            writer.exec_driver_sql("INSERT INTO a VALUES (1)")
            writer.commit()
            assert connection.exec_driver_sql("SELECT count(*) FROM a").scalar() == 0
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM a").scalar() == 1
        database.limit_memory(1 << 24)
        with database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA soft_heap_limit").scalar() == 1 << 24
        database.limit_memory(0)


def sqlite_fault(code: int | None) -> sqlite3.Error:
    fault = sqlite3.OperationalError("first line\nsecond line")
    if code is not None:
        fault.sqlite_errorcode = code
    return fault


def test_faults_of_a_database_in_words() -> None:
    for fault, said in (
        (sqlite_fault(sqlite3.SQLITE_IOERR_READ), "the database n cannot be read or written: the disk reports an error"),
        (sqlite_fault(sqlite3.SQLITE_FULL), "the database n cannot grow: the disk is full"),
        (sqlite_fault(sqlite3.SQLITE_MISUSE), "the database n refuses: first line"),
        (sqlite_fault(None), "the database n refuses: first line"),
        (OperationalError("x", None, sqlite_fault(sqlite3.SQLITE_FULL)), "the database n cannot grow: the disk is full"),
        (OperationalError("x", None, Exception("from the server\nmore")), "the database n refuses: from the server"),
        (OperationalError("x", None, KeyError()), "the database n refuses: KeyError"),
        (PoolTimeoutError(), "the database n has no free connection: too much is asked of it at once"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"),
         "text with a broken character (half of a surrogate pair) cannot be stored"),
    ):  # fmt: skip
        assert sentence_of(fault, "n") == said
    kinds: tuple[tuple[Exception, type[StoreError]], ...] = (
        (sqlite_fault(sqlite3.SQLITE_FULL), StoreUnavailableError), (sqlite3.IntegrityError("x"), StoreError),
        (DataError("x", None, Exception("y")), StoreError), (OperationalError("x", None, sqlite3.DataError("y")), StoreError),
        (OperationalError("x", None, Exception("y")), StoreUnavailableError),
    )  # fmt: skip
    for one, kind in kinds:
        assert type(store_error(one, "n")) is kind


def index_of(
    path: Path, page: int, frames: int, in_database: int = 0, *, made: bool = True, copies: int = 2, end: bytes = b""
) -> Path:
    """Writes the index of a log, as SQLite does."""
    header = struct.pack("=12xBxHI28x", made, page, frames)
    other = header if copies == 2 else bytes(len(header))
    beside(path, "-shm").write_bytes(header + other + struct.pack("=I", in_database) + end)
    return path


def size_of(frames: int, page: int) -> int:
    return 32 + frames * (page + 24)


def cut(path: Path, size: int) -> bool:
    beside(path, "-wal").write_bytes(b"x" * size)
    return mend(path)


def test_a_log_is_cut_where_its_index_promises_more(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for page, frames, size, is_cut in (
        (4_096, 2, size_of(2, 4_096), False), (4_096, 2, size_of(2, 4_096) - 1, True), (4_096, 0, 0, False),
        (1, 1, size_of(1, 65_536), False), (1, 1, size_of(1, 65_536) - 1, True), (512, 1, 0, True),
    ):  # fmt: skip
        assert cut(index_of(path, page, frames), size) is is_cut, (page, frames, size)
        read = beside(path, "-shm").read_bytes()
        assert (read[:96] == bytes(96)) is is_cut
    index_of(path, 512, 5, 2, end=b"the rest")
    for size, left in ((size_of(2, 512), size_of(2, 512)), (size_of(2, 512) - 1, 0)):
        index_of(path, 512, 5, 2, end=b"the rest")
        assert cut(path, size)
        assert beside(path, "-wal").stat().st_size == left
        assert beside(path, "-shm").read_bytes() == bytes(96) + struct.pack("=I", 2) + b"the rest"
    assert not cut(index_of(path, 512, 5, made=False), 0)
    assert not cut(index_of(path, 512, 5, copies=1), 0)
    beside(path, "-shm").write_bytes(beside(index_of(path, 512, 5), "-shm").read_bytes()[:99])
    assert not cut(path, 0)
    beside(path, "-shm").unlink()
    assert mend(path) is False


def test_an_index_that_is_being_written_promises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = index_of(tmp_path / "a", 512, 5)
    for headers in ([(512, 5, 0), (512, 6, 0)], [None, (512, 5, 0)], [(512, 5, 0), None]):
        read = iter(headers)
        monkeypatch.setattr(cut_log, "_header", lambda _, read=read: next(read))
        assert not cut(path, 0)
    monkeypatch.undo()
    opened = len(list(Path("/proc/self/fd").iterdir()))
    assert cut(path, 0)
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_a_watch_looks_closer_where_a_log_became_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    watch = LogWatch(tmp_path / "a")
    monkeypatch.setattr(watch, "_mend", lambda: looked.append(1))
    for size, times in ((None, 0), (5, 0), (5, 0), (9, 0), (8, 1), (8, 1), (None, 2), (None, 2)):
        if size is None:
            beside(tmp_path / "a", "-wal").unlink(missing_ok=True)
        else:
            beside(tmp_path / "a", "-wal").write_bytes(b"x" * size)
        watch.look()
        assert len(looked) == times, size
    monkeypatch.setattr(sys, "executable", "")
    beside(tmp_path / "a", "-wal").write_bytes(b"x")
    watch.look()
    beside(tmp_path / "a", "-wal").write_bytes(b"")
    watch.look()
    assert len(looked) == 2


def test_a_file_is_known_by_its_place_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    assert sqlite_file.file_mark(path) is None
    path.write_bytes(b"")
    status = path.stat()
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.W_OK)
    assert sqlite_file.file_mark(path) == (status.st_dev, status.st_ino, True)
    assert sqlite_file._has_wal(path) is False
    beside(path, "-wal").write_bytes(b"")
    assert sqlite_file._has_wal(path) is False
    beside(path, "-wal").write_bytes(b"x")
    assert sqlite_file._has_wal(path) is True


def test_a_file_that_is_being_turned_to_another_log_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += 1.0

    monkeypatch.setattr(time, "sleep", sleep)

    class Busy:
        def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
            self.left, self.code = times, code

        def execute(self, statement: str) -> None:
            assert statement == "PRAGMA journal_mode = WAL"
            if self.left:
                self.left -= 1
                raise sqlite_fault(self.code)

    sqlite_file._turn_to_wal(Busy(2), 2.0)  # type: ignore[arg-type]
    assert len(slept) == 2
    now[0] = 0.0
    busy: Any = Busy(9)
    with pytest.raises(sqlite3.OperationalError):
        sqlite_file._turn_to_wal(busy, 2.0)
    assert busy.left == 6
    with pytest.raises(sqlite3.OperationalError):
        sqlite_file._turn_to_wal(Busy(1, sqlite3.SQLITE_FULL), 2.0)  # type: ignore[arg-type]
    assert len(slept) == 4


def test_a_copy_needs_the_room_of_the_database_and_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sqlite3"
    path.write_bytes(b"x" * 1_000_000)
    beside(path, "-wal").write_bytes(b"x" * 2_000_000)
    for free, has_room in ((53_000_000, True), (52_999_999, False)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if has_room:
            upgrade_copies._need_room(path, tmp_path)
        else:
            with pytest.raises(StoreError, match=r"before its upgrade: 53 MB are needed, 53 are free$"):
                upgrade_copies._need_room(path, tmp_path)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    upgrade_copies._write_through(path)
    assert synced == [path.stat().st_ino]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced_descriptor(path, monkeypatch))


def synced_descriptor(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns the descriptor over which a file was written through."""
    kept: list[int] = []
    monkeypatch.setattr(os, "fsync", kept.append)
    upgrade_copies._write_through(path)
    return kept[0]


def test_urls_that_name_no_database() -> None:
    assert make_url(SERVER).get_backend_name() == "postgresql"
    for url, said in (
        ("mysql://x/y", "mysql is not supported"), ("sqlite://", "a SQLite database is a file"),
        ("sqlite:///:memory:", "a SQLite database is a file"), ("sqlite:///a?mode=ro", "a SQLite database is a file"),
        ("nonsense", "is not the URL of a database"),
    ):  # fmt: skip
        with pytest.raises(StoreError, match=said):
            Database.from_url(url)
