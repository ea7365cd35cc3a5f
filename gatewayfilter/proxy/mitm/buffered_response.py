"""Buffered responses: a body is kept until it was inspected, or until it is too long for that.

mitmproxy either streams a body or keeps all of it. Here a body is kept up to a limit; a longer one is streamed from there on.
"""

from collections.abc import Callable
from typing import Final

from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseData, ResponseEndOfMessage, ResponseTrailers

from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream, StreamOverride

MOST_HELD: Final = 2_000_000
"""Bytes as sent by the origin, before any content encoding is decoded."""


def hold_response(stream: GatewayHttpStream, stream_as: object, give_up: Callable[[], None], limit: int = MOST_HELD) -> None:
    """Holds the body of a response. To be called in the `responseheaders` hook, with `response.stream` off.

    Args:
        stream: the HTTP stream of the response.
        stream_as: what `response.stream` becomes when the body is too long to be held.
        give_up: called then.
        limit: bytes to hold.
    """
    stream.override = _Held(stream, stream_as, give_up, limit)


class _Held(StreamOverride):
    def __init__(self, stream: GatewayHttpStream, stream_as: object, give_up: Callable[[], None], limit: int) -> None:
        super().__init__(stream)
        self._stream_as = stream_as
        self._give_up = give_up
        self._limit = limit
        self._body = bytearray()

    def consume_response_body(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        stream = self._stream
        response = stream.flow.response
        assert response is not None
        if isinstance(event, ResponseData):
            self._body += event.data
            if len(self._body) > self._limit:
                body = bytes(self._body)
                self._body.clear()
                self._give_up()
                response.stream = self._stream_as  # type: ignore[assignment]
                yield from stream.start_response_stream()
                yield from stream.handle_event(ResponseData(stream.stream_id, body))
        elif isinstance(event, ResponseTrailers):
            response.trailers = event.trailers
        elif isinstance(event, ResponseEndOfMessage):
            response.data.content = bytes(self._body)
            self._body.clear()
            yield from stream.send_response()
