"""Child processes, kept pages, memory and the server: what each is given and when it ends, without a process."""

import asyncio
import pickle
import socket
import subprocess
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from gatewayfilter import wiring
from gatewayfilter.errors import ClassifyError, ConfigError, ConflictError, SnapshotError
from gatewayfilter.model import Request as FilteredRequest
from gatewayfilter.urls import parse_url
from gatewayfilter.web import child_process
from gatewayfilter.web.access import check_job
from gatewayfilter.web.child_process import CHILD, ChildProcess
from gatewayfilter.web.page_shelf import KEPT_S, MOST_PAGES, PageShelf
from gatewayfilter.web.page_warmer import FIRST, warm_pages
from gatewayfilter.web.source_worker import JobState, SourceWorker


class Process:
    """A process that was started; it is over when it is told so."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.over: int | None = None
        self.done: list[str] = []

    def poll(self) -> int | None:
        return self.over

    def kill(self) -> None:
        self.done.append("killed")

    def wait(self) -> None:
        self.done.append("waited")


class Channel:
    """The other end of a child: it answers in time, or not."""

    def __init__(self, _: int) -> None:
        self.sent: list[Any] = []
        self.waited: list[float] = []
        self.answer: Any = (True, 42)
        self.closed = 0

    def send(self, work: Any) -> None:
        self.sent.append(work)

    def poll(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return self.answer is not None

    def recv(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed += 1


class Timer:
    """A timer that does not run."""

    made: ClassVar[list["Timer"]] = []

    def __init__(self, seconds: float, run: Callable[[], None]) -> None:
        self.seconds, self.run = seconds, run
        self.daemon, self.state = False, "new"
        Timer.made.append(self)

    def start(self) -> None:
        self.state = "started"

    def cancel(self) -> None:
        self.state = "cancelled"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Process], list[Channel]]:
    processes, channels = list[Process](), list[Channel]()

    def start(*given: Any, **options: Any) -> Process:
        processes.append(Process(*given, **options))
        return processes[-1]

    def channel(number: int) -> Channel:
        socket.socket(fileno=number).close()
        channels.append(Channel(number))
        return channels[-1]

    monkeypatch.setattr(child_process, "subprocess", SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr(child_process, "Connection", channel)
    monkeypatch.setattr(child_process, "threading", SimpleNamespace(Timer=Timer, Lock=threading.Lock))
    Timer.made.clear()
    return processes, channels


def test_a_child_is_started_once_and_kept_for_a_while(started: tuple[list[Process], list[Channel]]) -> None:
    processes, channels = started
    child = ChildProcess(2.5, 1 << 20, idle_s=7.0)
    assert child.running is False
    child.close()
    assert (child.run("m:f", 1, a=2), child.running) == (42, True)
    ((process,), (channel,)) = started
    number = process.options["pass_fds"][0]
    assert process.command[1:] == ["-m", CHILD, str(number), "2.5", str(1 << 20)]
    assert process.options["stdin"] == subprocess.DEVNULL
    assert channel.sent == [("m:f", (1,), {"a": 2})]
    assert child.run("m:g") == 42
    child.run("n:f")
    assert channel.waited == [62.5, 3.5, 62.5]  # a module is loaded at its first work
    assert [(one.seconds, one.daemon, one.state) for one in Timer.made] == [
        (7.0, True, "cancelled"), (7.0, True, "cancelled"), (7.0, True, "started"),
    ]  # fmt: skip
    Timer.made[-1].run()
    assert (child.running, process.done, channel.closed) == (False, ["killed", "waited"], 1)
    child.run("m:f")
    assert (len(processes), channels[-1].waited) == (2, [62.5])
    processes[-1].over = 1
    child.run("m:f")
    assert (len(processes), channels[-1].waited, channels[1].closed) == (3, [62.5], 1)
    child.close()
    assert (child.running, Timer.made[-1].state) == (False, "cancelled")


def test_a_child_that_does_not_answer_is_ended(started: tuple[list[Process], list[Channel]]) -> None:
    processes, channels = started
    child = ChildProcess(2.5)
    child.run("m:f")
    for answer in (None, EOFError(), OSError()):
        channels[-1].answer = answer
        with pytest.raises(ClassifyError, match=r"^this took longer than 2\.5 s or too much memory$"):
            child.run("m:f")
        assert (child.running, processes[-1].done) == (False, ["killed", "waited"])
        timers = len(Timer.made)
        child.run("m:f")
        assert len(Timer.made) == timers + 1  # none stands while there is no child
    for failure, error, told in ((ConfigError("no"), ConfigError, "no"), ("fault", ClassifyError, "fault")):
        channels[-1].answer = (False, failure)
        with pytest.raises(error) as raised:
            child.run("m:f")
        assert (str(raised.value), child.running) == (told, True)
    assert (Timer.made[-1].seconds, Timer.made[-1].state) == (300.0, "started")


def noting[T](notes: list[Any], result: T) -> Callable[..., T]:
    """Returns a function that notes what it is given, and returns a result."""

    def note(*given: Any) -> T:
        notes.append(given[0] if len(given) == 1 else given)
        return result

    return note


class Checked:
    """Settings, database and engines of a check, all noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current: str | None = "one"
        self.error: Exception | None = None
        self.closed: list[Any] = []
        self.applied: list[Any] = []
        self.clocks: list[Callable[[], float]] = []
        self.checks: list[tuple[Any, ...]] = []
        self.feed = SimpleNamespace(read=lambda seq: [f"change {seq}"] if seq < 2 else [])
        monkeypatch.setattr(wiring, "open_store", lambda _: self)
        monkeypatch.setattr(wiring, "snapshot_folder", lambda _: SimpleNamespace(current=lambda: self.current))
        monkeypatch.setattr(wiring, "newest_engine", self._engine)
        monkeypatch.setattr(check_job, "check_url", noting(self.checks, "found"))

    def _engine(self, settings: Any, *, clock: Callable[[], float]) -> Any:
        del settings
        if self.error is not None:
            raise self.error
        self.clocks.append(clock)
        engine: Any = SimpleNamespace(feed_seq=0, snapshot=SimpleNamespace(close=lambda: self.closed.append(engine)))

        def apply(changes: Any) -> None:
            self.applied.append(changes)
            engine.feed_seq += 1

        engine.apply = apply
        return engine


def test_checks_use_the_engine_over_the_newest_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Checked(monkeypatch)
    settings = pickle.dumps("settings")
    request = FilteredRequest(parse_url("http://a.example/"))
    try:
        assert str(check_job.check(settings, request, "tablet", 7.0, None)) == "found"
        given = state.checks[-1]
        engine = given[2]
        assert (given[0], given[1], given[3:5], given[5]()) == ("settings", state, (request, "tablet"), 7.0)
        assert (state.applied, engine.feed_seq) == ([["change 0"], ["change 1"]], 2)
        check_job.check(settings, request, "", 8.0, None)
        assert (state.checks[-1][2] is engine, state.clocks[0](), len(state.clocks)) == (True, 8.0, 1)
        check_job.check(settings, request, "", 9.0, 3.0)
        then = state.checks[-1]
        assert (then[2] is engine, then[5](), state.closed, then[2].feed_seq) == (False, 3.0, [then[2]], 2)
        state.current = "two"
        check_job.prepare(settings)
        assert len(state.clocks) == 3
        check_job.prepare(settings)
        assert len(state.clocks) == 3
        asked: list[Any] = []
        monkeypatch.setattr("gatewayfilter.gateway.doh_servers.blocked_resolvers", noting(asked, (1, 2)))
        assert (check_job.resolvers(settings, 11.0), asked[0] is engine, state.clocks[-1]()) == ((1, 2), False, 11.0)
        jobs = "gatewayfilter.use_cases.lists.list_jobs"
        monkeypatch.setattr(f"{jobs}.counts", lambda *parts: parts)
        parts = check_job.count_entries(settings, 12.0)
        assert cast("Any", parts) == ("settings", state, asked[0], 12.0)
        size = [check_job.MOST_READ]
        monkeypatch.setattr("gatewayfilter.use_cases.lists.list_search.bytes_to_read", lambda *_: size[-1])
        monkeypatch.setattr(f"{jobs}.search", lambda *parts, partial: (*parts, partial))
        found = check_job.search_entries(settings, "text", 13.0)
        assert cast("Any", found) == ("settings", state, asked[0], "text", False)
        assert state.clocks[-1]() == 13.0
        size.append(check_job.MOST_READ + 1)
        assert check_job.search_entries(settings, "text", 13.0) is None
        state.error, state.current = SnapshotError("damaged"), "three"
        with pytest.raises(SnapshotError, match=r"^damaged$"):
            check_job.prepare(settings)
        state.current = None
        with pytest.raises(SnapshotError, match="no lists are in force yet"):
            check_job.check(settings, request, "", 1.0, 2.0)
    finally:
        check_job._checker.cache_clear()


def test_work_on_lists_is_done_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    worker = SourceWorker(cast("Any", "settings"), lambda: now[-1])
    ran: list[Any] = []
    results: list[Any] = [[{"name": "a"}]]

    class Child:
        def run(self, *given: Any, **named: Any) -> Any:
            ran.append((given, named))
            if isinstance(results[-1], Exception):
                raise results[-1]
            return results[-1]

        def close(self) -> None:
            ran.append("closed")

    class Thread:
        def __init__(self, target: Callable[..., None], args: tuple[Any, ...], **options: Any) -> None:
            self.work = lambda: target(*args)
            assert options == {"name": "lists", "daemon": True}

        def start(self) -> None:
            begun.append(self.work)

    begun: list[Callable[[], None]] = []
    monkeypatch.setattr(worker, "_child", Child())
    monkeypatch.setattr("gatewayfilter.web.source_worker.threading.Thread", Thread)
    assert (worker.state, worker.state.running) == (JobState(), False)
    state = worker.start("update", "s", ["a"], force=True)
    assert (state, state.running) == (JobState(1, "update", "s", 5.0), True)
    with pytest.raises(ConflictError):
        worker.start("update", "s")
    now.append(7.0)
    begun.pop()()
    assert ran == [(("gatewayfilter.use_cases.lists.source_jobs:update", "settings", ["a"]), {"force": True})]
    assert worker.state == JobState(1, "update", "s", 5.0, 7.0, ({"name": "a"},), "")
    for error, told in ((ConfigError("no"), "no"), (KeyError("secret"), "a fault of the program; the log has it")):
        results.append(error)
        number = worker.start("publish", "").number
        now.append(6.0)  # the clock was put back
        begun.pop()()
        assert (worker.state.number, worker.state.error, worker.state.results, worker.state.running) == (number, told, (), False)
        now.append(7.0)
    assert worker.state.ended_at == 7.0
    worker.close()
    assert ran[-1] == "closed"


def test_pages_are_kept_for_an_hour_and_the_oldest_goes() -> None:
    now = [0.0]
    shelf = PageShelf(lambda: now[-1])
    first = shelf.put("http://a/", "<p>\ud800")
    assert (first.url, first.html, len(first.key)) == ("http://a/", "<p>\ud800", 16)
    others = [shelf.put("", f"{number}") for number in range(MOST_PAGES - 1)]
    found = shelf.find(first.key)
    assert found is not None
    assert (found.key, found.url, found.html) == (first.key, "http://a/", "<p>?")
    last = shelf.put("", "last")  # the one that was used longest ago goes
    assert (shelf.find(others[0].key), shelf.find(others[1].key) is not None, shelf.find(first.key) is not None) == (
        None,
        True,
        True,
    )
    now.append(KEPT_S)
    assert shelf.find(last.key) is not None
    now.append(KEPT_S + 1)
    assert shelf.find(last.key) is None
    now.append(0.0)
    assert (shelf.find(last.key), shelf.find("none")) == (None, None)


def test_first_pages_are_asked_for_as_a_person_does() -> None:
    asked: list[dict[str, Any]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await receive()
        await send({"type": "http.response.start"})
        asked.append(scope)

    warm_pages(application, "zh")
    assert [scope["path"] for scope in asked] == list(FIRST)
    scope = asked[0]
    assert (scope["method"], scope["scheme"], scope["raw_path"], scope["query_string"], scope["client"], scope["server"]) == (
        "GET", "http", b"/", b"", ("127.0.0.1", 0), ("127.0.0.1", 0),
    )  # fmt: skip
    assert scope["headers"] == [(b"host", b"localhost"), (b"accept-language", b"zh")]
    identity = scope["state"]["identity"]
    assert (identity.name, identity.role.name, identity.language, identity.csrf) == ("made ready", "ADMIN", "zh", "")
