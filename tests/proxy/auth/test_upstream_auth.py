import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.proxy.auth.upstream_auth import parent_login
from tests.proxy.connection_fakes import PASS, client_hello, until, wire_gateway
from tests.proxy.mitm.http.test_http1_shapes import END, OK

WANTED = b"proxy-authorization: basic a2ltonnly3jlda=="  # kim:secret, in small letters


@asynccontextmanager
async def parent() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A parent proxy that keeps the heads it hears, opens every tunnel to nowhere, and answers all else itself."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(END):
                heard.append(head)
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if head.startswith(b"CONNECT") else OK)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            writer.close()

    heard: list[bytes] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


@pytest.mark.parametrize("text", ["", "kim", "kim:a\nb:c"])
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "login"
    with pytest.raises(StartupError, match="cannot read"):
        parent_login(file)
    file.write_text(text)
    with pytest.raises(StartupError, match="one line"):
        parent_login(file)
    assert parent_login(None) == b""


@pytest.mark.parametrize("host", ["site.example", "bank.example"])
async def test_it_logs_in(host: str, state: Path, tmp_path: Path, client_tls: ssl.SSLContext) -> None:
    """A plain request, and a tunnel that is intercepted or passes through."""
    file = tmp_path / "login"
    file.write_text("kim:secret\n")
    async with (
        parent() as (port, heard),
        wire_gateway(state, {"bank.example": PASS}, mode=f"upstream:http://127.0.0.1:{port}", upstream_auth_file=file) as gateway,
        asyncio.timeout(20),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for _ in range(2):
            writer.write(
                b"GET http://site.example/page HTTP/1.1\r\nHost: site.example\r\nProxy-Authorization: Basic eA==\r\n\r\n"
            )
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.close()
        assert [WANTED in head.lower() for head in heard] == [True, True]
        assert [head.lower().count(b"proxy-authorization") for head in heard] == [1, 1]
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
        await reader.readuntil(END)
        if host == "bank.example":
            writer.write(client_hello(host))
        else:
            await writer.start_tls(client_tls, server_hostname=host)
            writer.write(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host.encode())
        await until(lambda: len(heard) == 3)
        writer.close()
    assert heard[2].startswith(b"CONNECT " + host.encode())
    assert WANTED in heard[2].lower()
