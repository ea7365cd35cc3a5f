"""Files for their owner alone."""

import os
import stat
from pathlib import Path

import pytest

from gatewayfilter.private_files import make_private, private, replace_file


def test_a_file_becomes_the_owners_alone(tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.touch(0o644)
    for path in (older, tmp_path / "new"):
        with open(path, "w", opener=private):
            pass
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_is_the_owners_alone_from_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fchmod")
    os.close(private(str(tmp_path / "new"), os.O_WRONLY | os.O_CREAT))
    os.close(private(str(tmp_path / "new"), os.O_WRONLY))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_what_is_no_file_keeps_its_mode(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    os.close(private(str(pipe), os.O_RDWR))
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o644


def test_a_mode_that_is_right_is_not_set_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path, 0o700)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    monkeypatch.delattr(Path, "chmod")
    make_private(tmp_path, 0o700)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    replace_file(path, b"first")
    path.chmod(0o644)
    written = list[int]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: written.append(os.fstat(descriptor).st_size))
    replace_file(path, b"second")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode), written) == (b"second", 0o600, [6])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"third")
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"second", ["state"])


def test_what_keeps_a_file_from_being_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "state", b"first")
    assert list(tmp_path.iterdir()) == []
