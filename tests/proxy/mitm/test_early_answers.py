"""Responses that go out before a body came, or in place of another one, and bodies that are held: the commands of a stream."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import http
from mitmproxy.connection import Client, Server
from mitmproxy.proxy.layers.http import DropStream, HttpLayer, SendHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseTrailers,
)
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm import early_response
from gatewayfilter.proxy.mitm.buffered_response import hold_response
from gatewayfilter.proxy.mitm.early_response import open_streams, replace_response, respond_early, stream_of
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from tests.case_tables import all_cases


class Stream(GatewayHttpStream):
    """A stream with its connection; what it is asked to do itself is noted in `did`."""

    def __init__(self, *, http2: bool = False, uploaded: bool = True, content: bytes = b"page") -> None:
        self.stream_id = 7
        self.flow = tflow.tflow()
        self.flow.response = http.Response.make(403, content)
        self.flow.request.http_version = "HTTP/2.0" if http2 else "HTTP/1.1"
        client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
        self.context: Any = SimpleNamespace(client=client, server=Server(address=("site.example", 80)), layers=[])
        self.client_state = self.state_done if uploaded else self.state_stream_request_body
        self.server_state = self.state_wait_for_response_headers
        layer: Any = object.__new__(HttpLayer)
        layer.streams = {7: self}
        self.context.layers = [layer, self]
        self.connection: Any = SimpleNamespace(layer=SimpleNamespace(context=self.context))
        self.did: list[object] = []

    def handle_event(self, event: Any) -> Any:
        self.did.append((type(event).__name__, getattr(event, "data", None)))
        return iter(())

    def start_response_stream(self) -> Any:
        self.did.append("streams")
        return iter(())

    def send_response(self, already_streamed: bool = False) -> Any:  # noqa: FBT001, FBT002  as mitmproxy has it
        self.did.append("sent")
        return iter(())

    @property
    def response(self) -> http.Response:
        assert self.flow.response is not None
        return self.flow.response

    def told(self, coming: Any) -> list[object]:
        """Returns commands in short: events with the side that they go to, names of others."""
        found: list[object] = []
        for command in coming:
            if isinstance(command, SendHttp):
                side = "client" if command.connection is self.context.client else "origin"
                data = command.event.data if isinstance(command.event, ResponseData) else type(command.event).__name__
                assert command.event.stream_id == 7
                if isinstance(command.event, ResponseHeaders):
                    assert (command.event.response, command.event.end_stream) == (self.response, False), "its end follows"
                found.append((side, data))
            else:
                assert not isinstance(command, DropStream) or command.stream_id == 7
                found.append(type(command).__name__)
        return found


HEAD, END = ("client", "ResponseHeaders"), ("client", "ResponseEndOfMessage")


def test_streams_are_found_inside_of_tunnels() -> None:
    outer, inner = Stream(), Stream()
    outer.context.layers += inner.context.layers
    assert list(open_streams(outer.context.layers)) == [outer, inner, inner]
    assert list(open_streams([])) == []
    assert stream_of(inner.flow, outer.connection) is inner
    assert stream_of(tflow.tflow(), outer.connection) is None
    assert stream_of(inner.flow, None) is None
    other: Any = SimpleNamespace(flow=inner.flow, context=inner.context)
    plain: Any = object.__new__(HttpLayer)
    plain.streams = {1: other}
    other.context = SimpleNamespace(layers=[plain, other])
    assert stream_of(inner.flow, cast("Any", SimpleNamespace(layer=SimpleNamespace(context=other.context)))) is None


@all_cases("http2", [True, False])
@all_cases("content", [b"page", b""])
def test_a_refused_request_is_answered_at_once(content: bytes, *, http2: bool) -> None:
    stream = Stream(http2=http2, content=content)
    stream.flow.request.headers["expect"] = "100-continue"
    respond_early(stream.flow, stream.connection)
    assert (stream.flow.request.stream, "expect" in stream.flow.request.headers) == (True, False)
    assert stream.override is not None
    found = stream.told(stream.override.start_request_stream())
    body = [("client", b"page")] if content else []
    assert found == ["HttpResponseHeadersHook", "HttpResponseHook", HEAD, *body, END]
    assert stream.response.headers.get("connection") == (None if http2 else "close")
    assert stream.response.timestamp_end is not None
    assert stream.client_state == cast("Any", stream.override).throw_away


def test_the_rest_of_a_refused_upload_is_dropped_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_response, "_THROW_AWAY_BYTES", 5)

    def refused() -> tuple[Stream, Any]:
        stream = Stream()
        respond_early(stream.flow, stream.connection)
        list(cast("Any", stream.override).start_request_stream())
        return stream, cast("Any", stream.override).throw_away

    stream, drop = refused()
    assert stream.told(drop(RequestData(7, b"abcde"))) == []
    assert stream.told(drop(RequestHeaders(7, stream.flow.request, end_stream=False))) == []
    (sent, gone) = list(drop(RequestData(7, b"f")))
    assert (sent.event.code, sent.event.message, type(gone), gone.stream_id) == (
        ErrorCode.CANCEL,
        "upload refused",
        DropStream,
        7,
    )
    assert (stream.flow.live, stream.client_state == stream.state_errored) == (False, True)
    stream, drop = refused()
    assert stream.told(drop(RequestEndOfMessage(7))) == ["DropStream"]
    assert (stream.flow.live, stream.client_state == stream.state_errored) == (False, True)


def test_without_its_connection_a_request_is_answered_as_mitmproxy_does() -> None:
    stream = Stream()
    respond_early(stream.flow, None)
    assert (stream.flow.request.stream, stream.override) == (False, None)
    for content, sent in ((b"page", [b"page"]), (b"", [])):
        alone = Stream(content=content)
        replace_response(alone.flow, None)
        instead: Any = alone.response.stream
        assert (instead(b"origin"), instead(b"more"), alone.override) == (sent, [], None)


@all_cases("http2", [True, False])
@all_cases("content", [b"page", b""])
def test_a_response_is_replaced_whose_head_came(content: bytes, *, http2: bool) -> None:
    for uploaded in (True, False):
        stream = Stream(http2=http2, uploaded=uploaded, content=content)
        replace_response(stream.flow, stream.connection)
        assert stream.response.stream is True
        assert stream.override is not None
        first, *rest = list(stream.override.start_response_stream())
        cut: Any = first
        assert (cut.event.code, cut.event.message, cut.connection) == (
            ErrorCode.CANCEL,
            "the response is blocked",
            stream.context.server,
        )
        body = [("client", content)] if content else []
        assert stream.told(rest) == ["HttpResponseHook", HEAD, *body, *(["DropStream"] if uploaded else []), END]
        assert (stream.server_state == stream.state_errored, stream.response.data.content) == (True, content)
        assert stream.flow.live != uploaded
        closes = not uploaded and not http2
        assert stream.response.headers.get("connection") == ("close" if closes else None)
        assert (stream.client_state == stream.state_done) == uploaded
    bodiless = Stream()
    replace_response(bodiless.flow, bodiless.connection)
    assert bodiless.override is not None
    assert bodiless.told(bodiless.override.consume_response_body(ResponseData(7, b"x"))) == []
    assert bodiless.told(bodiless.override.consume_response_body(ResponseEndOfMessage(7)))[0] == "HttpResponseHook"


def test_a_body_is_held_to_its_end_or_until_it_is_too_long() -> None:
    gone: list[bool] = []

    def held(limit: int) -> tuple[Stream, Any]:
        stream = Stream()
        hold_response(stream, "as", lambda: gone.append(True), limit)
        stream.response.stream = False
        return stream, cast("Any", stream.override).consume_response_body

    stream, consume = held(4)
    for event in (ResponseData(7, b"ab"), ResponseData(7, b"cd"), ResponseTrailers(7, http.Headers(a="b"))):
        assert list(consume(event)) == []
    assert (stream.did, gone, stream.response.trailers) == ([], [], http.Headers(a="b"))
    list(consume(ResponseEndOfMessage(7)))
    assert (stream.did, stream.response.data.content) == (["sent"], b"abcd")
    stream, consume = held(4)
    list(consume(ResponseData(7, b"abc")))
    list(consume(ResponseData(7, b"de")))
    assert (stream.did, gone) == (["streams", ("ResponseData", b"abcde")], [True])
    assert cast("Any", stream.response.stream) == "as"
