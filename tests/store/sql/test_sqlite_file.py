"""Connections to a SQLite file: what they make, what they set, where nothing can be written, where another process is faster."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.store.sql import sqlite_file
from gatewayfilter.store.sql.sqlite_file import connect, file_mark


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b%.sqlite3"
    path.touch()
    return path


def test_a_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        connect(tmp_path / "none", 0.0)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_is_set_up(file: Path) -> None:
    for _ in range(2):
        with closing(connect(file, 0.0)) as connection:
            asked = ("auto_vacuum", "journal_mode", "synchronous", "foreign_keys", "journal_size_limit")
            found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
            assert found == [2, "wal", 1, 1, 16_000_000]
            assert connection.isolation_level is None
            connection.execute("CREATE TABLE IF NOT EXISTS a (b)")


def test_of_a_file_that_cannot_be_written_the_log_is_read_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(connect(file, 0.0)) as writer:
        writer.execute("CREATE TABLE a AS SELECT 7 AS b")
        monkeypatch.setattr(os, "access", lambda *_: False)
        with closing(connect(file, 0.0)) as reader:
            assert reader.execute("SELECT b FROM a").fetchone() == (7,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM a")


def test_nothing_is_made_beside_a_file_that_cannot_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(connect(file, 0.0)) as writer:
        writer.execute("CREATE TABLE a AS SELECT 7 AS b")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for left in ("", "-wal"):
        if left:
            file.with_name(f"{file.name}-wal").touch()
        with closing(connect(file, 0.0)) as reader:
            assert reader.execute("SELECT b FROM a").fetchone() == (7,)
            assert not file.with_name(f"{file.name}-shm").exists()


def test_a_connection_that_cannot_be_set_up_is_closed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sqlite3.Connection] = []

    def fails(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
        made.append(connection)
        raise sqlite3.OperationalError(f"busy for {busy_timeout_s} s")

    monkeypatch.setattr(sqlite_file, "_set_up", fails)
    with pytest.raises(sqlite3.OperationalError, match=r"busy for 1\.5 s"):
        connect(file, 1.5)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


class Busy:
    """A connection that is busy at first."""

    def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
        self.left = times
        self.asked: list[str] = []
        self.error = sqlite3.OperationalError("locked")
        self.error.sqlite_errorcode = code

    def execute(self, statement: str) -> None:
        self.asked.append(statement)
        if self.left:
            self.left -= 1
            raise self.error


@pytest.mark.parametrize(
    ("busy", "timeout_s", "asked", "raises"),
    [
        (Busy(0), 0.0, 1, False),
        (Busy(2), 5.0, 3, False),
        (Busy(1), 0.0, 1, True),
        (Busy(9), 0.5, 5, True),
        (Busy(1, sqlite3.SQLITE_FULL), 5.0, 1, True),
    ],
)
def test_another_process_that_sets_the_mode_is_waited_for(
    busy: Busy, timeout_s: float, asked: int, monkeypatch: pytest.MonkeyPatch, *, raises: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr("gatewayfilter.store.sql.sqlite_file.time.monotonic", lambda: now[0])
    monkeypatch.setattr("gatewayfilter.store.sql.sqlite_file.time.sleep", lambda _: now.__setitem__(0, now[0] + 0.125))
    if raises:
        with pytest.raises(sqlite3.OperationalError):
            sqlite_file._turn_to_wal(busy, timeout_s)  # type: ignore[arg-type]
    else:
        sqlite_file._turn_to_wal(busy, timeout_s)  # type: ignore[arg-type]
    assert len(busy.asked) == asked


def test_what_identifies_a_file(file: Path, tmp_path: Path) -> None:
    assert file_mark(tmp_path / "none") is None
    found = file.stat()
    assert file_mark(file) == (found.st_dev, found.st_ino, True)
