"""Which open connections end when policies change, and which of them count as use of quotas; the connections are stand-ins."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import http, tcp
from mitmproxy.connection import Client, Server
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.tcp import TCPLayer
from mitmproxy.test import tflow

from gatewayfilter.model import Action, Reason, Request, Verdict
from gatewayfilter.proxy import open_connections
from gatewayfilter.proxy.open_connections import OpenConnections
from gatewayfilter.telemetry import Counters

ALLOW, BLOCK = Verdict(Action.ALLOW, Reason.WHITELIST), Verdict(Action.BLOCK, Reason.SCHEDULE)


class Loop:
    """An event loop whose timers and tasks are run by hand."""

    def __init__(self) -> None:
        self.now, self.timers, self.tasks = 100.0, list[tuple[float, Any]](), list[Any]()
        self.cancelled: list[str] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any) -> Any:
        self.timers.append((seconds, call))
        return SimpleNamespace(cancel=lambda: self.cancelled.append("timer"))

    def create_task(self, work: Any) -> Any:
        task: Any = SimpleNamespace(work=work, done=lambda: task.over, over=False, cancel=lambda: self.cancelled.append("task"))
        self.tasks.append(task)
        return task

    def second(self) -> list[str]:
        """Runs the timer; returns the names of the tasks that it begins."""
        seconds, call = self.timers.pop()
        assert (seconds, self.timers) == (1.0, [])
        before = len(self.tasks)
        call()
        return [task.work.__name__ for task in self.tasks[before:]]

    def finish(self) -> None:
        for task in self.tasks:
            if not task.over:
                asyncio.run(task.work)
                task.over = True


class Review:
    """Open connections, and what ended or counted: `done`."""

    def __init__(self) -> None:
        self.loop, self.done, self.counters = Loop(), list[tuple[object, ...]](), Counters()
        self.mark, self.blocked, self.fault = 1, set[str](), ""
        self.connections: dict[str, Any] = {}
        self.logged_in: dict[str, str] = {}
        self.usage: Any = SimpleNamespace(
            active=False, request=lambda request, verdict: self.done.append(("use", request.url.text, request.user, verdict))
        )
        relays: Any = SimpleNamespace(loop=self.loop, review=lambda: self.done.append(("relays",)))
        recorder: Any = SimpleNamespace(
            record=lambda request, verdict, us: self.done.append(("record", request.url.text, verdict, us))
        )
        self.made = [cast("Any", self), self.connections, relays, recorder, self.counters, self.logged_in, self.usage]
        self.reviewed = OpenConnections(*self.made)

    def policy_mark(self) -> int:
        return self.mark

    def decide(self, request: Request) -> Verdict:
        if request.url.host == self.fault:
            raise RuntimeError("a fault")
        return BLOCK if request.url.host in self.blocked else ALLOW

    def add(self, *layers: Any, handler: bool = True) -> str:
        """Adds a connection with layers; returns its name."""
        name = f"connection {len(self.connections)}"
        ended = SimpleNamespace(cancel=lambda why: self.done.append(("end", name, why)))
        io = SimpleNamespace(handler=ended if handler else None)
        context = SimpleNamespace(layers=list(layers))
        client = f"client of {name}"
        self.connections[name] = SimpleNamespace(layer=SimpleNamespace(context=context), client=client, transports={client: io})
        return name

    def ended(self) -> list[object]:
        return [one[1] for one in self.done if one[0] == "end"]


@pytest.fixture
def review() -> Review:
    return Review()


def flow_to(host: str, method: str = "GET", *, stream: bool = True) -> http.HTTPFlow:
    flow = tflow.tflow(req=http.Request.make(method, f"http://{host}/"))
    flow.request.headers = http.Headers()
    flow.server_conn.address, flow.client_conn.sni = None, None
    flow.request.stream = stream
    return flow


def http_layer(*flows: http.HTTPFlow | None, inner: tuple[Any, ...] = ()) -> Any:
    """An HTTP layer with a stream for each flow; `inner` are the layers inside of each."""
    made: Any = object.__new__(HttpLayer)
    made.streams = {}
    for number, flow in enumerate(flows):
        stream = SimpleNamespace(**({} if flow is None else {"flow": flow}))
        stream.context = SimpleNamespace(layers=[made, stream, *inner])
        made.streams[number] = stream
    return made


def tcp_layer(host: str = "", sni: str | None = None) -> Any:
    made: Any = object.__new__(TCPLayer)
    made.flow = None
    if host:
        client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        client.sni = sni
        made.flow = tcp.TCPFlow(client, Server(address=(host, 443)))
    return made


def reviewed(review: Review) -> list[tuple[object, ...]]:
    """Changes the policies, and returns what the review does."""
    if not review.loop.timers:
        review.reviewed.start()
    review.done.clear()
    review.mark += 1
    assert review.loop.second() == ["_review_all"]
    review.loop.finish()
    return review.done


def test_a_review_begins_where_policies_changed_and_none_is_under_way(review: Review) -> None:
    review.reviewed.start()
    assert review.loop.second() == []
    review.mark = 2
    assert review.loop.second() == ["_review_all"]
    assert review.loop.second() == []
    review.mark = 3
    assert review.loop.second() == [], "one is under way"
    review.loop.finish()
    assert review.loop.second() == ["_review_all"]
    assert review.done == [("relays",)]
    review.reviewed.stop()
    assert review.loop.cancelled == ["timer", "task"]
    review.loop.finish()
    never = OpenConnections(*review.made)
    never.stop()
    assert review.loop.cancelled == ["timer", "task"]


def test_uses_are_counted_three_times_a_minute(review: Review) -> None:
    review.reviewed.start()
    review.usage.active = True
    begun = []
    for seconds in (0.0, 1.0, 18.0, 1.0, 20.0):
        review.loop.now += seconds
        begun.append(review.loop.second())
        review.loop.finish()
    assert begun == [["_count_all"], [], [], ["_count_all"], ["_count_all"]]
    review.loop.now += 20.0
    review.mark = 2
    assert review.loop.second() == ["_review_all"], "one after the other"
    assert review.loop.second() == []
    review.loop.finish()
    assert review.loop.second() == ["_count_all"]
    review.usage.active = False
    review.loop.finish()
    review.loop.now += 20.0
    assert review.loop.second() == []


def test_a_connection_with_a_blocked_request_ends(review: Review) -> None:
    fine, bad = flow_to("fine.example"), flow_to("bad.example")
    first = review.add(http_layer(fine))
    second = review.add(http_layer(fine, None, bad, bad))
    review.add(http_layer(bad), handler=False)
    review.blocked = {"bad.example"}
    record = ("record", "http://bad.example/", BLOCK, 0)
    assert reviewed(review) == [("relays",), record, ("end", second, "blocked by a policy from now on"), record]
    assert review.counters["ended_by_policy"] == 2
    del review.connections[second]
    review.connections[first].transports = {}
    review.blocked = {"fine.example"}
    assert [one[0] for one in reviewed(review)] == ["relays", "record"]
    silent = OpenConnections(*(None if place == 3 else one for place, one in enumerate(review.made)))  # type: ignore[arg-type]
    silent.start()
    review.done.clear()
    review.mark += 1
    review.loop.timers.pop()[1]()
    review.loop.finish()
    assert review.done == [("relays",)]


def test_tunnels_and_what_runs_inside_of_them(review: Review) -> None:
    review.blocked = {"bad.example", "hidden.example"}
    connect = flow_to("bad.example", "CONNECT")
    names = [
        review.add(tcp_layer("bad.example")),
        review.add(tcp_layer("fine.example", "hidden.example")),
        review.add(tcp_layer("fine.example", "fine.example")),
        review.add(tcp_layer()),
        review.add(http_layer(connect)),
        review.add(http_layer(flow_to("fine.example", "CONNECT"), inner=(http_layer(flow_to("bad.example")),))),
        review.add(http_layer(connect, inner=(tcp_layer("fine.example"),))),
        review.add(object(), http_layer(flow_to("bad.example"))),
        review.add(tcp_layer("bad host")),
    ]
    reviewed(review)
    assert review.ended() == [names[place] for place in (0, 1, 5, 7)]


def test_each_name_and_the_user_of_a_request_count(review: Review) -> None:
    flow = flow_to("fine.example")
    flow.request.headers["host"] = "fine.example"
    flow.request.data.scheme, flow.request.data.host = b"https", "bad.example"
    flow.server_conn.address = ("bad.example", 443)
    review.add(http_layer(flow))
    review.blocked = {"bad.example"}
    assert [one[0] for one in reviewed(review)] == ["relays", "record", "end"]
    users: list[str] = []
    decide = review.decide
    review.decide = lambda request: users.append(request.user) or decide(request)  # type: ignore[method-assign, func-returns-value]
    review.logged_in[flow.client_conn.id] = "kim"
    reviewed(review)
    assert set(users) == {"kim"}


def test_a_fault_with_one_connection_leaves_the_others(review: Review, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "gatewayfilter.proxy.open_connections")
    review.fault, review.blocked = "fault.example", {"bad.example"}
    unreadable = flow_to("bad.example")
    unreadable.request.data.path = b"/a b"
    review.add(http_layer(flow_to("fault.example")))
    second = review.add(http_layer(unreadable, flow_to("bad.example")))
    reviewed(review)
    assert review.ended() == [second]
    review.usage.active = True
    review.done.clear()
    assert review.loop.second() == ["_count_all"]
    review.loop.finish()
    assert review.done == [("use", "http://bad.example/", "", BLOCK)]
    assert [record.getMessage() for record in caplog.records] == [
        "reviewing an open connection failed",
        "counting an open connection failed",
    ]


def test_streams_that_run_count_as_use(review: Review) -> None:
    socket = flow_to("socket.example")
    socket.websocket = cast("Any", object())
    streams = flow_to("clips.example")
    review.logged_in[streams.client_conn.id] = "kim"
    review.add(http_layer(socket, flow_to("read.example", stream=False), streams), tcp_layer("raw.example"))
    review.reviewed.start()
    review.usage.active = True
    assert review.loop.second() == ["_count_all"]
    review.loop.finish()
    assert review.done == [("use", "http://clips.example/", "kim", ALLOW)]


def test_the_event_loop_does_something_else_in_between(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_connections, "_AT_ONCE", 2)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(open_connections, "asyncio", SimpleNamespace(sleep=sleep))
    for _ in range(5):
        review.add(tcp_layer())
    reviewed(review)
    assert pauses == [0, 0]
    review.usage.active = True
    review.loop.second()
    review.loop.finish()
    assert pauses == [0] * 4
