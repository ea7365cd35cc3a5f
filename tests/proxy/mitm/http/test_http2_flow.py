"""A client of HTTP/2 that takes nothing: the proxy leaves the download with the origin, over HTTP/1 and HTTP/2."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from gatewayfilter.proxy.mitm.http.http2_flow import PAUSED
from tests.proxy.connection_fakes import until
from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import Gateway

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

_SIZE = 40_000_000
_MOST_AHEAD = 16_000_000
"""What sockets of loopback and the proxy hold together; without back pressure it is all."""
_CHUNK = bytes(60_000)


class _Site:
    """Answers `/large` with `_SIZE` bytes as fast as they are taken, and all else with a word."""

    def __init__(self) -> None:
        self.sent = 0
        self.url = ""


class _Http1Site(_Site):
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if not head.startswith(b"GET /large"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall")
                    continue
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {_SIZE}\r\n\r\n".encode())
                while self.sent < _SIZE:
                    piece = _CHUNK[: _SIZE - self.sent]
                    writer.write(piece)
                    await writer.drain()
                    self.sent += len(piece)
        except (OSError, asyncio.IncompleteReadError):
            pass


class _Http2Site(_Site):
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        large = 0
        try:
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        assert event.stream_id is not None
                        connection.send_headers(event.stream_id, [(":status", "200")])
                        if (":path", "/large") in [(str(name), str(value)) for name, value in event.headers or ()]:
                            large = event.stream_id
                        else:
                            connection.send_data(event.stream_id, b"small", end_stream=True)
                while large and self.sent < _SIZE:
                    room = min(connection.local_flow_control_window(large), connection.max_outbound_frame_size, _SIZE - self.sent)
                    if room <= 0:
                        break
                    connection.send_data(large, bytes(room), end_stream=self.sent + room == _SIZE)
                    self.sent += room
                writer.write(connection.data_to_send())
        except OSError:
            pass


@asynccontextmanager
async def _serving(site: _Http1Site | _Http2Site, ca: trustme.CA, protocol: str) -> AsyncIterator[None]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(tls)
    tls.set_alpn_protocols([protocol])
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    yield
    server.close()


async def _settled(site: _Site) -> int:
    """Returns what the site could send, once it sends no more."""
    before, still = -1, 0
    async with asyncio.timeout(30):
        while still < 5:
            still = still + 1 if site.sent == before and site.sent else 0
            before = site.sent
            await asyncio.sleep(0.1)
    return before


@pytest.mark.parametrize(("make", "protocol"), [(_Http1Site, "http/1.1"), (_Http2Site, "h2")])
async def test_what_a_client_does_not_take_stays_with_the_origin(
    gateway: Gateway,
    authority: trustme.CA,
    client_tls: ssl.SSLContext,
    make: Callable[[], _Http1Site | _Http2Site],
    protocol: str,
) -> None:
    client_tls.set_alpn_protocols(["h2"])
    site = make()
    async with _serving(site, authority, protocol):
        client = await Http2Client.connect(gateway, site.url, client_tls)
        client._connection.increment_flow_control_window(2**24)  # of the connection: the stream's stays small
        stream = client.ask("GET", "/large")
        assert await _settled(site) < _MOST_AHEAD
        status, body = await client.answer(client.ask("GET", "/small"))
        assert (status, body) == ("200", b"small")  # other streams go on meanwhile
        assert site.sent < _MOST_AHEAD
        client._connection.increment_flow_control_window(2**30)
        client._connection.increment_flow_control_window(2**30, stream)
        async with asyncio.timeout(60):
            got = await _length(client, stream)
        assert got >= _SIZE - 200_000  # less what came while the small page was read
        client.close()


_SHORT_PING = b"\0\0\1\6\0\0\0\0\0x"
_GOODBYE = b"\0\0\x08\7\0\0\0\0\0" + bytes(8)


@pytest.mark.parametrize("last", [b"", _SHORT_PING, _GOODBYE], ids=["away", "a short ping", "a goodbye"])
async def test_a_client_that_goes_leaves_nothing_paused(
    last: bytes, gateway: Gateway, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    client_tls.set_alpn_protocols(["h2"])
    site = _Http1Site()
    async with _serving(site, authority, "http/1.1"):
        client = await Http2Client.connect(gateway, site.url, client_tls)
        client.ask("GET", "/large")
        await _settled(site)
        assert PAUSED
        if last:
            client._writer.write(last)
        else:
            client.close()
        await until(lambda: not PAUSED)
        client.close()


async def _length(client: Http2Client, stream: int) -> int:
    """Takes all of a stream. Returns how many bytes came."""
    length = 0
    client._writer.write(client._connection.data_to_send())
    while data := await client._reader.read(1_000_000):
        for event in client._connection.receive_data(data):
            if isinstance(event, h2.events.DataReceived) and event.stream_id == stream:
                length += len(event.data)
            if isinstance(event, h2.events.StreamEnded) and event.stream_id == stream:
                return length
        client._writer.write(client._connection.data_to_send())
    return length
