"""A write-ahead log that another program cuts under open stores."""

import fcntl
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store
from gatewayfilter.store.sql.cut_log import LogWatch, beside, mend

OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
print(connection.execute("select count(*) from filled").fetchone()[0], flush=True)
for _ in sys.stdin:
    print(connection.execute("select count(*) from filled").fetchone()[0], flush=True)
"""


def filled(path: Path) -> sqlite3.Connection:
    """A database with 20 rows, of which 10 are in the log alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table filled (text)")
    for _ in range(10):
        connection.execute("insert into filled values (?)", ("x" * 3_000,))
    connection.execute("pragma wal_checkpoint(restart)")
    for _ in range(10):
        connection.execute("insert into filled values (?)", ("x" * 3_000,))
    return connection


def rows(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("select count(*) from filled").fetchone()
    return int(found)


@pytest.mark.parametrize(("left", "found"), [(0.0, {10}), (0.5, set(range(11, 20))), (1.0, {20})])
def test_all_processes_go_on_with_what_is_left(tmp_path: Path, left: float, found: set[int]) -> None:
    path = tmp_path / "a.sqlite3"
    with closing(filled(path)) as first, closing(sqlite3.connect(path, isolation_level=None)) as second:
        command = [sys.executable, "-I", "-c", OTHER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert (rows(second), other.stdout.readline()) == (20, "20\n")
            watch = LogWatch(path)
            watch.look()
            os.truncate(beside(path, "-wal"), int(beside(path, "-wal").stat().st_size * left))
            watch.look()
            left_rows = rows(first)
            assert left_rows in found
            second.execute("insert into filled values ('more')")
            print(file=other.stdin, flush=True)
            assert other.stdout.readline() == f"{left_rows + 1}\n"
        assert rows(first) == rows(second) == left_rows + 1
        first.execute("pragma wal_checkpoint(truncate)")
        assert second.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_a_rest_that_is_older_than_the_database_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    with closing(filled(path)) as first, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        assert rows(reader) == 20  # so that the log goes on behind what is in the database
        first.execute("pragma wal_checkpoint(passive)")
        first.execute("update filled set text = 'new' where rowid = 20")
        reader.execute("rollback")
        size = beside(path, "-wal").stat().st_size
        os.truncate(beside(path, "-wal"), size // 2)
        assert mend(path)
        assert beside(path, "-wal").stat().st_size == 0
        assert rows(first) == rows(reader) == 20
        assert reader.execute("select text = 'new' from filled where rowid = 20").fetchone() == (0,)
        assert first.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_who_comes_second_leaves_alone_what_was_written_since(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    with closing(filled(path)) as writer, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        assert rows(reader) == 20  # so that the log goes on behind what is in the database
        writer.execute("pragma wal_checkpoint(passive)")
        writer.execute("insert into filled values ('late')")
        reader.execute("rollback")
        os.truncate(beside(path, "-wal"), 0)
        mended: list[bool] = []
        index = os.open(beside(path, "-shm"), os.O_RDWR)
        fcntl.flock(index, fcntl.LOCK_EX)
        second = threading.Thread(target=lambda: mended.append(mend(path)))
        second.start()
        second.join(0.1)  # it would have read the index by now
        os.pwrite(index, bytes(96), 0)  # as the first one does
        writer.execute("insert into filled values ('acknowledged')")
        fcntl.flock(index, fcntl.LOCK_UN)
        second.join()
        os.close(index)
        assert mended == [False]
        assert reader.execute("select count(*) from filled where text = 'acknowledged'").fetchone() == (1,)


def test_logs_that_sqlite_shortens_are_no_matter(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.sqlite3"
    assert not mend(path)
    with closing(filled(path)) as connection:
        watch = LogWatch(path)
        watch.look()
        assert not mend(path)
        connection.execute("pragma wal_checkpoint(truncate)")
        with caplog.at_level(logging.WARNING):
            watch.look()
        assert not caplog.records
        assert not mend(path)
    beside(path, "-shm").write_bytes(bytes(100))
    assert not mend(path)  # no index yet


def test_an_index_that_cannot_be_read_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.sqlite3"
    beside(path, "-wal").write_bytes(b"log")
    beside(path, "-shm").mkdir()
    watch = LogWatch(path)
    watch.look()
    beside(path, "-wal").write_bytes(b"")
    watch.look()
    (told,) = caplog.records
    assert told.getMessage().startswith(f"whether {beside(path, '-wal')} was cut is not known: ")


def test_an_open_store_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.sqlite3"
    with closing(Store.open(f"sqlite:///{path}")) as store, closing(Store.open(f"sqlite:///{path}")) as other:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma wal_checkpoint(restart)")
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "lost.test")
        assert len(other.feed.read(1)) == len(other.feed.read(1)) == 0
        assert [rule.pattern for rule in other.lists.rules()] == ["lost.test"]
        os.truncate(beside(path, "-wal"), 0)
        with caplog.at_level(logging.ERROR):
            assert list(store.lists.rules()) == []
        assert "was cut by another program" in caplog.text
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "kept.test")
        assert [rule.pattern for rule in other.lists.rules()] == ["kept.test"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
