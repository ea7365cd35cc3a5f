"""The supervisor's loop by children of the test: what it starts, waits for, restarts and ends. No process is started."""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StartupError
from gatewayfilter.processes import supervisor as supervisors
from gatewayfilter.processes.supervision.child import Child
from gatewayfilter.processes.supervisor import DRAIN_S, _Supervisor


class FakeChild:
    """Takes note of what it is asked; `due` has it start again."""

    def __init__(self, name: str, log: list[str], *, is_forked: bool = True) -> None:
        self.name, self.is_forked, self.log = name, is_forked, log
        self.pid: int | None = 100
        self.serving = self.hopeless = self.ended = self.due = False
        self.restarts = self.stalls = 0
        self.waits: float | None = None
        self.sentinels: tuple[int, ...] = ()
        self.when_heard: Callable[[], None] = lambda: None
        self.deadline = 0.0

    def start(self) -> bool:
        self.log.append(f"start {self.name}")
        return True

    def hear(self) -> None:
        self.when_heard()

    def reap(self) -> bool:
        found, self.ended = self.ended, False
        return found

    def hasten(self) -> None:
        self.log.append(f"hasten {self.name}")

    def wait_s(self) -> float | None:
        return self.waits

    def restart_if_due(self) -> bool:
        self.log.append(f"restart {self.name}")
        self.restarts += self.due
        return self.due

    def terminate(self) -> None:
        self.log.append(f"terminate {self.name}")

    def finish(self, deadline: float) -> None:
        self.log.append(f"finish {self.name}")
        self.deadline = deadline


class FakeForkServer:
    ready = True
    sentinels: tuple[int, ...] = ()
    ended = False

    def replace_if_ended(self) -> bool:
        return self.ended


class FakeCa:
    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.error = ""

    def put_back(self) -> bool:
        self.log.append("put the CA back")
        if self.error:
            raise StartupError(self.error)
        return True


class FakeManager:
    """Stands in for systemd."""

    ping_every_s: float | None = None

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def ready(self, status: str) -> None:
        self.log.append(status)

    def alive(self) -> None:
        self.log.append("alive")

    def stopping(self) -> None:
        self.log.append("stopping")


class FakeStatus:
    """Stands in for the status file."""

    failed = False

    def __init__(self) -> None:
        self.written = list[dict[str, Any]]()
        self.removed = False

    def write(self, **facts: Any) -> None:
        self.written.append(facts)

    def remove(self) -> None:
        self.removed = True


class Made:
    """A supervisor over two proxy workers, the learner, and a dashboard that is started later."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **proxy: object) -> None:
        self.log = list[str]()
        self.said = list[str]()
        self.first, self.second, self.learner = (FakeChild(name, self.log) for name in ("proxy-0", "proxy-1", "learner"))
        self.web = FakeChild("web", self.log, is_forked=False)
        self.fork_server, self.ca, self.manager = FakeForkServer(), FakeCa(self.log), FakeManager(self.log)
        settings = Settings.model_validate({"data_dir": folder, "proxy": {"listen": "127.0.0.1:8080", "stall_s": 0, **proxy}})
        monkeypatch.setattr(supervisors, "banner", lambda _settings, workers: iter([f"{workers} workers"]))
        monkeypatch.setattr(supervisors, "ServiceManager", lambda: self.manager)
        self.supervisor = _Supervisor(
            settings,
            cast("list[Child]", [self.first, self.second]),
            cast("list[Child]", [self.learner]),
            cast("list[Child]", [self.web]),
            cast("Any", self.fork_server),
            cast("Any", self.ca),
            self.said.append,
        )
        self.status = FakeStatus()
        self.written = self.status.written
        monkeypatch.setattr(self.supervisor, "_status", self.status)

    def serve(self) -> None:
        self.first.serving = self.second.serving = True
        self.supervisor._announce()
        self.log.clear()
        self.written.clear()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(tmp_path, monkeypatch)


@pytest.mark.timeout(30)
def test_from_the_start_to_a_signal(made: Made, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(parents=True, exist_ok=True)
    for name in ("proxy-7.json", "crawler-3.json", "web.json", "learner.json"):
        (run / name).write_text("{}")
    made.first.serving = made.second.serving = True
    rounds = list[int]()

    def heard() -> None:
        rounds.append(1)
        if len(rounds) == 3:
            signal.raise_signal(signal.SIGTERM)

    made.first.when_heard = heard
    made.manager.ping_every_s = 0.001
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    began = time.monotonic()
    assert made.supervisor.run() == 0
    assert {number: signal.getsignal(number) for number in before} == before
    assert signal.set_wakeup_fd(-1) == -1
    assert sorted(path.name for path in run.glob("*.json")) == ["learner.json"], "what others left behind tells of no process"
    assert made.log[:3] == ["start proxy-0", "start proxy-1", "start learner"]
    assert made.log.index("start web") < made.log.index("filtering on 127.0.0.1:8080")
    assert made.log.count("start web") == 1
    assert made.said == ["2 workers"]
    assert made.log.count("alive") == 3
    everybody = ["proxy-0", "proxy-1", "learner", "web"]
    assert made.log[-9:] == ["stopping", *(f"terminate {name}" for name in everybody), *(f"finish {name}" for name in everybody)]
    assert made.status.removed
    assert began + DRAIN_S <= made.web.deadline <= time.monotonic() + DRAIN_S


def test_children_are_ended_when_the_loop_fails(made: Made) -> None:
    made.first.hopeless = made.second.hopeless = True
    made.first.waits = 0.0
    with pytest.raises(StartupError, match="no proxy worker could start"):
        made.supervisor.run()
    assert made.log[-4:] == ["terminate learner", "finish proxy-0", "finish proxy-1", "finish learner"]


@pytest.mark.parametrize(
    ("ping_s", "stall_s", "waits", "ready", "timeout_s"),
    [
        (None, 0.0, None, True, 5.0),
        (2.0, 0.0, None, True, 2.0),
        (9.0, 0.0, None, True, 5.0),
        (None, 8.0, None, True, 2.0),
        (None, 40.0, None, True, 5.0),
        (None, 0.0, 0.7, True, 0.7),
        (None, 0.0, 0.7, False, 0.1),
        (None, 0.0, 0.0, False, 0.1),  # a child that nothing can fork yet is not due
    ],
)
def test_how_long_it_waits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ping_s: float | None,
    stall_s: float,
    waits: float | None,
    *,
    ready: bool,
    timeout_s: float,
) -> None:
    made = Made(tmp_path, monkeypatch, stall_s=stall_s)
    made.manager.ping_every_s, made.second.waits, made.fork_server.ready = ping_s, waits, ready
    made.fork_server.sentinels, made.first.sentinels, made.learner.sentinels = (11,), (12, 13), (14,)
    asked = list[tuple[list[object], float]]()
    monkeypatch.setattr(supervisors, "wait", lambda things, timeout: asked.append((things, timeout)))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        for sent in (b"", b"\x0f"):
            theirs.send(sent)
            made.supervisor._wait(ours)
        with pytest.raises(BlockingIOError):
            ours.recv(1)  # the signal's byte was taken: it does not wake twice
    assert asked == [([ours, 11, 12, 13, 14], timeout_s)] * 2


def test_a_dashboard_that_ended_is_due_without_the_fork_server(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.serve()
    made.fork_server.ready, made.web.waits = False, 0.02
    asked = list[float]()
    monkeypatch.setattr(supervisors, "wait", lambda _, timeout: asked.append(timeout))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as silent:
        silent.setblocking(False)
        made.supervisor._wait(silent)
    assert asked == [0.02]
    made.supervisor._restart()
    assert made.log == ["restart web"]


def test_the_status_is_written_when_something_changed(made: Made) -> None:
    made.supervisor._restart()
    assert [facts["state"] for facts in made.written] == ["starting"]
    made.serve()
    made.supervisor._restart()
    assert made.written == []
    made.status.failed = True  # a full disk: tried until it is told
    made.supervisor._restart()
    assert len(made.written) == 1
    made.status.failed = False
    made.written.clear()

    made.learner.ended = True
    made.supervisor._restart()
    assert "put the CA back" in made.log
    made.learner.due = True
    made.learner.stalls, made.learner.pid = 2, None
    made.supervisor._restart()
    assert len(made.written) == 2
    told = made.written[-1]
    assert (told["state"], told["listen"]) == ("running", "127.0.0.1:8080")
    assert abs(told["started_at"] - time.time()) < 60
    assert told["children"]["learner"] == {"pid": None, "restarts": 1, "stalls": 2}
    assert list(told["children"]) == ["proxy-0", "proxy-1", "learner", "web"]


def test_a_removed_authority_is_put_back_only_after_an_end(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    made.serve()
    made.supervisor._restart()
    assert "put the CA back" not in made.log
    made.first.ended, made.ca.error = True, "the CA cannot be written"
    made.supervisor._restart()
    assert "the CA cannot be written" in caplog.text
    made.first.ended, made.ca.error = True, ""
    with caplog.at_level(logging.WARNING):
        made.supervisor._restart()
    assert "it was put back" in caplog.text


def test_a_fork_server_that_ended_is_told(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    made.supervisor._restart()
    assert caplog.messages == []
    made.fork_server.ended = True
    made.supervisor._restart()
    assert caplog.messages == ["the fork server has ended; its processes go on, and another one is started"]


def test_nothing_is_started_again_once_it_stops(made: Made) -> None:
    made.serve()
    made.first.when_heard = lambda: made.supervisor._stop(signal.SIGTERM, None)
    made.supervisor._restart()
    assert made.log == []


def test_the_first_of_the_workers_is_hastened_where_none_serves(made: Made) -> None:
    made.supervisor._hasten_one()
    made.first.waits, made.second.waits, made.learner.waits = 3.0, 2.0, 1.0
    made.supervisor._hasten_one()
    assert made.log == ["hasten proxy-1"]
    made.first.waits, made.first.serving = None, True
    made.supervisor._hasten_one()
    assert made.log == ["hasten proxy-1"], "one serves"


def test_hopeless_workers_end_a_start_but_no_running_filter(made: Made) -> None:
    made.first.hopeless = True
    made.supervisor._restart()
    made.serve()
    made.second.hopeless = True
    made.supervisor._restart()
    assert made.supervisor._ready


def test_it_is_ready_when_all_workers_serve(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.first.serving = True
    made.supervisor._announce()
    assert (made.log, made.written, made.said) == ([], [], [])
    made.second.serving = True
    made.supervisor._announce()
    made.supervisor._announce()
    assert made.log == ["start web", "filtering on 127.0.0.1:8080"]
    assert made.said == ["2 workers"]
    assert [facts["state"] for facts in made.written] == ["running"]


def test_a_closed_standard_output_ends_nothing(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr("gatewayfilter.processes.supervisor.sys.stdout", stream)
        monkeypatch.setattr(made.supervisor, "_say", lambda line: print(line, file=stream))
        made.first.serving = made.second.serving = True
        made.supervisor._announce()
        assert made.supervisor._ready
        assert os.fstat(stream.fileno()).st_rdev == Path(os.devnull).stat().st_rdev, "what is left in its buffer goes nowhere"
