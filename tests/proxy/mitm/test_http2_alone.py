"""Origins with HTTP/2 alone, requested by clients that get HTTP/1.1."""

import asyncio
import ssl

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from gatewayfilter.proxy.mitm.tls_config import GatewayTlsConfig
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import Gateway

_NO_APPLICATION_PROTOCOL = bytes.fromhex("15030300020278")


class Http2Origin:
    """Answers by HTTP/2, and ends the handshake or not when that was not offered.

    Args:
        authority: issues its certificate.
        strict: whether it ends the handshake.
    """

    def __init__(self, authority: trustme.CA, *, strict: bool) -> None:
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.set_alpn_protocols(["h2"])
        authority.issue_cert("localhost").configure_cert(self.tls)
        self._refuses = strict
        self.requests: list[tuple[str, bytes]] = []
        self.protocols: list[str | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection; the first one, which offers HTTP/1.1 alone, may be refused."""
        if self._refuses:
            self._refuses = False
            await reader.read(65_536)
            writer.write(_NO_APPLICATION_PROTOCOL)
            writer.close()
            return
        await writer.start_tls(self.tls)
        self.protocols.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        sent: dict[int, tuple[str, bytes]] = {}
        try:
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        assert event.stream_id is not None
                        fields = {str(name): str(value) for name, value in event.headers or ()}
                        sent[event.stream_id] = fields[":path"], b""
                    elif isinstance(event, h2.events.DataReceived):
                        assert event.stream_id is not None
                        path, body = sent[event.stream_id]
                        sent[event.stream_id] = path, body + (event.data or b"")
                    elif isinstance(event, h2.events.StreamEnded):
                        assert event.stream_id is not None
                        self.requests.append(sent[event.stream_id])
                        connection.send_headers(event.stream_id, [(":status", "200")])
                        connection.send_data(event.stream_id, b"by HTTP/2", end_stream=True)
                writer.write(connection.data_to_send())
        except (OSError, h2.exceptions.ProtocolError):
            pass
        writer.close()


async def ask(gateway: Gateway, port: int, tls: ssl.SSLContext, request: str) -> bytes:
    """Sends a request as a browser does, which offers both versions, over a new connection. Returns the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    await writer.start_tls(tls, server_hostname="localhost")
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    head, _, body = request.partition("|")
    writer.write(f"{head} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if answer.startswith(b"HTTP/1.1 200"):
        answer += await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    return answer


@pytest.mark.parametrize("strict", [True, False], ids=["it ends the handshake", "it answers by HTTP/2"])
async def test_a_browser_reaches_an_origin_with_http2_alone(
    start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext, *, strict: bool
) -> None:
    client_tls.set_alpn_protocols(["h2", "http/1.1"])
    origin = Http2Origin(authority, strict=strict)
    async with start_gateway() as gateway, asyncio.timeout(30):
        async with await asyncio.start_server(origin.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            for number in range(3):
                assert b"by HTTP/2" in await ask(gateway, port, client_tls, f"GET /{number}")
            assert b"by HTTP/2" in await ask(gateway, port, client_tls, "POST /form|a=1")
        assert origin.requests == [("/0", b""), ("/1", b""), ("/2", b""), ("/form", b"a=1")]
        assert origin.protocols == ["h2"] * 4 if strict else [None] + ["h2"] * 4  # only the first connection was in vain
        found = gateway.master.addons.get("tlsconfig")
        assert isinstance(found, GatewayTlsConfig)
        assert list(found._http2_alone) == [(("localhost", port), "localhost")]


async def test_a_body_is_not_sent_twice(start_gateway: StartGateway, authority: trustme.CA, client_tls: ssl.SSLContext) -> None:
    client_tls.set_alpn_protocols(["h2", "http/1.1"])
    origin = Http2Origin(authority, strict=False)
    async with start_gateway() as gateway, asyncio.timeout(30):
        async with await asyncio.start_server(origin.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert (await ask(gateway, port, client_tls, "POST /form|a=1")).startswith(b"HTTP/1.1 502")
            assert b"by HTTP/2" in await ask(gateway, port, client_tls, "POST /form|a=1")
        assert origin.requests == [("/form", b"a=1")]
