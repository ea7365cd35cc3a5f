"""The origin of the relay benchmark: bytes of any length, by TCP and by HTTPS, in a process of its own."""

import asyncio
import re
import resource
import ssl
from collections.abc import Sequence
from typing import Final

BODY: Final = b"x" * 1024
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n"
_CHUNK: Final = bytes(1 << 20)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a ClientHello with as many bytes as the name in it says, HTTP with a body of the length in its path."""
    try:
        while True:
            first = await reader.read(65536)
            if not first:
                break
            if first[:1] == b"\x16":
                await send(writer, size_in(first, b"size-"))
                continue
            size = size_in(first, b"/size-")
            writer.write(_HEAD % size)
            await send(writer, size)
    except OSError:
        pass
    writer.close()


def size_in(data: bytes, mark: bytes) -> int:
    """Returns the number after a mark, 1,024 without one."""
    found = re.search(re.escape(mark) + rb"([0-9]{1,12})", data)
    return int(found[1]) if found else len(BODY)


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    """Writes so many bytes."""
    for start in range(0, size, len(_CHUNK)):
        writer.write(_CHUNK[: size - start])
        await writer.drain()


def run_origin(ports: Sequence[int], certificate: str) -> None:
    """Serves bytes on the first port and HTTPS on the second."""

    async def serve() -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        await asyncio.start_server(answer, "127.0.0.1", ports[0], backlog=1024)
        await asyncio.start_server(answer, "127.0.0.1", ports[1], ssl=tls, backlog=1024)
        await asyncio.Event().wait()

    raise_limit()
    asyncio.run(serve())


def raise_limit() -> None:
    """Allows many connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
