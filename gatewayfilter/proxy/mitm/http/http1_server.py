"""The client's side of an HTTP/1 connection."""

from collections.abc import Sequence
from typing import Final

from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    RequestTrailers,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._http1 import Http1Server

from gatewayfilter.proxy.listener.protocol_detection import MOST_BLANK_BYTES, count_line_ends
from gatewayfilter.proxy.mitm.hooks import HeadBegunHook, HeadDoneHook, UnreadableRequestHook
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers, assemble
from gatewayfilter.proxy.mitm.http.http1_bounds import VERSIONS, BoundedHttp1
from gatewayfilter.proxy.mitm.http.upload_flow import note_upload
from gatewayfilter.proxy.pages.upstream_errors import Fault
from gatewayfilter.proxy.request.repeated_request import RepeatedRequest

_THROW_AWAY_BYTES: Final = 8_000_000
"""How much of a refused upload is read after the answer: a connection closed with unread data loses it (RFC 9112 §9.6)."""
_LINE_ENDS: Final = (b"\r", b"\n")


class GatewayHttp1Server(BoundedHttp1, Http1Server):
    """The client's side of an HTTP/1 connection: bounded heads, trailers, error pages, framing of the client's version.

    Args:
        errors: makes its error pages.
        context: of the connection.

    Attributes:
        repeated: the last request that the fast path has read, `None` where it is not kept.
    """

    repeated: RepeatedRequest | None = None
    ReceiveTrailers = RequestTrailers
    _throw_away: int | None = None
    """Bytes that may still come of a request that was answered with an error page; `None` while none was."""
    _blank: tuple[int, int] = 0, 0
    """The stream before whose head line ends came, and how many, over all reads."""
    _completed: int | None = None
    """The stream whose head has come in part, while its time is limited."""

    def __init__(self, errors: ErrorAnswers, context: Context) -> None:
        super().__init__(context)
        self._errors = errors

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Reads a request head; answers 431 when it is too large, 505 when its version is none of HTTP/1."""
        # Line ends before a request (RFC 9112 §2.2): mitmproxy takes them for a request without lines and waits for more.
        if self.buf._data.startswith(_LINE_ENDS):  # noqa: SLF001  no public way to peek
            self.buf.maybe_extract_at_most(count := count_line_ends(self.buf._data))  # noqa: SLF001
            before, known = self._blank
            self._blank = self.stream_id, count + (known if before == self.stream_id else 0)
            if self._blank[1] > MOST_BLANK_BYTES:
                yield commands.SendData(self.conn, self._errors.closing(Fault.BAD_REQUEST))
                yield commands.CloseConnection(self.conn)
                yield UnreadableRequestHook(self.context.client)
                self.state = self.done
                return
        yield from self._read_head(event)
        waits = self.state == self.read_headers and len(self.buf) > 0
        if waits or self._completed is not None:
            yield from self._tell_deadlines(waits=waits)
        if self.keeps_too_much() and self.state == self.read_headers:
            yield commands.SendData(self.conn, self._errors.closing(Fault.HEADERS_TOO_LARGE))
            yield commands.CloseConnection(self.conn)
            self.state = self.done
        if self.state == self.done and self.request is None:
            yield UnreadableRequestHook(self.context.client)

    def _tell_deadlines(self, *, waits: bool) -> layer.CommandGenerator[None]:
        if not waits:
            self._completed = None
            yield HeadDoneHook(self.context.client)
        elif self._completed != self.stream_id:
            self._completed = self.stream_id
            yield HeadBegunHook(self.context.client)

    def _read_head(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        refused = False
        for command in super().read_headers(event):
            refused = refused or isinstance(command, commands.CloseConnection)
            if isinstance(command, ReceiveHttp) and self.request is not None and not refused:
                version = self.request.data.http_version
                if version not in VERSIONS:
                    self.request = None
                    yield commands.SendData(self.conn, self._errors.closing(Fault.VERSION, version.decode("latin-1")))
                    yield commands.CloseConnection(self.conn)
                    self.state = self.done
                    break
            yield command

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Reads a request body, or drops it when an error page went out before its end."""
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
        """Sends a response, or an error page where there is none."""
        if isinstance(event, ResponseProtocolError):
            yield from self._send_error(event)
            return
        if isinstance(event, ResponseHeaders):
            self._frame(event.response)
        yield from super().send(event)

    def send_hints(self, stream_id: int, links: Sequence[bytes]) -> layer.CommandGenerator[None]:
        """Sends early hints for the request at hand, to a client of HTTP/1.1, which has interim responses."""
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
            headers["transfer-encoding"] = "chunked"  # so that its end differs from a broken connection

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
        yield commands.SendData(self.conn, assemble(self._errors.page(self.request, status, event.message)))
        if self.request_done or self.request is None:
            yield commands.CloseConnection(self.conn)
        else:
            self._throw_away = _THROW_AWAY_BYTES
            yield commands.CloseTcpConnection(self.conn, half_close=True)
