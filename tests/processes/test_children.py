"""Children: started, reaped, restarted with back-off, ended."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event

import pytest

from gatewayfilter.processes import children
from gatewayfilter.processes.children import Child

CONTEXT = multiprocessing.get_context("forkserver")


def fall(code: int) -> None:
    os._exit(code)


def live() -> None:
    time.sleep(60)


def stubborn(ready: Event) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.set()
    time.sleep(60)


def await_end(child: Child) -> None:
    assert child.sentinel is not None
    assert wait([child.sentinel], 30)
    deadline = time.monotonic() + 10
    while not child.reap():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_fallen_child_is_restarted_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_DELAY_S", 0.05)
    child = Child("falls", fall, (3,), CONTEXT)
    child.start()
    delays = []
    for _ in range(3):
        await_end(child)
        assert child.exit_code == 3
        delays.append(child.wait_s() or 0.0)
        child.restart_if_due()
        assert child.sentinel is None, "not before the back-off is over"
        time.sleep((child.wait_s() or 0) + 0.01)
        child.restart_if_due()
    assert delays[0] < delays[1] < delays[2]
    assert child.restarts == 3
    child.finish(time.monotonic() + 10)


def test_what_cannot_start_is_hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_DELAY_S", 0.01)
    says_so = Child("says-so", fall, (2,), CONTEXT)
    says_so.start()
    await_end(says_so)
    assert says_so.hopeless
    falls = Child("falls", fall, (1,), CONTEXT)
    falls.start()
    while falls.restarts < children.HOPELESS_AFTER:
        assert not falls.hopeless
        await_end(falls)
        time.sleep((falls.wait_s() or 0) + 0.01)
        falls.restart_if_due()
    assert falls.hopeless
    falls.finish(time.monotonic() + 10)


def test_ending() -> None:
    child = Child("lives", live, (), CONTEXT)
    child.start()
    assert not child.reap()
    assert child.wait_s() is None
    child.terminate()
    child.finish(time.monotonic() + 30)
    assert child.exit_code == -signal.SIGTERM
    assert child.pid is None


def test_one_that_does_not_end_is_killed() -> None:
    ready = CONTEXT.Event()
    child = Child("stubborn", stubborn, (ready,), CONTEXT)
    child.start()
    assert ready.wait(30)
    child.terminate()
    child.finish(time.monotonic() + 0.5)
    assert child.exit_code == -signal.SIGKILL
