"""The threads of the notifier and its deadlines, by clocks and sockets of the test."""

import socket
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from gatewayfilter.errors import NotifyError, StoreError
from gatewayfilter.interfaces import ChannelState, Notification
from gatewayfilter.notify import http_channels, mail_channel, notifier
from gatewayfilter.notify.deadline import Deadline
from gatewayfilter.notify.http_channels import _post
from gatewayfilter.notify.notifier import BACKLOG_S, EVERY_S, FIRST_RETRY_S, LONGEST_RETRY_S, TOO_OLD_S, ChannelSender, Notifier
from gatewayfilter.settings import NotifySettings
from gatewayfilter.telemetry import Counters


class Waiting:
    """The notifications of one channel, and its messages with the time of each."""

    name = "test"

    def __init__(self, state: ChannelState | None = None, **settings: Any) -> None:
        self.state, self.now = state or ChannelState(0), 10_000.0
        self.found = list[Notification]()
        self.sent = list[tuple[float, int]]()
        self.fails = False
        self.since = 0.0
        self.counters = Counters()
        store = cast("Any", SimpleNamespace(channel=self.channel, after=self.after, put_channel=self.put))
        self.sender = ChannelSender(cast("Any", self), store, NotifySettings(**settings), self.counters, lambda: self.now)

    def channel(self, _: str, since: float) -> ChannelState:
        self.since = since
        return self.state

    def after(self, last: int, most: int) -> list[Notification]:
        return [one for one in self.found if one.number > last][:most]

    def put(self, _: str, state: ChannelState) -> None:
        self.state = state

    def send(self, message: Any) -> None:
        if self.fails:
            raise NotifyError("refused " + "x" * 400)
        self.sent.append((self.now, len(message.events)))

    def add(self, number: int, event: str = "request", age_s: float = 0.0) -> None:
        self.found.append(Notification(number, event, self.now - age_s, {"request": number, "url": "http://a.example/"}))


def test_messages_are_apart_by_the_time_of_a_digest() -> None:
    waiting = Waiting(digest_s=60)
    waiting.add(1)
    for second in range(130):
        waiting.now = 10_000.0 + second
        waiting.add(2 + second)
        waiting.sender.run_once()
    assert [at for at, _ in waiting.sent] == [10_000.0, 10_060.0, 10_120.0]
    assert waiting.since == 10_000.0 - BACKLOG_S
    assert (waiting.state.last_id, waiting.state.sent_at, waiting.state.failures) == (122, 10_120.0, 0)
    waiting.now = 5_000.0  # the clock was set back: nothing waits for the old time
    assert waiting.sender.run_once() is True


def test_pauses_after_failures_and_what_is_told_of_them(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting(digest_s=1)
    waiting.fails = True
    waiting.add(1)
    pauses = list[float]()
    for _ in range(12):
        assert waiting.sender.run_once() is False
        pauses.append(waiting.state.retry_at - waiting.now)
        assert (waiting.state.failing_since, waiting.state.last_id) == (10_000.0, 0)
        waiting.now = waiting.state.retry_at - 0.5
        assert waiting.sender.run_once() is False
        waiting.now += 0.5
    assert pauses == [FIRST_RETRY_S * 2**number for number in range(10)] + [LONGEST_RETRY_S] * 2
    assert (len(waiting.state.error), waiting.state.failures) == (300, 12)
    waiting.fails = False
    waiting.add(2)
    with caplog.at_level("INFO"):
        assert waiting.sender.run_once() is True
    assert (waiting.state.failures, waiting.state.error) == (0, "")
    assert [message.partition(":")[0] for message in caplog.messages] == ["test", "test"]
    assert caplog.messages[-1].endswith("messages are sent again")
    assert (waiting.counters["notifications_failed"], waiting.counters["notifications_sent"]) == (12, 1)
    waiting.add(3)
    waiting.now += 1
    caplog.clear()
    with caplog.at_level("INFO"):
        assert waiting.sender.run_once() is True
    assert caplog.messages == [], "nothing was wrong"


def test_what_is_too_old_or_not_wanted_is_passed_over() -> None:
    waiting = Waiting(events=["request"])
    for number, (event, age_s) in enumerate((("request", TOO_OLD_S), ("device", 0.0), ("request", TOO_OLD_S + 1)), 1):
        waiting.add(number, event, age_s)
    assert waiting.sender.run_once() is False
    assert (waiting.state.last_id, waiting.sent, waiting.counters["notifications_dropped"]) == (3, [], 2)
    waiting.add(4, age_s=TOO_OLD_S - 1)
    assert waiting.sender.run_once() is True


def test_the_threads_go_on_whatever_happens(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    ends: list[Exception | None] = [None, StoreError("locked"), KeyError("bug"), None]
    waits, left = list[float](), [7]

    def run_once() -> bool:
        if (error := ends.pop(0)) is not None:
            raise error
        return True

    def wait(pause_s: float) -> bool:
        waits.append(pause_s)
        left[0] -= 1
        return left[0] <= 0

    made = Notifier([cast("Any", SimpleNamespace(run_once=run_once))])
    assert all(thread.daemon for thread in made._threads)
    monkeypatch.setattr(made, "_stop", SimpleNamespace(wait=wait))
    made._run(cast("Any", SimpleNamespace(run_once=run_once)))
    assert waits == [EVERY_S, EVERY_S, FIRST_RETRY_S, EVERY_S, FIRST_RETRY_S, EVERY_S, EVERY_S]
    assert "notifications wait: locked" in caplog.text
    assert "a notification failed" in caplog.text


def test_the_end_waits_for_all_threads_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now, joins = [100.0], list[float]()

    def join(limit_s: float) -> None:
        joins.append(limit_s)
        now[0] += 2.0

    made = Notifier([])
    made._threads = [cast("Any", SimpleNamespace(join=join)) for _ in range(3)]
    monkeypatch.setattr(notifier, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made.stop()
    assert made._stop.is_set()
    assert joins == [3.0, 1.0, 0.0]


def test_a_deadline_shuts_sockets_down_those_that_come_later_too() -> None:
    deadline = Deadline(60.0)
    assert (deadline._timer.daemon, deadline._timer.interval) == (True, 60.0)
    first, second, third = (socket.socketpair() for _ in range(3))
    try:
        with deadline:
            deadline.watch(first[0])
            deadline.watch(second[0])
            second[0].close()  # an exchange that is over
            seen = [deadline.passed]
            deadline._pass()
            deadline.watch(third[0])
        assert [*seen, deadline.passed] == [False, True]
        for _, other in (first, third):
            other.settimeout(10)
            assert other.recv(1) == b""
        assert deadline._timer.finished.is_set()
    finally:
        for pair in (first, second, third):
            for end in pair:
                end.close()


def test_a_deadline_that_passes_ends_what_waits() -> None:
    end, other = socket.socketpair()
    with end, other, Deadline(0.01) as deadline:
        deadline.watch(end)
        other.settimeout(10)
        assert other.recv(1) == b""
        assert deadline.passed


class Passing:
    """A deadline of which the test decides whether it has passed."""

    def __init__(self, *, passed: bool) -> None:
        self.passed, self.watched = passed, list[object]()

    def watch(self, found: object) -> None:
        self.watched.append(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("answer", "passed", "why"),
    [
        (200, False, ""), (299, False, ""), (199, False, "HTTP 199"), (300, False, "HTTP 300"), (200, True, "no answer in time"),
        (TimeoutError(), False, "no answer in time"), (OSError(111, "refused"), False, "refused"),
        (OSError(111, "refused"), True, "no answer in time"), (ValueError("the token"), False, "ValueError"),
        (OSError("the token"), False, "OSError"),
    ],
)  # fmt: skip
def test_a_post_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch, answer: int | Exception, *, passed: bool, why: str) -> None:
    deadline, done = Passing(passed=passed), list[Any]()

    def getresponse() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(status=answer)

    def connection(*given: Any, **options: Any) -> Any:
        done.append((*given, options))
        return SimpleNamespace(
            connect=lambda: done.append("connect"), sock="socket", request=lambda *asked: done.append(asked),
            getresponse=getresponse, close=lambda: done.append("close"),
        )  # fmt: skip

    monkeypatch.setattr(http_channels, "Deadline", lambda limit_s: deadline if limit_s == 2.0 else None)
    monkeypatch.setattr(http_channels, "HTTPConnection", connection)
    if why:
        with pytest.raises(NotifyError, match=f"a.example did not take the message: {why}$"):
            _post("http://a.example:81/x?y", b"body", {"k": "v"}, 2.0)
    else:
        _post("http://a.example:81/x?y", b"body", {"k": "v"}, 2.0)
    asked = ("POST", "/x?y", b"body", {"user-agent": "GatewayFilter", "k": "v"})
    assert done == [("a.example", 81, {"timeout": 2.0}), "connect", asked, "close"]
    assert deadline.watched == ["socket"]


def test_the_socket_of_a_mail_server_has_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Passing(passed=False)
    monkeypatch.setattr("gatewayfilter.notify.mail_channel.socket.create_connection", lambda to, timeout: (to, timeout))
    client = mail_channel._Client(cast("Deadline", deadline))
    found: Any = client._get_socket("mail.example", 25, 3.0)
    assert deadline.watched == [found] == [(("mail.example", 25), 3.0)]
