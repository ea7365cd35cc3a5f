"""When another fork server is started, by processes and descriptors of the test."""

import os
import signal
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.processes import fork_server as fork_servers
from gatewayfilter.processes.entry_points import PRELOAD
from gatewayfilter.processes.fork_server import WatchedForkServer


class Probing:
    """A thread that waits for imports until the test ends it."""

    started = 0

    def __init__(self, **facts: object) -> None:
        assert facts["daemon"] is True
        self.alive = False

    def start(self) -> None:
        Probing.started += 1
        self.alive = True

    def is_alive(self) -> bool:
        return self.alive


class Machine:
    """Fork servers of a test: pipes whose reading end is ready when the writing end closes, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.writing = list[int]()
        self.fails = False

    def start(self) -> None:
        if self.fails:
            raise OSError(12, "Cannot allocate memory")

    def open_pidfd(self) -> int:
        reading, writing = os.pipe()
        self.writing.append(writing)
        return reading

    def kill(self) -> None:
        os.close(self.writing.pop())


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    found = Machine()
    monkeypatch.setattr(fork_servers, "_open_pidfd", found.open_pidfd)
    monkeypatch.setattr(fork_servers, "_ensure_running", found.start)
    monkeypatch.setattr(fork_servers, "threading", SimpleNamespace(Thread=Probing))
    monkeypatch.setattr(fork_servers, "time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr(Probing, "started", 0)
    yield found
    for descriptor in found.writing:
        os.close(descriptor)


def watched(machine: Machine) -> WatchedForkServer:
    found = WatchedForkServer(cast("ForkServerContext", None))
    assert (found.ready, len(found.sentinels), found.replace_if_ended(), Probing.started) == (True, 1, False, 0)
    return found


def test_an_end_is_found_once_and_children_wait_for_the_imports_of_the_next(machine: Machine) -> None:
    found = watched(machine)
    machine.now += 60
    machine.kill()
    assert (found.ready, found.replace_if_ended()) == (False, True)
    assert (Probing.started, found.ready, len(found.sentinels)) == (1, False, 1)
    assert found.replace_if_ended() is False
    cast("Probing", found._probe).alive = False
    assert (found.ready, found.replace_if_ended(), Probing.started) == (True, False, 1)


def test_one_that_ends_at_once_is_not_started_in_a_loop(machine: Machine) -> None:
    found = watched(machine)
    machine.now += 0.4
    machine.kill()
    assert (found.replace_if_ended(), found.sentinels, Probing.started) == (True, (), 0)
    assert (found.replace_if_ended(), found.ready) == (False, False)
    machine.now += 0.1
    assert (found.replace_if_ended(), Probing.started) == (False, 1)
    machine.kill()  # again, while its imports are awaited
    machine.now += 60
    assert (found.replace_if_ended(), Probing.started) == (True, 1)
    cast("Probing", found._probe).alive = False
    assert (found.replace_if_ended(), Probing.started) == (False, 2)


def test_one_that_cannot_be_started_is_tried_again_later(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    found = watched(machine)
    machine.now += 60
    machine.kill()
    machine.fails = True
    assert (found.replace_if_ended(), found.ready, found.sentinels) == (True, False, ())
    assert "no fork server could be started: [Errno 12] Cannot allocate memory" in caplog.text
    machine.fails = False
    assert (found.replace_if_ended(), Probing.started) == (False, 0), "not at once"
    machine.now += 1
    assert (found.replace_if_ended(), Probing.started) == (False, 1)


def test_imports_are_awaited_by_a_process_that_does_nothing(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    done = list[object]()

    class Context:
        fails = False

        def Process(self, **facts: object) -> object:  # noqa: N802  as the library has it
            done.append(facts["target"])

            def start() -> None:
                if self.fails:
                    raise EOFError
                done.append("start")

            return SimpleNamespace(start=start, join=lambda: done.append("join"), close=lambda: done.append("close"))

    context = Context()
    found = WatchedForkServer(cast("ForkServerContext", context))
    with caplog.at_level("INFO"):
        found._await_imports()
    assert done == [fork_servers._do_nothing, "start", "join", "close"]
    assert "ready again" in caplog.text
    context.fails = True
    found._await_imports()
    assert done[4:] == [fork_servers._do_nothing]


def test_a_look_does_not_wait(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(machine)
    waits = list[float]()
    monkeypatch.setattr(fork_servers, "wait", lambda _, timeout_s: waits.append(timeout_s))
    assert (found.ready, found.replace_if_ended(), waits) == (True, False, [0, 0])


def test_without_pidfds_no_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_servers, "_open_pidfd", lambda: -1)
    found = WatchedForkServer(cast("ForkServerContext", None))
    assert (found.sentinels, found.ready, found.replace_if_ended()) == ((), True, False)


def test_what_is_imported_is_chosen_and_an_interrupt_is_ignored_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = list[object]()
    wanted = list[object]()
    context: Any = SimpleNamespace(set_forkserver_preload=wanted.append)
    monkeypatch.setattr("gatewayfilter.processes.fork_server.multiprocessing.get_context", lambda _: context)
    monkeypatch.setattr(
        "gatewayfilter.processes.fork_server.forkserver.ensure_running", lambda: handlers.append(signal.getsignal(signal.SIGINT))
    )
    before = signal.getsignal(signal.SIGINT)
    assert fork_servers.start_fork_server(("a", "b")) is context
    assert wanted == [["a", "b"]]
    assert handlers == [signal.SIG_IGN]
    assert signal.getsignal(signal.SIGINT) is before
    fork_servers.start_fork_server()
    assert wanted[1] == list(PRELOAD)
