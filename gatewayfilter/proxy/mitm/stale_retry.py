"""Retry: a request is sent again where its origin closed a kept-alive connection, or turns out to have HTTP/2 alone.

An origin may close a kept-alive connection while a request is on its way. Browsers send such a request again; behind a proxy the
proxy has to. mitmproxy answers with an error instead, and a page lacks a picture now and then.

Only safe methods without a body are retried (RFC 9110 §9.2.2), on a connection that has answered before, when no byte of a
response has come. The request's hooks do not run again.

Browsers get HTTP/1.1 (`proxy.http2_clients`), so that origins are offered it alone. One with HTTP/2 alone ends the handshake, or
answers by HTTP/2: tls_config.py then offers it HTTP/2, and the client's request goes there over a new connection.
"""

from typing import Final

from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.http import HttpStream, SendHttp
from mitmproxy.proxy.layers.http._events import (
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    ResponseProtocolError,
)

SAFE: Final = frozenset({b"GET", b"HEAD", b"OPTIONS"})
"""Methods of requests that may be sent twice when they have no body."""


NO_PROTOCOL: Final = "alert no application protocol"
"""In the error of a handshake with an origin that has none of the offered protocols (RFC 7301 §3.2)."""


class ConnectionWasStale(ResponseProtocolError):  # noqa: N818  an event, as mitmproxy names them
    """The origin closed a kept-alive connection instead of answering."""


def is_retryable(request: http.Request) -> bool:
    """Returns whether a request may be sent twice."""
    return request.data.method in SAFE and http1.expected_http_body_size(request) == 0


def may_retry(stream: HttpStream, event: RequestProtocolError | ResponseProtocolError) -> bool:
    """Returns whether a failure means that a stream's request is to be sent again."""
    return (
        isinstance(event, ConnectionWasStale)
        and stream.client_state == stream.state_done
        and stream.server_state == stream.state_wait_for_response_headers
        and stream.flow.error is None
    )


def retry(stream: HttpStream) -> layer.CommandGenerator[None]:
    """Sends a stream's request again, over a new connection."""
    if (yield from stream.make_server_connection()):
        yield SendHttp(RequestHeaders(stream.stream_id, stream.flow.request, end_stream=True), stream.context.server)
        yield SendHttp(RequestEndOfMessage(stream.stream_id), stream.context.server)
