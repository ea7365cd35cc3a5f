"""The files of a backup and of a restore: modes, names, sizes at the bounds, and swaps without hard links."""

import errno
import json
import os
import stat
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.use_cases.backup import Archive, archive_reader
from gatewayfilter.use_cases.backup.archive_writer import MANIFEST, _opened, writing
from gatewayfilter.use_cases.backup.backing_up import _Counted
from gatewayfilter.use_cases.backup.file_swap import FileSwap
from gatewayfilter.use_cases.backup.restore_plan import FileChange, KindChanges, count_files
from gatewayfilter.use_cases.backup.restoring import _work_folder
from gatewayfilter.use_cases.backup.settings_text import values_of, with_values
from gatewayfilter.use_cases.backup.state_files import (
    is_copy_of_a_list,
    is_replaced_as_a_whole,
    is_state_name,
    kind_of,
    state_files,
    unit_of,
)

ROW = b'{"a": 1}\n'


def written(path: Path, members: dict[str, list[bytes]], **facts: Any) -> Path:
    with writing(path) as archive:
        for name, blocks in members.items():
            archive.add(name, blocks)
        counts = {name[7:-6]: 1 for name in members if name.startswith("tables/")}
        archive.finish({"program": "1", "schema": "1", "created_at": 1.0, "lists": True, "counts": counts, **facts})
    return path


def test_members_are_private_regular_files_of_no_time(tmp_path: Path) -> None:
    path = written(tmp_path / "b", {"settings.toml": [b"x = ", b"1\n"]})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("settings.toml")
        assert (info.external_attr >> 16, info.compress_type) == (stat.S_IFREG | 0o600, zipfile.ZIP_DEFLATED)
        assert info.date_time[:3] == (1980, 1, 1)
        manifest = json.loads(archive.read(MANIFEST))
    assert manifest["members"] == {"settings.toml": {"sha256": sha256(b"x = 1\n").hexdigest(), "bytes": 6}}
    assert manifest["format"] == 1


@pytest.mark.parametrize(
    ("facts", "fits"),
    [
        ({"program": "x" * 100}, True),
        ({"program": "x" * 101}, False),
        ({"schema": "x" * 100}, True),
        ({"created_at": 0}, True),
        ({"created_at": 1e12}, False),
        ({"created_at": 999_999_999_999}, True),
        ({"counts": {"manual_rules": 0}}, True),
        ({"counts": {"manual_rules": 2**50 - 1}}, True),
        ({"counts": {"manual_rules": 2**50}}, False),
        ({"counts": {"manual_rules": True}}, False),
        ({"counts": None}, False),
    ],
)
def test_facts_at_the_bounds(facts: dict[str, Any], tmp_path: Path, *, fits: bool) -> None:
    path = written(tmp_path / "b", {"tables/manual_rules.jsonl": [ROW]}, **facts)
    if fits:
        with Archive(path) as archive:
            assert (archive.program, archive.total_bytes, archive.tables()) == (
                *(facts.get("program", "1"), len(ROW), ["manual_rules"]),
            )
    else:
        with pytest.raises(BackupError, match="manifest"):
            Archive(path)


def test_the_number_of_members_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "b", {"state/words/a.toml": [b"x"], "state/words/b.toml": [b"y"]})
    monkeypatch.setattr(archive_reader, "_MAX_MEMBERS", 3)
    with Archive(path) as archive:
        assert archive.state_names() == ["words/a.toml", "words/b.toml"]
        assert (archive.has("state/words/a.toml"), archive.has("settings.toml")) == (True, False)
    monkeypatch.setattr(archive_reader, "_MAX_MEMBERS", 2)
    with pytest.raises(BackupError, match="too many members"):
        Archive(path)


def test_sizes_of_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(64)
    path = written(tmp_path / "b", {"state/words/a.toml": [content], "state/sources/ads/list": [content * 2]})
    monkeypatch.setattr(archive_reader, "MAX_SMALL_FILE", 64)
    with Archive(path) as archive:
        assert archive.content("state/words/a.toml") == content
    monkeypatch.setattr(archive_reader, "MAX_SMALL_FILE", 63)
    with pytest.raises(BackupError, match="impossible size"):
        Archive(path)


def test_how_much_a_backup_may_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "b", {"state/words/a.toml": [b"x" * 10_000]})
    size = path.stat().st_size
    monkeypatch.setattr(archive_reader, "_MAX_RATIO", 1)
    monkeypatch.setattr(archive_reader, "_FREE_OF_RATIO", 10_000 - size)
    with Archive(path) as archive:
        assert archive.total_bytes == 10_000
    monkeypatch.setattr(archive_reader, "_FREE_OF_RATIO", 9_999 - size)
    with pytest.raises(BackupError, match="far larger"):
        Archive(path)


def test_the_longest_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "b", {"tables/manual_rules.jsonl": [ROW, b"x" * 19 + b"\n"]})
    monkeypatch.setattr(archive_reader, "MAX_LINE", 20)
    with Archive(path) as archive:
        assert list(archive.lines("manual_rules")) == [ROW, b"x" * 19 + b"\n"]
        monkeypatch.setattr(archive_reader, "MAX_LINE", 19)
        with pytest.raises(BackupError, match="a row of manual_rules is too long"):
            list(archive.lines("manual_rules"))


def test_a_backup_whose_file_goes_bad_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(written(tmp_path / "b", {"settings.toml": [b"x"], "tables/manual_rules.jsonl": [ROW]}))

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(archive._archive, "open", fails)
    with pytest.raises(BackupError, match=r"cannot read .*: Input/output error"):
        archive.content("settings.toml")
    with pytest.raises(BackupError, match=r"cannot read .*: Input/output error"):
        list(archive.lines("manual_rules"))
    archive.close()


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 400])
def test_rows_are_counted_and_passed_on_in_blocks(count: int) -> None:
    rows = [b"%d\n" % number for number in range(count)]
    counted = _Counted(rows)
    blocks = list(counted)
    assert (b"".join(blocks), counted.count, len(blocks)) == (b"".join(rows), count, count // 200 + 1)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("client.key", True), ("words/a.toml", True), ("words/a/b/c.toml", True), ("words/a/b/c/d.toml", False),
        ("sources/ads/list", True), ("sources/ads/source.json", True), ("sources/ads/other", False), ("sources/list", False),
        ("sources/a b/list", False), ("sources/a/b/list", False), ("run/x.json", False), ("words", False),
        ("words/" + "a" * 120, True),
        ("words/" + "a" * 121, False), ("words/.a", False),
    ],
)  # fmt: skip
def test_names_of_the_state_folder(name: str, *, is_one: bool) -> None:
    assert is_state_name(name) is is_one


def test_what_files_of_the_state_folder_are() -> None:
    assert (kind_of("words/a/b"), kind_of("sources/ads/list"), kind_of("client.key")) == (
        *("words", "subscriptions", "secrets of this installation"),
    )
    assert (unit_of("sources/ads/list"), unit_of("rules/history/news/1.toml")) == ("sources/ads", "rules/history/news/1.toml")
    assert (is_replaced_as_a_whole("words/a"), is_replaced_as_a_whole("client.key")) == (True, False)
    names = ("sources/ads/list", "sources/ads/state.json", "sources/ads/source.json", "words/list")
    assert [is_copy_of_a_list(name) for name in names] == [True, True, False, False]


def test_links_are_no_part_of_a_backup(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.toml").touch()
    state = tmp_path / "state"
    (state / "words").mkdir(parents=True)
    for name in ("words/a.toml", "client.key", "words/.hidden", "other"):
        (state / name).touch()
    (state / "words" / "link.toml").symlink_to(tmp_path / "elsewhere" / "b.toml")
    (state / "services.toml").symlink_to(tmp_path / "elsewhere" / "b.toml")
    (state / "rules").symlink_to(tmp_path / "elsewhere")
    assert list(state_files(state)) == ["client.key", "words/a.toml"]


def test_changes_are_counted_by_kind(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    here, new = tmp_path / "there", tmp_path / "new"
    changes = [
        FileChange(new, "words", "1", content=b""),
        FileChange(here, "words", "2", content=b""),
        FileChange(here, "words", "3"),
        FileChange(new, "subscriptions", "ads", content=b""),
        FileChange(here, "subscriptions", "ads"),
        FileChange(new, "subscriptions", "all", content=b""),
        FileChange(new, "subscriptions", "all", content=b""),
    ]
    assert count_files(changes) == [KindChanges("words", 1, 1, 1), KindChanges("subscriptions", 1, 1, 0)]
    assert [change.removes for change in changes[:3]] == [False, False, True]


def test_files_take_their_places_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    state = tmp_path / "state"
    (state / "words").mkdir(parents=True)
    work = state / ".restore"
    kept, gone, new, outside = state / "words" / "a", state / "words" / "b", state / "rules" / "x" / "c", tmp_path / "settings"
    for path in (kept, gone, outside):
        path.write_text("old")
    kept.chmod(0o640)
    archive = Archive(written(tmp_path / "b", {"settings.toml": [b"x"]}))

    def swap() -> FileSwap:
        work.mkdir()
        made = FileSwap(work)
        changes = [
            FileChange(kept, "", "", content=b"new"),
            FileChange(gone, "", ""),
            FileChange(new, "", "", content=b"new"),
            FileChange(outside, "", "", member="settings.toml"),
        ]
        made.stage(changes, archive)
        begun = [made.begun]
        made.begin()
        assert [*begun, made.begun] == [False, True]
        made.apply()
        return made

    made = swap()
    assert (kept.read_text(), gone.exists(), new.read_text(), outside.read_text()) == ("new", False, "new", "x")
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(new.parent.stat().st_mode)) == (0o640, 0o700)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    made.undo()
    assert (kept.read_text(), gone.read_text(), new.exists(), outside.read_text()) == ("old", "old", False, "old")
    assert not work.exists()
    made = swap()
    made.apply()  # again: what was moved is passed over
    made.end()
    assert (kept.read_text(), gone.exists(), new.read_text(), outside.read_text()) == ("new", False, "new", "x")
    assert {path.name for path in tmp_path.iterdir()} == {"b", "settings", "state"}
    archive.close()


def test_the_work_of_a_restore_is_private(tmp_path: Path) -> None:
    with _work_folder(tmp_path, "") as folder:
        assert (folder.name, stat.S_IMODE(folder.stat().st_mode)) == (".restore", 0o700)
        (folder / "x").touch()
    with _work_folder(tmp_path, "dry-run") as folder:
        assert folder.name == ".restore-dry-run"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(BackupError, match="cannot write to"), _work_folder(tmp_path / "file", ""):
        pass


def test_settings_of_a_machine_stay_there() -> None:
    text = '# mine\n[proxy]\nhold_ms = 7\n\n[notify]\ncommand = ["/bin/true"]\n\n[web.oidc]\nclient_secret_file = "/x"\n'
    assert values_of(text) == {"notify.command": ["/bin/true"], "web.oidc.client_secret_file": "/x"}
    assert with_values(text, values_of(text)) == text
    bare = with_values(text, {})
    assert (values_of(bare), bare.startswith("# mine\n[proxy]\nhold_ms = 7\n")) == ({}, True)
    moved = with_values("a = 1\n", {"store.url": "sqlite:////x", "web.oidc.client_secret_file": "/y"})
    assert values_of(moved) == {"store.url": "sqlite:////x", "web.oidc.client_secret_file": "/y"}
    with pytest.raises(BackupError, match="not valid TOML"):
        values_of("[x")
    with pytest.raises(BackupError, match="cannot be fitted"):
        with_values("store = 5\n", {"store.url": "sqlite:////x"})


def test_a_backup_of_nothing(tmp_path: Path) -> None:
    with Archive(written(tmp_path / "b", {})) as archive:
        assert (archive.total_bytes, archive.state_names(), archive.tables()) == (0, [], [])


def test_a_file_that_cannot_be_read_is_named_and_a_disk_that_is_full_is_not_its_fault(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"cannot read .*missing: No such file"), _opened(tmp_path / "missing"):
        pass
    (tmp_path / "there").touch()
    with pytest.raises(OSError, match="No space left"), _opened(tmp_path / "there"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("user", "owned"), [(0, True), (1000, False)])
def test_new_folders_of_the_state_belong_to_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, *, owned: bool
) -> None:
    owners: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "chown", lambda path, *owner: owners.append((path.name, *owner)))
    state = tmp_path / "state"
    (state / ".restore").mkdir(parents=True)
    status = state.stat()
    swap = FileSwap(state / ".restore")
    for folder in (state / "rules" / "x", tmp_path / "outside", state):
        swap._make_folder(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == (0o700 if folder != state else stat.S_IMODE(status.st_mode))
    assert owners == ([(name, status.st_uid, status.st_gid) for name in ("rules", "x")] if owned else [])


@pytest.mark.parametrize(("user", "owned"), [(0, True), (1000, False)])
def test_new_files_have_the_mode_and_owner_of_those_they_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, *, owned: bool
) -> None:
    owners: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    (tmp_path / ".restore").mkdir()
    old, staged = tmp_path / "old", tmp_path / ".restore" / "file-0"
    old.touch()
    old.chmod(0o640)
    with staged.open("wb") as file:
        staged.chmod(0o600)
        FileSwap(tmp_path / ".restore")._dress(file.fileno(), tmp_path / "none")
        assert stat.S_IMODE(staged.stat().st_mode) == 0o600
        FileSwap(tmp_path / ".restore")._dress(file.fileno(), old)
        assert stat.S_IMODE(staged.stat().st_mode) == 0o640
    assert owners == ([(path.stat().st_uid, path.stat().st_gid) for path in (tmp_path, old)] if owned else [])
