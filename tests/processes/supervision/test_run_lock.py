"""One filter at a time on a state folder."""

import errno
import os
from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.processes.supervision.run_lock import RunLock, refuse_while_running, running_process
from tests.open_files import open_files


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(StartupError, match=rf"process {os.getpid()}\)"), RunLock(tmp_path):
        pass


def test_it_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with RunLock(tmp_path):
            assert (tmp_path / "run.lock").read_text() == str(os.getpid())


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="No such file"), RunLock(tmp_path / "missing"):
        pass


@pytest.mark.parametrize("has_file", [True, False])
def test_a_read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_file: bool) -> None:
    if has_file:
        (tmp_path / "run.lock").write_text("7")
    open_file = os.open

    def read_only(path: Path, flags: int, mode: int = 0) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system")
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    with (
        RunLock(tmp_path),
        pytest.raises(StartupError, match=r"another GatewayFilter \(process (7|unknown)\)"),
        RunLock(tmp_path),
    ):
        pass


@pytest.mark.parametrize(("content", "told"), [(b"7\n", "7"), (b"", "unknown"), (b" \n", "unknown"), (b"9" * 40, "9" * 32)])
def test_what_is_told_of_the_holder(tmp_path: Path, content: bytes, told: str) -> None:
    assert running_process(tmp_path) == ""
    with RunLock(tmp_path):
        (tmp_path / "run.lock").write_bytes(content)
        assert running_process(tmp_path) == told
        with pytest.raises(StartupError, match=rf"another GatewayFilter \(process {told}\)"), RunLock(tmp_path):
            pass
        with pytest.raises(StartupError, match=rf"earlier version \(process {told}\)"):
            refuse_while_running(tmp_path)
    assert running_process(tmp_path) == ""
    refuse_while_running(tmp_path)


def test_a_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = open_files()
    with RunLock(tmp_path):
        running_process(tmp_path)
        with pytest.raises(StartupError), RunLock(tmp_path):
            pass
    assert not open_files() - before
    assert (tmp_path / "run.lock").stat().st_mode & 0o777 == 0o600


def test_what_stood_in_the_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("9" * 40)
    with RunLock(tmp_path):
        assert (tmp_path / "run.lock").read_text() == str(os.getpid())
