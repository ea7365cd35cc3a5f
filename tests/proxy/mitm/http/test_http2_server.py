"""The client's side of HTTP/2 frame by frame: requests that promise content, early hints, error pages, heads in parts, bounds."""

from types import SimpleNamespace
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, ResponseHeaders, ResponseProtocolError

from gatewayfilter.proxy.mitm.hooks import HeadBegunHook, HeadDoneHook, UnreadableRequestHook
from gatewayfilter.proxy.mitm.http import frame_budget, head_budget, http2_bounds
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES, HeadBudget
from gatewayfilter.proxy.mitm.http.http2_bounds import BoundedHttp2Server
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.pages.block_page import BlockPages

PAGES = BlockPages()
NAMES = {HeadBegunHook: "begun", HeadDoneHook: "done", UnreadableRequestHook: "unreadable"}


class Side:
    """The client's side of a connection, and a client of h2's.

    Attributes:
        hooks: what was told of heads.
        received: kinds of events for the layers behind.
        seen: events that the client has read.
    """

    def __init__(self, *, begun: bool = True) -> None:
        conn = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2), state=ConnectionState.OPEN)
        options: Any = SimpleNamespace(validate_inbound_headers=True, normalize_outbound_headers=True, http2_ping_keepalive=0)
        context = Context(conn, options)
        self.parent: Any = object.__new__(http_layers.HttpLayer)
        self.parent.streams, self.parent.connections = {}, {}
        context.layers.append(self.parent)
        self.layer = GatewayHttp2Server(ErrorAnswers(PAGES), context)
        self.conn = conn
        self.client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.hooks: list[str] = []
        self.received: list[str] = []
        self.seen: list[h2.events.Event] = []
        self.closed = False
        self.client.initiate_connection()
        self.handles(events.Start())
        if begun:
            self.says()
            self.hooks.clear()

    def handles(self, event: events.Event) -> None:
        self._do(self.layer.handle_event(event))

    def _do(self, coming: Any) -> None:
        for command in coming:
            if isinstance(command, commands.SendData):
                self.seen += self.client.receive_data(command.data)
            elif isinstance(command, ReceiveHttp):
                self.received.append(type(command.event).__name__)
            elif isinstance(command, commands.CloseConnection):
                self.closed = True
            elif type(command) in NAMES:
                self.hooks.append(NAMES[type(command)])

    def says(self, data: bytes | None = None) -> None:
        """Lets bytes come, by default those of the client."""
        self.handles(events.DataReceived(self.conn, self.client.data_to_send() if data is None else data))

    def asks(self, *fields: tuple[str, str], ends: bool = True) -> int:
        number = self.client.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "https"), (":authority", "site.example"), (":path", "/page"), *fields]
        self.client.send_headers(number, head, end_stream=ends)
        self.says()
        return number

    def fails(self, number: int, code: ErrorCode = ErrorCode.CONNECT_FAILED) -> list[str]:
        """Lets a request fail. Returns what the client sees."""
        self.seen.clear()
        self.handles(ResponseProtocolError(number, "it cannot be reached", code))
        return [type(event).__name__ for event in self.seen]

    def hints(self, number: int) -> None:
        self.seen.clear()
        self._do(self.layer.send_hints(number, [b"</a.css>", b"</b.js>"]))


@pytest.mark.parametrize(
    ("length", "ends", "taken"), [("5", True, False), ("0", True, True), ("5", False, True), (None, True, True)]
)
def test_a_request_without_the_content_that_it_promises_is_reset(length: str | None, *, ends: bool, taken: bool) -> None:
    side = Side()
    number = side.asks(*([("content-length", length)] if length is not None else []), ends=ends)
    assert ("RequestHeaders" in side.received, side.hooks) == (taken, [] if taken else ["unreadable"])
    resets = [(event.stream_id, event.error_code) for event in side.seen if isinstance(event, h2.events.StreamReset)]
    assert resets == ([] if taken else [(number, 1)])
    side.received.clear()
    side.asks()
    assert ("RequestHeaders" in side.received, side.closed) == (True, False)


def test_early_hints_come_before_the_answer_alone() -> None:
    side = Side()
    number = side.asks()
    side.hints(number)
    (event,) = side.seen
    assert isinstance(event, h2.events.InformationalResponseReceived)
    assert event.headers == [(b":status", b"103"), (b"link", b"</a.css>"), (b"link", b"</b.js>")]
    side.hints(number + 2)
    assert side.seen == []
    side.handles(ResponseHeaders(number, http.Response.make(200)))
    side.hints(number)
    assert side.seen == []


@pytest.mark.parametrize("ends", [True, False])
def test_a_request_that_fails_gets_a_page_and_is_over(*, ends: bool) -> None:
    side = Side()
    number = side.asks(ends=ends)
    seen = side.fails(number)
    assert seen == ["ResponseReceived", "DataReceived", "DataReceived", "StreamEnded"] + ["StreamReset"] * (not ends)
    head, body, *_ = side.seen
    assert isinstance(head, h2.events.ResponseReceived)
    assert isinstance(body, h2.events.DataReceived)
    assert (b":status", b"502") in (head.headers or [])
    assert b"<html" in (body.data or b"")
    assert [event.error_code for event in side.seen if isinstance(event, h2.events.StreamReset)] == [0] * (not ends)


def test_the_page_is_in_the_language_of_the_request() -> None:
    bodies = []
    for language in ("zh-CN", None):
        side = Side()
        number = side.asks()
        if language is not None:
            request = http.Request.make("GET", "https://site.example/")
            request.headers["accept-language"] = language
            side.parent.streams[number] = SimpleNamespace(flow=SimpleNamespace(request=request))
        side.fails(number)
        bodies.append(b"".join(event.data or b"" for event in side.seen if isinstance(event, h2.events.DataReceived)))
    assert [b'lang="zh' in body for body in bodies] == [True, False]


def test_what_has_no_page_is_reset() -> None:
    side = Side()
    assert side.fails(side.asks(), ErrorCode.KILL) == ["StreamReset"]
    number = side.asks()
    side.handles(ResponseHeaders(number, http.Response.make(200)))
    assert side.fails(number) == ["StreamReset"]
    assert side.fails(number) == []


def test_a_beginning_that_comes_in_parts_is_timed() -> None:
    side = Side(begun=False)
    data = side.client.data_to_send()
    for part, hooks in ((data[:10], ["begun"]), (data[10:20], []), (data[20:], ["done"])):
        side.hooks.clear()
        side.says(part)
        assert side.hooks == hooks


def test_a_head_that_comes_in_parts_is_timed() -> None:
    side = Side()
    number = side.client.get_next_available_stream_id()
    fields = [(":method", "POST"), (":scheme", "https"), (":authority", "site.example"), (":path", "/")]
    side.client.send_headers(number, fields)
    data = side.client.data_to_send()
    for part, hooks in ((data[:1], ["begun"]), (data[1:12], []), (data[12:], ["done"])):
        side.hooks.clear()
        side.says(part)
        assert side.hooks == hooks
    side.client.send_data(number, b"some of its body")
    data = side.client.data_to_send()
    for part, hooks in ((data[:3], ["begun"]), (data[3:4], ["done"]), (data[4:12], []), (data[12:], [])):
        side.hooks.clear()
        side.says(part)
        assert side.hooks == hooks
    block = b"\x00\x01x\x01y"
    unfinished = len(block).to_bytes(3) + b"\1\0" + (number + 2).to_bytes(4) + block
    for part, hooks in ((unfinished, ["begun"]), (len(block).to_bytes(3) + b"\x09\4", [])):
        side.hooks.clear()
        side.says(part)
        assert side.hooks == hooks


def test_what_the_client_is_told_of_its_bounds() -> None:
    side = Side()
    assert side.client.remote_settings.max_frame_size == side.client.max_outbound_frame_size == 16_384
    assert side.layer.h2_conn.max_inbound_frame_size == 16_384
    assert side.layer.h2_conn._closed_streams._size_limit == 1_000  # type: ignore[attr-defined]


def test_what_waits_is_sent_once_for_each_read(monkeypatch: pytest.MonkeyPatch) -> None:
    side, sent = Side(), list[str]()
    monkeypatch.setattr(side.layer, "_send_waiting", lambda: sent.append("sent"))
    for reads in (1, 2):
        for _ in range(3):
            side.client.increment_flow_control_window(1_000)
        side.says()
        assert len(sent) == reads


def test_late_frames_end_a_connection_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    side = Side()
    number = side.asks(ends=False)
    side.client.reset_stream(number)
    side.says()
    side.layer._calls_left = 1
    late = b"\0\0\1\0\0" + number.to_bytes(4) + b"x"
    closed = []
    for _ in range(2):
        side.says(late)
        closed.append(side.closed)
    assert closed == [False, True]
    assert [event.error_code for event in side.seen if isinstance(event, h2.events.ConnectionTerminated)] == [11]


def test_what_comes_behind_a_flood_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_budget, "CALLS_A_SECOND", 0.0)
    side = Side()
    for number in range(1_100):
        side.client.ping(number.to_bytes(8))
    side.received.clear()
    side.asks()  # in the same read
    assert (side.received, side.closed) == ([], True)


def test_parts_of_uploads_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int | None] = []
    monkeypatch.setattr(http2_bounds, "note_upload", lambda _, number: noted.append(number))
    side = Side()
    number = side.asks(ends=False)
    assert noted == []
    for _ in range(2):
        side.client.send_data(number, b"x")
        side.says()
    assert noted == [number, number]


@pytest.mark.parametrize(
    ("data", "frames", "held", "too_much"),
    [
        (FREE_BYTES, [], 0, False),
        (FREE_BYTES + 1, [], FREE_BYTES + 1, False),
        (0, [FREE_BYTES, 1], FREE_BYTES + 1, False),
        (5_000, [2_500, 2_500], 10_000, False),
        (5_000, [2_500, 2_501], 0, True),
    ],
)
def test_heads_that_are_kept_are_bounded(
    data: int, frames: list[int], held: int, monkeypatch: pytest.MonkeyPatch, *, too_much: bool
) -> None:
    monkeypatch.setattr(head_budget, "_HEADS", budget := HeadBudget(most_of_client=10_000))
    server: Any = object.__new__(BoundedHttp2Server)
    server.context = SimpleNamespace(client=Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2)))
    buffer = SimpleNamespace(_data=bytes(data), _headers_buffer=[SimpleNamespace(data=bytes(size)) for size in frames])
    for _ in range(2):
        assert server._keeps_too_much(SimpleNamespace(incoming_buffer=buffer)) is too_much
        assert budget.held == held
    buffer._data, buffer._headers_buffer = b"", []
    assert server._keeps_too_much(SimpleNamespace(incoming_buffer=buffer)) is False
    assert budget.held == 0
