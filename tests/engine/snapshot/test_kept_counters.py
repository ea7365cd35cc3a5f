"""The counters beside a snapshot: stored with it, for it alone, and never in its way."""

import os
from pathlib import Path
from stat import S_ISDIR

import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.image import SnapshotImage
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Source


def image(*keys: str) -> SnapshotImage:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black")), keys)
    return builder.image(counting=True)


def mark_of(path: Path) -> bytes:
    opened = Snapshot.open(path)
    try:
        return opened.mark
    finally:
        opened.close()


def test_counters_are_kept_for_the_current_snapshot(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    marks = []
    for keys in ((".a.example",), (".a.example", ".b.example")):
        made = image(*keys)
        path = _published(folder, made)
        marks.append(mark_of(path))
        found = folder.counters_of(path, marks[-1])
        assert made.counters is not None
        assert (found.counters == made.counters.counters).all()
        assert found.count == made.counters.count == len(keys)
    assert [name.name for name in tmp_path.glob("counters*")] == ["counters-00000002.gfc"]
    with pytest.raises(SnapshotError):
        folder.counters_of(path, marks[0])


def _published(folder: SnapshotFolder, made: SnapshotImage) -> Path:
    with folder.publishing() as publish:
        return publish(made)


def test_a_snapshot_without_counters_leaves_none(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    _published(folder, image(".a.example"))
    path = folder.publish(image(".b.example").to_bytes())
    assert list(tmp_path.glob("counters*")) == []
    with pytest.raises(SnapshotError):
        folder.counters_of(path, mark_of(path))


def test_counters_that_cannot_be_stored_are_no_failure(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    (tmp_path / "counters-00000001.gfc" / "x").mkdir(parents=True)
    path = _published(folder, image(".a.example"))
    assert folder.current() == path
    assert [name.name for name in tmp_path.glob("counters*")] == ["counters-00000001.gfc"]


def test_files_are_durable_before_the_pointer_moves_and_the_pointer_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(descriptor: int) -> None:
        done.append("folder" if S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        done.append(f"-> {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    SnapshotFolder(tmp_path, keep=1).publish(image(".a.example").to_bytes())
    assert done == ["file", "-> snapshot-00000001.gfs", "folder", "-> current", "folder"]
