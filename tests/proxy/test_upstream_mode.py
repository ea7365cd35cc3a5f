"""A parent proxy behind the filter."""

import asyncio
from typing import Any

import aiohttp


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
