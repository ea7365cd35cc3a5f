"""A SQLite file that is removed or replaced under an open store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreUnavailableError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store


def test_connections_follow_the_file(tmp_path: Path) -> None:
    path, older = tmp_path / "a.sqlite3", tmp_path / "older.sqlite3"
    with closing(Store.open(f"sqlite:///{path}")) as store:
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "first.test")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(older)) as copy:
            source.backup(copy)
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "second.test")
        assert store.feed.read(2) == []
        assert store.feed.read(2) == []  # by the prepared query
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        for read in (store.feed.last_seq, lambda: store.feed.read(2)):
            with pytest.raises(StoreUnavailableError):
                read()
        assert not path.exists(), "no empty one is made"
        older.rename(path)
        assert store.feed.last_seq() == 1
        store.feed.begin_after(2)
        assert store.feed.last_seq() > 1_000_000
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "third.test")
        assert [change.manual.pattern for change in store.feed.read(2) if change.manual] == ["none.invalid", "third.test"]
        assert [rule.pattern for rule in store.lists.rules()] == ["first.test", "third.test"]


def test_what_fills_a_new_file_is_seen_whole_or_not_at_all(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.sqlite3'}"

    def fail(store: Store) -> None:
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "half.test")
        raise StoreUnavailableError("the disk is full")

    with pytest.raises(StoreUnavailableError):
        Store.open(url, fill=fail)
    assert [path.name for path in tmp_path.iterdir()] == [".a.sqlite3.lock"]
    calls: list[Store] = []
    for _ in range(2):
        Store.open(url, fill=calls.append).close()
    assert len(calls) == 1
    assert (tmp_path / "a.sqlite3").stat().st_mode & 0o777 == 0o600
