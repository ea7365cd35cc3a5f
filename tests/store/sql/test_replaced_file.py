"""A SQLite file that is removed or replaced under an open store."""

import fcntl
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreError, StoreUnavailableError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store
from gatewayfilter.store.sql.new_file import new_file


def block(store: Store, host: str) -> None:
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host)


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


def test_what_a_lost_database_left_beside_its_name_goes_before_a_new_one_comes(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    for name in ("a.sqlite3-wal", "a.sqlite3-shm", ".a.sqlite3-new", ".a.sqlite3-new-wal", ".a.sqlite3-new-shm"):
        (tmp_path / name).write_text("left behind")
    with new_file(path) as aside:
        assert aside is not None
        assert sorted(one.name for one in tmp_path.iterdir()) == [".a.sqlite3.lock", "a.sqlite3-shm", "a.sqlite3-wal"]
        aside.write_text("new")
        aside.with_name(f"{aside.name}-wal").write_text("its log")
    assert sorted(one.name for one in tmp_path.iterdir()) == [".a.sqlite3.lock", "a.sqlite3"]
    assert path.read_text() == "new"
    with new_file(path) as aside:
        assert aside is None
    assert path.read_text() == "new"


def test_one_process_at_a_time_makes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[tuple[str, int]] = []
    monkeypatch.setattr(fcntl, "flock", lambda file, how: locked.append((Path(file.name).name, how)))
    with new_file(tmp_path / "a.sqlite3") as aside:
        assert locked == [(".a.sqlite3.lock", fcntl.LOCK_EX)]
        assert aside is not None
        aside.write_text("new")


def test_a_new_file_that_cannot_be_made_gives_one_sentence(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none" / "a", "No such file or directory"), (tmp_path / "a\0b", "embedded null byte")):
        with pytest.raises(StoreError, match=f"cannot be made: {said}$"), new_file(path):
            pass


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
    filled = f"sqlite:///{tmp_path / 'b.sqlite3'}"
    for host in ("first.test", "second.test"):
        with closing(Store.open(filled, fill=partial(block, host=host))) as store:
            assert [rule.pattern for rule in store.lists.rules()] == ["first.test"]
    assert (tmp_path / "a.sqlite3").stat().st_mode & 0o777 == 0o600
