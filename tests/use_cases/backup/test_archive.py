"""The file of a backup: complete or not there at all, and refused when it is damaged or hostile."""

import json
import os
import random
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.store import Store
from gatewayfilter.use_cases.backup import Archive, Wanted, archive_reader, back_up
from gatewayfilter.use_cases.backup.archive_writer import MANIFEST, writing
from gatewayfilter.use_cases.backup.state_files import Places

ROW = b'{"a": 1}\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    (folder / "words").mkdir(parents=True)
    (folder / "words" / "adult.toml").write_text("x = 1\n" * 50)
    store = Store.open(f"sqlite:///{folder / 'gatewayfilter.sqlite3'}")
    path = tmp_path / "good.gfbackup"
    back_up(store, Places(folder, folder / "config.toml", folder / "proxy-users", folder / "ca"), path, Wanted())
    store.close()
    return path


def facts_of(content: bytes) -> dict[str, object]:
    return {"sha256": sha256(content).hexdigest(), "bytes": len(content)}


class Forged:
    """A backup that was made by hand."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {"tables/manual_rules.jsonl": ROW}
        self.manifest: dict[str, Any] = {
            "format": 1, "program": "1", "schema": "0015", "created_at": 1.0, "lists": True, "counts": {"manual_rules": 1},
        }  # fmt: skip
        self.facts: dict[str, Any] = {}

    def write(self, path: Path, change: Callable[[zipfile.ZipInfo], None] = lambda _: None) -> Path:
        manifest = {"members": {name: facts_of(content) for name, content in self.members.items()} | self.facts} | self.manifest
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.members.items():
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                change(info)
                archive.writestr(info, content)
            archive.writestr(MANIFEST, json.dumps(manifest))
        return path


def test_a_good_one(good: Path) -> None:
    with Archive(good) as archive:
        assert archive.content("state/words/adult.toml") == b"x = 1\n" * 50
        assert archive.state_names() == ["words/adult.toml"]


def test_a_forged_one_is_readable(tmp_path: Path) -> None:
    """The cases below fail for what they change alone."""
    with Archive(Forged().write(tmp_path / "x")) as archive:
        assert list(archive.lines("manual_rules")) == [ROW]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated(share: float, good: Path) -> None:
    good.write_bytes(good.read_bytes()[: int(good.stat().st_size * share)])
    with pytest.raises(BackupError, match=r"is no backup|truncated|damaged"):
        Archive(good)


def test_each_changed_byte_is_found_or_does_not_matter(good: Path) -> None:
    content = good.read_bytes()
    with Archive(good) as archive:
        expected = {name: archive.content(name) for name in archive._names}
    for place in random.Random(5).sample(range(len(content)), 300):
        good.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with suppress(BackupError), Archive(good) as archive:
            assert {name: archive.content(name) for name in archive._names} == expected


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "/etc/passwd", "state/../../evil", "state/words/../../evil", "state/words/.hidden", "state/run.lock",
        "state/snapshots/current", "state/sources/ads/evil", "state/sources/../list", "state/sources/list", "state/ca/key.pem",
        "state/words/a/b/c/d/e.toml", "state/words/a\\..\\b", "state/words/", "tables/frontier.jsonl", "tables/../x.jsonl",
        "tables/sqlite_master.jsonl", "state/words/\n", "C:evil", "state//words/a", "state/words/" + "a" * 200, "ca.pem",
    ],
)  # fmt: skip
def test_names_that_no_backup_has(name: str, tmp_path: Path) -> None:
    forged = Forged()
    forged.members[name] = b"x"
    with pytest.raises(BackupError, match=r"name that no backup has|no regular file"):
        Archive(forged.write(tmp_path / "x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]


def _link(info: zipfile.ZipInfo) -> None:
    info.external_attr = (stat.S_IFLNK | 0o777) << 16


def _device(info: zipfile.ZipInfo) -> None:
    info.external_attr = (stat.S_IFBLK | 0o777) << 16


def _packed_otherwise(info: zipfile.ZipInfo) -> None:
    info.compress_type = zipfile.ZIP_LZMA


@pytest.mark.parametrize("change", [_link, _device, _packed_otherwise])
def test_members_that_no_backup_has(change: Callable[[zipfile.ZipInfo], None], tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="no backup that can be used"):
        Archive(Forged().write(tmp_path / "x", change))


def test_a_member_twice(tmp_path: Path) -> None:
    path = Forged().write(tmp_path / "x")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("tables/manual_rules.jsonl", ROW)
    with pytest.raises(BackupError, match="twice"):
        Archive(path)


@pytest.mark.parametrize(
    "facts", [{"sha256": "0" * 64, "bytes": len(ROW)}, {"sha256": sha256(ROW).hexdigest(), "bytes": 3}, {"bytes": 1}, {}, None, 7]
)
def test_wrong_checksums(facts: object, tmp_path: Path) -> None:
    forged = Forged()
    forged.facts = {"tables/manual_rules.jsonl": facts}
    with pytest.raises(BackupError):
        Archive(forged.write(tmp_path / "x"))


@pytest.mark.parametrize(
    "manifest",
    [
        {"format": 0}, {"format": "1"}, {"format": True}, {"schema": 15}, {"created_at": "now"}, {"created_at": -1},
        {"created_at": float("nan")},
        {"lists": 1}, {"counts": []}, {"counts": {"manual_rules": -1}}, {"counts": {}}, {"counts": {"manual_rules": 1, "x": 1}},
        {"members": []}, {"members": {}}, {"program": "x" * 1000},
    ],
)  # fmt: skip
def test_manifests_that_no_backup_has(manifest: dict[str, Any], tmp_path: Path) -> None:
    forged = Forged()
    forged.manifest |= manifest
    with pytest.raises(BackupError, match="manifest"):
        Archive(forged.write(tmp_path / "x"))


@pytest.mark.parametrize("text", ["[]", "7", "null", '"x"', "{", "", "[" * 100_000, '{"format": 2.0}', '{"format": null}'])
def test_manifests_that_are_none(text: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr(MANIFEST, text)
    with pytest.raises(BackupError, match=r"manifest does not fit|is damaged"):
        Archive(tmp_path / "x")


def test_a_manifest_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Forged().write(tmp_path / "x")
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(MANIFEST).file_size
    monkeypatch.setattr(archive_reader, "_MAX_MANIFEST", size)
    with Archive(path) as read:
        assert read.tables() == ["manual_rules"]
    monkeypatch.setattr(archive_reader, "_MAX_MANIFEST", size - 1)
    with pytest.raises(BackupError, match="manifest is too long"):
        Archive(path)


def test_an_encrypted_member(tmp_path: Path) -> None:
    path = Forged().write(tmp_path / "x")
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # general purpose bit 0 of the first member in the directory
    path.write_bytes(content)
    with pytest.raises(BackupError, match="packed in another way"):
        Archive(path)


def test_a_newer_format(tmp_path: Path) -> None:
    forged = Forged()
    forged.manifest |= {"format": 2, "counts": "other"}
    with pytest.raises(BackupError, match="newer version"):
        Archive(forged.write(tmp_path / "x"))


def test_a_bomb(tmp_path: Path) -> None:
    forged = Forged()
    forged.members["tables/manual_rules.jsonl"] = b"\n" * 50_000_000
    with pytest.raises(BackupError, match="far larger"):
        Archive(forged.write(tmp_path / "x"))


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    forged = Forged()
    forged.members["state/words/adult.toml"] = os.urandom(1 << 20) + bytes(64 << 20)
    with pytest.raises(BackupError, match="impossible size"):
        Archive(forged.write(tmp_path / "x"))


def test_a_row_that_is_too_long(tmp_path: Path) -> None:
    forged = Forged()
    forged.members["tables/manual_rules.jsonl"] = os.urandom(1 << 20).replace(b"\n", b"") + bytes(33 << 20)
    with Archive(forged.write(tmp_path / "x")) as archive, pytest.raises(BackupError, match="too long"):
        list(archive.lines("manual_rules"))


def test_too_many_members(tmp_path: Path) -> None:
    forged = Forged()
    forged.members |= {f"state/words/{number}.toml": b"" for number in range(20_001)}
    with pytest.raises(BackupError, match="too many"):
        Archive(forged.write(tmp_path / "x"))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(BackupError):
            Archive(path)


def test_a_file_that_is_there_is_replaced_only_on_request(good: Path, tmp_path: Path) -> None:
    before = good.read_bytes()
    with pytest.raises(BackupError, match="--overwrite"), writing(good):
        pass
    with pytest.raises(BackupError, match="there already"), writing(tmp_path, overwrite=True):
        pass
    with pytest.raises(ZeroDivisionError):
        _fail_in_between(good)
    assert good.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def _fail_in_between(path: Path) -> None:
    with writing(path, overwrite=True) as archive:
        archive.add("settings.toml", [b"x"])
        raise ZeroDivisionError


def test_a_part_that_is_a_link_or_of_another_writer(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("keep")
    (tmp_path / ".b.part").symlink_to(tmp_path / "victim")
    with pytest.raises(BackupError, match="cannot write"), writing(tmp_path / "b"):
        pass
    (tmp_path / ".b.part").unlink()
    (tmp_path / ".b.part").hardlink_to(tmp_path / "victim")
    with pytest.raises(BackupError, match="cannot write"), writing(tmp_path / "b"):
        pass
    assert (tmp_path / "victim").read_text() == "keep"
    with writing(tmp_path / "c") as first:
        _write_beside(tmp_path / "c")
        first.add("settings.toml", [b"x"])


def test_a_part_that_a_killed_process_left_is_written_over(good: Path, tmp_path: Path) -> None:
    before = good.read_bytes()
    (tmp_path / ".c.part").write_bytes(b"left" * 10_000)
    for name in ("b", "c"):
        with writing(tmp_path / name) as archive:
            archive.add("settings.toml", [b"x"])
    assert (tmp_path / "c").stat().st_size == (tmp_path / "b").stat().st_size < 10_000
    assert (good.read_bytes() == before, list(tmp_path.glob(".*"))) == (True, [])


def _write_beside(path: Path) -> None:
    with pytest.raises(BackupError, match="another process"), writing(path):
        pass


def test_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"cannot write .*: No space left"):
        _write_to_full(tmp_path)
    assert not list(tmp_path.iterdir())


def _write_to_full(folder: Path) -> None:
    with writing(folder / "b") as archive:
        archive.add("settings.toml", _blocks_on_a_full_disk())


def _blocks_on_a_full_disk() -> Any:
    yield b"x"
    raise OSError(28, "No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 100, 5000])
def test_a_killed_backup_leaves_nothing_that_looks_like_one(rows: int, tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from gatewayfilter.use_cases.backup.archive_writer import writing\n"
        "def blocks():\n"
        f"    for _ in range({rows}): yield os.urandom(1000)\n"
        "    os.kill(os.getpid(), 9)\n"
        "with writing(Path(sys.argv[1])) as archive: archive.add('settings.toml', blocks())\n"
    )
    target = tmp_path / "b"
    assert subprocess.run([sys.executable, "-c", code, target], check=False, timeout=60).returncode == -9
    assert not target.exists()
    with writing(target) as archive:
        archive.add("settings.toml", [b"x = 1"])
        archive.finish({"program": "1", "schema": "1", "created_at": 1, "lists": True, "counts": {}})
    with Archive(target) as read:
        assert read.content("settings.toml") == b"x = 1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]
