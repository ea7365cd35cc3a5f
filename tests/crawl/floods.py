"""Answers without end, and what counts what is read of them."""

import asyncio
import gzip
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import zstandard

LIMIT = 100_000
"""Bytes of a body, in these tests' settings."""
BUFFERS = 600_000
"""For headers, and what may be read ahead of a limit: a read of the socket takes 256 KB."""
OFFERED = 40_000_000
BUDGET_S = 20.0
HEAD = b"HTTP/1.1 200 OK\r\n"
HTML = HEAD + b"Content-Type: text/html\r\n"
CHUNKED = HTML + b"Transfer-Encoding: chunked\r\n\r\n"

type Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Wire:
    """Counts what the client reads."""

    def __init__(self) -> None:
        self.read = 0


def offering(head: bytes, piece: bytes) -> Answer:
    """An answer of `OFFERED` bytes, most of them the same."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(head)
            for _ in range(OFFERED // len(piece)):
                writer.write(piece)
                await writer.drain()

    return answer


def noise() -> bytes:
    return random.Random(7).randbytes(1_000_000)


FLOODS = [
    pytest.param(offering(HTML + b"\r\n", b"a" * 50_000), id="endless body"),
    pytest.param(offering(HTML + b"Content-Length: 1000\r\n\r\n", b"a" * 50_000), id="body longer than it says"),
    pytest.param(offering(HTML + b"Content-Length: 99999999999\r\n\r\n", b"a" * 50_000), id="giant length"),
    pytest.param(offering(CHUNKED, b"c350\r\n" + b"a" * 50_000 + b"\r\n"), id="endless chunks"),
    pytest.param(offering(CHUNKED + b"1;", b"x=y;" * 10_000), id="endless chunk extension"),
    pytest.param(offering(CHUNKED, b"0" * 50_000), id="endless chunk size"),
    pytest.param(offering(CHUNKED + b"0\r\n", b"X-Trailer: y\r\n" * 4000), id="endless trailers"),
    pytest.param(offering(HEAD + b"Content-Type: image/png\r\n\r\n", noise()), id="endless picture"),
    pytest.param(offering(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n", b"a" * 50_000), id="endless error page"),
    pytest.param(offering(b"HTTP/1.1 204 No Content\r\n\r\n", b"a" * 50_000), id="body where none may be"),
    pytest.param(offering(HEAD, b"X-Flood: yes\r\n" * 4000), id="10 MB of header lines and more"),
    pytest.param(offering(HEAD + b"X: ", b"y" * 50_000), id="a header line without end"),
    pytest.param(offering(b"", b"z" * 50_000), id="a status line without end"),
    pytest.param(offering(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000), id="endless interim answers"),
    pytest.param(offering(HTML + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(noise())), id="endless gzip members"),
    pytest.param(offering(HTML + b"Content-Encoding: zstd\r\n\r\n", zstandard.compress(noise())), id="endless zstd frames"),
]
