"""The rendering browser's proxy on loopback, its only way out: each connection is made through the crawler's guard.

The browser resolves no names and opens no connection of its own, so that redirects, names that change and scripts meet the
same guard as the fetcher does. Each page has credentials of its own, with a budget of bytes and connections; without them the
proxy refuses a connection.
"""

import asyncio
import base64
import binascii
import contextlib
import logging
import secrets
from dataclasses import dataclass, field
from typing import Self

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.net.address_guard import AddressGuard
from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.errors import ForbiddenAddressError, UrlError
from gatewayfilter.urls import parse_url

_log = logging.getLogger(__name__)

MAX_HEAD = 65_536
HEAD_S = 10.0
CONNECT_S = 5.0
MAX_ADDRESSES = 4
"""Addresses of a name that are tried."""
_CHUNK = 65_536


@dataclass(slots=True, eq=False)
class Budget:
    """What one page may still use; its connections end with it.

    Attributes:
        refused: why connections were not made, for tests and logs.
    """

    bytes_left: int
    connections_left: int
    user: str = field(default_factory=lambda: secrets.token_hex(8))
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


class _RefusedError(Exception):
    """This connection is not made, or ends here. The message is a status line."""


class RenderProxy:
    """A forward proxy (CONNECT and plain GET) for one browser. An asynchronous context manager.

    Args:
        settings: for the guard.
    """

    def __init__(self, settings: CrawlSettings) -> None:
        self._guard = AddressGuard(settings)
        self._resolver = PooledResolver()
        self._budgets: dict[str, Budget] = {}
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_HEAD)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for budget in list(self._budgets.values()):
            self.release(budget)
        await self._resolver.close()

    def admit(self, max_bytes: int, max_connections: int) -> Budget:
        """Makes the credentials and budget of one page."""
        budget = Budget(max_bytes, max_connections)
        self._budgets[budget.user] = budget
        return budget

    def release(self, budget: Budget) -> None:
        """Ends a page: its credentials and its connections."""
        self._budgets.pop(budget.user, None)
        for task in list(budget.tasks):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        budget: Budget | None = None
        try:
            async with asyncio.timeout(HEAD_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            budget = self._budget_of(head)
            budget.tasks.add(task)
            await self._forward(head, reader, writer, budget)
        except _RefusedError as error:
            if budget is not None:
                budget.refused.append(str(error))
            with contextlib.suppress(OSError):
                extra = 'Proxy-Authenticate: Basic realm="render"\r\n' if str(error).startswith("407") else ""
                writer.write(f"HTTP/1.1 {error}\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass
        finally:
            if budget is not None:
                budget.tasks.discard(task)
            writer.close()

    def _budget_of(self, head: str) -> Budget:
        for line in head.split("\r\n")[1:]:
            name, _, value = line.partition(":")
            if name.lower() == "proxy-authorization":
                with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                    user, _, password = base64.b64decode(value.strip().removeprefix("Basic ")).decode().partition(":")
                    budget = self._budgets.get(user)
                    if budget is not None and secrets.compare_digest(password.encode(), budget.password.encode()):
                        return budget
        raise _RefusedError("407 Proxy Authentication Required")

    async def _forward(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: Budget) -> None:
        if budget.connections_left <= 0:
            raise _RefusedError("429 Too Many Connections")
        budget.connections_left -= 1
        method, _, rest = head.partition(" ")
        target = rest.partition(" ")[0]
        first = b""
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            if not port.isdigit():
                raise _RefusedError("400 Bad Request")
        else:
            host, port, first = _plain_request(method, target, head)
        origin_reader, origin_writer = await self._connected(host.strip("[]"), int(port))
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                async with asyncio.TaskGroup() as both:
                    down = both.create_task(_relay(origin_reader, writer, budget))
                    up = both.create_task(_relay(reader, origin_writer, budget))
                    down.add_done_callback(lambda _: up.cancel())
            else:
                origin_writer.write(first)
                writer.write(await _answer_head(origin_reader))
                await _relay(origin_reader, writer, budget)
        except* OSError:
            pass  # either side has closed
        finally:
            origin_writer.close()

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await self._resolver.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise _RefusedError("502 Unknown Host") from error
        refused = ""
        for entry in found[:MAX_ADDRESSES]:
            refused = self._guard.refusal(entry["host"], port)
            if refused:
                continue
            with contextlib.suppress(OSError):
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(entry["host"], port, limit=MAX_HEAD)
        if refused:
            _log.debug("a rendered page requested an address that is refused: %s", ForbiddenAddressError(refused))
            raise _RefusedError("403 Forbidden Address")
        raise _RefusedError("502 Unreachable")


def _plain_request(method: str, target: str, head: str) -> tuple[str, str, bytes]:
    """Returns host, port and the request as an origin gets it: without the proxy's headers, one request a connection."""
    try:
        url = parse_url(target)
    except UrlError as error:
        raise _RefusedError("400 Bad Request") from error
    if method not in {"GET", "HEAD"} or url.scheme != "http":
        raise _RefusedError("405 Method Not Allowed")
    lines = [line for line in head.split("\r\n")[1:] if line and not line.lower().startswith(("proxy-", "connection:"))]
    request = "\r\n".join((f"{method} {url.path}{url.query} HTTP/1.1", *lines, "Connection: close", "", ""))
    return url.host, url.port or "80", request.encode("latin-1")


async def _answer_head(reader: asyncio.StreamReader) -> bytes:
    """Returns the head of an answer as the browser gets it: one answer a connection, whatever the origin's header fields are."""
    while True:
        async with asyncio.timeout(HEAD_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head[:-4].split("\r\n")
        if status[9:10] != "1":  # interim answers are dropped
            kept = [line for line in lines if not line.lower().startswith(("connection:", "keep-alive:", "proxy-"))]
            return "\r\n".join((status, *kept, "Connection: close", "", "")).encode("latin-1")


async def _relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter, budget: Budget) -> None:
    while data := await source.read(_CHUNK):
        budget.bytes_left -= len(data)
        if budget.bytes_left < 0:
            budget.refused.append("too many bytes")
            return
        sink.write(data)
        await sink.drain()
