"""HTTP connections as mitmproxy makes them, with the bounds, trailers and error pages that it lacks.

`install` puts these classes in the place of mitmproxy's own; tests/proxy/test_mitmproxy_pin.py watches the version.
"""

import re
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from h2 import events as h2_events
from h2.errors import ErrorCodes
from h11 import Data, EndOfMessage
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState
from mitmproxy.net.http.http1 import assemble_response
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection, Http1Server

from gatewayfilter.proxy import second_try
from gatewayfilter.proxy.connection_deadlines import HeadBegunHook, HeadDoneHook
from gatewayfilter.proxy.faults import Fault, read_fault
from gatewayfilter.proxy.field_values import without_breaks
from gatewayfilter.proxy.head_budget import FREE_BYTES, HeldBytes, held_by
from gatewayfilter.proxy.http2_bounds import BoundedHttp2Server
from gatewayfilter.proxy.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.protocol_detection import MOST_BLANK_BYTES, count_line_ends
from gatewayfilter.proxy.responses import error_response
from gatewayfilter.proxy.upgrades import SWITCHING_PROTOCOLS, is_websocket_answer
from gatewayfilter.proxy.upload_flow import note_upload

MAX_HEADER_BYTES: Final = 262_144
"""Most bytes of a head, of trailers, of a chunk's head, or of requests sent ahead; mitmproxy would keep any number of them."""
_THROW_AWAY_BYTES: Final = 8_000_000
"""How much of a refused upload is read after the answer: a connection closed with unread data loses it (RFC 9112 §9.6)."""
_LAST_CHUNK: Final = b"0\r\n\r\n"
_LINE_ENDS: Final = (b"\r", b"\n")
_H2_TYPE_AT: Final = 3
_H2_HEAD_FRAMES: Final = frozenset({1, 9})
"""HEADERS and CONTINUATION (RFC 9113 §6), whose type is the fourth byte of a frame."""
_INTERIM: Final = re.compile(rb"HTTP/1\.[01][ \t]+(1(?!01)[0-9][0-9])(?:[ \t].*)?", re.DOTALL)
"""The first line of an answer that another one follows; 101 is none, whose connection goes on as something else."""
_VERSIONS: Final = frozenset({b"HTTP/1.1", b"HTTP/1.0"})
"""HTTP/1 has no others (RFC 9112 §2.3): a later minor version would be sent on as ours, and HTTP/2.0 is no line of text."""


@dataclass
class UnreadableRequestHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A client sent what is no HTTP request, and was told so. mitmproxy has no hook for what it cannot read."""

    client: Client
    blocking = False


def install() -> None:
    """Makes this process's mitmproxy use these connections. Doing it twice is doing it once."""
    http_layers.Http1Server = GatewayHttp1Server  # type: ignore[attr-defined]
    http_layers.Http1Client = GatewayHttp1Client  # type: ignore[attr-defined]
    http_layers.Http2Server = GatewayHttp2Server  # type: ignore[attr-defined, assignment]
    http_layers.Http2Client = PatientHttp2Client  # type: ignore[attr-defined, assignment]
    _http1.make_error_response = _unreadable_request
    second_try.install()


def _unreadable_request(status_code: int, message: str = "") -> bytes:
    return _assemble(error_response(read_fault(status_code, message), message))


def _assemble(response: http.Response) -> bytes:
    response.headers["connection"] = "close"
    return bytes(assemble_response(response))  # type: ignore[no-untyped-call]


class _TrailingReader(ChunkedReader):
    """Reads a chunked body, and keeps its trailers instead of handing them to mitmproxy, which refuses them."""

    trailers: http.Headers | None = None

    def __call__(self, buf: ReceiveBuffer) -> Data | EndOfMessage | None:
        event = super().__call__(buf)
        if isinstance(event, EndOfMessage) and event.headers:
            self.trailers = http.Headers(list(event.headers))
            return EndOfMessage()
        return event


class _BoundedConnection(Http1Connection, ABC):
    """What both sides of HTTP/1 have in common: trailers (RFC 9112 §7.1.2), and a bound on what is read ahead."""

    ReceiveTrailers: type[RequestTrailers | ResponseTrailers]
    _trailers: http.Headers | None = None
    _held: HeldBytes | None = None

    def keeps_too_much(self) -> bool:
        """Tells whether what is kept unread is too much, by itself or with what other connections keep."""
        size = len(self.buf)
        if self._held is None:
            if size <= FREE_BYTES:
                return False
            self._held = held_by(self.context.client)
        return not self._held.hold(size) or size > MAX_HEADER_BYTES

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Reads a body. Trailers go on as an event of their own, before its end."""
        assert self.stream_id is not None
        if type(self.body_reader) is ChunkedReader:
            self.body_reader = _TrailingReader()
        reader = self.body_reader
        if not isinstance(reader, _TrailingReader):
            yield from super().read_body(event)
            return
        for command in super().read_body(event):
            if reader.trailers is not None and isinstance(command, ReceiveHttp):
                yield ReceiveHttp(self.ReceiveTrailers(self.stream_id, reader.trailers))
                reader.trailers = None
            yield command
        if self.keeps_too_much() and self.state == self.read_body:
            yield from self.give_up("a chunk's head or the trailers are too large")

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends an event. Trailers wait for the end of the body; without chunks there is no place for them."""
        if isinstance(event, RequestTrailers | ResponseTrailers):
            self._trailers = event.trailers
        elif self._trailers is not None and isinstance(event, RequestEndOfMessage | ResponseEndOfMessage):
            fields = b"".join(b"%s: %s\r\n" % field for field in self._trailers.fields)
            self._trailers = None
            for command in super().send(event):
                if isinstance(command, commands.SendData) and command.data == _LAST_CHUNK:
                    command = commands.SendData(self.conn, b"0\r\n" + fields + b"\r\n")  # noqa: PLW2901
                yield command
        else:
            yield from super().send(event)

    def give_up(self, message: str) -> layer.CommandGenerator[None]:
        """Ends the connection and the request on it."""
        yield commands.CloseConnection(self.conn)
        self.state = self.done
        if self.stream_id is not None:
            yield ReceiveHttp(self.ReceiveProtocolError(self.stream_id, message, self.ReceiveProtocolError.code))


class GatewayHttp1Server(_BoundedConnection, Http1Server):
    """The client's side of an HTTP/1 connection: bounded heads, trailers, error pages, framing that the client understands."""

    ReceiveTrailers = RequestTrailers
    _throw_away: int | None = None
    """Bytes that may still come of a request that was answered with an error page; `None` while none was."""
    _line_ends: int = 0
    """Bytes of line ends that came before the next request."""
    _begun: int | None = None
    """The stream whose head has come in part, while its time is limited."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Reads a request head; answers 431 when it is too large, 505 when its version is none of HTTP/1."""
        # Line ends before a request (RFC 9112 §2.2): mitmproxy takes them for a request without lines and waits for more.
        if self.buf._data.startswith(_LINE_ENDS):  # noqa: SLF001  it has no way to peek
            self._line_ends += (count := count_line_ends(self.buf._data))  # noqa: SLF001
            self.buf.maybe_extract_at_most(count)
            if self._line_ends > MOST_BLANK_BYTES:
                yield commands.SendData(self.conn, _assemble(error_response(Fault.BAD_REQUEST)))
                yield commands.CloseConnection(self.conn)
                yield UnreadableRequestHook(self.context.client)
                self.state = self.done
                return
        yield from self._read_head(event)
        waits = self.state == self.read_headers and len(self.buf) > 0
        if not waits:
            self._line_ends = 0
        if waits or self._begun is not None:
            yield from self._tell_deadlines(waits=waits)
        if self.keeps_too_much() and self.state == self.read_headers:
            yield commands.SendData(self.conn, _assemble(error_response(Fault.HEADERS_TOO_LARGE)))
            yield commands.CloseConnection(self.conn)
            self.state = self.done
        if self.state == self.done and self.request is None:
            yield UnreadableRequestHook(self.context.client)

    def _tell_deadlines(self, *, waits: bool) -> layer.CommandGenerator[None]:
        if not waits:
            self._begun = None
            yield HeadDoneHook(self.context.client)
        elif self._begun != self.stream_id:
            self._begun = self.stream_id
            yield HeadBegunHook(self.context.client)

    def _read_head(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        refused = False
        for command in super().read_headers(event):
            refused = refused or isinstance(command, commands.CloseConnection)
            if isinstance(command, ReceiveHttp) and self.request is not None and not refused:
                version = self.request.data.http_version
                if version not in _VERSIONS:
                    self.request = None
                    yield commands.SendData(self.conn, _assemble(error_response(Fault.VERSION, version.decode("latin-1"))))
                    yield commands.CloseConnection(self.conn)
                    self.state = self.done
                    break
            yield command

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Reads a request body, or throws it away when an error page went out before its end."""
        if self._throw_away is None:
            yield from super().read_body(event)
            if self.state == self.read_body:  # there is more to come
                note_upload(self.context, self.stream_id)
            return
        self._throw_away -= len(self.buf.maybe_extract_at_most(len(self.buf)) or b"")
        if self._throw_away < 0 or isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self.conn)
            self.state = self.done

    def wait(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Keeps what the client sends ahead of the answer, within bounds."""
        yield from super().wait(event)
        if self.keeps_too_much():
            yield from self.give_up("too much was sent ahead of the answer")

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends an answer, or the page that says why there is none."""
        if isinstance(event, ResponseProtocolError):
            yield from self._send_error(event)
            return
        if isinstance(event, ResponseHeaders):
            self._frame(event.response)
        yield from super().send(event)

    def send_hints(self, stream_id: int, links: Sequence[bytes]) -> layer.CommandGenerator[None]:
        """Sends early hints for the request at hand, to a client that knows interim answers."""
        waits = self.stream_id == stream_id and self.response is None and self.request is not None
        if waits and self.request.data.http_version == b"HTTP/1.1":  # type: ignore[union-attr]
            fields = b"".join(b"Link: %b\r\n" % link for link in links)
            yield commands.SendData(self.conn, b"HTTP/1.1 103 Early Hints\r\n%b\r\n" % fields)

    def _frame(self, response: http.Response) -> None:
        headers = response.headers
        if self.request is not None and self.request.data.http_version == b"HTTP/1.0":
            if headers.pop("transfer-encoding", None) is not None:  # HTTP/1.0 has no chunks
                headers["connection"] = "close"
        elif response.is_http2 and not self._is_bodiless(response) and "content-length" not in headers:
            headers["transfer-encoding"] = "chunked"  # so that its end can be told from a broken connection

    def _is_bodiless(self, response: http.Response) -> bool:
        return response.status_code in {204, 304} or (self.request is not None and self.request.data.method == b"HEAD")

    def _send_error(self, event: ResponseProtocolError) -> layer.CommandGenerator[None]:
        if not self.conn.state & ConnectionState.CAN_WRITE:
            return
        status = event.code.http_status_code()
        answered = self.response is not None and self.response.status_code >= 200
        if status is None or answered or self._throw_away is not None:
            yield commands.CloseConnection(self.conn)
            return
        yield commands.SendData(self.conn, _assemble(_error_page(self.request, status, event.message)))
        if self.request_done or self.request is None:
            yield commands.CloseConnection(self.conn)
        else:
            self._throw_away = _THROW_AWAY_BYTES
            yield commands.CloseTcpConnection(self.conn, half_close=True)


class GatewayHttp2Server(BoundedHttp2Server):
    """The client's side of an HTTP/2 connection, with error pages of ours and limits for heads that come in parts."""

    _begun: int | None = None
    """The last stream when a head came in part, while its time is limited."""

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
                if last != self._begun:
                    self._begun = last
                    yield HeadDoneHook(self.context.client) if last is None else HeadBegunHook(self.context.client)
            return
        number = event.stream_id
        status = event.code.http_status_code()
        if status is None or not self.is_open_for_us(number) or self.h2_conn.streams[number].state_machine.headers_sent:
            yield from super()._handle_event(event)
            return
        parent = self.context.layers[-2]
        stream = parent.streams.get(number) if isinstance(parent, http_layers.HttpLayer) else None
        page = _error_page(stream.flow.request if stream is not None else None, status, event.message)
        yield from super()._handle_event(ResponseHeaders(number, page))
        if page.raw_content:
            yield from super()._handle_event(ResponseData(number, page.raw_content))
        yield from super()._handle_event(ResponseEndOfMessage(number))
        if not self.is_closed(number):  # the client still sends: nobody reads it (RFC 9113 §8.1)
            self.h2_conn.reset_stream(number, 0)
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())

    def _awaits_head(self) -> bool:
        """Tells whether the connection preface, a HEADERS or a CONTINUATION frame, or the end of a header block is awaited."""
        buffer = self.h2_conn.incoming_buffer
        if buffer._headers_buffer or buffer._preamble_len:  # noqa: SLF001  it has no way to ask
            return True
        data = buffer._data  # noqa: SLF001
        return 0 < len(data) <= _H2_TYPE_AT or (len(data) > _H2_TYPE_AT and data[_H2_TYPE_AT] in _H2_HEAD_FRAMES)


class GatewayHttp1Client(_BoundedConnection, Http1Client):
    """The origin's side of an HTTP/1 connection: bounded heads, trailers, interim answers passed over, chunks where needed."""

    ReceiveTrailers = ResponseTrailers
    _first: int | None = None
    """The stream that asked first over this connection."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Reads a response head.

        Deviation: of interim answers (1xx) only the links of early hints are forwarded (RFC 8297), where RFC 9110 §15.2 asks it
        of all: mitmproxy has one answer a request and would take the first one for it. "100 Continue" was already sent to the
        client.
        """
        if isinstance(event, events.ConnectionClosed) and self._was_stale():
            if self.conn.state & ConnectionState.CAN_WRITE:
                yield commands.CloseConnection(self.conn)
            self.state = self.done
            assert self.stream_id is not None
            yield ReceiveHttp(
                second_try.ConnectionWasStale(self.stream_id, "server closed connection", ErrorCode.GENERIC_SERVER_ERROR)
            )
            return
        while self.request is not None and (status := self._interim()) and (lines := self.buf.maybe_extract_lines()):
            if status == b"103":
                yield from self._pass_hints(lines[1:])
            if not self.buf:
                return
        if self.state == self.read_headers and self.keeps_too_much() and b"\r\n\r\n" not in self.buf._data:  # noqa: SLF001
            yield from self.give_up("the head of its answer is too large")
            return
        for command in super().read_headers(event):
            if type(command) is ReceiveHttp and (wrong := self._what_is_wrong(command.event)):
                yield from self.give_up(wrong)
                return
            yield command

    def _what_is_wrong(self, event: HttpEvent) -> str:
        """Returns why a response's head is not taken, `""` when it is."""
        if not _is_known(event):
            return "the first line of its answer is none of HTTP/1"
        if type(event) is ResponseHeaders and event.response.status_code == SWITCHING_PROTOCOLS:
            return "" if is_websocket_answer(self.request, event.response) else "it switches to a protocol that was not asked for"
        return ""

    def _interim(self) -> bytes:
        """Returns the status of an interim answer that has begun to arrive, `b""` when it is another one."""
        begun = self.buf._data  # noqa: SLF001  it has no way to peek
        if begun[9:10] != b"1" and b" 1" not in begun[:16]:
            return b""
        found = _INTERIM.fullmatch(begun[: max(begun.find(b"\n"), 0)].rstrip(b"\r"))
        return bytes(found[1]) if found is not None else b""

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Reads a body. What comes behind it while the request is still being sent is no answer to anything."""
        if self.response_done and isinstance(event, events.DataReceived):
            yield from self.give_up("it said more than its answer")
        else:
            yield from super().read_body(event)

    def _was_stale(self) -> bool:
        again = self.stream_id is not None and self.stream_id != self._first
        whole = self.request is not None and self.request_done and not self.buf
        return again and whole and second_try.may_be_asked_again(self.request)  # type: ignore[arg-type]

    def _pass_hints(self, lines: Sequence[bytes | bytearray]) -> layer.CommandGenerator[None]:
        links = [without_breaks(bytes(line).partition(b":")[2]).strip() for line in lines if line[:5].lower() == b"link:"]
        top = next((found for found in reversed(self.context.layers) if isinstance(found, http_layers.HttpLayer)), None)
        client = top.connections.get(top.context.client) if top is not None else None
        if isinstance(client, GatewayHttp1Server | GatewayHttp2Server) and links and self.stream_id is not None:
            yield from client.send_hints(self.stream_id, links)

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends a request. A body that came over HTTP/2 without a length goes on in chunks, and :authority as Host.

        mitmproxy would do the latter with the name decoded from xn--, which no origin knows.
        """
        if isinstance(event, RequestHeaders):
            if self._first is None:
                self._first = event.stream_id
            headers = event.request.headers
            if event.request.is_http2 and event.request.data.authority and "host" not in headers:
                headers.insert(0, b"Host", event.request.data.authority)
            if event.request.is_http2 and not event.end_stream and "content-length" not in headers:
                headers["transfer-encoding"] = "chunked"
        yield from super().send(event)


def _promises_content(event: h2_events.RequestReceived) -> bool:
    return any(name == b"content-length" and value != b"0" for name, value in event.headers or ())


def _is_known(event: HttpEvent) -> bool:
    if not isinstance(event, ResponseHeaders):
        return True
    head = event.response.data
    return head.http_version in _VERSIONS and (200 <= head.status_code <= 999 or head.status_code == 101)


def _error_page(request: http.Request | None, status: int, message: str) -> http.Response:
    fault = read_fault(status, message)
    if request is None:
        return error_response(fault, message)
    return error_response(
        fault, message, url=request.pretty_url, method=request.method, accept_language=request.headers.get("accept-language", "")
    )
