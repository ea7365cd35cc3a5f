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
PATIENCE_S = 30


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


class Channel:
    """One connection to the proxy, in the clear or with TLS inside."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()

    async def send(self, data: bytes, cut: int = 0) -> None:
        """Sends bytes, the first `cut` of them in a segment (with TLS: a record) of their own."""
        for part in (data[:cut], data[cut:]):
            if part:
                await self._send(part)
                await asyncio.sleep(PAUSE_S)

    async def _send(self, data: bytes) -> None:
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        self._writer.write(data)
        await self._writer.drain()

    async def read(self) -> bytes:
        """Returns what comes next, `b""` at the end."""
        while True:
            if self._tls is not None:
                try:
                    return self._tls.read(65536)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError:
                    return b""
            data = await self._reader.read(65536)
            if self._tls is None or not data:
                return data
            self._incoming.write(data)

    async def status(self) -> str:
        """Returns status and reason of the next answer: `403 blacklist`, `200` of the site, `closed`."""
        head = b""
        while b"\r\n\r\n" not in head:
            try:
                data = await self.read()
            except OSError:
                data = b""
            if not data:
                return "closed" if not head else f"half {head[:60]!r}"
            head += data
        lines = head.split(b"\r\n\r\n", 1)[0].decode("latin-1").split("\r\n")
        reason = [line.rpartition("reason=")[2] for line in lines if line.lower().startswith("x-gatewayfilter")]
        return " ".join([lines[0].split(" ")[1], *reason])

    async def begin_tls(self, context: ssl.SSLContext, name: str | None, cut: int = 0) -> str:
        """Does a handshake, whose first bytes are cut. Returns the chosen ALPN protocol, or `closed`."""
        tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send(self._outgoing.read(), cut)
                cut = 0
                try:
                    data = await self._reader.read(65536)
                except OSError:
                    data = b""
                if not data:
                    return "closed"
                self._incoming.write(data)
            except ssl.SSLError as error:
                return f"closed: {error.reason}"
            else:
                await self.send(self._outgoing.read())
                self._tls = tls
                return tls.selected_alpn_protocol() or ""

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

    def close(self) -> None:
        """Ends it."""
        self._writer.transport.abort()


@asynccontextmanager
async def channel(port: int, connect: str = "", cut: int = 0) -> AsyncIterator[Channel]:
    """Opens a connection to the proxy, through a tunnel when `connect` names a target."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = Channel(reader, writer)
        try:
            if connect:
                await found.send(f"CONNECT {connect} HTTP/1.1\r\nHost: {connect}\r\n\r\n".encode(), cut)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            yield found
        finally:
            found.close()
