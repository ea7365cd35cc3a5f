"""Followers of the feed ask over a connection of their own; it must neither miss a change nor hide a fault."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store


def block(store: Store, host: str) -> None:
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host)


def following(store: Store) -> int:
    """Reads the feed to its end, and once more, so that the question stands."""
    seq = 0
    while changes := store.feed.read(seq):
        seq = changes[-1].seq
    assert store.feed.read(seq) == []
    assert store.feed._newer._connection is not None
    return seq


def hosts(store: Store, after: int) -> list[str]:
    return [change.manual.pattern for change in store.feed.read(after) if change.manual]


def test_what_others_commit_is_seen_at_the_next_look(open_store: Callable[[], Store]) -> None:
    ours, theirs = open_store(), open_store()
    seq = following(ours)
    for number in range(3):
        block(theirs, f"h{number}.example")
        assert hosts(ours, seq) == [f"h{number}.example"]
        seq = following(ours)


def test_what_this_thread_has_not_committed_yet_is_seen_by_it_alone(open_store: Callable[[], Store]) -> None:
    ours, theirs = open_store(), open_store()
    seq = following(ours)
    following(theirs)
    with ours.learning():
        block(ours, "a.example")
        assert hosts(ours, seq) == ["a.example"]
        assert hosts(theirs, seq) == []
    assert hosts(theirs, seq) == ["a.example"]


def test_a_lost_connection_is_made_anew(store: Store) -> None:
    seq = following(store)
    lost = store.feed._newer._connection
    assert lost is not None
    lost.close()
    assert store.feed.read(seq) == []
    assert store.feed._newer._connection is None
    block(store, "a.example")
    assert hosts(store, seq) == ["a.example"]
    following(store)
    assert store.feed._newer._connection is not lost


def test_closing_ends_the_kept_connection(sqlite_url: str, tmp_path: Path) -> None:
    with closing(Store.open(sqlite_url)) as store:
        block(store, "a.example")
        following(store)
        assert list(tmp_path.glob("*-wal"))
    assert not list(tmp_path.glob("*-wal"))  # SQLite removes it with the last connection


def test_closing_waits_for_a_query_of_another_thread(sqlite_url: str) -> None:
    """`sqlite3` crashes the process where a connection is closed while another thread executes a statement over it."""
    store = Store.open(sqlite_url)
    following(store)
    query = store.feed._newer
    connection = query._connection
    assert connection is not None
    with query._lock:  # as while it executes
        ending = threading.Thread(target=store.close)
        ending.start()
        ending.join(0.2)
        assert ending.is_alive()
        connection.cursor().execute("SELECT 1")
    ending.join(30)
    assert not ending.is_alive()
    with pytest.raises(sqlite3.ProgrammingError):
        connection.cursor()


def test_a_fault_is_told_by_the_read_itself(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store.open(sqlite_url)) as store:
        seq = following(store)
        with store._database.write(0) as connection:  # type: ignore[arg-type]
            connection.exec_driver_sql("ALTER TABLE list_changes RENAME TO elsewhere")
        with pytest.raises(StoreError):
            store.feed.read(seq)

        def refuses(_: threading.Lock) -> object:
            raise StoreError("away")

        monkeypatch.setattr(store._database, "keep_connection", refuses)
        assert not store.feed._newer.has_none(seq)


def test_a_file_that_takes_the_place_of_another_is_asked(sqlite_url: str, tmp_path: Path) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(Store.open(sqlite_url)) as store:
        block(store, "a.example")
        seq = following(store)
        first = store.feed._newer._connection
        following(store)
        assert store.feed._newer._connection is first, "the same file is not opened again"
        with store._database.read() as connection:
            connection.exec_driver_sql("VACUUM INTO ?", (str(tmp_path / "other.sqlite3"),))
        with closing(Store.open(f"sqlite:///{tmp_path / 'other.sqlite3'}")) as other:
            block(other, "b.example")
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        (tmp_path / "other.sqlite3").rename(path)
        assert hosts(store, seq) == ["b.example"]
        assert first is not None
        with pytest.raises(sqlite3.ProgrammingError):
            first.cursor()
