"""Answers that do not wait: to a blocked upload before it was sent, and in place of a response before its body came.

mitmproxy reads a request to its end, and keeps it in memory, before it sends an answer that an addon gave. A blocked upload of
a gigabyte would take a gigabyte and a minute to be refused. Here the answer goes out at once; what the client still sends is
thrown away, for a while, because a connection that is closed with unread data loses the answer as well (RFC 9112 §9.6).

A response whose head is enough to block it (`replace_response`) is answered at once as well, and what the origin still has to
say is cut off, however long it is.

This replaces one step of mitmproxy's HTTP stream (`start_request_stream`, `start_response_stream`) on the single stream that is
blocked; tests/proxy/mitm/test_mitmproxy_pin.py watches the version.
"""

import time
from collections.abc import Iterator
from typing import Final

from mitmproxy import http
from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.http import DropStream, HttpLayer, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._hooks import HttpResponseHeadersHook, HttpResponseHook
from mitmproxy.proxy.server import ConnectionHandler

_THROW_AWAY_BYTES: Final = 8_000_000
"""How much of a refused upload is read after the answer before the connection (HTTP/2: the stream) is closed."""


def open_streams(layers: list[layer.Layer]) -> Iterator[HttpStream]:
    """Yields every HTTP stream of a connection's layers, those inside CONNECT tunnels included."""
    for found in list(layers):
        if isinstance(found, HttpLayer):
            for stream in list(found.streams.values()):
                yield stream
                inner = stream.context.layers
                yield from open_streams(inner[inner.index(stream) + 1 :])


def respond_early(flow: http.HTTPFlow, connection: ConnectionHandler | None) -> None:
    """Lets `flow.response` go out before the request's body has arrived.

    Without the connection, or when the flow is not found on it, the answer follows the body, as mitmproxy does it.
    """
    if (stream := stream_of(flow, connection)) is not None:
        flow.request.headers.pop("expect", None)  # no "100 Continue" for what is refused
        flow.request.stream = True
        stream.start_request_stream = _Refusal(stream).answer  # type: ignore[method-assign]


def replace_response(flow: http.HTTPFlow, connection: ConnectionHandler | None) -> None:
    """Lets `flow.response`, which is ours, go out in place of the origin's, whose head alone has arrived.

    To be called in the `responseheaders` hook. Without the connection our answer takes the place of the origin's once that has
    been read to its end, in pieces that are dropped.
    """
    response = flow.response
    assert response is not None
    content = response.raw_content or b""
    if (stream := stream_of(flow, connection)) is not None:
        response.stream = True
        stream.start_response_stream = _Replacement(stream, content).answer  # type: ignore[method-assign]
        stream.state_consume_response_body = _Replacement(stream, content).answer_event
        return
    pieces = [content] if content else []

    def instead(_: bytes) -> list[bytes]:
        sent = pieces[:]
        pieces.clear()
        return sent

    response.stream = instead


def stream_of(flow: http.HTTPFlow, connection: ConnectionHandler | None) -> HttpStream | None:
    """Returns the stream that carries a flow on a connection."""
    if connection is None:
        return None
    for stream in open_streams(connection.layer.context.layers):
        if getattr(stream, "flow", None) is flow:
            return stream
    return None


class _Replacement:
    """What a stream does whose response is answered by us."""

    def __init__(self, stream: HttpStream, content: bytes) -> None:
        self._stream = stream
        self._content = content

    def answer(self) -> layer.CommandGenerator[None]:
        """Stands in for `HttpStream.start_response_stream`: cuts the origin off and sends our answer."""
        stream = self._stream
        yield SendHttp(RequestProtocolError(stream.stream_id, "the response is blocked", ErrorCode.CANCEL), stream.context.server)
        yield from self._send()

    def answer_event(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Stands in for `HttpStream.state_consume_response_body`, where a response without a body goes."""
        if isinstance(event, ResponseEndOfMessage):
            yield from self._send()

    def _send(self) -> layer.CommandGenerator[None]:
        stream = self._stream
        response = stream.flow.response
        assert response is not None
        stream.server_state = stream.state_errored  # whatever still comes from there is not wanted
        response.timestamp_start = response.timestamp_end = time.time()
        response.data.content = self._content
        uploaded = stream.client_state == stream.state_done
        if not uploaded and not stream.flow.request.is_http2:
            response.headers["connection"] = "close"
        yield HttpResponseHook(stream.flow)
        yield SendHttp(ResponseHeaders(stream.stream_id, response, end_stream=False), stream.context.client)
        if self._content:
            yield SendHttp(ResponseData(stream.stream_id, self._content), stream.context.client)
        if uploaded:
            stream.flow.live = False
            yield DropStream(stream.stream_id)
        else:
            stream.client_state = _Refusal(stream).throw_away
        yield SendHttp(ResponseEndOfMessage(stream.stream_id), stream.context.client)


class _Refusal:
    """What a blocked stream does from now on."""

    def __init__(self, stream: HttpStream) -> None:
        self._stream = stream
        self._left = _THROW_AWAY_BYTES

    def answer(self) -> layer.CommandGenerator[None]:
        """Stands in for `HttpStream.start_request_stream`: sends the answer instead of opening the way to the origin."""
        stream = self._stream
        response = stream.flow.response
        assert response is not None
        if not stream.flow.request.is_http2:
            response.headers["connection"] = "close"
        response.timestamp_start = response.timestamp_end = time.time()
        yield HttpResponseHeadersHook(stream.flow)
        yield HttpResponseHook(stream.flow)
        stream.client_state = self.throw_away
        yield SendHttp(ResponseHeaders(stream.stream_id, response, end_stream=False), stream.context.client)
        if content := response.raw_content:
            yield SendHttp(ResponseData(stream.stream_id, content), stream.context.client)
        yield SendHttp(ResponseEndOfMessage(stream.stream_id), stream.context.client)

    def throw_away(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Stands in for the stream's state that reads the request's body."""
        stream = self._stream
        if isinstance(event, RequestData):
            self._left -= len(event.data)
            if self._left >= 0:
                return
            yield SendHttp(ResponseProtocolError(stream.stream_id, "upload refused", ErrorCode.CANCEL), stream.context.client)
        elif not isinstance(event, RequestEndOfMessage):
            return
        stream.flow.live = False
        stream.client_state = stream.state_errored
        yield DropStream(stream.stream_id)
