"""A backup of one installation, restored into another: everything, or nothing."""

import errno
import json
import os
import shutil
import signal
import stat
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.errors import BackupError, StoreError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store
from gatewayfilter.store.backup import Part
from gatewayfilter.use_cases.backup import Archive, Restore, Wanted, back_up, finish_interrupted, restoring
from gatewayfilter.use_cases.backup.file_swap import FileSwap
from gatewayfilter.use_cases.backup.state_files import Places
from tests.forking_process import ForkingProcess

SECRET = "correct horse battery"


class Installation:
    """A state folder with its database and its files."""

    def __init__(self, folder: Path, settings: str | None = None) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.places = Places(folder, folder.parent / f"{folder.name}.toml", folder / "proxy-users", folder / "ca")
        self.store = Store.open(f"sqlite:///{folder / 'gatewayfilter.sqlite3'}")
        if settings is not None:
            self.places.settings_file.write_text(settings)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def block(self, *hosts: str) -> None:
        for host in hosts:
            self.store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host)

    def backup(self, path: Path, **wanted: Any) -> Path:
        back_up(self.store, self.places, path, Wanted(**wanted), overwrite=True)
        return path

    def restore(self, path: Path, passphrase: str | None = None) -> restoring.RestoreReport:
        return Restore(self.store, self.places, passphrase).carry_out(path)

    def state(self) -> dict[str, object]:
        """Everything that a restore may change."""
        files = {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.name.startswith((".", "gatewayfilter.sqlite3", "restore.lock", "before-restore"))
        }
        settings = self.places.settings_file.read_bytes() if self.places.settings_file.exists() else None
        return {"files": files, "rules": self.store.lists.rules(), "settings": settings}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Installation]]:
    made: list[Installation] = []

    def one(name: str, settings: str | None = None) -> Installation:
        made.append(Installation(tmp_path / name, settings))
        return made[-1]

    yield one
    for installation in made:
        installation.store.close()


@pytest.fixture
def old(make: Callable[..., Installation]) -> Installation:
    """An installation with everything."""
    one = make("old", '# mine\ndata_dir = "/elsewhere"\n\n[proxy]\nauth_file = "/elsewhere/users"\nhold_ms = 7 # soon\n')
    one.block("a.test", "b.test")
    one.write("words/gambling.toml", "x = 1")
    one.write("words/model.npz", bytes(range(256)))
    one.write("rules/news.toml", "n = 1")
    one.write("rules/history/news/0001.toml", "n = 0")
    one.write("sources/ads/source.json", "{}")
    one.write("sources/ads/list", "ads.test\n" * 1000)
    one.write("sources/.ads.lock", "")
    one.write("client.key", b"k" * 32)
    one.write("pinned-apps.json", "{}")
    one.write("proxy-users", "anna:hash")
    one.write("snapshots/current", "not in backups")
    ensure_ca(one.folder / "ca")
    return one


@pytest.fixture
def new(make: Callable[..., Installation]) -> Installation:
    """Another one, with other things."""
    one = make("new", '[store]\nurl = "sqlite:////here.sqlite3"\n')
    one.block("x.test", "y.test", "z.test")
    one.write("words/adult.toml", "y = 2")
    one.write("sources/ads/source.json", '{"old": 1}')
    one.write("sources/other/source.json", "{}")
    one.write("sources/other/list", "other.test")
    return one


def test_everything_is_restored(old: Installation, new: Installation, tmp_path: Path) -> None:
    path = old.backup(tmp_path / "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = new.state()
    preview = {
        change.kind: (change.added, change.changed, change.removed) for change in Restore(new.store, new.places).preview(path)
    }
    assert new.state() == before
    report = new.restore(path)
    assert {change.kind: (change.added, change.changed, change.removed) for change in report.changes} == preview
    assert preview["manual rules"] == (0, 2, 1)
    assert preview["words"] == (2, 0, 1)
    assert preview["extraction rules"] == (2, 0, 0)
    assert preview["subscriptions"] == (0, 1, 1)
    assert preview["settings"] == (0, 1, 0)
    assert [rule.pattern for rule in new.store.lists.rules()] == ["a.test", "b.test"]
    files = {name for name in old.state()["files"] if not name.startswith(("ca/", "snapshots/", "sources/."))}  # type: ignore[attr-defined]
    for name in files:
        assert (new.folder / name).read_bytes() == (old.folder / name).read_bytes()
    assert not (new.folder / "words/adult.toml").exists()
    assert not (new.folder / "sources/other").exists()
    assert not (new.folder / "ca").exists()
    assert not (new.folder / restoring.WORK).exists()
    assert stat.S_IMODE((new.folder / "client.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((new.folder / "rules/history").stat().st_mode) == 0o700
    text = new.places.settings_file.read_text()
    assert "data_dir" not in text
    assert text.startswith("# mine\n")
    assert 'url = "sqlite:////here.sqlite3"' in text
    assert f'auth_file = "{new.places.proxy_users}"' in text
    assert "hold_ms = 7 # soon" in text


def test_the_safety_copy_brings_the_old_state_back(old: Installation, new: Installation, tmp_path: Path) -> None:
    before = new.state()
    copy = new.restore(old.backup(tmp_path / "b")).safety_copy
    assert new.state() != before
    new.restore(copy)
    after = new.state()
    assert after["rules"] == before["rules"]
    text = new.places.settings_file.read_text()
    assert 'url = "sqlite:////here.sqlite3"' in text
    assert "hold_ms" not in text
    assert "auth_file" in text  # a log-in that is required stays required
    added = {"client.key", "pinned-apps.json", "proxy-users"}  # what a backup does not have of these stays
    assert {name: content for name, content in after["files"].items() if name not in added} == before["files"]  # type: ignore[attr-defined]


def test_only_some_safety_copies_are_kept(old: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = old.backup(tmp_path / "b")
    for day in range(1, 9):
        monkeypatch.setattr(time, "strftime", lambda _form, _at, day=day: f"before-restore-2030010{day}-000000.gfbackup")
        old.restore(path)
    assert [file.name[15:23] for file in sorted((old.folder / "backups").iterdir())] == [f"2030010{day}" for day in range(4, 9)]


def test_definitions_alone(old: Installation, new: Installation, tmp_path: Path) -> None:
    """The last copy of a subscription stays where it is the same one."""
    path = old.backup(tmp_path / "b", lists=False)
    new.write("sources/ads/list", "here")
    new.restore(path)
    assert not (new.folder / "sources/ads/list").exists()
    new.write("sources/ads/list", "here")
    new.restore(path)
    assert (new.folder / "sources/ads/list").read_text() == "here"


@pytest.mark.slow
def test_the_authority_is_encrypted(old: Installation, new: Installation, tmp_path: Path) -> None:
    key = (old.folder / "ca/mitmproxy-ca.pem").read_bytes()
    path = old.backup(tmp_path / "b", passphrase=SECRET)
    assert b"PRIVATE" not in path.read_bytes()
    assert SECRET.encode() not in path.read_bytes()
    before = new.state()
    with pytest.raises(BackupError, match="passphrase is wrong"):
        new.restore(path, "another passphrase")
    with pytest.raises(BackupError, match="does not hold"):
        new.restore(old.backup(tmp_path / "c"), SECRET)
    assert new.state() == before
    ensure_ca(new.folder / "ca")
    theirs = (new.folder / "ca/mitmproxy-ca.pem").read_bytes()
    copy = new.restore(path, SECRET).safety_copy
    assert (new.folder / "ca/mitmproxy-ca.pem").read_bytes() == key
    assert stat.S_IMODE((new.folder / "ca/mitmproxy-ca.pem").stat().st_mode) == 0o600
    new.restore(copy, SECRET)
    assert (new.folder / "ca/mitmproxy-ca.pem").read_bytes() == theirs


@pytest.mark.parametrize("passphrase", ["", "short", "x" * 2000])
def test_passphrases_that_are_refused(passphrase: str, old: Installation, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="passphrase is too"):
        old.backup(tmp_path / "b", passphrase=passphrase)
    assert not (tmp_path / "b").exists()


def test_settings_that_this_version_does_not_have(old: Installation, new: Installation, tmp_path: Path) -> None:
    for text in ("[proxy]\nnonsense = 1\n", "[proxy", "\xff"):
        old.places.settings_file.write_bytes(text.encode("latin-1"))
        before = new.state()
        with pytest.raises(BackupError, match="settings"):
            new.restore(old.backup(tmp_path / "b"))
        assert new.state() == before


def test_a_forged_backup_runs_no_program(old: Installation, new: Installation, tmp_path: Path) -> None:
    forged = '[notify]\ncommand = ["/bin/sh", "-c", "id"]\n\n[learn]\nimage_classifier = "os:abort"\nenabled = true\n'
    old.places.settings_file.write_text(forged)
    new.restore(old.backup(tmp_path / "b"))
    text = new.places.settings_file.read_text()
    assert "enabled = true" in text
    assert "command" not in text
    assert "image_classifier" not in text


def test_a_program_of_this_machine_stays(old: Installation, new: Installation, tmp_path: Path) -> None:
    new.places.settings_file.write_text('[notify]\ncommand = ["/usr/bin/mine", "now"]\n')
    new.restore(old.backup(tmp_path / "b"))
    assert tomllib.loads(new.places.settings_file.read_text())["notify"] == {"command": ["/usr/bin/mine", "now"]}


def test_the_parts_on_request(old: Installation, new: Installation, tmp_path: Path) -> None:
    with Archive(old.backup(tmp_path / "b", parts=frozenset(Part))) as archive:
        assert {"decisions", "fingerprints", "page_verdicts"} < set(archive.tables())
    with Archive(old.backup(tmp_path / "b")) as archive:
        assert not {"decisions", "fingerprints", "page_verdicts"} & set(archive.tables())


@pytest.mark.parametrize("after", [0, 1, 3, 7])
def test_a_file_that_cannot_be_written_leaves_the_old_state(
    after: int, old: Installation, new: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on a full disk."""
    path, before = old.backup(tmp_path / "b"), new.state()
    replace, done = Path.replace, []

    def failing(self: Path, target: Path) -> Path:
        if ".restore" in str(self) and self.name.startswith(("file", ".")) and self.name != "journal.part":
            done.append(target)
            if len(done) > after:
                monkeypatch.setattr(Path, "replace", replace)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(BackupError, match="No space left"):
        new.restore(path)
    assert new.state() == before
    assert not (new.folder / restoring.WORK).exists()
    new.restore(path)
    assert new.state()["rules"] == old.state()["rules"]


def test_a_database_that_refuses_leaves_the_old_state(
    old: Installation, new: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, before = old.backup(tmp_path / "b"), new.state()
    apply = FileSwap.apply

    def then_fail(self: FileSwap) -> None:
        apply(self)
        raise StoreError("the disk is full")

    monkeypatch.setattr(FileSwap, "apply", then_fail)
    with pytest.raises(StoreError):
        new.restore(path)
    assert new.state() == before


def restore_until(folder_name: str, backup: str, call: str, number: int) -> None:
    """Restores, and kills itself before one file operation."""
    folder = Path(folder_name)
    count = 0

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event == call and folder_name in str(arguments[:2]):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    places = Places(folder, folder.parent / f"{folder.name}.toml", folder / "proxy-users", folder / "ca")
    store = Store.open(f"sqlite:///{folder / 'gatewayfilter.sqlite3'}")
    sys.addaudithook(audit)
    Restore(store, places).carry_out(Path(backup))


@pytest.fixture(scope="module")
def restoring_process() -> Iterator[ForkingProcess]:
    with ForkingProcess(restore_until) as process:
        yield process


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("call", "every"), [("os.rename", 1), ("os.link", 1), ("open", 6), ("os.remove", 6)])
def test_a_killed_restore_leaves_the_old_state_or_is_completed(
    call: str,
    every: int,
    old: Installation,
    make: Callable[..., Installation],
    restoring_process: ForkingProcess,
    tmp_path: Path,
) -> None:
    """Killed before one file operation after the other."""
    path = old.backup(tmp_path / "b")
    outcomes = set()
    for number in range(1, 300, every):
        new = make(f"new-{number}", "[proxy]\nhold_ms = 9\n")
        new.block("x.test", "y.test")
        new.write("words/adult.toml", "y = 2")
        new.write("pinned-apps.json", "[]")
        before = new.state()
        code = restoring_process.call(str(new.folder), str(path), call, number)
        finish_interrupted(new.store, new.folder)
        after = new.state()
        is_new = [rule.pattern for rule in after["rules"]] == ["a.test", "b.test"]  # type: ignore[attr-defined]
        if is_new:
            assert (new.folder / "words/gambling.toml").exists()
            assert not (new.folder / "words/adult.toml").exists()
            assert b"hold_ms = 7" in after["settings"]  # type: ignore[operator]
        else:
            assert after == before
        assert not (new.folder / restoring.WORK).exists()
        assert not list(new.folder.parent.glob(f".{new.places.settings_file.name}*.restore")) or not is_new
        outcomes.add((code, is_new))
        shutil.rmtree(new.folder / "backups", ignore_errors=True)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert (0, True) in outcomes
    if call in {"os.rename", "open"}:
        assert (-signal.SIGKILL, False) in outcomes


def test_two_restores_at_once(old: Installation, tmp_path: Path) -> None:
    path = old.backup(tmp_path / "b")
    with restoring._only_one(old.folder), pytest.raises(BackupError, match="another restore"):
        old.restore(path)


def test_backup_and_restore_while_others_write(old: Installation, tmp_path: Path) -> None:
    """The backup is one state of the database, and the restore waits for its turn."""
    ended = threading.Event()
    other = Store.open(f"sqlite:///{old.folder / 'gatewayfilter.sqlite3'}")

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            other.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, f"w{number}.test")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            path = old.backup(tmp_path / "b")
            with Archive(path) as archive:
                rows = [json.loads(line) for line in archive.lines("manual_rules")]
                assert len(rows) == archive.counts["manual_rules"]
            old.restore(path)
            assert {row["id"] for row in rows} <= {rule.rule_id for rule in old.store.lists.rules()}
    finally:
        ended.set()
        writer.join()
        other.close()


def test_a_full_disk_is_told_before_anything_is_written(
    old: Installation, new: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, before = old.backup(tmp_path / "b"), new.state()
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(BackupError, match="too little room"):
        new.restore(path)
    assert new.state() == before
