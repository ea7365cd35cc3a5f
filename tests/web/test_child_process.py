"""The child process of the dashboard: results, errors, time, memory, idleness."""

import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import Pipe

import pytest

from gatewayfilter.errors import ClassifyError, MissingError
from gatewayfilter.web.child_process import CHILD, ChildProcess

JOBS = "tests.web.child_jobs"


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    made = ChildProcess(timeout_s=1.0, memory=2 << 30, idle_s=60)
    yield made
    made.close()


def test_results_and_errors(child: ChildProcess) -> None:
    assert child.run(f"{JOBS}:double", 21) == 42
    with pytest.raises(MissingError, match="not there"):
        child.run(f"{JOBS}:missing")
    with pytest.raises(ClassifyError, match="ZeroDivisionError"):
        child.run(f"{JOBS}:fault")
    assert child.run(f"{JOBS}:double", value="a") == "aa"


def test_work_that_takes_too_long_ends_and_the_next_is_done(child: ChildProcess) -> None:
    assert child.run(f"{JOBS}:double", 1) == 2
    began = time.monotonic()
    with pytest.raises(ClassifyError, match="longer than 1 s"):
        child.run(f"{JOBS}:hang")
    assert time.monotonic() - began < 10
    assert child.run(f"{JOBS}:double", 1) == 2


def test_memory_is_bounded(child: ChildProcess) -> None:
    with pytest.raises(ClassifyError):
        child.run(f"{JOBS}:fill", 4 << 30)
    assert child.run(f"{JOBS}:double", 1) == 2


def test_an_idle_child_ends() -> None:
    child = ChildProcess(idle_s=0.2)
    first = child.run(f"{JOBS}:number")
    deadline = time.monotonic() + 10
    while child.running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.running
    assert child.run(f"{JOBS}:number") != first
    child.close()


def test_a_child_whose_parent_ended_at_work_ends_in_silence() -> None:
    ours, theirs = Pipe()
    command = [sys.executable, "-m", CHILD, str(theirs.fileno()), "30", str(2 << 30)]
    ours.send((f"{JOBS}:double", (21,), {}))
    child = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE)
    theirs.close()
    ours.close()
    _, told = child.communicate(timeout=60)
    assert (child.returncode, told) == (0, b"")
