"""A handle on a process that is this one: what it waits for, signals and releases. No process is started."""

import os
import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.processes.supervision import process_handle
from gatewayfilter.processes.supervision.process_handle import ProcessHandle


class Process:
    """Has the id of this process, and what multiprocessing knows of it."""

    def __init__(self, code: int | None = 3) -> None:
        self.pid, self.exitcode, self.sentinel = os.getpid(), code, -7
        self.done = list[Any]()

    def start(self) -> None:
        self.done.append("start")

    def join(self, timeout_s: float) -> None:
        self.done.append(timeout_s)

    def close(self) -> None:
        self.done.append("close")
        raise ValueError("it runs")


class Forked(Process):
    """One of a fork server."""


def handle(process: Process) -> ProcessHandle:
    return ProcessHandle(cast("Any", process))


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Signals that were sent, and how."""
    sent = list[tuple[str, int, int]]()
    monkeypatch.setattr(
        "gatewayfilter.processes.supervision.process_handle.os.kill", lambda pid, number: sent.append(("pid", pid, number))
    )
    monkeypatch.setattr(
        "gatewayfilter.processes.supervision.process_handle.signal.pidfd_send_signal",
        lambda fd, number: sent.append(("pidfd", fd, number)),
    )
    return sent


def test_a_running_process_by_its_descriptor(signals: list[tuple[str, int, int]]) -> None:
    process = Process()
    found = handle(process)
    assert (process.done, found.pid, found.is_alive()) == (["start"], os.getpid(), True)
    descriptor = found.sentinel
    assert descriptor >= 0
    found.terminate()
    found.kill()
    assert signals == [("pidfd", descriptor, signal.SIGTERM), ("pidfd", descriptor, signal.SIGKILL)]
    found.join(0)
    assert found.close() == 3
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert process.done == ["start", 1.0, "close"]


@pytest.mark.parametrize("code", [255, None])
def test_an_orphan_of_the_fork_server_is_reaped(monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    asked = list[tuple[Any, ...]]()

    def waitid(*found: Any) -> None:
        asked.append(found)
        raise ChildProcessError

    monkeypatch.setattr(process_handle, "ForkServerProcess", Forked)
    monkeypatch.setattr("gatewayfilter.processes.supervision.process_handle.os.waitid", waitid)
    found = handle(Forked(code))
    descriptor = found.sentinel
    assert found.close() is None
    assert asked == [(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG)]
    found = handle(Forked(4))
    assert (found.close(), len(asked)) == (4, 1)
    found = handle(Process(255))  # no fork server: it ended with 255
    assert (found.close(), len(asked)) == (255, 1)


def test_one_that_was_gone_at_once_is_neither_waited_for_nor_signalled(
    monkeypatch: pytest.MonkeyPatch, signals: list[tuple[str, int, int]]
) -> None:
    def gone(_: int) -> int:
        raise ProcessLookupError

    monkeypatch.setattr("gatewayfilter.processes.supervision.process_handle.os.pidfd_open", gone)
    found = handle(Process())
    found.join(60)
    found.kill()
    assert (found.is_alive(), signals, found.close()) == (False, [], 3)


def test_without_pidfds_the_pipe_of_the_library_must_do(
    monkeypatch: pytest.MonkeyPatch, signals: list[tuple[str, int, int]]
) -> None:
    def refused(_: int) -> int:
        raise PermissionError

    monkeypatch.setattr("gatewayfilter.processes.supervision.process_handle.os.pidfd_open", refused)
    process = Process(255)
    reading, writing = os.pipe()
    process.sentinel = reading
    found = handle(process)
    assert (found.sentinel, found.is_alive()) == (reading, True)
    found.kill()
    assert signals == [("pid", os.getpid(), signal.SIGKILL)]
    os.close(writing)
    found.join(60)
    assert (found.is_alive(), found.close()) == (False, 255)
    os.close(reading)


def test_a_process_that_ended_meanwhile_needs_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(process_handle, "signal", SimpleNamespace(pidfd_send_signal=gone, SIGKILL=9, SIGTERM=15))
    found = handle(Process())
    found.kill()
    found.close()
