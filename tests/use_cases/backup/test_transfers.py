"""Backups that the dashboard sends and receives, restores that a kill had interrupted, and the repair of a damaged database."""

import io
import json
import os
import stat
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.config import Loaded, Settings, load
from gatewayfilter.errors import BackupError, StartupError, StoreError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store
from gatewayfilter.use_cases.backup import Archive, finish_interrupted, restoring, transfers
from gatewayfilter.use_cases.backup.database_repair import repair_database
from gatewayfilter.use_cases.backup.file_swap import FileSwap
from gatewayfilter.use_cases.backup.restoring import WORK, holds_authority
from gatewayfilter.use_cases.backup.transfers import made_backup, restored, shown_changes, transfer_file
from gatewayfilter.wiring import open_store, publish_now, snapshot_folder
from tests.use_cases.small_program import small_program


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    return load(environ={}, options={"data_dir": tmp_path / "state", "learn.enabled": False})


@pytest.fixture
def settings(loaded: Loaded) -> Settings:
    return loaded.settings


def block(store: Store, *hosts: str) -> None:
    for host in hosts:
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host)


def hosts(store: Store) -> list[str]:
    return [rule.pattern for rule in store.lists.rules()]


def sent(store: Store, loaded: Loaded, *, with_log: bool = False) -> bytes:
    return b"".join(made_backup(store, loaded, with_log=with_log, passphrase="").blocks())


def left(settings: Settings) -> list[Path]:
    return list((settings.data_dir / "transfers").iterdir())


def test_a_backup_is_sent_and_leaves_no_file(store: Store, loaded: Loaded, settings: Settings, tmp_path: Path) -> None:
    block(store, "a.test")
    with made_backup(store, loaded, with_log=False, passphrase="") as made:
        (file,) = left(settings)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        content = b"".join(made.blocks())
        assert left(settings) == []
    (tmp_path / "b").write_bytes(content)
    with Archive(tmp_path / "b") as archive:
        assert ("decisions" in archive.tables(), holds_authority(archive)) == (False, False)
    (tmp_path / "b").write_bytes(sent(store, loaded, with_log=True))
    with Archive(tmp_path / "b") as archive:
        assert "decisions" in archive.tables()
    with pytest.raises(BackupError, match="passphrase"):
        made_backup(store, loaded, with_log=False, passphrase="short")
    assert left(settings) == []


def test_a_received_backup_is_previewed_and_restored(
    store: Store, loaded: Loaded, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_program(tmp_path / "bundled", monkeypatch)
    block(store, "a.test")
    upload = sent(store, loaded)
    block(store, "b.test")
    changes = {change.kind: (change.added, change.removed) for change in shown_changes(store, loaded, io.BytesIO(upload))}
    assert (changes["manual rules"], hosts(store)) == ((0, 1), ["a.test", "b.test"])
    assert snapshot_folder(settings).current() is None
    report = restored(store, loaded, io.BytesIO(upload))
    assert (hosts(store), report.safety_copy.exists()) == (["a.test"], True)
    assert snapshot_folder(settings).current() is not None
    assert left(settings) == []


def test_what_is_no_backup_is_named_as_the_file_that_was_sent(store: Store, loaded: Loaded, settings: Settings) -> None:
    for use in (shown_changes, restored):
        with pytest.raises(BackupError) as caught:
            use(store, loaded, io.BytesIO(b"x" * 3_000_000))
        assert str(settings.data_dir) not in str(caught.value)
        assert "the file" in str(caught.value)
    assert left(settings) == []


def test_files_of_a_process_that_was_killed_are_removed_after_an_hour(settings: Settings, store: Store) -> None:
    assert store
    folder = settings.data_dir / "transfers"
    folder.mkdir()
    for name, age_s in (("old", 3_700), ("new", 3_500)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age_s,) * 2)
    with transfer_file(settings.data_dir) as path:
        assert not path.exists()
        assert {file.name for file in folder.iterdir()} == {"new"}


def test_a_folder_that_cannot_be_made_is_one_sentence(settings: Settings, store: Store) -> None:
    assert store
    (settings.data_dir / "transfers").touch()
    with pytest.raises(BackupError, match=r"cannot use .*transfers"), transfer_file(settings.data_dir):
        pass


class _KilledError(BaseException):
    pass


@pytest.fixture
def interrupted(store: Store, loaded: Loaded, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a restore that was killed after its journal was written."""
    (settings.data_dir / "services.toml").write_text("# old\n")
    block(store, "a.test")
    (tmp_path / "b").write_bytes(sent(store, loaded))
    (settings.data_dir / "services.toml").write_text("# new\n")
    block(store, "b.test")
    kept = tmp_path / "kept"

    def killed(_: FileSwap) -> None:
        (settings.data_dir / WORK).rename(kept)
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(FileSwap, "apply", killed)
        with pytest.raises(_KilledError), (tmp_path / "b").open("rb") as upload:
            restored(store, loaded, upload)
    kept.rename(settings.data_dir / WORK)
    return settings.data_dir / WORK


def test_an_interrupted_restore_is_completed_once(interrupted: Path, store: Store, settings: Settings) -> None:
    assert hosts(store) == ["a.test", "b.test"]
    assert finish_interrupted(store, settings.data_dir)
    assert (hosts(store), (settings.data_dir / "services.toml").read_text()) == (["a.test"], "# old\n")
    assert not interrupted.exists()
    assert not finish_interrupted(store, settings.data_dir)


def test_an_interrupted_restore_waits_for_another_one(interrupted: Path, store: Store, settings: Settings) -> None:
    with restoring._only_one(settings.data_dir), pytest.raises(BackupError, match="another restore is under way"):
        finish_interrupted(store, settings.data_dir)
    assert interrupted.exists()


def test_a_damaged_journal_is_one_sentence(interrupted: Path, store: Store, settings: Settings) -> None:
    for text in ("{", "[1]", json.dumps([[1, 2]])):
        (interrupted / "journal.json").write_text(text)
        with pytest.raises(BackupError, match=r"cannot be completed: .*journal\.json is damaged"):
            finish_interrupted(store, settings.data_dir)
    assert hosts(store) == ["a.test", "b.test"]


def test_what_was_not_begun_is_taken_away(interrupted: Path, store: Store, settings: Settings) -> None:
    (interrupted / "journal.json").unlink()
    assert not finish_interrupted(store, settings.data_dir)
    assert not interrupted.exists()
    assert (hosts(store), (settings.data_dir / "services.toml").read_text()) == (["a.test", "b.test"], "# new\n")


def test_a_damaged_database_is_moved_aside_and_made_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small_program(tmp_path / "bundled", monkeypatch)
    with closing(open_store(settings)) as store:
        block(store, "a.test")
        publish_now(settings, store)
    with pytest.raises(StartupError, match="is not damaged: nothing was changed"):
        repair_database(settings)
    path = settings.data_dir / "gatewayfilter.sqlite3"
    for log in settings.data_dir.glob("gatewayfilter.sqlite3-*"):
        log.unlink()
    content = path.read_bytes()
    path.write_bytes(b"x" * len(content))
    report = repair_database(settings)
    assert report.moved_to is not None
    assert report.moved_to.read_bytes() == b"x" * len(content)
    assert report.moved_to.name.startswith("gatewayfilter.sqlite3.damaged-20")
    assert (report.manual_rules, report.learned) == (1, 0)
    path.unlink()
    assert repair_database(settings).moved_to is None


def test_a_database_elsewhere_is_not_repaired(tmp_path: Path) -> None:
    options = {"data_dir": tmp_path / "state", "store.url": f"sqlite:///{tmp_path / 'other.sqlite3'}"}
    with pytest.raises(StoreError, match=r"store\.url"):
        repair_database(load(environ={}, options=options).settings)


def test_a_file_of_another_process_is_old_after_an_hour(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store
    folder = settings.data_dir / "transfers"
    folder.mkdir()
    for name, at in (("old", 999.0), ("new", 1_000.0)):
        (folder / name).touch()
        os.utime(folder / name, (at, at))
    monkeypatch.setattr(transfers, "time", SimpleNamespace(time=lambda: 4_600.0))
    with transfer_file(settings.data_dir):
        assert [path.name for path in folder.iterdir()] == ["new"]
