"""The fast path of an HTTP/2 response: its head and each part of its body in one step each (exchange.py)."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from h2.stream import H2Stream, StreamClosedBy, StreamState
from mitmproxy import http
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ResponseEndOfMessage, ResponseHeaders
from mitmproxy.proxy.layers.http._hooks import HttpResponseHeadersHook, HttpResponseHook
from mitmproxy.proxy.layers.http._http2 import StreamState as Awaited

from gatewayfilter.proxy.mitm.fastpath.http2.frames import (
    DATA,
    END_STREAM,
    frame,
    give_back,
    head_frames,
    open_window,
    put_data,
)
from gatewayfilter.proxy.mitm.fastpath.http2.heads import are_lower, read_response
from gatewayfilter.proxy.mitm.fastpath.http2.hpack_codec import UNREADABLE, decoder_of, speed_up_encoder
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, CompletedHooks, Step, process
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD


@dataclass(slots=True)
class Responses:
    """The layers that responses of an origin pass, and what is to be sent.

    Attributes:
        http_layer: has the connections.
        server: the client's side.
        client: the origin's side.
        to_client, to_origin: bytes of frames, in their order.
        slow: steps that follow what was sent, where a response takes mitmproxy's path.
    """

    http_layer: FastHttpLayer
    server: GatewayHttp2Server
    client: PatientHttp2Client
    to_client: list[bytes] = field(default_factory=list)
    to_origin: list[bytes] = field(default_factory=list)
    slow: Commands | None = None
    _last: tuple[int, tuple[GatewayHttpStream, H2Stream, H2Stream]] | None = None
    """The stream of the last part of a body, which goes on: nothing else happens to it between two frames of a read."""

    def take_head(self, ours: int, block: bytes, *, end: bool) -> bool:
        """Handles the head of a response. Returns False when nothing was done: h2 gets the fields by reading the frame.

        Args:
            ours: the stream's number on the origin's connection.
            block: the coded fields.
            end: nothing follows.
        """
        client = self.client
        connection = client.h2_conn
        found = self._waiting(ours)
        if found is None or client.streams.get(ours) is not Awaited.EXPECTING_HEADERS:
            return False
        stream, asked, answered = found
        if (
            asked.state_machine.headers_received
            or answered.state_machine.headers_sent
            or stream.server_state != stream.state_wait_for_response_headers
        ):
            return False
        decoder = decoder_of(connection)
        try:
            fields: Any = decoder.decode(block, raw=True)
        except UNREADABLE as error:  # h2 tells what it is
            decoder.again = error
            return False
        read = read_response(fields)
        if read is None:
            decoder.again = fields
            return False
        response, length = read
        asked.state_machine.headers_received = True
        if asked.request_method == b"HEAD":
            asked._expected_content_length = 0  # noqa: SLF001  as h2 does it
        elif length is not None:
            asked._expected_content_length = length  # noqa: SLF001
        client.streams[ours] = Awaited.HEADERS_RECEIVED
        client.last_activity = time.time()
        if end:
            self._close(asked)
        self._pass_head(stream, answered, response, end=end)
        return True

    def _waiting(self, ours: int) -> tuple[GatewayHttpStream, H2Stream, H2Stream] | None:
        """Returns the stream, and h2's of both sides, when its request is complete and all of them are plain."""
        client, server = self.client, self.server
        asked = client.h2_conn.streams.get(ours)
        if asked is None or asked.state_machine.state is not StreamState.HALF_CLOSED_LOCAL:
            return None
        theirs = client.their_stream_id.get(ours, -1)
        stream = self.http_layer.streams.get(theirs)
        answered = server.h2_conn.streams.get(theirs)
        if (
            type(stream) is not GatewayHttpStream
            or answered is None
            or answered.state_machine.state is not StreamState.HALF_CLOSED_REMOTE
            or stream._paused is not None  # noqa: SLF001
            or stream.override is not None
            or stream.client_state != stream.state_done
            or stream.flow.request.data.http_version != b"HTTP/2.0"
        ):
            return None
        return stream, asked, answered

    def _pass_head(self, stream: GatewayHttpStream, answered: H2Stream, response: http.Response, *, end: bool) -> None:
        flow, hooks, number = stream.flow, self.http_layer.hooks, stream.stream_id
        flow.response = response
        fields = response.data.headers.fields
        waits = hooks.call("responseheaders", flow)
        if waits is not None or flow.response is not response or flow.error is not None or not _streams_on(stream, fields):
            came = ResponseHeaders(number, flow.response, end_stream=end)
            ended = iter((ReceiveHttp(ResponseEndOfMessage(number)),) if end else ())
            steps: list[Step] = [(self.client, ended), (stream, stream.handle_event(came))]
            self.slow = self.http_layer.run_steps(steps, CompletedHooks(hooks, flow, HttpResponseHeadersHook, waits=waits))
        elif end:
            response.data.content = b""
            self._finish(stream, answered, streamed=False)
        else:
            self._send_head(answered, response, end=False)
            stream.server_state = stream.state_stream_response_body

    def _send_head(self, answered: H2Stream, response: http.Response, *, end: bool) -> None:
        connection = self.server.h2_conn
        speed_up_encoder(connection)
        fields = [(b":status", b"%d" % response.data.status_code), *response.data.headers.fields]
        answered.state_machine.headers_sent = True
        self.to_client.append(head_frames(connection, answered.stream_id, connection.encoder.encode(fields), end=end))

    def take_data(self, ours: int, data: bytes, *, end: bool) -> bool:
        """Handles a part of a body. Returns False when nothing was done."""
        client = self.client
        found = self._last[1] if self._last is not None and self._last[0] == ours else self._waiting(ours)
        if found is None or client.streams.get(ours) is not Awaited.HEADERS_RECEIVED or not (data or end):
            return False
        stream, asked, answered = found
        connection = client.h2_conn
        size = len(data)
        of_all: Any = connection._inbound_flow_control_window_manager  # noqa: SLF001  no public name for it
        of_one: Any = asked._inbound_window_manager  # noqa: SLF001
        length = asked._actual_content_length + size  # noqa: SLF001
        expected = asked._expected_content_length  # noqa: SLF001
        response = stream.flow.response
        if (
            response is None
            or not response.stream
            or stream.server_state != stream.state_stream_response_body
            or not answered.state_machine.headers_sent
            or asked.state_machine.trailers_received
            or size > min(of_all.current_window_size, of_one.current_window_size)
            or (expected is not None and (length > expected or (end and length != expected)))
        ):
            return False
        try:
            pieces = _passed(response.stream, data, end=end)
        except Exception as error:  # noqa: BLE001  whatever it is, the layers end this stream with it, when what came before is sent
            response.stream = _failing(error)  # it has had its part
            return False
        of_all.current_window_size -= size
        of_one.current_window_size -= size
        asked._actual_content_length = length  # noqa: SLF001
        client.last_activity = time.time()
        self._last = (ours, found)
        if end:
            self._last = None
            self._close(asked)
        self._pass_data(answered, pieces)
        if data:
            self._give_back(asked, ours, size)
        if end:
            self._finish(stream, answered, streamed=True)
        return True

    def _pass_data(self, answered: H2Stream, pieces: Iterable[bytes]) -> None:
        server = self.server
        for piece in pieces:
            server.note_sent(len(piece))
            if not put_data(server.h2_conn, answered, piece, self.to_client):
                server.note_unsent(answered.stream_id)

    def _give_back(self, asked: H2Stream, ours: int, size: int) -> None:
        connection = self.client.h2_conn
        if self.server.is_full(self.client.their_stream_id[ours]) or self.client.owes(ours):
            connection.acknowledge_received_data(size, ours)
            self.to_origin.append(connection.data_to_send())
        elif update := give_back(connection, asked, size):
            self.to_origin.append(update)

    def _close(self, asked: H2Stream) -> None:
        """Ends a stream of the origin's connection. h2 forgets it when it counts the open ones."""
        machine = asked.state_machine
        machine.state, machine.stream_closed_by = StreamState.CLOSED, StreamClosedBy.RECV_END_STREAM
        del self.client.streams[asked.stream_id]

    def _finish(self, stream: GatewayHttpStream, answered: H2Stream, *, streamed: bool) -> None:
        """Ends the exchange."""
        flow, hooks = stream.flow, self.http_layer.hooks
        response = flow.response
        assert response is not None
        response.timestamp_end = time.time()
        waits = hooks.call("response", flow)
        if waits is not None or not _is_done(flow, response, streamed=streamed):
            answer = process(stream, stream.send_response(already_streamed=streamed))
            completed = CompletedHooks(hooks, flow, HttpResponseHook, waits=waits)
            self.slow = self.http_layer.run_steps([(stream, answer)], completed)
            return
        server, number = self.server, answered.stream_id
        connection = server.h2_conn
        if not streamed:
            self._send_head(answered, response, end=True)
        elif connection.stream_buffers.get(number):
            connection.end_stream(number)  # behind what waits
        else:
            self.to_client.append(frame(DATA, END_STREAM, number, b""))
        if not connection.stream_buffers.get(number):
            machine = answered.state_machine
            machine.state, machine.stream_closed_by = StreamState.CLOSED, StreamClosedBy.SEND_END_STREAM
            server.streams.pop(number, None)
        stream.server_state = stream.state_done
        flow.live = False
        del self.http_layer.streams[number]
        if AHEAD.get(server.conn) is stream:
            del AHEAD[server.conn]  # it waits no more
        vars(stream).clear()  # it holds itself in circles, and with it all that the flow has

    def open_window(self, ours: int, body: bytes) -> bool:
        """Takes a WINDOW_UPDATE of the origin. Returns False when nothing was done."""
        return open_window(self.client.h2_conn, ours, body, self.to_origin)

    def is_plain(self, ours: int) -> bool:
        """Returns whether a stream's request is complete, and its response takes this path so far."""
        return self._waiting(ours) is not None

    def sent(self) -> list[commands.SendData]:
        """Returns what is to be sent."""
        made = []
        for connection, parts in ((self.server.conn, self.to_client), (self.client.conn, self.to_origin)):
            if data := parts[0] if len(parts) == 1 else b"".join(parts):
                made.append(commands.SendData(connection, data))
        return made


def _streams_on(stream: GatewayHttpStream, before: object) -> bool:
    """Returns whether a response is streamed by mitmproxy's own steps, in fields that are sent as they are."""
    response = stream.flow.response
    assert response is not None
    fields = response.data.headers.fields
    return bool(response.stream) and stream.override is None and (fields is before or are_lower(fields))


def _is_done(flow: http.HTTPFlow, response: http.Response, *, streamed: bool) -> bool:
    return (
        flow.error is None
        and flow.response is response
        and not response.data.trailers
        and (streamed or (not response.data.content and are_lower(response.data.headers.fields)))
    )


def _failing(error: Exception) -> Callable[[bytes], bytes]:
    def fail(_: bytes) -> bytes:
        raise error

    return fail


def _passed(stream: Callable[[bytes], bytes | Iterable[bytes]] | Literal[True], data: bytes, *, end: bool) -> list[bytes]:
    """Returns what a part of a body becomes, and what follows where it is the last."""
    if stream is True:
        return [data] if data else []
    made = list(_pieces(stream(data))) if data else []
    return [*made, *_pieces(stream(b""))] if end else made


def _pieces(of: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(of, bytes):
        return [of] if of else []
    return of
