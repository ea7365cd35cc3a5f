"""Early responses: sent before a request's body has arrived, or in place of an origin's response before its body came.

mitmproxy reads a request to its end, and keeps it in memory, before it sends a response that an addon gave. A blocked upload of
a gigabyte would take a gigabyte and a minute to be refused. Here the response goes out at once. What the client still sends is
dropped, up to a limit, because a connection that is closed with unread data loses the response as well (RFC 9112 §9.6).

A response that is blocked by its head (`replace_response`) is replaced at once as well, and the origin's connection is cut.
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

from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream, StreamOverride

_THROW_AWAY_BYTES: Final = 8_000_000
"""How much of a refused upload is read after the response before the connection (HTTP/2: the stream) is closed."""


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

    Without the connection, or when the flow is not found on it, the response follows the body, as mitmproxy does it.
    """
    if (stream := stream_of(flow, connection)) is not None:
        flow.request.headers.pop("expect", None)  # no "100 Continue" for what is refused
        flow.request.stream = True
        stream.override = _Refusal(stream)


def replace_response(flow: http.HTTPFlow, connection: ConnectionHandler | None) -> None:
    """Lets `flow.response`, which is ours, go out in place of the origin's, of which only the head has arrived.

    To be called in the `responseheaders` hook. Without the connection our response is sent once the origin's has been read to its
    end, in pieces that are dropped.
    """
    response = flow.response
    assert response is not None
    content = response.raw_content or b""
    if (stream := stream_of(flow, connection)) is not None:
        response.stream = True
        stream.override = _Replacement(stream, content)
        return
    pieces = [content] if content else []

    def instead(_: bytes) -> list[bytes]:
        sent = pieces[:]
        pieces.clear()
        return sent

    response.stream = instead


def stream_of(flow: http.HTTPFlow, connection: ConnectionHandler | None) -> GatewayHttpStream | None:
    """Returns the stream that carries a flow on a connection."""
    if connection is None:
        return None
    for stream in open_streams(connection.layer.context.layers):
        if getattr(stream, "flow", None) is flow and isinstance(stream, GatewayHttpStream):
            return stream
    return None


class _Replacement(StreamOverride):
    """Sends our response in place of the origin's."""

    def __init__(self, stream: HttpStream, content: bytes) -> None:
        super().__init__(stream)
        self._content = content

    def start_response_stream(self) -> layer.CommandGenerator[None]:
        """Cuts the origin off and sends our response."""
        stream = self._stream
        yield SendHttp(RequestProtocolError(stream.stream_id, "the response is blocked", ErrorCode.CANCEL), stream.context.server)
        yield from self._send()

    def consume_response_body(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends our response where the origin's has no body."""
        if isinstance(event, ResponseEndOfMessage):
            yield from self._send()

    def _send(self) -> layer.CommandGenerator[None]:
        stream = self._stream
        response = stream.flow.response
        assert response is not None
        stream.server_state = stream.state_errored  # what still comes from the origin is dropped
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


class _Refusal(StreamOverride):
    """Sends our response to a request, and drops the rest of its body."""

    def __init__(self, stream: HttpStream) -> None:
        super().__init__(stream)
        self._left = _THROW_AWAY_BYTES

    def start_request_stream(self) -> layer.CommandGenerator[None]:
        """Sends our response instead of connecting to the origin."""
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
        """The stream's state from then on: drops the body."""
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
