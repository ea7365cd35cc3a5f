"""A child's life by a clock of the test: back-off, silence, the end. No process is started."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, cast

import pytest

from gatewayfilter.processes.supervision import child as children
from gatewayfilter.processes.supervision.child import FIRST_BEAT_S, HEALTHY_AFTER_S, HOPELESS_AFTER, Child
from gatewayfilter.processes.supervision.heartbeat import SERVING, Heartbeat, heard


class FakeHandle:
    """A process of which the test decides when it ends."""

    made: list["FakeHandle"]
    fails = False

    def __init__(self, process: Any) -> None:
        if self.fails:
            raise EOFError("the fork server ended")
        self.process, self.pid, self.sentinel = process, 100 + len(self.made), 7
        self.alive, self.stubborn, self.code, self.done = True, False, 0, list[str]()
        self.made.append(self)

    def is_alive(self) -> bool:
        return self.alive

    def terminate(self) -> None:
        self.done.append("terminate")

    def kill(self) -> None:
        self.done.append("kill")
        self.alive = False

    def join(self, timeout_s: float) -> None:
        self.done.append(f"join {timeout_s:g}")
        self.alive = self.alive and self.stubborn

    def close(self) -> int:
        self.done.append("close")
        return self.code


class FakeContext:
    """Makes pipes that are real, and processes that are their arguments."""

    opened: list[Connection]
    given: list[Connection]

    def Pipe(self, duplex: bool) -> Any:  # noqa: FBT001, N802  as the library has it
        assert not duplex
        ours, theirs = multiprocessing.Pipe(duplex=False)
        self.given.append(theirs)
        return ours, theirs

    def Process(self, **facts: Any) -> dict[str, Any]:  # noqa: N802  as the library has it
        if facts["args"] and hasattr(line := facts["args"][-1], "fileno"):
            own = Connection(os.dup(line.fileno()), readable=False)
            self.opened.append(own)
            facts["line"] = Heartbeat(own)
        return facts


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1_000.0]
    monkeypatch.setattr(children, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    monkeypatch.setattr(children, "ProcessHandle", FakeHandle)
    monkeypatch.setattr(FakeHandle, "made", [], raising=False)
    monkeypatch.setattr(FakeContext, "opened", [], raising=False)
    monkeypatch.setattr(FakeContext, "given", [], raising=False)
    yield now
    for line in FakeContext.opened:
        line.close()


def seen(child: Child) -> tuple[object, ...]:
    """Whether it serves, how much can wake its supervisor, and after how long it starts again."""
    wait_s = child.wait_s()
    return child.serving, len(child.sentinels), wait_s if wait_s is None else round(wait_s, 3)


def child_of(**options: Any) -> Child:
    target = cast("Callable[..., None]", print)
    return Child("proxy-0", target, ("a", 1), cast("Any", FakeContext()), **options)


def test_what_is_started(clock: list[float]) -> None:
    child = child_of()
    assert (child.sentinels, child.pid, child.wait_s(), child.is_forked) == ((), None, 0.0, False)
    assert child.start()
    (made,) = FakeHandle.made
    assert made.process == {"target": print, "args": ("a", 1), "name": "proxy-0"}
    assert (child.sentinels, child.pid, child.wait_s(), child.serving) == ((7,), 100, None, False)
    assert child.reap() is False
    assert child.restart_if_due() is False
    child.hear()  # there is no line
    assert child.end_if_stalled(1.0) is False
    assert made.done == []


@pytest.mark.parametrize(
    ("lives_s", "delays"),
    [
        (0.0, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]),
        (HEALTHY_AFTER_S - 0.5, [0.2, 0.4, 0.8]),
        (HEALTHY_AFTER_S, [0.2, 0.2, 0.2]),
    ],
)
def test_restarts_come_later_and_later(clock: list[float], lives_s: float, delays: list[float]) -> None:
    child = child_of()
    child.start()
    for number, delay in enumerate(delays):
        FakeHandle.made[-1].alive, FakeHandle.made[-1].code = False, 3 + number
        clock[0] += lives_s
        assert child.reap() is True
        assert child.reap() is False
        assert (child.exit_code, child.pid, seen(child)) == (3 + number, None, (False, 0, delay))
        clock[0] += delay - 0.01
        assert child.restart_if_due() is False
        clock[0] += 0.02
        assert seen(child) == (False, 0, 0.0)
        assert child.restart_if_due() is True
        assert child.restarts == number + 1
        assert FakeHandle.made[number].done == ["close"]


def test_it_is_due_at_the_moment_that_was_planned(clock: list[float]) -> None:
    child = child_of()
    child.start()
    FakeHandle.made[0].alive = False
    child.reap()
    clock[0] = child._restart_at
    assert child.wait_s() == 0.0
    assert child.restart_if_due() is True


def test_a_start_that_fails_is_tried_again(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    child = child_of(beats=True)
    monkeypatch.setattr(FakeHandle, "fails", True)
    assert child.start() is False
    assert seen(child) == (False, 0, 0.2)
    assert [line.closed for line in FakeContext.given] == [True]
    clock[0] += 0.25
    assert child.restart_if_due() is False
    assert (child.restarts, *seen(child)) == (0, False, 0, 0.4)
    monkeypatch.setattr(FakeHandle, "fails", False)
    clock[0] += 0.5
    assert child.restart_if_due() is True
    assert child.restarts == 1


@pytest.mark.parametrize(("code", "restarts", "hopeless"), [
    (2, 0, True), (1, 0, False), (None, 0, False), (1, HOPELESS_AFTER - 1, False), (1, HOPELESS_AFTER, True),
])  # fmt: skip
def test_when_there_is_no_hope(clock: list[float], code: int | None, restarts: int, *, hopeless: bool) -> None:
    child = child_of()
    child.exit_code, child.restarts = code, restarts
    assert child.hopeless is hopeless


def test_it_serves_from_its_first_such_heartbeat_on(clock: list[float]) -> None:
    child = child_of(beats=True)
    child.start()
    line = FakeHandle.made[0].process["line"]
    assert FakeHandle.made[0].process["args"][:2] == ("a", 1)
    assert [line.closed for line in FakeContext.given] == [True], "the child alone holds its end"
    child.hear()
    assert seen(child) == (False, 2, None)
    line.beat()
    child.hear()
    assert seen(child) == (False, 2, None)
    line.serving()
    child.hear()
    assert seen(child) == (True, 1, None)
    line.beat()
    child.hear()
    assert seen(child) == (True, 1, None)
    FakeHandle.made[0].alive = False
    child.reap()
    assert seen(child) == (False, 0, 0.2)


def test_a_loop_that_hangs_is_killed(clock: list[float]) -> None:
    child = child_of(beats=True)
    child.start()
    line = FakeHandle.made[0].process["line"]
    line.beat()
    clock[0] += 5.0
    assert child.end_if_stalled(10.0) is False  # hears it now
    clock[0] += 9.9
    assert child.end_if_stalled(10.0) is False
    child.forgive_silence()
    clock[0] += 9.9
    assert child.end_if_stalled(10.0) is False
    line.beat()
    clock[0] += 0.2
    assert child.end_if_stalled(10.0) is False  # it came just in time
    clock[0] += 10.0
    assert child.end_if_stalled(10.0) is True
    assert (child.stalls, FakeHandle.made[0].done) == (1, ["kill"])
    assert child.end_if_stalled(10.0) is False  # once


@pytest.mark.parametrize(("after_s", "until_s"), [(10.0, FIRST_BEAT_S), (200.0, 200.0)])
def test_the_first_heartbeat_may_take_longer(clock: list[float], after_s: float, until_s: float) -> None:
    child = child_of(beats=True)
    child.start()
    child.forgive_silence()  # nothing was heard yet
    clock[0] += until_s - 0.1
    assert child.end_if_stalled(after_s) is False
    clock[0] += 0.2
    assert child.end_if_stalled(after_s) is True


def test_the_end(clock: list[float]) -> None:
    child = child_of(beats=True)
    child.terminate()
    child.finish(clock[0])
    child.start()
    child.terminate()
    child.finish(clock[0] + 2.5)
    assert FakeHandle.made[0].done == ["terminate", "join 2.5", "close"]
    child.start()
    FakeHandle.made[1].stubborn = True
    child.finish(clock[0] - 1.0)
    assert FakeHandle.made[1].done == ["join 0", "kill", "join 5", "close"]
    child.start()
    FakeHandle.made[2].alive = False
    child.terminate()
    assert FakeHandle.made[2].done == []


def test_heartbeats_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    heartbeat = Heartbeat(theirs)
    assert heard(ours) == b""
    for _ in range(3):
        heartbeat.beat()
    assert heard(ours) == b"..."
    heartbeat.serving()
    heartbeat.beat()
    assert heard(ours) == SERVING * 2
    assert not os.get_blocking(theirs.fileno())
    for _ in range(70_000):  # more than a pipe holds
        heartbeat.beat()
    assert SERVING in heard(ours)
    assert heard(ours) == b""
    ours.close()
    heartbeat.beat()
    theirs.close()
