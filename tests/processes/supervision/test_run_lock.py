"""One filter at a time on a state folder."""

import errno
import os
from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.processes.supervision.run_lock import RunLock


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
