"""Clients that choose how their bytes are cut into segments, and a site that notes what reaches it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events

PAUSE_S = 0.004
"""The proxy runs in the same loop, which looks at all sockets at least once in that time."""
PATIENCE_S = 60


@dataclass
class Site:
    """Answers each connection's first bytes as a web server does, whatever they are.

    Attributes:
        heard: what came, one item a connection.
    """

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = bytearray()
        try:
            while b"\n\r\n" not in data and (chunk := await reader.read(65536)):
                data += chunk
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsite")
        except OSError:
            pass
        finally:
            self.heard.append(bytes(data))
            writer.close()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Runs one."""
    found = Site()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = int(server.sockets[0].getsockname()[1])
    async with server:
        yield found


class Raw:
    """The bytes of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def read(self) -> bytes:
        try:
            return await self._reader.read(65536)
        except OSError:
            return b""

    def close(self) -> None:
        self._writer.transport.abort()


class Tls:
    """TLS over something else."""

    def __init__(self, below: "Raw | Tls", context: ssl.SSLContext, name: str | None) -> None:
        self._below = below
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    async def shake_hands(self, cut: int) -> str:
        """Does a handshake, whose first bytes are cut. Returns the chosen ALPN protocol, or `closed`."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await in_pieces(self._below, self._outgoing.read(), cut)
                cut = 0
                if not (data := await self._below.read()):
                    return "closed"
                self._incoming.write(data)
            except ssl.SSLError as error:
                return f"closed: {error.reason}"
            else:
                await in_pieces(self._below, self._outgoing.read(), 0)
                return self._tls.selected_alpn_protocol() or ""

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._below.write(self._outgoing.read())

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(65536)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return b""
            if not (data := await self._below.read()):
                return b""
            self._incoming.write(data)


async def in_pieces(to: Raw | Tls, data: bytes, cut: int) -> None:
    """Sends bytes, the first `cut` of them in a segment (with TLS: a record) of their own."""
    for part in (data[:cut], data[cut:]):
        if part:
            await to.write(part)
            await asyncio.sleep(PAUSE_S)


class Channel:
    """One connection to the proxy, in the clear or with TLS inside."""

    def __init__(self, raw: Raw) -> None:
        self._top: Raw | Tls = raw

    async def send(self, data: bytes, cut: int = 0) -> None:
        """Sends bytes, the first `cut` of them in a segment (with TLS: a record) of their own."""
        await in_pieces(self._top, data, cut)

    async def read(self) -> bytes:
        """Returns what comes next, `b""` at the end."""
        return await self._top.read()

    async def begin_tls(self, context: ssl.SSLContext, name: str | None, cut: int = 0) -> str:
        """Begins TLS, also within TLS. Returns the chosen ALPN protocol, or `closed`."""
        self._top = tls = Tls(self._top, context, name)
        return await tls.shake_hands(cut)

    async def status(self) -> str:
        """Returns status and reason of the next answer: `403 blacklist`, `200` of the site, `closed`."""
        head = b""
        while b"\r\n\r\n" not in head:
            if not (data := await self.read()):
                return "closed" if not head else f"half {head[:60]!r}"
            head += data
        lines = head.split(b"\r\n\r\n", 1)[0].decode("latin-1").split("\r\n")
        reason = [line.rpartition("reason=")[2] for line in lines if line.lower().startswith("x-gatewayfilter")]
        return " ".join([lines[0].split(" ")[1], *reason])

    async def status_by_http2(self, host: str, path: str, cut: int = 0) -> str:
        """Asks by HTTP/2, the connection preface cut. Returns what `status` does."""
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        connection.initiate_connection()
        fields = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)]
        connection.send_headers(1, fields, end_stream=True)
        await self.send(connection.data_to_send(), cut)
        while data := await self.read():
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    answer = dict(event.headers)
                    return (
                        f"{answer[b':status'].decode()} {answer.get(b'x-gatewayfilter', b'').decode().rpartition('reason=')[2]}"
                    )
        return "closed"


@asynccontextmanager
async def channel(port: int, connect: str = "", cut: int = 0) -> AsyncIterator[Channel]:
    """Opens a connection to the proxy, through a tunnel when `connect` names a target."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        raw = Raw(reader, writer)
        found = Channel(raw)
        try:
            if connect:
                await found.send(f"CONNECT {connect} HTTP/1.1\r\nHost: {connect}\r\n\r\n".encode(), cut)
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200"), answer
            yield found
        finally:
            raw.close()
