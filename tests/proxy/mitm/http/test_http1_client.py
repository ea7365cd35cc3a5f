"""The origin's side of HTTP/1 by what it reads: interim responses, HTTP/2 in its place, first lines, stale connections."""

from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import RequestEndOfMessage, RequestHeaders, ResponseHeaders, ResponseProtocolError

from gatewayfilter.proxy.mitm import stale_retry
from gatewayfilter.proxy.mitm.hooks import Http2NeededHook
from gatewayfilter.proxy.mitm.http import http1_client
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from tests.case_tables import all_cases

SETTINGS = b"\0\0\x12\4\0\0\0\0\0"
OK = b"HTTP/1.1 204 OK\r\n\r\n"
OPTIONS = Options()


class Side:
    """The side of an origin's connection."""

    def __init__(self, *, tls: bool = False, alpn: bytes | None = None, idle: bool = False) -> None:
        client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), state=ConnectionState.OPEN)
        context = Context(client, OPTIONS)
        context.server = self.server = Server(address=("site.example", 443))
        self.server.state, self.server.tls, self.server.alpn = ConnectionState.OPEN, tls, alpn
        self.layer: Any = GatewayHttp1Client.idle(context) if idle else GatewayHttp1Client(context)
        if not idle:
            list(self.layer.handle_event(events.Start()))

    def asks(self, number: int = 1, method: str = "GET", *, ends: bool = True) -> "Side":
        request = http.Request.make(method, "https://site.example/")
        list(self.layer.send(RequestHeaders(number, request, end_stream=ends)))
        if ends:
            list(self.layer.send(RequestEndOfMessage(number)))
        return self

    def comes(self, data: bytes) -> list[Any]:
        return list(self.layer.handle_event(events.DataReceived(self.server, data)))

    def ends(self) -> list[Any]:
        self.server.state &= ~ConnectionState.CAN_READ
        return list(self.layer.handle_event(events.ConnectionClosed(self.server)))


def received(made: list[Any]) -> list[Any]:
    return [command.event for command in made if isinstance(command, ReceiveHttp)]


def status(made: list[Any]) -> list[int]:
    return [event.response.status_code for event in received(made) if isinstance(event, ResponseHeaders)]


def closes(made: list[Any]) -> bool:
    return any(isinstance(command, commands.CloseConnection) for command in made)


@all_cases(
    ("line", "interim"),
    [
        (b"HTTP/1.1 100 Continue", True),
        (b"HTTP/1.1 103 Early Hints", True),
        (b"HTTP/1.0 199", True),
        (b"HTTP/1.1 199\r", True),
        (b"HTTP/1.1 102 x\ry", True),
        (b"HTTP/1.1 199\rx", False),
        (b"HTTP/1.1\t102\tx", True),
        (b"HTTP/1.1      102 x", True),
        (b"HTTP/1.1" + b" " * 7 + b"102 x", True),
        (b"HTTP/1.1" + b" " * 8 + b"102 x", False),
        (b"HTTP/1.1 101 Switching Protocols", False),
        (b"HTTP/1.1 200 1xx", False),
        (b"HTTP/1.1 1000", False),
        (b"HTTP/2 100 Continue", False),
    ],
)
def test_which_responses_another_one_follows(line: bytes, *, interim: bool) -> None:
    side = Side().asks()
    made = side.comes(line + b"\r\n\r\n" + OK)
    assert (status(made) == [204]) is interim


def test_an_interim_response_may_come_in_parts() -> None:
    side = Side().asks()
    for part in (b"HTTP/1.1 1", b"03 Early", b" Hints\r\nLink: </a>\r\n", b"\r"):
        assert side.comes(part) == []
    assert side.comes(b"\n") == []
    assert status(side.comes(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 OK\r\n\r\n")) == [204]


def test_so_many_interim_responses_come_for_one_request() -> None:
    most = http1_client._MOST_INTERIM
    side, interim = Side().asks(), b"HTTP/1.1 100 Continue\r\n\r\n"
    assert side.comes(interim * (most - 1)) == []
    assert status(side.comes(interim + OK)) == [204]
    side.asks(3)
    assert status(side.comes(interim * most + OK)) == [204], "they are counted for each request"
    side.asks(5)
    made = side.comes(interim * (most + 1) + OK)
    (event,) = received(made)
    assert (closes(made), isinstance(event, ResponseProtocolError)) == (True, True)
    assert "without end" in event.message


@all_cases(
    ("tls", "alpn", "begun", "needed"),
    [
        (True, None, SETTINGS, True),
        (True, b"", SETTINGS, True),
        (True, None, SETTINGS + bytes(18), True),
        (True, b"http/1.1", SETTINGS, False),
        (False, None, SETTINGS, False),
        (True, None, SETTINGS[:8], False),
        (True, None, b"\1" + SETTINGS[1:], False),
        (True, None, SETTINGS[:3] + b"\0" + SETTINGS[4:], False),
        (True, None, SETTINGS[:4] + b"\1" + SETTINGS[5:], False),
    ],
)
def test_an_origin_that_begins_with_http2(tls: bool, alpn: bytes | None, begun: bytes, needed: bool) -> None:  # noqa: FBT001
    side = Side(tls=tls, alpn=alpn).asks()
    made = side.comes(begun)
    assert any(isinstance(command, Http2NeededHook) for command in made) is needed
    if needed:
        (event,) = received(made)
        assert (closes(made), type(event)) == (True, stale_retry.ConnectionWasStale)
        assert side.comes(SETTINGS) == []


@all_cases(("method", "ends"), [("GET", False), ("POST", True)])
def test_what_cannot_be_sent_again_fails_where_the_origin_has_http2_alone(method: str, *, ends: bool) -> None:
    made = Side(tls=True).asks(method=method, ends=ends).comes(SETTINGS)
    (event,) = received(made)
    assert (type(event), event.message) == (ResponseProtocolError, "the origin has HTTP/2 alone")


def test_only_the_first_answer_may_begin_http2() -> None:
    side = Side(tls=True).asks()
    assert status(side.comes(OK)) == [204]
    assert not any(isinstance(command, Http2NeededHook) for command in side.asks(3).comes(SETTINGS))
    assert not any(isinstance(command, Http2NeededHook) for command in Side(tls=True, idle=True).asks().comes(SETTINGS))


@all_cases(
    ("line", "known"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.0 200 OK", True),
        (b"HTTP/1.1 999 x", True),
        (b"HTTP/1.2 200 OK", False),
        (b"HTTP/2.0 200 OK", False),
        (b"HTTP/1.1 1000 x", False),
        (b"HTTP/1.1 99 x", False),
    ],
)
def test_which_first_lines_are_taken(line: bytes, *, known: bool) -> None:
    made = Side().asks().comes(line + b"\r\nContent-Length: 0\r\n\r\n")
    assert bool(status(made)) is known
    assert closes(made) or known


@pytest.mark.parametrize(
    ("idle", "before", "method", "whole", "partial", "stale"),
    [
        (False, True, "GET", True, b"", True),
        (True, False, "GET", True, b"", True),
        (False, False, "GET", True, b"", False),
        (False, True, "POST", True, b"", False),
        (False, True, "GET", False, b"", False),
        (False, True, "GET", True, b"HTTP", False),
    ],
    ids=["later", "taken", "first", "unsafe", "unfinished", "begun"],
)
def test_when_the_end_of_a_connection_lets_a_request_go_out_again(
    idle: bool,  # noqa: FBT001
    before: bool,  # noqa: FBT001
    method: str,
    whole: bool,  # noqa: FBT001
    partial: bytes,
    stale: bool,  # noqa: FBT001
) -> None:
    side = Side(idle=idle)
    if before:
        assert status(side.asks().comes(OK)) == [204]
    side.asks(3 if before else 1, method, ends=whole)
    if partial:
        side.comes(partial)
    made = side.ends()
    assert [type(event) is stale_retry.ConnectionWasStale for event in received(made)] == [stale]
    assert closes(made) or not stale


def test_a_connection_that_is_closed_on_both_sides_is_not_closed_again() -> None:
    side = Side(idle=True).asks()
    side.server.state = ConnectionState.CLOSED
    made = list(side.layer.handle_event(events.ConnectionClosed(side.server)))
    assert ([type(event) for event in received(made)], closes(made)) == ([stale_retry.ConnectionWasStale], False)


@all_cases(
    ("version", "fields", "head"),
    [
        ("HTTP/2.0", ((b"a", b"b"),), b"Host: xn--a.example\r\na: b\r\n"),
        ("HTTP/2.0", ((b"a", b"b"), (b"host", b"own.example")), b"a: b\r\nhost: own.example\r\n"),
        ("HTTP/1.1", ((b"a", b"b"),), b"a: b\r\n"),
    ],
)
def test_an_authority_goes_on_as_host(version: str, fields: tuple[tuple[bytes, bytes], ...], head: bytes) -> None:
    side = Side()
    request = http.Request.make("GET", "https://site.example/", headers=fields)
    request.headers.fields = fields
    request.data.http_version, request.data.authority = version.encode(), b"xn--a.example"
    (sent,) = (one for one in side.layer.send(RequestHeaders(1, request, end_stream=True)) if isinstance(one, commands.SendData))
    assert sent.data.partition(b"\r\n")[2] == head + b"\r\n"


def test_whether_a_connection_has_answered() -> None:
    side = Side()
    assert not side.layer.has_answered
    assert side.asks().layer.has_answered
    assert Side(idle=True).layer.has_answered
