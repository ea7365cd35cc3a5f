"""The load on the contestants of the relay benchmark: connections, requests, downloads, streams, silence."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from relay_contestants import Contestant
from relay_origin import BODY

_SETTLE_S: Final = 0.02
_AT_ONCE: Final = 8
_HTTPS_HOST: Final = "localhost"


def client_hello(name: str) -> bytes:
    """Returns what OpenSSL says first."""
    outgoing = ssl.MemoryBIO()
    connection = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


async def opened(proxy: Contestant, target: str, *, secure: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a way to the origin; without a CONNECT to its first port, or to the second when it has to be `secure`."""
    port = proxy.secure_port if secure and not proxy.tunnels else proxy.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    if proxy.tunnels:
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head:
            raise SystemExit(f"{proxy.name} answered {head[:200]!r}")
    return reader, writer


async def download(proxy: Contestant, port: int, size: int) -> None:
    """Reads so many bytes through a spliced connection."""
    reader, writer = await opened(proxy, f"localhost:{port}")
    writer.write(client_hello(f"size-{size}.localhost"))
    left = size
    while left and (chunk := await reader.read(1 << 20)):
        left -= len(chunk)
    if left:
        raise SystemExit(f"{proxy.name} lost {left} bytes")
    writer.close()


async def connect_often(proxy: Contestant, port: int, count: int) -> None:
    """Makes connections, eight at once, each for one kilobyte."""
    hello = client_hello("localhost")
    turns = iter(range(count))

    async def one() -> None:
        for _ in turns:
            reader, writer = await opened(proxy, f"localhost:{port}")
            writer.write(hello)
            await reader.readexactly(len(BODY))
            writer.close()

    await asyncio.gather(*(one() for _ in range(_AT_ONCE)))


async def request_often(proxy: Contestant, port: int, count: int, ca: Path, *, each_new: bool) -> float:
    """Asks for kilobytes by HTTPS, each over a connection of its own, or over eight that are open before the clock starts.

    Returns:
        The CPU seconds of the proxy.
    """
    tls = ssl.create_default_context(cafile=str(ca))
    turns = iter(range(count))

    async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await opened(proxy, f"{_HTTPS_HOST}:{port}", secure=True)
        await writer.start_tls(tls, server_hostname=_HTTPS_HOST)
        return reader, writer

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"GET /page-%d HTTP/1.1\r\nHost: localhost:%d\r\nAccept: text/html\r\n\r\n" % (number % 50, port))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(BODY))

    async def each_time() -> None:
        for number in turns:
            reader, writer = await connected()
            await ask(reader, writer, number)
            writer.close()

    async def over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in turns:
            await ask(reader, writer, number)

    ways = [] if each_new else [await connected() for _ in range(_AT_ONCE)]
    await asyncio.sleep(_SETTLE_S)
    before = proxy.cpu_s()
    await asyncio.gather(*([each_time() for _ in range(_AT_ONCE)] if each_new else [over(*way) for way in ways]))
    await asyncio.sleep(_SETTLE_S)  # connections that are being closed are part of the work
    used = proxy.cpu_s() - before
    for _, writer in ways:
        writer.close()
    return used


def cpu(proxy: Contestant, work: Callable[[], Awaitable[None]]) -> float:
    """Returns the CPU seconds of the proxy for some work."""
    before = proxy.cpu_s()
    asyncio.run(work())  # type: ignore[arg-type]
    time.sleep(_SETTLE_S)
    return proxy.cpu_s() - before


async def first_byte_ms(port: int, target: str, *, proxied: bool) -> float:
    """Returns the time from the request to the first byte of a large body, without reading the rest."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    prefix = f"http://{target}" if proxied else ""
    writer.write(f"GET {prefix}/size-400000000 HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise SystemExit(f"{head[:200]!r}")
    await reader.readexactly(1)
    took = (time.perf_counter() - started) * 1000
    writer.transport.abort()
    return took


async def stream_many(proxy: Contestant, port: int, size: int, count: int) -> float:
    """Streams bodies side by side. Returns the most memory that the proxy had meanwhile, in MB."""
    most = 0.0

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(f"GET http://localhost:{port}/size-{size} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        left = size
        while left and (chunk := await reader.read(1 << 18)):
            left -= len(chunk)
        if left:
            raise SystemExit(f"{left} bytes of a stream are missing")
        writer.close()

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, proxy.rss_mb())
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(one() for _ in range(count)))
    watching.cancel()
    return most


async def hold_many(proxy: Contestant, port: int, idle: int, active: int, requests: int) -> tuple[int, float]:
    """Holds silent connections while others work. Returns how many answers came and the seconds it took."""
    hello = client_hello("localhost")

    async def spliced() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await opened(proxy, f"localhost:{port}")
        writer.write(hello)
        await reader.readexactly(len(BODY))
        return reader, writer

    async def asked(number: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        for _ in range(requests):
            writer.write(f"GET http://localhost:{port}/p{number} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
        writer.close()
        return requests

    silent = []
    for start in range(0, idle, 100):
        silent += await asyncio.gather(*(spliced() for _ in range(min(100, idle - start))))
    started = time.perf_counter()
    answered = sum(await asyncio.gather(*(asked(number) for number in range(active))))
    took = time.perf_counter() - started
    for reader, writer in silent:  # still there: another answer comes
        writer.write(hello)
        await reader.readexactly(len(BODY))
        writer.close()
    return answered, took
