"""HTTP/2 clients, whose origin here speaks HTTP/1."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from tests.proxy.proxy_fakes import Gateway, Origin


class Http2Client:
    """One HTTP/2 connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str) -> None:
        self._reader = reader
        self._writer = writer
        self._authority = authority
        self.hints: list[str] = []
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._connection.initiate_connection()

    @classmethod
    async def connect(cls, gateway: Gateway, origin: str, tls: ssl.SSLContext) -> "Http2Client":
        authority = urlsplit(origin).netloc
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(tls, server_hostname="localhost")
        return cls(reader, writer, authority)

    def ask(self, method: str, path: str, *, body: bool = False, **headers: str) -> int:
        """Sends request headers. Returns the stream's number."""
        stream = self._connection.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "https"), (":authority", self._authority), (":path", path)]
        self._connection.send_headers(stream, [*fields, *headers.items()], end_stream=not body)
        self._writer.write(self._connection.data_to_send())
        return stream

    def send(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """Sends a part of a body."""
        self._connection.send_data(stream, data, end_stream=end)
        self._writer.write(self._connection.data_to_send())

    async def answer(self, stream: int) -> tuple[str, bytes]:
        """Returns status and body of a stream's answer."""
        status, body = "", b""
        async with asyncio.timeout(10):
            while True:
                data = await self._reader.read(65536)
                assert data, "the connection ended"
                for event in self._connection.receive_data(data):
                    if getattr(event, "stream_id", None) != stream:
                        continue
                    if isinstance(event, h2.events.ResponseReceived):
                        status = dict(event.headers)[":status"]  # type: ignore[assignment, index]
                    elif isinstance(event, h2.events.InformationalResponseReceived):
                        self.hints += [str(value) for name, value in event.headers or () if str(name) == "link"]
                    elif isinstance(event, h2.events.DataReceived):
                        body += event.data
                    elif isinstance(event, h2.events.StreamEnded):
                        return status, body
                    elif isinstance(event, h2.events.StreamReset):
                        return status or "reset", body
                self._writer.write(self._connection.data_to_send())

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
def http2_tls(client_tls: ssl.SSLContext) -> ssl.SSLContext:
    client_tls.set_alpn_protocols(["h2"])
    return client_tls


@contextmanager
def closing(client: Http2Client) -> Iterator[Http2Client]:
    try:
        yield client
    finally:
        client.close()


async def test_pages_pass_and_are_blocked_on_one_connection(gateway: Gateway, origin: Origin, http2_tls: ssl.SSLContext) -> None:
    with closing(await Http2Client.connect(gateway, origin.https, http2_tls)) as client:
        for _ in range(2):
            assert (await client.answer(client.ask("GET", "/page")))[0] == "200"
            status, body = await client.answer(client.ask("GET", "/blocked"))
            assert (status, body[:15]) == ("403", b"<!DOCTYPE html>")
    assert gateway.records[0].url == f"{origin.https}/page"


@pytest.mark.parametrize("headers", [{}, {"content-length": "15000"}], ids=["no-length", "length"])
async def test_a_body_streams_to_an_http1_origin(
    headers: dict[str, str], gateway: Gateway, origin: Origin, http2_tls: ssl.SSLContext
) -> None:
    with closing(await Http2Client.connect(gateway, origin.https, http2_tls)) as client:
        stream = client.ask("POST", "/upload", body=True, **headers)
        client.send(stream, b"a" * 10_000)
        for _ in range(1000):
            if origin.uploaded == 10_000:
                break
            await asyncio.sleep(0.005)
        assert origin.uploaded == 10_000
        client.send(stream, b"b" * 5_000, end=True)
        assert await client.answer(stream) == ("200", b"15000")


async def test_a_blocked_upload_is_refused_at_once_and_other_streams_go_on(
    gateway: Gateway, origin: Origin, http2_tls: ssl.SSLContext
) -> None:
    with closing(await Http2Client.connect(gateway, origin.https, http2_tls)) as client:
        stream = client.ask("POST", "/blocked-upload", body=True)
        client.send(stream, b"a" * 10_000)
        assert (await client.answer(stream))[0] == "403"
        client.send(stream, b"b" * 10_000, end=True)
        assert (await client.answer(client.ask("GET", "/page")))[0] == "200"
    assert origin.uploaded == 0


async def test_early_hints_go_ahead_of_the_answer(gateway: Gateway, authority: trustme.CA, http2_tls: ssl.SSLContext) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX: no\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    with closing(await Http2Client.connect(gateway, f"https://localhost:{port}", http2_tls)) as client:
        for count in (1, 2):
            assert await client.answer(client.ask("GET", "/")) == ("200", b"ok")
            assert client.hints == ["</a.css>; rel=preload"] * count
    server.close()
