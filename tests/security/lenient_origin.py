"""A site that co-operates with a client that wants to get round the filter.

It serves blocked content, with `MARKER` in it, for whatever could name it, keeps what it was asked, and answers as the path
`/ok/MODE/…` asks it to.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trustme

from tests.security.lenient_reading import LenientHead, is_blocked, names_blocked, read_head, tokens

MARKER = b"MARKER-of-blocked-content"
STRAY = b"STRAY-"
END = b"<!--end-->"
SERVED = ("ok.test", "front.test", "blocked.test", "sub.blocked.test", "localhost")
"""The certificate's names. It is not valid for `VICTIM`."""
VICTIM = b"victim.test"
"""A site that has nothing to do with this one: nothing may be learned of it."""
_CASINO = (
    b"<html><head><title>Golden Reef online casino - 300% welcome bonus</title></head><body><h1>Golden Reef online casino</h1>"
    b"<p>Play online slots, roulette, blackjack and baccarat for real money. Take your no deposit bonus and 100 free spins, "
    b"place your bets in our sportsbook, hit the jackpot and withdraw your winnings.</p>"
    + b"<p>The path along the hedge dried slowly after the rain.</p>"
    * 5
)
_SEND_AHEAD_S = 0.02
_CRAWLER = b"User-Agent: GatewayFilter/"
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"


@dataclass
class Seen:
    """What an origin was asked.

    Attributes:
        requests: the marks of all requests.
        raw: what came that was no request.
        blocked: the marks of requests for blocked content.
    """

    requests: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)


class LenientOrigin:
    """The site, plain and by TLS. `async with` runs it.

    Attributes:
        seen: what it was asked.
        plain, tls: its ports.
        certificate: DER of its own certificate: a client that sees it speaks to the origin unread.
    """

    def __init__(self, authority: trustme.CA, host: str = "127.0.0.1", ports: tuple[int, int] = (0, 0)) -> None:
        self.seen = Seen()
        self._host = host
        self.plain, self.tls = ports
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf = authority.issue_cert(*SERVED, "127.0.0.1")
        leaf.configure_cert(self._context)
        self.certificate = ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._context.sni_callback = self._named
        self._names: dict[int, str] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    def _named(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        self._names[id(connection)] = name or ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["LenientOrigin"]:
        """Serves."""
        plain = await asyncio.start_server(self._serve, self._host, self.plain, backlog=512)
        secured = await asyncio.start_server(self._serve, self._host, self.tls, ssl=self._context, backlog=512)
        self.plain, self.tls = (server.sockets[0].getsockname()[1] for server in (plain, secured))
        try:
            yield self
        finally:
            for server in (plain, secured):
                server.close()
            for writer in list(self._writers):
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        secured = writer.get_extra_info("ssl_object")
        sni = self._names.pop(id(secured), "").encode() if secured is not None else b""
        try:
            await _Conversation(self.seen, reader, writer, sni).run()
        except (OSError, asyncio.IncompleteReadError, h2.exceptions.ProtocolError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


class _Conversation:
    """One connection."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sni: bytes) -> None:
        self._seen = seen
        self._reader = reader
        self._writer = writer
        self._sni = sni
        self._buffer = b""

    async def run(self) -> None:
        """Answers until the client goes, or asks for an end."""
        while True:
            self._buffer = self._buffer.lstrip(b"\r\n")
            if self._buffer.startswith(b"\x16\x03"):
                return  # TLS to the plain port: the filter's own, or a client's that was let through unread and gets nothing
            head = read_head(self._buffer)
            if self._buffer and (not _TOKEN.match(self._buffer) or (head is not None and not head.method)):
                await self._be_raw()
                return
            if self._buffer.startswith(_PREFACE):
                await _Http2Conversation(self._seen, self._reader, self._writer, self._sni).run(self._buffer)
                return
            if head is None:
                if not await self._more():
                    self._note_raw()  # the filter sends whole heads
                    return
            elif not await self._answer(head, await self._body_size(head)):
                return

    async def _body_size(self, head: LenientHead) -> int:
        while (size := head.body_size(self._buffer[head.size :])) is None:
            if not await self._more():
                return 0
        return size

    async def _more(self) -> bool:
        data = await self._reader.read(65536)
        self._buffer += data
        return bool(data)

    def _note_raw(self) -> None:
        if self._buffer and _CRAWLER not in self._buffer:  # which asks again where it was answered 101
            self._seen.raw.append(self._buffer[:200])

    async def _be_raw(self) -> None:
        """Takes everything for a language of its own, and says what is blocked to whom names it."""
        while True:
            if self._buffer:
                self._note_raw()
                self._writer.write((MARKER if names_blocked(self._buffer) else b"raw ") + END)
                self._buffer = b""
            if not await self._more():
                return

    async def _answer(self, head: LenientHead, size: int) -> bool:
        self._buffer = self._buffer[head.size + size :]
        mark, blocked = note(self._seen, head, self._sni)
        if blocked:
            self._write(b"HTTP/1.1 200 OK", MARKER)
            return True
        parts = head.path().split(b"/")
        mode = parts[2].partition(b"?")[0].decode("latin-1") if len(parts) > 2 else ""
        shape = _SHAPES.get(mode)
        if shape is None:
            self._write(b"HTTP/1.1 200 OK", b"fine " + mark + (_CASINO if mode == "casino" else b""))
            return True
        if mode == "switch":
            self._writer.write(shape)
            await self._be_raw()
            return False
        if mode == "later":
            self._write(b"HTTP/1.1 200 OK", b"fine " + mark)
            await asyncio.sleep(_SEND_AHEAD_S)
        self._writer.write(shape.replace(b"%MARK", mark))
        return not mode.startswith("close")

    def _write(self, line: bytes, body: bytes) -> None:
        body += END
        self._writer.write(b"%b\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (line, len(body), body))


def note(seen: Seen, head: LenientHead, sni: bytes) -> tuple[bytes, bool]:
    """Notes a request; returns its mark and whether it could be served blocked content."""
    found = tokens(head.target) or ["?"]
    seen.requests.append(found[0])
    blocked = is_blocked(head, sni)
    if blocked:
        seen.blocked.append(found[0])
    return found[0].encode(), blocked


_STRAY_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + STRAY + b"%MARK" + END
_FINE = b"fine %MARK" + END
_FINE_LENGTH = b"Content-Length: %d\r\n" % (len(_FINE) - 5 + 14)
_SHAPES: dict[str, bytes] = {
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n",
    "twice": b"HTTP/1.1 200 OK\r\n" + _FINE_LENGTH + b"\r\n" + _FINE + _STRAY_ANSWER,
    # Sent when the next request may be on its way already: it looks like a quick answer to that.
    "later": b"HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\nlate answer " + b"%MARK" + b"......",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 199 Odd\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\n"
    + _FINE_LENGTH
    + b"\r\n"
    + _FINE,
    "both": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + _STRAY_ANSWER,
    "lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 60\r\n\r\n" + _STRAY_ANSWER,
    "nobody": b"HTTP/1.1 204 No Content\r\nContent-Length: 60\r\n\r\n" + _STRAY_ANSWER,
    "notmodified": b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n" + _STRAY_ANSWER,
    "closelast": b"HTTP/1.0 200 OK\r\n\r\n" + _FINE,
    "closecut": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + _FINE,
    "garbage": b"\x00\x01\x02 no HTTP \xff\r\n\r\n" + _STRAY_ANSWER,
    "folded": b"HTTP/1.1 200 OK\r\nX-A: b\r\n c\rd\r\n" + _FINE_LENGTH + b"\r\n" + _FINE,
    "badchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nfoo\r\n0\r\n\r\n" + _STRAY_ANSWER,
}
"""How an answer looks for `/ok/NAME/…`; a `STRAY` in the answer to another request is an answer gone astray."""
MODES = tuple(_SHAPES)


class _Http2Conversation:
    """One connection by HTTP/2, in which nothing that the client says is checked."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sni: bytes) -> None:
        self._seen = seen
        self._reader = reader
        self._writer = writer
        self._sni = sni
        config = h2.config.H2Configuration(
            client_side=False, header_encoding=None, validate_inbound_headers=False, normalize_inbound_headers=False
        )
        self._connection = h2.connection.H2Connection(config)
        self._connection.initiate_connection()

    async def run(self, data: bytes) -> None:
        """Answers each request."""
        while data:
            for event in self._connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._answer(event)
                elif isinstance(event, h2.events.ConnectionTerminated):
                    return
            self._writer.write(self._connection.data_to_send())
            data = await self._reader.read(65536)

    def _answer(self, event: h2.events.RequestReceived) -> None:
        fields = tuple((bytes(name).lower(), bytes(value)) for name, value in event.headers or ())
        pseudo = dict(fields)
        head = LenientHead(pseudo.get(b":method", b""), pseudo.get(b":path", b""), fields, 0)
        mark, blocked = note(self._seen, head, self._sni)
        body = (MARKER if blocked else b"fine " + mark + (_CASINO if b"/casino/" in head.target else b"")) + END
        stream = event.stream_id or 1
        self._connection.send_headers(stream, [(b":status", b"200"), (b"content-type", b"text/html")])
        self._connection.send_data(stream, body, end_stream=True)
