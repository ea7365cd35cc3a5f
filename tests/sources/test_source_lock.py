"""Work folders of sources: empty at the beginning, gone at the end, private, and swept when their process was killed."""

import os
from pathlib import Path

import pytest

from gatewayfilter.errors import SourceError
from gatewayfilter.sources.source_lock import empty, locked_source, sweep, sync_folder


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_work_folder_is_empty_private_and_gone_at_the_end(tmp_path: Path) -> None:
    folder, before = tmp_path / "a" / "sources", open_files()
    for _ in range(2):
        with locked_source(folder, "mine") as work:
            assert list(work.iterdir()) == []
            assert work.stat().st_mode & 0o777 == folder.stat().st_mode & 0o777 == 0o700
            (work / "body").touch()
        assert not work.exists()
        work.mkdir()
        (work / "left").touch()  # of a process that was killed
    assert (folder / ".mine.lock").stat().st_mode & 0o777 == 0o600
    assert open_files() == before


def test_a_work_folder_is_gone_after_a_failure(tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(ZeroDivisionError), locked_source(tmp_path, "mine"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == [".mine.lock"]
    (tmp_path / ".mine.part").touch()
    with pytest.raises(SourceError, match="cannot write to"), locked_source(tmp_path, "mine"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="cannot write to"), locked_source(tmp_path / "file", "mine"):
        pass
    assert open_files() == before


def test_what_a_failed_download_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "parts" / "more").mkdir(parents=True)
    for path in (tmp_path / "body", tmp_path / "parts" / "more" / "part"):
        path.touch()
    empty(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_all_that_killed_processes_left_is_swept(tmp_path: Path) -> None:
    before = open_files()
    for name in (".a.part", ".b.part", "kept", ".x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "body").touch()
    (tmp_path / ".c.part").mkdir()
    (tmp_path / ".c.lock").mkdir()  # no lock can be had
    with locked_source(tmp_path, "busy") as work:
        sweep(tmp_path)
        assert work.exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [".c.lock", ".c.part", ".x", "kept"]
    assert open_files() == before


def test_a_folder_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, before = list[int](), open_files()
    monkeypatch.setattr("gatewayfilter.sources.source_lock.os.fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    sync_folder(tmp_path)
    assert (synced, open_files()) == ([tmp_path.stat().st_ino], before)
