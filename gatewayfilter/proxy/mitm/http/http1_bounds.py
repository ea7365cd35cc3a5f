"""Trailers (RFC 9112 §7.1.2) and a bound on what is read ahead, for both sides of an HTTP/1 connection."""

from abc import ABC
from typing import Final

from h11 import Data, EndOfMessage, ProtocolError
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    RequestEndOfMessage,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._http1 import Http1Connection

from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES, HeldBytes, held_by

MAX_HEADER_BYTES: Final = 262_144
"""Most bytes of a head, of trailers, of a chunk's head, or of requests sent ahead; mitmproxy would keep any number of them."""
_LAST_CHUNK: Final = b"0\r\n\r\n"
VERSIONS: Final = frozenset({b"HTTP/1.1", b"HTTP/1.0"})
"""HTTP/1 has no others (RFC 9112 §2.3): a later minor version would be forwarded as HTTP/1.1, and HTTP/2 has no first line."""


class _TrailingReader(ChunkedReader):
    """Reads a chunked body: all chunks that have come as one piece, and trailers, which mitmproxy refuses, apart from it.

    A peer decides how small its chunks are: each by itself would be an event through all layers, some 20 µs for a byte.
    """

    trailers: http.Headers | None = None
    _later: EndOfMessage | ProtocolError | None = None
    """What came behind the chunks of the last piece."""

    def __call__(self, buf: ReceiveBuffer) -> Data | EndOfMessage | None:
        later, self._later = self._later, None
        if isinstance(later, ProtocolError):
            raise later
        event = later or self._read(buf)
        if type(event) is not Data or not buf:
            return event
        pieces = [event.data]
        try:
            more = self._read(buf)
            while isinstance(more, Data):
                pieces.append(more.data)
                more = self._read(buf)
            self._later = more
        except ProtocolError as error:
            self._later = error
        return Data(b"".join(pieces))

    def _read(self, buf: ReceiveBuffer) -> Data | EndOfMessage | None:
        event = super().__call__(buf)
        if isinstance(event, EndOfMessage) and event.headers:
            self.trailers = http.Headers(list(event.headers))
            return EndOfMessage()
        return event


class BoundedHttp1(Http1Connection, ABC):
    """Adds trailers (RFC 9112 §7.1.2) and a bound on what is read ahead to one side of an HTTP/1 connection."""

    ReceiveTrailers: type[RequestTrailers | ResponseTrailers]
    _trailers: http.Headers | None = None
    _held: HeldBytes | None = None

    def keeps_too_much(self) -> bool:
        """Returns whether too much is kept unread, by itself or with other connections."""
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
            if reader.trailers is not None and type(command) is ReceiveHttp and type(command.event) is not self.ReceiveData:
                yield ReceiveHttp(self.ReceiveTrailers(self.stream_id, reader.trailers))
                reader.trailers = None
            yield command
        if self.keeps_too_much() and self.state == self.read_body:
            yield from self.give_up("a chunk's head or the trailers are too large")

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Sends an event. Trailers wait for the end of the body; they are dropped where it has no chunks."""
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
