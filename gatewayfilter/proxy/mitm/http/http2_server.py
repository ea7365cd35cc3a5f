"""The client's side of an HTTP/2 connection."""

from collections.abc import Sequence
from typing import Final

from h2 import events as h2_events
from h2.errors import ErrorCodes
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http._events import (
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)

from gatewayfilter.proxy.mitm.hooks import HeadBegunHook, HeadDoneHook, UnreadableRequestHook
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http2_bounds import BoundedHttp2Server

_H2_TYPE_AT: Final = 3
_H2_HEAD_FRAMES: Final = frozenset({1, 9})
"""HEADERS and CONTINUATION (RFC 9113 §6), whose type is the fourth byte of a frame."""


class GatewayHttp2Server(BoundedHttp2Server):
    """The client's side of an HTTP/2 connection, with error pages of ours and limits for heads that come in parts.

    Args:
        errors: makes its error pages.
        context: of the connection.
    """

    _completed: int | None = None
    """The last stream when a head came in part, while its time is limited."""

    def __init__(self, errors: ErrorAnswers, context: Context) -> None:
        super().__init__(context)
        self._errors = errors

    def handle_h2_event(self, event: h2_events.Event) -> layer.CommandGenerator[bool]:
        """Handles what h2 has read. A request that ends with its head and promises content is malformed (RFC 9113 §8.1.1).

        h2 does not see it; an HTTP/1 origin would wait for the content.
        """
        if isinstance(event, h2_events.RequestReceived) and event.stream_ended and _promises_content(event):
            self.h2_conn.reset_stream(event.stream_id, ErrorCodes.PROTOCOL_ERROR)
            yield UnreadableRequestHook(self.context.client)
            return False
        return (yield from super().handle_h2_event(event))

    def send_hints(self, stream_id: int, links: Sequence[bytes]) -> layer.CommandGenerator[None]:
        """Sends early hints for a request that has no answer yet."""
        if self.is_open_for_us(stream_id) and not self.h2_conn.streams[stream_id].state_machine.headers_sent:
            self.h2_conn.send_headers(stream_id, [(b":status", b"103"), *((b"link", link) for link in links)])
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if not isinstance(event, ResponseProtocolError):
            yield from super()._handle_event(event)
            if type(event) is events.DataReceived:
                last = self.h2_conn.highest_inbound_stream_id if self._awaits_head() else None
                if last != self._completed:
                    self._completed = last
                    yield HeadDoneHook(self.context.client) if last is None else HeadBegunHook(self.context.client)
            return
        number = event.stream_id
        status = event.code.http_status_code()
        if status is None or not self.is_open_for_us(number) or self.h2_conn.streams[number].state_machine.headers_sent:
            yield from super()._handle_event(event)
            return
        parent = self.context.layers[-2]
        stream = parent.streams.get(number) if isinstance(parent, http_layers.HttpLayer) else None
        page = self._errors.page(stream.flow.request if stream is not None else None, status, event.message)
        yield from super()._handle_event(ResponseHeaders(number, page))
        if page.raw_content:
            yield from super()._handle_event(ResponseData(number, page.raw_content))
        yield from super()._handle_event(ResponseEndOfMessage(number))
        if not self.is_closed(number):  # what the client still sends is not needed (RFC 9113 §8.1)
            self.h2_conn.reset_stream(number, 0)
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())

    def _awaits_head(self) -> bool:
        """Returns whether the connection preface, a HEADERS or a CONTINUATION frame, or the end of a header block is awaited."""
        buffer = self.h2_conn.incoming_buffer
        if buffer._headers_buffer or buffer._preamble_len:  # noqa: SLF001  no public name for it
            return True
        data = buffer._data  # noqa: SLF001
        return bool(data) and (len(data) <= _H2_TYPE_AT or data[_H2_TYPE_AT] in _H2_HEAD_FRAMES)


def _promises_content(event: h2_events.RequestReceived) -> bool:
    return any(name == b"content-length" and value != b"0" for name, value in event.headers or ())
