"""A parent proxy behind the filter."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import trustme

from tests.proxy.connection_fakes import PASS, wire_gateway
from tests.proxy.proxy_fakes import Origin


async def test_requests_go_to_the_parent_in_absolute_form(start_gateway: Any, client: aiohttp.ClientSession) -> None:
    heads: list[bytes] = []

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nparent")
        writer.close()

    server = await asyncio.start_server(parent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, start_gateway(mode=f"upstream:http://127.0.0.1:{port}") as gateway:
        async with client.get("http://site.example/page", proxy=gateway.url) as response:
            assert await response.text() == "parent"
        async with client.get("http://blocked.example/", proxy=gateway.url) as response:
            assert response.status == 403
        lying = {"Host": "lie.example"}
        async with client.get("http://site.example/other", proxy=gateway.url, headers=lying) as response:
            assert response.status == 200
    assert [head.split(b"\r\n")[0] for head in heads] == [
        b"GET http://site.example/page HTTP/1.1",
        b"GET http://site.example/other HTTP/1.1",
    ]
    assert b"lie.example" not in heads[1]


@asynccontextmanager
async def tls_parent(authority: trustme.CA) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Runs a parent proxy that is reached by TLS; yields its port and what it was asked."""
    heads: list[bytes] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                writer.write(chunk)
        writer.close()

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        host, port = heads[-1].split(b" ")[1].decode().rsplit(":", 1)
        from_origin, to_origin = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, to_origin), pump(from_origin, writer))

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(tls)
    server = await asyncio.start_server(parent, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield int(server.sockets[0].getsockname()[1]), heads


async def test_a_spliced_tunnel_goes_through_a_parent_that_is_reached_by_tls(
    state: Path, origin: Origin, authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    """The listener cannot encrypt, so mitmproxy passes it on, unread: the client sees the origin's own certificate."""
    own = ssl.create_default_context()
    authority.configure_trust(own)  # and does not trust the filter's CA
    target = origin.https.removeprefix("https://")
    async with tls_parent(authority) as (port, heads):
        mode = f"upstream:https://localhost:{port}"
        async with wire_gateway(state, {"localhost": PASS}, mode=mode) as gateway, aiohttp.ClientSession() as client:
            async with client.get(f"{origin.https}/secret", proxy=gateway.url, ssl=own) as response:
                assert response.status == 200
                assert "/secret" in await response.text()
            assert gateway.decide.asked == []
            [record] = gateway.records
            assert (record.reason, record.method, record.url) == ("splicelist", "CONNECT", f"https://{target}/")
            assert gateway.counters["spliced"] == gateway.counters["requests"] == 1
        assert [head.split(b"\r\n")[0] for head in heads] == [f"CONNECT {target} HTTP/1.1".encode()]
        async with wire_gateway(state, {}, mode=mode) as gateway, aiohttp.ClientSession() as client:
            async with client.get(f"{origin.https}/seen", proxy=gateway.url, ssl=client_tls) as response:
                assert response.status == 200
            assert [request.url.path for request in gateway.decide.asked] == ["/seen"]
            assert gateway.counters["spliced"] == 0
