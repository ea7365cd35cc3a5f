"""A request that met the end of a kept connection is asked once more, over a new one.

An origin may close a connection that it has kept open at the very moment at which a request is on its way to it. Browsers know
that and ask again; behind a proxy it is the proxy that has to. mitmproxy answers with an error instead: a page that lacks a
picture, now and then, for no reason that anybody could find.

Only what may be asked twice is (RFC 9110 §9.2.2): safe methods without a body, on a connection that has answered before, when not
a byte of an answer has come. The request's hooks do not run again.
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

_SAFE: Final = frozenset({b"GET", b"HEAD", b"OPTIONS"})
_stock: Final = HttpStream.handle_protocol_error


class ConnectionWasStale(ResponseProtocolError):  # noqa: N818  an event, as mitmproxy names them
    """The origin closed a kept connection instead of answering."""


def may_be_asked_again(request: http.Request) -> bool:
    """Returns whether asking twice is asking once."""
    return request.data.method in _SAFE and http1.expected_http_body_size(request) == 0


def install() -> None:
    """Makes this process's mitmproxy ask again. Doing it twice is doing it once."""
    HttpStream.handle_protocol_error = _handle_protocol_error  # type: ignore[method-assign]


def _handle_protocol_error(self: HttpStream, event: RequestProtocolError | ResponseProtocolError) -> layer.CommandGenerator[None]:
    waits = self.client_state == self.state_done and self.server_state == self.state_wait_for_response_headers
    if not isinstance(event, ConnectionWasStale) or not waits or self.flow.error is not None:
        yield from _stock(self, event)
    elif (yield from self.make_server_connection()):
        yield SendHttp(RequestHeaders(self.stream_id, self.flow.request, end_stream=True), self.context.server)
        yield SendHttp(RequestEndOfMessage(self.stream_id), self.context.server)
