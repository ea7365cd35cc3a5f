"""Bounds on the memory and work that an HTTP/2 client can cause, where h2 and mitmproxy have none.

h2 bounds the streams at once (100), a head when it is unpacked (64 kB), and the frames of one (64). Left open are the size of
those frames, which mitmproxy raises to 128 kB, what is kept of streams that have ended (65,536 of each connection), and how
often a client resets its requests, requires a reply (CVE-2023-44487 and its kind), or sends empty frames. h2 answers each frame
of a stream that was reset with another reset, and makes no event of it: these frames are counted where h2 answers them.

For each window that a client opens of the whole connection, mitmproxy looks at all streams that wait; a read may have thousands
of these. Here it looks once.
"""

from typing import Any, Final

import h2.errors
import h2.events
from h2.connection import H2Connection
from h2.exceptions import StreamClosedError
from hyperframe.frame import DataFrame, Frame
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.layers.http._events import ResponseData

from gatewayfilter.proxy.mitm.http.frame_budget import FrameBudget, is_call
from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES, HeldBytes, held_by
from gatewayfilter.proxy.mitm.http.header_table import bound_table
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Server
from gatewayfilter.proxy.mitm.http.upload_flow import note_upload
from gatewayfilter.proxy.mitm.upstream import set_on

_FRAME_BYTES: Final = 16_384
"""The least that a peer may be held to (RFC 9113 §4.2). Requests with large bodies come in more frames."""
_MOST_ENDED: Final = 1_000


class BoundedHttp2Server(FrameBudget, PatientHttp2Server):
    """The client's side of an HTTP/2 connection, with these bounds."""

    _held: HeldBytes | None = None
    _priority: h2.events.PriorityUpdated | None = None
    """The priority in the last head: h2 reports it once more, as if it had come in a frame."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        connection = self.h2_conn
        connection.local_settings.max_frame_size = _FRAME_BYTES
        connection.local_settings.acknowledge()
        connection.max_inbound_frame_size = _FRAME_BYTES
        bound_table(connection)
        ended: Any = connection._closed_streams  # noqa: SLF001  its size is a setting of the class, for every connection
        ended._size_limit = _MOST_ENDED  # noqa: SLF001
        self._answer_late_data = connection._handle_data_on_closed_stream  # noqa: SLF001  h2 has no event for these frames
        self._was_reset = connection._stream_is_closed_by_reset  # noqa: SLF001
        self._was_opened = False
        self._send_waiting = connection.connection_window_updated
        set_on(connection, "connection_window_updated", self._send_waiting_once)
        set_on(connection, "_handle_data_on_closed_stream", self._take_late_data)
        set_on(connection, "_stream_is_closed_by_reset", self._take_late_frame)

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseData):
            self.note_sent(len(event.data))
        self._was_opened = False
        yield from super()._handle_event(event)
        if not isinstance(event, events.DataReceived) or "_handle_event" in vars(self):  # mitmproxy puts `done` there
            return
        if self._calls_left < 0:
            yield from self._calm_down("too many frames for streams that were reset")
        elif self._keeps_too_much(self.h2_conn):
            yield from self._calm_down("too much of a head is kept unread")

    def handle_h2_event(self, event: h2.events.Event) -> layer.CommandGenerator[bool]:
        """Handles an event; returns whether the connection has ended."""
        if isinstance(event, h2.events.RequestReceived):
            self._priority = event.priority_updated
        elif is_call(event) and event is not self._priority and not self.may_cause(event):
            yield from self._calm_down("too many resets, pings, settings or frames for nothing")
            return True
        ended = yield from super().handle_h2_event(event)
        if isinstance(event, h2.events.DataReceived):
            note_upload(self.context, event.stream_id)
        return ended

    def _calm_down(self, message: str) -> layer.CommandGenerator[None]:
        yield from self.protocol_error(message, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)

    def _send_waiting_once(self) -> None:
        """Sends what waits. When it is first called for a read, h2 has opened all windows that the read opens."""
        if not self._was_opened:
            self._was_opened = True
            self._send_waiting()

    def _take_late_data(
        self, found: list[h2.events.Event], error: StreamClosedError, frame: DataFrame
    ) -> tuple[list[Frame], list[h2.events.Event]]:
        self.may_call()
        return self._answer_late_data(found, error, frame)

    def _take_late_frame(self, stream_id: int) -> bool:
        self.may_call()
        return self._was_reset(stream_id)

    def _keeps_too_much(self, connection: H2Connection) -> bool:
        buffer = connection.incoming_buffer
        size = len(buffer._data)  # noqa: SLF001  no public name for it
        if buffer._headers_buffer:  # noqa: SLF001
            size += sum(len(frame.data) for frame in buffer._headers_buffer)  # noqa: SLF001
        if self._held is None:
            if size <= FREE_BYTES:
                return False
            self._held = held_by(self.context.client)
        return not self._held.hold(size)
