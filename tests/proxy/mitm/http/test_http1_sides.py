"""Both sides of an HTTP/1 connection by themselves: what each event is answered with, at its bounds."""

from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)

from gatewayfilter.proxy.listener.protocol_detection import MOST_BLANK_BYTES
from gatewayfilter.proxy.mitm.hooks import HeadBegunHook, HeadDoneHook, Http2NeededHook, UnreadableRequestHook
from gatewayfilter.proxy.mitm.http import head_budget, http1_bounds, http1_client, http1_server
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.sharing import Adopted, Sharing, note_sharing
from gatewayfilter.proxy.pages.block_page import BlockPages
from tests.case_tables import all_cases

OPTIONS, ERRORS = Options(), ErrorAnswers(BlockPages())
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def told(done: list[Any]) -> list[object]:
    """Returns commands in short: kinds of events, bytes, names of others."""
    found: list[object] = []
    for one in done:
        if isinstance(one, ReceiveHttp):
            found.append(type(one.event).__name__)
        elif isinstance(one, commands.SendData):
            found.append(one.data)
        elif isinstance(one, commands.CloseTcpConnection):
            found.append("half closed" if one.half_close else "closed")
        elif isinstance(one, commands.CloseConnection):
            found.append("closed")
        else:
            found.append(type(one).__name__)
    return found


def context_of() -> Context:
    client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), state=ConnectionState.OPEN)
    context = Context(client, OPTIONS)
    context.server = Server(address=("site.example", 80))
    context.server.state = ConnectionState.OPEN
    return context


class Origin:
    """The origin's side."""

    def __init__(self, *, tls: bool = False, sharing: Sharing | None = None) -> None:
        self.context = context_of()
        self.conn = self.context.server
        self.conn.tls = tls
        if sharing is not None:
            note_sharing(self.conn, sharing)
        self.side = GatewayHttp1Client(self.context)
        self.happens(events.Start())

    def happens(self, event: events.Event) -> list[object]:
        self.last: list[Any] = list(self.side.handle_event(event))
        return told(self.last)

    def comes(self, data: bytes) -> list[object]:
        return self.happens(events.DataReceived(self.conn, data))

    def end(self) -> list[object]:
        self.conn.state &= ~ConnectionState.CAN_READ
        return self.happens(events.ConnectionClosed(self.conn))

    def asks(
        self, method: str = "GET", stream: int = 1, *, body: bool = False, version: str = "HTTP/1.1", **fields: Any
    ) -> list[object]:
        request = http.Request.make(method, "http://site.example/x")
        request.headers = http.Headers((), **fields)
        request.http_version = version
        if version != "HTTP/1.1":
            request.authority = "site.example"
        self.request = request
        sent = self.happens(RequestHeaders(stream, request, end_stream=not body))
        return sent if body else sent + self.happens(RequestEndOfMessage(stream))

    def answers(self) -> None:
        self.comes(OK)

    def message(self) -> str:
        """Returns why the connection was given up."""
        (event,) = [one.event for one in self.last if isinstance(one, ReceiveHttp)]
        assert isinstance(event, ResponseProtocolError)
        return event.message


def test_a_request_is_answered_and_the_next_one_takes_its_place() -> None:
    origin = Origin()
    sides = [origin.side.has_answered]
    assert origin.asks(host="site.example") == [b"GET /x HTTP/1.1\r\nhost: site.example\r\n\r\n"]
    assert [*sides, origin.side.has_answered] == [False, True]
    assert origin.comes(OK) == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]
    assert origin.asks(stream=3, host="b")[0] == b"GET /x HTTP/1.1\r\nhost: b\r\n\r\n"
    assert origin.comes(OK[:9]) == []
    assert origin.comes(OK[9:]) == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]


def test_a_request_of_http2_is_written_as_one_of_http1() -> None:
    plain = Origin().asks(version="HTTP/2.0")
    assert plain == [b"GET /x HTTP/1.1\r\nHost: site.example\r\n\r\n"]
    assert b"Host: site.example" not in Origin().asks(version="HTTP/2.0", host="other")[0]  # type: ignore[operator]
    body = Origin().asks("POST", body=True, version="HTTP/2.0")[0]
    assert body == b"POST /x HTTP/1.1\r\nHost: site.example\r\ntransfer-encoding: chunked\r\n\r\n"
    known = Origin().asks("POST", body=True, version="HTTP/2.0", content_length="5")[0]
    assert b"chunked" not in known  # type: ignore[operator]
    assert b"chunked" not in Origin().asks("POST", body=True)[0]  # type: ignore[operator]


@all_cases(
    ("ask", "bound"),
    [
        ({}, False),
        ({"method": "HEAD"}, False),
        ({"method": "DELETE"}, True),
        ({"body": True, "content_length": "5"}, True),
        ({"body": True}, True),
        ({"authorization": "NTLM x"}, True),
        ({"authorization": "Basic x"}, False),
        ({"upgrade": "websocket"}, True),
    ],
)
def test_which_requests_bind_their_connection(ask: dict[str, Any], *, bound: bool) -> None:
    sharing = Sharing(None, may_adopt=True)
    origin = Origin(sharing=sharing)
    origin.asks(**ask)
    assert sharing.bound == bound


def test_a_connection_that_was_closed_instead_of_an_answer() -> None:
    for ask, came, stale in (
        ({}, b"", True),
        ({"method": "HEAD"}, b"", True),
        ({"method": "POST"}, b"", False),
        ({"body": True, "content_length": "1"}, b"", False),
        ({}, b"HTTP/1.1", False),
    ):
        origin = Origin()
        origin.asks()
        origin.answers()
        origin.asks(stream=3, **ask)
        if came:
            origin.comes(came)
        done = origin.end()
        assert ("ConnectionWasStale" in done) == stale
        assert not stale or done == ["closed", "ConnectionWasStale"]
    first = Origin()
    first.asks()
    assert first.end() == ["closed", "ResponseProtocolError"], "the first request is not repeated"
    adopted = Origin(sharing=Sharing(None, may_adopt=True, adopted=Adopted(Server(address=None), None, (), 0.0, 0.0)))
    adopted.asks()
    assert adopted.end() == ["closed", "ConnectionWasStale"], "another client's request came before"
    assert adopted.side.state == adopted.side.done
    gone = Origin()
    gone.asks()
    gone.answers()
    gone.asks(stream=3)
    gone.conn.state = ConnectionState.CAN_READ
    assert gone.end() == ["ConnectionWasStale"]
    idle = GatewayHttp1Client.idle(context_of())
    assert (idle.has_answered, idle.state == idle.read_headers) == (True, True)


SETTINGS = b"\0\0\x12\4\0\0\0\0\0"


def test_an_origin_that_answers_by_http2() -> None:
    for method, body, again in (("GET", False, True), ("POST", False, False), ("GET", True, False)):
        origin = Origin(tls=True)
        origin.asks(method, body=body, **dict[str, Any]({"content_length": "5"} if body else {}))
        assert origin.comes(SETTINGS[:8]) == []
        assert origin.comes(SETTINGS[8:]) == [
            *("Http2NeededHook", "closed", "ConnectionWasStale" if again else "ResponseProtocolError"),
        ]
        assert isinstance(origin.last[0], Http2NeededHook)
        assert (origin.side.state == origin.side.done, origin.last[2].event.message) == (True, "the origin has HTTP/2 alone")
    for tls, alpn, data in (
        (False, None, SETTINGS),
        (True, b"http/1.1", SETTINGS),
        (True, None, b"\0\0\x12\5" + SETTINGS[4:]),
        (True, None, b"\1" + SETTINGS[1:]),
    ):
        other = Origin(tls=tls)
        other.conn.alpn = alpn
        other.asks()
        assert "Http2NeededHook" not in other.comes(data + b"\r\n\r\n")
    later = Origin(tls=True)
    later.asks()
    later.answers()
    later.asks(stream=3)
    assert "Http2NeededHook" not in later.comes(SETTINGS + b"\r\n\r\n")
    assert Origin(tls=True).comes(SETTINGS)[0] != "Http2NeededHook"


@all_cases(
    ("head", "why"),
    [
        (b"HTTP/1.1 200 OK", ""),
        (b"HTTP/1.0 999 X", ""),
        (b"HTTP/1.2 200 OK", "the first line of its answer is none of HTTP/1"),
        (b"HTTP/2.0 200 OK", "the first line of its answer is none of HTTP/1"),
        (b"HTTP/1.1 1000 X", "the first line of its answer is none of HTTP/1"),
        (b"HTTP/1.1 99 X", "the first line of its answer is none of HTTP/1"),
        (b"HTTP/1.1 101 X", "it switches to a protocol that was not requested"),
    ],
)
def test_first_lines_of_answers(head: bytes, why: str) -> None:
    origin = Origin()
    origin.asks()
    done = origin.comes(head + b"\r\nContent-Length: 0\r\n\r\n")
    if why:
        assert (done, origin.message()) == (["closed", "ResponseProtocolError"], why)
    else:
        assert done[0] == "ResponseHeaders"


def test_interim_answers_are_passed_over_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_client, "_MOST_INTERIM", 3)
    interim = b"HTTP/1.1 102 P\r\n\r\n"
    origin = Origin()
    origin.asks()
    assert origin.comes(interim + b"HTTP/1.0 100\r\n\r\nHTTP/1.1 1") == []
    assert origin.comes(b"99 X\r\nA: b\r\n\r\n") == []
    assert origin.comes(OK) == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]
    origin.asks(stream=3)
    assert origin.comes(interim * 3) == []
    assert origin.comes(interim) == ["closed", "ResponseProtocolError"]
    assert origin.message() == "it sends interim responses without end"


def test_early_hints_go_to_a_client_that_waits_for_them() -> None:
    origin, hinted = Origin(), list[Any]()
    client = object.__new__(GatewayHttp1Server)

    def send_hints(stream: int, links: list[bytes]) -> list[commands.Command]:
        hinted.append((stream, list(links)))
        return []

    vars(client)["send_hints"] = send_hints
    top: Any = object.__new__(HttpLayer)
    top.context, top.connections = origin.context, {origin.context.client: client}
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX: y\r\nLINK:</b> \r\n\r\n"
    for layers, expected in (([], []), ([top], [(1, [b"</a>", b"</b>"])])):
        origin = Origin()
        origin.context.layers = layers
        top.context, top.connections = origin.context, {origin.context.client: client}
        origin.asks()
        origin.comes(hint)
        assert hinted == expected
    hinted.clear()
    origin.comes(b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\nHTTP/1.1 102 P\r\nLink: </a>\r\n\r\n")
    top.connections = {}
    origin.comes(hint)
    assert hinted == []


def test_heads_of_answers_are_bounded() -> None:
    head = b"HTTP/1.1 200 OK\r\nX: "
    origin = Origin()
    origin.asks()
    assert origin.comes(head + b"x" * (http1_bounds.MAX_HEADER_BYTES - len(head))) == []
    assert origin.comes(b"x") == ["closed", "ResponseProtocolError"]
    assert origin.message() == "the head of its answer is too large"
    whole = Origin()
    whole.asks()
    body = b"x" * 300_000
    done = whole.comes(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + body)
    assert done == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]


def test_what_comes_behind_an_answer_while_its_request_is_sent() -> None:
    origin = Origin()
    origin.asks("POST", body=True, content_length="5")
    assert origin.comes(OK) == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]
    assert (origin.comes(b"x"), origin.message()) == (["closed", "ResponseProtocolError"], "it sent more than its response")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def pieces(done: list[Any]) -> list[object]:
    return [
        one.event.data if isinstance(one.event, ResponseData) else type(one.event).__name__
        for one in done
        if isinstance(one, ReceiveHttp)
    ]


def test_chunks_that_came_together_are_one_piece() -> None:
    origin = Origin()
    origin.asks()
    origin.comes(CHUNKED)
    origin.comes(b"1\r\na\r\n2\r\nbc\r\n3\r\nd")
    assert pieces(origin.last) == [b"abcd"]
    origin.comes(b"ef\r\n0\r\nX-Sum: 7\r\n\r\n")
    assert pieces(origin.last) == [b"ef", "ResponseTrailers", "ResponseEndOfMessage"]
    trailers = origin.last[1].event.trailers
    assert dict(trailers) == {"x-sum": "7"}
    wrong = Origin()
    wrong.asks()
    wrong.comes(CHUNKED)
    wrong.comes(b"1\r\na\r\n1\r\nb\r\nz\r\n")
    assert pieces(wrong.last) == [b"ab", "ResponseProtocolError"]
    long = Origin()
    long.asks()
    long.comes(CHUNKED + b"0\r\nX: ")
    long.comes(b"x" * (http1_bounds.MAX_HEADER_BYTES - 200))
    assert "closed" not in told(long.last)
    long.comes(b"x" * 300)
    assert long.message() == "a chunk's head or the trailers are too large"


def test_trailers_of_a_request_follow_its_last_chunk() -> None:
    cases: list[tuple[dict[str, Any], bytes | None]] = [
        ({"transfer_encoding": "chunked"}, b"0\r\nX-Sum: 7\r\nY: z\r\n\r\n"),
        ({"content_length": "1"}, None),
    ]
    for fields, last in cases:
        origin = Origin()
        origin.asks("POST", body=True, **fields)
        origin.happens(RequestData(1, b"a"))
        assert origin.happens(RequestTrailers(1, http.Headers([(b"X-Sum", b"7"), (b"Y", b"z")]))) == []
        assert origin.happens(RequestEndOfMessage(1)) == ([last] if last else [])
        origin.answers()
        origin.asks("POST", stream=3, body=True, transfer_encoding="chunked")
        assert origin.happens(RequestEndOfMessage(3)) == [b"0\r\n\r\n"], "they are sent once"


def test_what_one_client_keeps_unread_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_budget, "_HEADS", head_budget.HeadBudget(30_000, 30_000))
    first, second = Origin(), Origin()
    for origin in (first, second):
        origin.asks()
    assert first.comes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000) == []
    assert second.comes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 8_000) == []
    assert second.comes(b"x" * 10_000) == ["closed", "ResponseProtocolError"]


class Visitor:
    """The client's side."""

    def __init__(self) -> None:
        self.context = context_of()
        self.conn = self.context.client
        self.side = GatewayHttp1Server(ERRORS, self.context)
        self.happens(events.Start())

    def happens(self, event: events.Event) -> list[object]:
        self.last: list[Any] = list(self.side.handle_event(event))
        return told(self.last)

    def comes(self, data: bytes) -> list[object]:
        return self.happens(events.DataReceived(self.conn, data))

    def answer(self, status: int = 200, version: str = "HTTP/1.1", **fields: str) -> bytes:
        response = http.Response.make(status)
        response.headers, response.http_version = http.Headers((), **fields), version
        self.response = response
        (sent,) = self.happens(ResponseHeaders(self.side.stream_id or 0, response, end_stream=False))
        assert isinstance(sent, bytes)
        return sent

    def fails(self, code: ErrorCode = ErrorCode.GENERIC_SERVER_ERROR) -> list[object]:
        return self.happens(ResponseProtocolError(self.side.stream_id or 0, "no answer", code))


GET = b"GET http://site.example/ HTTP/1.1\r\nHost: site.example\r\n\r\n"
POST = b"POST http://site.example/ HTTP/1.1\r\nHost: site.example\r\nContent-Length: 4\r\n\r\n"


def test_line_ends_before_a_request_are_passed_over_within_a_bound() -> None:
    visitor = Visitor()
    assert visitor.comes(b"\r\n\r\n") == []
    assert visitor.comes(b"\n" + GET) == ["RequestHeaders", "RequestEndOfMessage"]
    many = Visitor()
    most = MOST_BLANK_BYTES
    assert many.comes(b"\n" * most) == []
    page, *rest = many.comes(b"\n")  # over all reads before a request
    assert (page[:12], rest) == (b"HTTP/1.1 400", ["closed", "UnreadableRequestHook"])  # type: ignore[index]
    assert isinstance(many.last[2], UnreadableRequestHook)
    assert many.side.state == many.side.done
    again = Visitor()
    for _ in range(3):
        assert again.comes(b"\n" * most + GET)[0] == "RequestHeaders"
        again.answer(content_length="0")
        again.happens(ResponseEndOfMessage(again.side.stream_id or 0))


def test_the_time_of_a_head_that_comes_in_parts_is_limited() -> None:
    visitor = Visitor()
    assert visitor.comes(GET[:9]) == ["HeadBegunHook"]
    assert visitor.comes(GET[9:20]) == []
    assert visitor.comes(GET[20:]) == ["RequestHeaders", "RequestEndOfMessage", "HeadDoneHook"]
    assert isinstance(visitor.last[2], HeadDoneHook)
    visitor.answer(content_length="0")
    visitor.happens(ResponseEndOfMessage(1))
    assert visitor.comes(GET) == ["RequestHeaders", "RequestEndOfMessage"]
    visitor.answer(content_length="0")
    visitor.happens(ResponseEndOfMessage(3))
    assert visitor.comes(b"G") == ["HeadBegunHook"]
    assert isinstance(visitor.last[0], HeadBegunHook)


def test_requests_of_other_versions_are_refused() -> None:
    for version, taken in ((b"HTTP/1.0", True), (b"HTTP/1.2", False), (b"HTTP/2.0", False), (b"HTTP/0.9", False)):
        visitor = Visitor()
        done = visitor.comes(GET.replace(b"HTTP/1.1", version))
        if taken:
            assert done == ["RequestHeaders", "RequestEndOfMessage"]
        else:
            assert (done[0][:12], done[1:]) == (b"HTTP/1.1 505", ["closed", "UnreadableRequestHook"])  # type: ignore[index]
            assert visitor.side.state == visitor.side.done


def test_heads_of_requests_are_bounded() -> None:
    visitor, head = Visitor(), b"GET http://site.example/ HTTP/1.1\r\nX: "
    assert visitor.comes(head + b"x" * (http1_bounds.MAX_HEADER_BYTES - len(head))) == ["HeadBegunHook"]
    page, *rest = visitor.comes(b"x")
    assert (page[:12], rest) == (b"HTTP/1.1 431", ["closed", "UnreadableRequestHook"])  # type: ignore[index]
    ahead = Visitor()
    ahead.comes(GET)
    assert ahead.comes(b"x" * http1_bounds.MAX_HEADER_BYTES) == []
    assert ahead.comes(b"x") == ["closed", "RequestProtocolError"]
    assert ahead.last[1].event.message == "too much was sent ahead of the answer"


def test_answers_have_the_framing_of_the_clients_version() -> None:
    def framed(request: bytes, status: int = 200, version: str = "HTTP/1.1", **fields: str) -> bytes:
        visitor = Visitor()
        visitor.comes(request)
        return visitor.answer(status, version, **fields)

    old = GET.replace(b"HTTP/1.1", b"HTTP/1.0")
    assert framed(old, transfer_encoding="chunked").endswith(b"\r\nconnection: close\r\n\r\n")
    assert b"connection" not in framed(old, content_length="5")
    assert b"chunked" in framed(GET, transfer_encoding="chunked")
    assert framed(GET, version="HTTP/2.0").endswith(b"transfer-encoding: chunked\r\n\r\n")
    for request, status, fields in (
        (GET, 200, {"content_length": "5"}),
        (GET, 204, {}),
        (GET, 304, {}),
        (GET.replace(b"GET", b"HEAD"), 200, {}),
        (old, 200, {}),
    ):
        assert b"chunked" not in framed(request, status, "HTTP/2.0", **fields)
    assert b"chunked" not in framed(GET)


def test_early_hints_of_an_origin_reach_clients_of_http_1_1() -> None:
    def hints(visitor: Visitor, stream: int = 1) -> list[object]:
        return told(list(visitor.side.send_hints(stream, [b"</a>", b"</b>"])))

    visitor = Visitor()
    assert hints(visitor) == []
    visitor.comes(GET)
    assert hints(visitor) == [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n"]
    assert hints(visitor, 3) == []
    visitor.answer(content_length="0")
    assert hints(visitor) == []
    old = Visitor()
    old.comes(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert hints(old) == []


def test_requests_that_fail_are_answered_with_a_page() -> None:
    visitor = Visitor()
    visitor.comes(GET)
    page, end = visitor.fails()
    assert (page[:12], end) == (b"HTTP/1.1 502", "closed")  # type: ignore[index]
    assert b"connection: close" in page  # type: ignore[operator]
    answered = Visitor()
    answered.comes(GET)
    answered.answer(content_length="9")
    assert answered.fails() == ["closed"]
    silent = Visitor()
    silent.comes(GET)
    assert silent.fails(ErrorCode.KILL) == ["closed"]
    gone = Visitor()
    gone.comes(GET)
    gone.conn.state = ConnectionState.CAN_READ
    assert gone.fails() == []
    unasked = Visitor()
    assert unasked.fails()[1:] == ["closed"]


def test_the_rest_of_a_refused_upload_is_dropped_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_server, "_THROW_AWAY_BYTES", 3)
    visitor = Visitor()
    visitor.comes(POST)
    page, half = visitor.fails()
    assert (page[:12], half) == (b"HTTP/1.1 502", "half closed")  # type: ignore[index]
    assert visitor.fails() == ["closed"], "one page is enough"
    assert visitor.comes(b"ab") == visitor.comes(b"c") == []
    assert (visitor.comes(b"d"), visitor.side.state == visitor.side.done) == (["closed"], True)
    left = Visitor()
    left.comes(POST)
    left.fails()
    assert left.happens(events.ConnectionClosed(left.conn)) == ["closed"]


def test_an_upload_that_is_ahead_of_its_stream_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[object] = []
    monkeypatch.setattr(http1_server, "note_upload", lambda context, stream: noted.append((context, stream)))
    visitor = Visitor()
    visitor.comes(POST)
    assert visitor.comes(b"ab") == ["RequestData"]
    assert noted[-1:] == [(visitor.context, 1)]
    noted.clear()
    assert visitor.comes(b"cd") == ["RequestData", "RequestEndOfMessage"]
    assert noted == []


def test_what_upgrades_of_an_answer_need() -> None:
    key, accept = "dGhlIHNhbXBsZSBub25jZQ==", b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    asked: dict[str, Any] = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec_websocket_key": key,
        "sec_websocket_version": "13",
    }
    answer = b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + accept
    origin = Origin()
    origin.asks(**asked)
    assert origin.comes(answer)[0] == "ResponseHeaders"
    other = Origin()
    other.asks(**{**asked, "sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert other.comes(answer) == ["closed", "ResponseProtocolError"]
