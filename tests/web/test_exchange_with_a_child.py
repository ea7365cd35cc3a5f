"""How the dashboard starts, asks, times and ends its child process: `gatewayfilter.web.child_process`, without a process."""

import os
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import ClassifyError, MissingError
from gatewayfilter.web import child_process
from gatewayfilter.web.child_process import CHILD, START_S, ChildProcess


class System:
    """Processes, channels and timers that are noted in place of being made."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.commands: list[list[str]] = []
        self.ended: int | None = None
        self.answers: list[Any] = []
        self.waits: list[float] = []
        self.is_silent = False

    def popen(self, command: list[str], *, stdin: int, pass_fds: list[int]) -> Any:
        assert (stdin, [str(descriptor) for descriptor in pass_fds]) == (subprocess.DEVNULL, [command[3]])
        os.fstat(pass_fds[0])
        self.commands.append(command)
        self.ended = None
        return SimpleNamespace(
            poll=lambda: self.ended, kill=lambda: self.done.append("killed"), wait=lambda: self.done.append("waited")
        )

    def connection(self, descriptor: int) -> Any:
        self.ours = socket.socket(fileno=descriptor)

        def poll(seconds: float) -> bool:
            self.waits.append(seconds)
            return not self.is_silent

        def close() -> None:
            self.ours.close()
            self.done.append("closed")

        return SimpleNamespace(send=self.done.append, poll=poll, recv=lambda: self.answers.pop(0), close=close)

    def timer(self, seconds: float, run: Any) -> Any:
        timer = SimpleNamespace(daemon=False)
        timer.start = lambda: self.done.append(("timer", seconds, run.__name__, timer.daemon))
        timer.cancel = lambda: self.done.append("cancelled")
        return timer


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    made = System()
    monkeypatch.setattr(subprocess, "Popen", made.popen)
    monkeypatch.setattr(child_process, "Connection", made.connection)
    monkeypatch.setattr(threading, "Timer", made.timer)
    return made


TIMER = ("timer", 9.0, "close", True)


def test_a_child_is_started_asked_and_ended(system: System) -> None:
    child = ChildProcess(timeout_s=3.0, memory=77, idle_s=9.0)
    running = [child.running]
    system.answers = [(True, 4), (True, 5), (True, 6), (True, 7)]
    assert child.run("a:f", 1, b=2) == 4
    assert [*running, child.running] == [False, True]
    assert system.commands == [[sys.executable, "-m", CHILD, system.commands[0][3], "3.0", "77"]]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(int(system.commands[0][3]))
    assert system.done == [("a:f", (1,), {"b": 2}), TIMER]
    assert [child.run("a:g"), child.run("b:f")] == [5, 6]
    assert system.done[2:] == ["cancelled", ("a:g", (), {}), TIMER, "cancelled", ("b:f", (), {}), TIMER]
    assert system.waits == [3.0 + START_S, 4.0, 3.0 + START_S], "a module that the child has loaded needs no time to load"
    system.done.clear()
    system.ended = 0
    assert child.run("a:f") == 7
    assert (len(system.commands), system.waits[-1]) == (2, 3.0 + START_S), "a new child has loaded nothing"
    assert system.done == ["cancelled", "closed", "killed", "waited", ("a:f", (), {}), TIMER]
    system.done.clear()
    child.close()
    assert (system.done, child.running) == (["cancelled", "closed", "killed", "waited"], False)
    child.close()
    assert len(system.done) == 4


def test_a_child_that_does_not_answer_is_ended(system: System) -> None:
    child = ChildProcess(timeout_s=2.5, idle_s=9.0)
    system.is_silent = True
    with pytest.raises(ClassifyError, match=r"^this took longer than 2\.5 s or too much memory$"):
        child.run("a:f")
    assert system.done == [("a:f", (), {}), "closed", "killed", "waited"]
    assert not child.running
    system.is_silent = False
    system.answers = [(True, 1)]
    assert child.run("a:f") == 1
    assert system.waits == [2.5 + START_S] * 2, "what did not answer has loaded nothing"
    child.close()


def test_what_a_child_cannot_do_is_raised_here(system: System) -> None:
    child = ChildProcess(idle_s=9.0)
    system.answers = [(False, MissingError("not there")), (False, "why"), (True, None)]
    with pytest.raises(MissingError, match=r"^not there$"):
        child.run("a:f")
    with pytest.raises(ClassifyError, match=r"^why$"):
        child.run("a:f")
    assert child.run("a:f") is None
    assert (len(system.commands), child.running) == (1, True)
    child.close()
