"""The fork server: its end is found, and another one started, without blocking the process that supervises."""

import multiprocessing
import os
import signal
import time

import psutil
import pytest

from gatewayfilter.processes import fork_server as fork_servers
from gatewayfilter.processes.fork_server import WatchedForkServer, start_fork_server
from gatewayfilter.processes.supervision.child import Child


def live() -> None:
    time.sleep(300)


def fork_server_of_this_process() -> psutil.Process:
    (found,) = [child for child in psutil.Process().children() if "forkserver" in _command(child)]
    return found


def _command(process: psutil.Process) -> str:
    """Returns its command; empty for one that has ended, as what an earlier test started may have by now."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def await_replacement(watched: WatchedForkServer) -> None:
    deadline = time.monotonic() + 60
    found = 0
    while not found or not watched.ready:
        assert time.monotonic() < deadline
        found += watched.replace_if_ended()
        time.sleep(0.01)
    assert found == 1, "once is enough"


@pytest.mark.slow
def test_an_end_is_found_whatever_the_children_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a replacement all children may be those of an earlier one: killed again, it must be replaced again."""
    monkeypatch.setattr(fork_servers, "_START_AGAIN_S", 0.0)
    context = start_fork_server(["gatewayfilter.errors"])
    watched = WatchedForkServer(context)
    assert watched.ready
    assert not watched.replace_if_ended()
    child = Child("lives", live, (), context)
    child.start()
    killed = set()
    for _ in range(3):
        fork_server = fork_server_of_this_process()
        fork_server.kill()
        killed.add(fork_server.pid)
        await_replacement(watched)
    assert len(killed) == 3
    assert not child.reap()
    other = Child("lives", live, (), context)
    ready = fork_server_of_this_process().pid
    other.start()
    assert other.pid is not None
    assert psutil.Process(other.pid).ppid() == ready
    for one in (child, other):
        one.terminate()
        one.finish(time.monotonic() + 60)
    assert (child.exit_code, other.exit_code) == (None, -signal.SIGTERM)


@pytest.mark.slow
def test_one_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_servers, "_START_AGAIN_S", 0.0)
    fork_servers.start_fork_server(["gatewayfilter.errors"])
    watched = WatchedForkServer(multiprocessing.get_context("forkserver"))

    def fail() -> None:
        raise OSError(os.strerror(12))

    with monkeypatch.context() as patched:
        patched.setattr(fork_servers, "_ensure_running", fail)
        fork_server_of_this_process().kill()
        deadline = time.monotonic() + 60
        while not watched.replace_if_ended():
            assert time.monotonic() < deadline
        assert not watched.replace_if_ended()
        assert not watched.ready
        assert len(watched.sentinels) == 0
    assert not watched.replace_if_ended()
    while not watched.ready:
        assert time.monotonic() < deadline + 60
        time.sleep(0.01)
