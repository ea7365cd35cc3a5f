"""What a backup and a restore write is on the disk before it counts, and no descriptor of it stays open."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.use_cases.backup import Archive
from gatewayfilter.use_cases.backup.archive_writer import writing
from gatewayfilter.use_cases.backup.file_swap import FileSwap
from gatewayfilter.use_cases.backup.restoring import _copied

type Synced = list[tuple[str, int | None]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    """What was synced in turn: names of files with their sizes at that time, and names of folders without."""
    found: Synced = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append((path.name, None if path.is_dir() else path.stat().st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def still_open(folder: Path) -> list[str]:
    """Returns what of a folder, itself included, this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = descriptor.readlink()
        except FileNotFoundError:  # that of the listing
            continue
        if target.is_relative_to(folder):
            found.append(str(target))
    return found


def test_a_backup_is_synced_whole_and_then_its_folder(tmp_path: Path, synced: Synced) -> None:
    with writing(tmp_path / "b") as archive:
        archive.add("settings.toml", [b"x = 1\n"])
        assert synced == []
    assert synced == [(".b.part", (tmp_path / "b").stat().st_size), (tmp_path.name, None)]
    assert still_open(tmp_path) == []


def test_new_files_are_synced_before_the_journal_and_folders_after_the_moves(tmp_path: Path, synced: Synced) -> None:
    state, work = tmp_path / "state", tmp_path / "state" / "work"
    work.mkdir(parents=True)
    swap = FileSwap(work)
    archive: Any = None
    changes: Any = [
        SimpleNamespace(target=state / name, removes=False, blocks=lambda _, size=size: [b"x" * size])
        for name, size in (("a", 3), ("words/b", 5))
    ]
    swap.stage(changes, archive)
    assert synced == [("file-0", 3), ("file-1", 5)]
    synced.clear()
    swap.begin()
    assert synced == [("journal.part", (work / "journal.json").stat().st_size), ("work", None)]
    synced.clear()
    swap.apply()
    assert sorted(synced, key=str) == [("state", None), ("words", None)]
    for _ in range(2):
        swap.end()
    assert (still_open(tmp_path), (state / "words" / "b").read_bytes()) == ([], b"xxxxx")


def test_the_copy_that_is_restored_is_synced(tmp_path: Path, synced: Synced) -> None:
    (tmp_path / "b").write_bytes(b"x" * 100_000)
    assert _copied(tmp_path / "b", tmp_path / "copy").read_bytes() == b"x" * 100_000
    assert synced == [("copy", 100_000)]


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _no_archive(path: Path) -> None:
    path.write_bytes(b"no archive")


@pytest.mark.parametrize("make", [_fifo, _no_archive])
def test_a_backup_that_is_refused_is_closed(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "b")
    with pytest.raises(BackupError):
        Archive(tmp_path / "b")
    assert still_open(tmp_path) == []


def test_a_part_of_somebody_else_is_closed(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / ".b.part").hardlink_to(tmp_path / "other")
    with pytest.raises(BackupError, match="cannot write"), writing(tmp_path / "b"):
        pass
    assert still_open(tmp_path) == []


def test_a_backup_is_closed(tmp_path: Path) -> None:
    with writing(tmp_path / "b") as made:
        made.finish({"program": "1", "schema": "1", "created_at": 1, "lists": True, "counts": {}})
    with Archive(tmp_path / "b") as archive:
        assert still_open(tmp_path) == [str(tmp_path / "b")]
    assert still_open(tmp_path) == []
    archive.close()
    with pytest.raises(BackupError):
        archive.content("manifest.json")
