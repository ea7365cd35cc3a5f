"""A response that is held until it has been looked at, or until it turns out too long for that.

mitmproxy either streams a body or keeps all of it. Here a body is kept up to a limit; beyond it, what is there goes on and the
rest streams. This replaces one step of mitmproxy's HTTP stream (`state_consume_response_body`) on the single stream that is held;
tests/proxy/mitm/test_mitmproxy_pin.py watches the version.
"""

from collections.abc import Callable
from typing import Final

from mitmproxy.proxy import layer
from mitmproxy.proxy.layers.http import HttpStream
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseData, ResponseEndOfMessage, ResponseTrailers

MOST_HELD: Final = 2_000_000
"""Bytes on the wire."""


def hold_response(stream: HttpStream, stream_as: object, give_up: Callable[[], None], limit: int = MOST_HELD) -> None:
    """Holds the body of a response. To be called in the `responseheaders` hook, with `response.stream` off.

    Args:
        stream: whose response it is.
        stream_as: what `response.stream` becomes when the body is too long to be held.
        give_up: called then.
        limit: bytes to hold.
    """
    stream.state_consume_response_body = _Held(stream, stream_as, give_up, limit).consume


class _Held:
    def __init__(self, stream: HttpStream, stream_as: object, give_up: Callable[[], None], limit: int) -> None:
        self._stream = stream
        self._stream_as = stream_as
        self._give_up = give_up
        self._limit = limit
        self._body = bytearray()

    def consume(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Stands in for `HttpStream.state_consume_response_body`."""
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
