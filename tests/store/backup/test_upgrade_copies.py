"""Copies of a database before it is migrated."""

import os
import shutil
import sqlite3
import stat
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.store import Store, newest_usable_copy, schema_status
from gatewayfilter.store.backup import upgrade_copies
from gatewayfilter.store.backup.upgrade_copies import KEPT, copy_before_upgrade, go_back
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema import HEAD
from gatewayfilter.store.sql.schema_version import bring_to, known_schemas


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "old.sqlite3"
    with closing(Database.from_url(f"sqlite:///{path}")) as database:
        bring_to(database, sorted(known_schemas())[-2])
    return path


@pytest.fixture
def old(made: Path, tmp_path: Path) -> Path:
    """A database of the version before this one."""
    shutil.copyfile(made, tmp_path / "old.sqlite3")
    return tmp_path / "old.sqlite3"


def test_a_database_is_copied_before_it_is_migrated_and_no_more_after(old: Path) -> None:
    before = schema_status(f"sqlite:///{old}").current
    for _ in range(2):
        Store.open(f"sqlite:///{old}").close()
    (copy,) = (old.parent / "backups").iterdir()
    assert schema_status(f"sqlite:///{old}").current == HEAD
    assert schema_status(f"sqlite:///{copy}").current == before
    assert (copy.stat().st_mode & 0o777, copy.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert newest_usable_copy(old) == copy


def test_who_opens_an_older_database_is_asked_before_it_is_changed(old: Path) -> None:
    url, asked = f"sqlite:///{old}", list[str]()

    def refuse() -> None:
        asked.append(schema_status(url).current)
        raise StoreError("another process uses it")

    with pytest.raises(StoreError, match="another process uses it"):
        Store.open(url, before_upgrade=refuse)
    assert asked == [schema_status(url).current] != [HEAD]
    assert [path.name for path in old.parent.iterdir()] == ["old.sqlite3"], "no copy, and no log of an open connection"
    Store.open(url, before_upgrade=lambda: asked.append("again")).close()
    assert (asked[1:], schema_status(url).current) == (["again"], HEAD)
    for path in (old, old.with_name("new.sqlite3")):
        Store.open(f"sqlite:///{path}", before_upgrade=refuse).close()


def test_without_room_nothing_is_migrated(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema_status(f"sqlite:///{old}")
    usage: Any = shutil.disk_usage(old.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(StoreError, match="50 MB are needed, 0 are free"):
        Store.open(f"sqlite:///{old}")
    assert schema_status(f"sqlite:///{old}") == before
    assert list((old.parent / "backups").iterdir()) == []


def test_the_newest_copies_are_kept(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for second in range(KEPT + 2):
        monkeypatch.setattr(time, "strftime", lambda *_, at=second: f"2026-{at}")
        copy_before_upgrade(old)
    assert sorted(path.name[:21] for path in (old.parent / "backups").iterdir()) == [
        f"before-upgrade-2026-{n}" for n in (2, 3, 4)
    ]


def test_an_old_copy_that_is_removed_meanwhile_is_no_fault(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [old.parent / "backups" / f"before-upgrade-{number}.sqlite3" for number in range(9)]
    monkeypatch.setattr(upgrade_copies, "_copies", lambda _: gone)
    assert copy_before_upgrade(old).exists()


def test_a_new_copy_is_kept_whatever_the_clock_tells(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for second in range(9, 9 - KEPT - 1, -1):
        monkeypatch.setattr(time, "strftime", lambda *_, at=second: f"2026-{at}")
        assert copy_before_upgrade(old).exists()
    assert len(list((old.parent / "backups").iterdir())) == KEPT


def test_a_damaged_copy_takes_no_database_away(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda *_: "2026-1")
    whole = copy_before_upgrade(old)
    monkeypatch.setattr(time, "strftime", lambda *_: "2026-2")
    damaged = copy_before_upgrade(old)
    contents = bytearray(damaged.read_bytes())
    contents[-20_000:] = bytes(20_000)
    damaged.write_bytes(contents)
    assert [upgrade_copies._is_whole(copy) for copy in (whole, damaged, old.with_name("none"))] == [True, False, False]
    assert go_back(old)[0] == whole
    whole.unlink()
    with pytest.raises(StoreError, match="no copy in"):
        go_back(old)
    assert old.exists()


def _copied_with(old: Path, second: int, schema: str, *, pages: int = 0) -> Path:
    """A copy that tells another schema, or whose last pages are damaged."""
    copy = old.parent / "backups" / f"before-upgrade-2027-{second}-{schema}.sqlite3"
    shutil.copyfile(old, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE later AS SELECT zeroblob(50000) AS a")
        connection.execute("UPDATE alembic_version SET version_num = ?", (schema,))
        connection.commit()
    if pages:
        contents = bytearray(copy.read_bytes())
        contents[-pages * 4_096 :] = b"\xff" * (pages * 4_096)
        copy.write_bytes(contents)
    return copy


def test_newer_and_damaged_copies_are_passed_over(old: Path) -> None:
    usable = copy_before_upgrade(old)
    known = max(known_schemas())
    newer = _copied_with(old, 1, "9999")
    assert newest_usable_copy(old) == usable
    damaged = _copied_with(old, 2, known, pages=5)
    assert newest_usable_copy(old) == damaged  # its version can be read
    fresh, aside = go_back(old)
    assert fresh == usable
    assert (fresh.exists(), aside.exists(), aside.name.startswith("old.sqlite3.newer-")) == (True, True, True)
    assert (newer.exists(), old.stat().st_mode & 0o777) == (True, 0o600)
    assert not list(old.parent.glob(".*"))


def test_what_is_no_database_is_no_copy(old: Path) -> None:
    (old.parent / "backups").mkdir()
    assert newest_usable_copy(old) is None
    (old.parent / "backups" / "before-upgrade-1.sqlite3").write_bytes(b"")
    (old.parent / "backups" / "before-upgrade-2.sqlite3").write_bytes(b"no database" * 1_000)
    assert newest_usable_copy(old) is None
    with pytest.raises(StoreError, match="restore a backup"):
        go_back(old)


def test_room_for_the_copy_and_its_log_is_needed(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old.with_name("old.sqlite3-wal").write_bytes(b"")
    usage: Any = shutil.disk_usage(old.parent)
    needed = 50_000_000 + old.stat().st_size
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed - 1))
    with pytest.raises(StoreError, match="are needed"):
        copy_before_upgrade(old)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed))
    copy_before_upgrade(old)


def test_what_is_moved_aside_is_whole_without_its_log(old: Path) -> None:
    copy_before_upgrade(old)
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE later (a)")
        connection.commit()
        for suffix in ("", "-wal"):  # as a killed process leaves them
            shutil.copyfile(f"{old}{suffix}", old.with_name(f"killed{suffix}"))
    killed = old.with_name("killed")
    _, aside = go_back(killed)
    assert not aside.with_name(f"{aside.name}-wal").exists()
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT count(*) FROM later").fetchone() == (0,)


def test_what_a_killed_process_of_this_number_left_is_in_nobody_s_way(old: Path) -> None:
    (old.parent / "backups").mkdir()
    (old.parent / "backups" / f".before-upgrade-{os.getpid()}.part").write_text("half")
    copy = copy_before_upgrade(old)
    assert [one.name for one in (old.parent / "backups").iterdir()] == [copy.name]
    other = old.with_name("other")
    other.write_text("of another program")
    old.with_name(".old.sqlite3.back").symlink_to(other)
    go_back(old)
    assert (other.read_text(), old.is_symlink()) == ("of another program", False)


def test_a_copy_that_fails_leaves_nothing_behind(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(28, "No space left on device")

    copy = copy_before_upgrade(old)
    before = old.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuses)
        with pytest.raises(StoreError, match="cannot be copied before its upgrade: No space left on device"):
            copy_before_upgrade(old)
        with pytest.raises(StoreError, match=f"cannot put {copy.name} in the place of .*: No space left on device"):
            go_back(old)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", refuses)
        with pytest.raises(StoreError, match="in the place of"):
            go_back(old)
    assert [one.name for one in copy.parent.iterdir()] == [copy.name]
    assert [one.name for one in old.parent.iterdir() if one.name.startswith(".")] == []
    assert old.read_bytes() == before
    old.write_bytes(b"")
    with pytest.raises(StoreError, match="before its upgrade: no such table"):
        copy_before_upgrade(old)
    assert [one.name for one in copy.parent.iterdir()] == [copy.name]


def test_copies_are_on_the_disk_before_they_count(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[int, bool]] = []

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        written.append((found.st_ino, stat.S_ISDIR(found.st_mode)))

    monkeypatch.setattr(os, "fsync", fsync)
    copy = copy_before_upgrade(old)
    assert written == [(copy.stat().st_ino, False), (copy.parent.stat().st_ino, True)]
    written.clear()
    go_back(old)
    assert written == [(old.stat().st_ino, False)]
