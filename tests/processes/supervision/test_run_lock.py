"""One filter at a time on a state folder."""

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
