"""Children: started, reaped, restarted with back-off, ended."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event

import psutil
import pytest

from gatewayfilter.processes.supervision import child as children
from gatewayfilter.processes.supervision.child import Child
from gatewayfilter.processes.supervision.heartbeat import Heartbeat, heard

CONTEXT = multiprocessing.get_context("forkserver")


def fall(code: int) -> None:
    os._exit(code)


def live() -> None:
    time.sleep(300)


def stubborn(ready: Event) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.set()
    time.sleep(60)


def beat_until(hang: Event, line: Connection) -> None:
    heartbeat = Heartbeat(line)
    while not hang.wait(0.02):
        heartbeat.beat()
    time.sleep(60)


def silent(_line: Connection) -> None:
    time.sleep(60)


def await_end(child: Child) -> None:
    assert child.pid is not None
    assert wait(child.sentinels, 60)
    deadline = time.monotonic() + 60
    while not child.reap():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_fallen_child_is_restarted_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    child = Child("falls", fall, (3,), CONTEXT)
    child.start()
    delays = []
    for _ in range(3):
        await_end(child)
        assert child.exit_code == 3
        delays.append(child.wait_s() or 0.0)
        child.restart_if_due()
        assert child.pid is None, "not before the back-off is over"
        clock[0] += delays[-1] + 0.01
        child.restart_if_due()
    assert delays[0] < delays[1] < delays[2]
    assert child.restarts == 3
    child.finish(time.monotonic() + 60)


def test_the_delay_has_a_bound_and_a_needed_worker_a_lower_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    child = Child("falls", fall, (3,), CONTEXT, longest_delay_s=5.0)

    class Ended:
        pid = 1

        def is_alive(self) -> bool:
            return False

        def close(self) -> int:
            return 3

    delays = []
    for _ in range(8):
        monkeypatch.setattr(child, "_process", Ended())
        monkeypatch.setattr(child, "_started_at", clock[0])
        assert child.reap()
        delays.append(child.wait_s())
    assert delays == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    child.hasten()
    assert child.wait_s() == pytest.approx(children.NEEDED_DELAY_S)
    clock[0] += 0.5
    child.hasten()
    assert child.wait_s() == pytest.approx(0.5), "not put off again"


@pytest.mark.slow
def test_a_killed_fork_server_ends_no_child() -> None:
    child = Child("lives", live, (), CONTEXT)
    child.start()
    assert child.pid is not None
    fork_server = os.pidfd_open(psutil.Process(child.pid).ppid())
    signal.pidfd_send_signal(fork_server, signal.SIGKILL)
    assert wait([fork_server], 60)
    os.close(fork_server)
    assert not wait(child.sentinels, 0)
    assert not child.reap()
    other = Child("lives", live, (), CONTEXT)
    other.start()
    for one in (child, other):
        one.terminate()
        one.finish(time.monotonic() + 60)
    assert child.exit_code is None
    assert other.exit_code == -signal.SIGTERM


def test_a_start_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    child = Child("starts", live, (), CONTEXT)

    def fail(_process: object) -> None:
        raise EOFError("the fork server has ended")

    monkeypatch.setattr(children, "ProcessHandle", fail)
    assert not child.start()
    assert child.wait_s() == pytest.approx(children.FIRST_DELAY_S)
    clock[0] += children.FIRST_DELAY_S + 0.01
    assert not child.restart_if_due()
    assert child.restarts == 0
    assert child.wait_s() == pytest.approx(2 * children.FIRST_DELAY_S)
    assert child.sentinels == ()


def serve(line: Connection) -> None:
    heartbeat = Heartbeat(line)
    heartbeat.beat()
    heartbeat.serving()
    time.sleep(60)


def test_a_child_reports_that_it_serves() -> None:
    child = Child("serves", serve, (), CONTEXT, beats=True)
    child.start()
    deadline = time.monotonic() + 30
    while not child.serving:
        assert time.monotonic() < deadline
        wait(child.sentinels, 1)
        child.hear()
    child.terminate()
    child.finish(time.monotonic() + 60)
    assert not child.serving


@pytest.mark.slow
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
    falls.finish(time.monotonic() + 60)


def test_ending() -> None:
    child = Child("lives", live, (), CONTEXT)
    child.start()
    assert not child.reap()
    assert child.wait_s() is None
    child.terminate()
    child.finish(time.monotonic() + 60)
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


def test_one_that_does_not_stir_is_killed_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "FIRST_DELAY_S", 0.01)
    hang = CONTEXT.Event()
    child = Child("hangs", beat_until, (hang,), CONTEXT, beats=True)
    child.start()
    first = child.pid
    deadline = time.monotonic() + 30
    while child._heard_at is None:
        assert time.monotonic() < deadline
        assert not child.end_if_stalled(30)
        time.sleep(0.02)
    hang.set()
    while not child.end_if_stalled(0.5):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert child.stalls == 1
    assert not child.end_if_stalled(0.0), "once is enough"
    await_end(child)
    assert child.exit_code == -signal.SIGKILL
    time.sleep((child.wait_s() or 0) + 0.01)
    hang.clear()
    child.restart_if_due()
    assert child.pid not in {None, first}
    assert not child.end_if_stalled(30), "the new one has its own time"
    child.terminate()
    child.finish(time.monotonic() + 60)


def test_silence_counts_anew_after_a_pardon_and_not_before_the_first_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ours, theirs = CONTEXT.Pipe(duplex=False)
    child = Child("told", live, (), CONTEXT, beats=True)
    killed: list[bool] = []

    class Process:
        def kill(self) -> None:
            killed.append(True)

    monkeypatch.setattr(child, "_process", Process())
    monkeypatch.setattr(child, "_line", ours)
    monkeypatch.setattr(child, "_started_at", clock[0])
    clock[0] += children.FIRST_BEAT_S - 1  # lists of millions of entries are being opened
    assert not child.end_if_stalled(20)
    Heartbeat(theirs).beat()
    assert not child.end_if_stalled(20)
    clock[0] += 19
    assert not child.end_if_stalled(20)
    clock[0] += 5
    child.forgive_silence()  # the supervisor was stopped itself, and the child with it
    assert not child.end_if_stalled(20)
    clock[0] += 19
    assert not child.end_if_stalled(20)
    clock[0] += 2
    assert child.end_if_stalled(20)
    assert killed == [True]
    theirs.close()


def test_one_that_never_begins_to_beat_is_killed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("silent", silent, (), CONTEXT, beats=True)
    child.start()
    assert not child.end_if_stalled(0.01)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + children.FIRST_BEAT_S)
    assert child.end_if_stalled(20)
    monkeypatch.undo()
    await_end(child)


def test_a_pulse_never_waits_and_never_fails() -> None:
    ours, theirs = CONTEXT.Pipe(duplex=False)
    heartbeat = Heartbeat(theirs)
    assert not heard(ours)
    for _ in range(70_000):  # more than a pipe holds
        heartbeat.beat()
    assert heard(ours)
    assert not heard(ours)
    ours.close()
    heartbeat.beat()
    theirs.close()
