"""The HTTP stream of mitmproxy with replaceable steps and a retry on stale connections.

A stream carries one request and its response. Early responses (early_response.py) and buffered responses (buffered_response.py)
replace single steps of one stream. They set `GatewayHttpStream.override`, which the fast path checks as well.
"""

from mitmproxy import http
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.layers.http import GetHttpConnection, HttpStream
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestProtocolError, ResponseProtocolError

from gatewayfilter.proxy.mitm.stale_retry import NO_PROTOCOL, may_retry, retry


class StreamOverride:
    """Replaces steps of one stream. What a subclass does not override is mitmproxy's step.

    Args:
        stream: the stream with the replaced steps.
    """

    def __init__(self, stream: HttpStream) -> None:
        self._stream = stream

    def start_request_stream(self) -> layer.CommandGenerator[None]:
        """Begins to send a request whose body is streamed."""
        return HttpStream.start_request_stream(self._stream)

    def start_response_stream(self) -> layer.CommandGenerator[None]:
        """Begins to send a response whose body is streamed."""
        return HttpStream.start_response_stream(self._stream)

    def consume_response_body(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Handles an event of a response whose body is kept."""
        return HttpStream.state_consume_response_body(self._stream, event)  # type: ignore[no-any-return]


class GatewayHttpStream(HttpStream):
    """One request and its response.

    Attributes:
        override: replaces steps of this stream; `None` on all but a few.
        retried: the request was sent again, over a connection of its own.
        plain_request, plain_response: fields that the fast path has read (http1_heads.py): they leave the connection open, and
            the response is not in chunks. Fields that a hook has replaced are not these.
        handled: an event was handled in it: its state is not that of the fast path alone.
    """

    override: StreamOverride | None = None
    retried: bool = False
    plain_request: object = None
    plain_response: object = None
    handled: bool = False

    def handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Handles an event."""
        self.handled = True
        return super().handle_event(event)

    def start_request_stream(self) -> layer.CommandGenerator[None]:
        """Begins to send a request whose body is streamed."""
        return super().start_request_stream() if self.override is None else self.override.start_request_stream()

    def start_response_stream(self) -> layer.CommandGenerator[None]:
        """Begins to send a response whose body is streamed."""
        return super().start_response_stream() if self.override is None else self.override.start_response_stream()

    def state_consume_response_body(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Handles an event of a response whose body is kept."""
        if self.override is None:
            return super().state_consume_response_body(event)  # type: ignore[no-any-return]
        return self.override.consume_response_body(event)

    def make_server_connection(self) -> layer.CommandGenerator[bool]:
        """Gets a connection to the origin; a second one where the first found that the origin has HTTP/2 alone."""
        flow = self.flow
        connection, error = yield self._connection_for(flow)
        if error and NO_PROTOCOL in error and not self.retried:
            self.retried = True
            connection, error = yield self._connection_for(flow)
        if error:
            failed = ResponseProtocolError(self.stream_id, error, ErrorCode.CONNECT_FAILED)
            yield from self.handle_protocol_error(failed)
            return False
        self.context.server = flow.server_conn = connection
        return True

    @staticmethod
    def _connection_for(flow: http.HTTPFlow) -> GetHttpConnection:
        request, server = flow.request, flow.server_conn
        return GetHttpConnection((request.host, request.port), request.scheme == "https", server.via, server.transport_protocol)

    def handle_protocol_error(self, event: RequestProtocolError | ResponseProtocolError) -> layer.CommandGenerator[None]:
        """Handles the failure of a connection; sends the request again where the connection was stale."""
        if may_retry(self, event):
            self.retried = True
            return retry(self)
        return super().handle_protocol_error(event)
