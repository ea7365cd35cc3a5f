"""A forward proxy on loopback, and names that resolve as a test says."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp.abc import ResolveResult

from gatewayfilter.crawl.net.guarded_resolver import PooledResolver


class Proxy:
    """A forward proxy; remembers its request lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.address = ""
        self.refuses = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, _, rest = head.partition("\r\n")
            self.lines.append(line)
            method, target, _ = line.split(" ")
            if self.refuses:
                return
            netloc = target if method == "CONNECT" else target.split("/")[2]
            host, _, port = netloc.partition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                path = "/" + target.split("/", 3)[3]
                far_writer.write(f"{method} {path} HTTP/1.1\r\n{rest}".encode("latin-1"))
            await asyncio.wait(
                [asyncio.ensure_future(_pump(reader, far_writer)), asyncio.ensure_future(_pump(far_reader, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
            far_writer.close()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def resolve(self: object, host: str, port: int, family: int) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=6, flags=socket.AI_NUMERICHOST)
            for address in addresses
        ]

    monkeypatch.setattr(PooledResolver, "resolve", resolve)
