"""The origin's side of an HTTP/1 connection."""

import re
from collections.abc import Sequence
from typing import Final, Self

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestHeaders,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client

from gatewayfilter.proxy.mitm import stale_retry
from gatewayfilter.proxy.mitm.hooks import Http2NeededHook
from gatewayfilter.proxy.mitm.http.http1_bounds import VERSIONS, BoundedHttp1
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.mitm.http.upgrades import SWITCHING_PROTOCOLS, is_websocket_answer
from gatewayfilter.proxy.mitm.sharing import binds, sharing_of
from gatewayfilter.proxy.request.header_sanitizer import without_breaks

_SETTINGS: Final = b"\4\0\0\0\0\0"
"""Type, flags and stream of the first frame of HTTP/2."""
_INTERIM: Final = re.compile(rb"HTTP/1\.[01][ \t]+(1(?!01)[0-9][0-9])(?:[ \t][^\n]*|\r*)\n")
"""The first line of an interim response, which another one follows; 101 is none, it changes the protocol."""
_MOST_INTERIM: Final = 100
"""Interim responses to one request: nothing of them reaches the client, which so holds up no origin that sends them for ever."""


class GatewayHttp1Client(BoundedHttp1, Http1Client):
    """The origin's side of an HTTP/1 connection: bounded heads, trailers, interim responses skipped, chunks where needed."""

    ReceiveTrailers = ResponseTrailers
    _first: int | None = None
    """The stream of the first request on this connection; 0 where another client's came first."""
    _interims: tuple[int | None, int] = (None, 0)
    """A stream, and how many interim responses came for its request."""

    @classmethod
    def idle(cls, context: Context) -> Self:
        """Returns the side of a connection on which another client's requests were answered."""
        made = cls(context)
        made.state = made.read_headers
        made._first = 0
        return made

    @property
    def has_answered(self) -> bool:
        """Whether a request was sent; when none is under way, it was answered."""
        return self._first is not None

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Reads a response head.

        Deviation: of interim responses (1xx) only the links of early hints are forwarded (RFC 8297), where RFC 9110 §15.2
        requires it for all: mitmproxy has one response a request and would take the first one for it. "100 Continue" was
        already sent to the client.
        """
        if isinstance(event, events.ConnectionClosed) and self._was_stale():
            if self.conn.state & ConnectionState.CAN_WRITE:
                yield commands.CloseConnection(self.conn)
            self.state = self.done
            assert self.stream_id is not None
            yield ReceiveHttp(
                stale_retry.ConnectionWasStale(self.stream_id, "server closed connection", ErrorCode.GENERIC_SERVER_ERROR)
            )
            return
        if self._needs_http2():
            yield Http2NeededHook(self.conn)  # type: ignore[arg-type]
            yield commands.CloseConnection(self.conn)
            self.state = self.done
            assert self.stream_id is not None
            whole = self.request_done and stale_retry.is_retryable(self.request)  # type: ignore[arg-type]
            kind = stale_retry.ConnectionWasStale if whole else ResponseProtocolError
            yield ReceiveHttp(kind(self.stream_id, "the origin has HTTP/2 alone", ErrorCode.GENERIC_SERVER_ERROR))
            return
        if (yield from self._read_interims()):
            return
        if self.state == self.read_headers and self.keeps_too_much() and b"\r\n\r\n" not in self.buf._data:  # noqa: SLF001
            yield from self.give_up("the head of its answer is too large")
            return
        for command in super().read_headers(event):
            if type(command) is ReceiveHttp and (wrong := self._what_is_wrong(command.event)):
                yield from self.give_up(wrong)
                return
            yield command

    def _read_interims(self) -> layer.CommandGenerator[bool]:
        """Reads the interim responses that have come; returns whether there are too many."""
        while self.request is not None and (status := self._interim()) and (lines := self.buf.maybe_extract_lines()):
            self._interims = self.stream_id, self._interims[1] + 1 if self._interims[0] == self.stream_id else 1
            if self._interims[1] > _MOST_INTERIM:
                yield from self.give_up("it sends interim responses without end")
                return True
            if status == b"103":
                yield from self._pass_hints(lines[1:])
        return False

    def _needs_http2(self) -> bool:
        """Returns whether the origin answers the first request with the settings that begin HTTP/2 (RFC 9113 §3.4)."""
        if self._first is None or self.stream_id != self._first or self.conn.alpn or not self.conn.tls:
            return False
        begun = bytes(self.buf._data[:9])  # noqa: SLF001  no public way to peek
        return len(begun) == 9 and begun[:1] == b"\0" and begun[3:] == _SETTINGS

    def _what_is_wrong(self, event: HttpEvent) -> str:
        """Returns why a response's head is refused, `""` when it is not."""
        if not _is_known(event):
            return "the first line of its answer is none of HTTP/1"
        if type(event) is ResponseHeaders and event.response.status_code == SWITCHING_PROTOCOLS:
            return "" if is_websocket_answer(self.request, event.response) else "it switches to a protocol that was not requested"
        return ""

    def _interim(self) -> bytes:
        """Returns the status of an interim response that has begun to arrive, `b""` when it is another one."""
        completed = self.buf._data  # noqa: SLF001  no public way to peek
        if completed[9:10] != b"1" and b" 1" not in completed[:16]:
            return b""
        found = _INTERIM.match(completed)
        return bytes(found[1]) if found is not None else b""

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Reads a body. Data after it, while the request is still being sent, ends the connection."""
        if self.response_done and isinstance(event, events.DataReceived):
            yield from self.give_up("it sent more than its response")
        else:
            yield from super().read_body(event)

    def _was_stale(self) -> bool:
        again = self.stream_id is not None and self.stream_id != self._first
        whole = self.request is not None and self.request_done and not self.buf
        return again and whole and stale_retry.is_retryable(self.request)  # type: ignore[arg-type]

    def _pass_hints(self, lines: Sequence[bytes | bytearray]) -> layer.CommandGenerator[None]:
        links = [without_breaks(bytes(line).partition(b":")[2]).strip() for line in lines if line[:5].lower() == b"link:"]
        top = next((found for found in reversed(self.context.layers) if isinstance(found, http_layers.HttpLayer)), None)
        client = top.connections.get(top.context.client) if top is not None else None
        if isinstance(client, GatewayHttp1Server | GatewayHttp2Server) and links and self.stream_id is not None:
            yield from client.send_hints(self.stream_id, links)

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends a request. A body that came over HTTP/2 without a length goes on in chunks, and :authority as Host.

        mitmproxy would do the latter with the name decoded from xn--, which origins do not accept.
        """
        if isinstance(event, RequestHeaders):
            sharing = sharing_of(self.conn)
            if self._first is None:
                self._first = event.stream_id if sharing is None or sharing.adopted is None else 0
            # By HTTP/2 a body may come without a length: its request looks like one that has none.
            has_body = not event.end_stream or not stale_retry.is_retryable(event.request)
            if sharing is not None and (has_body or binds(event.request)):
                sharing.bound = True
            headers = event.request.headers
            if event.request.is_http2 and event.request.data.authority and "host" not in headers:
                headers.insert(0, b"Host", event.request.data.authority)
            if event.request.is_http2 and not event.end_stream and "content-length" not in headers:
                headers["transfer-encoding"] = "chunked"
        yield from super().send(event)


def _is_known(event: HttpEvent) -> bool:
    if not isinstance(event, ResponseHeaders):
        return True
    head = event.response.data
    return head.http_version in VERSIONS and (200 <= head.status_code <= 999 or head.status_code == 101)
