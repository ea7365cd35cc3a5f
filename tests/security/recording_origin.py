"""An origin that keeps each request as a strict server would read it, and answers with given bytes."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from tests.security.lenient_reading import LenientHead, read_head

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class RecordingOrigin:
    """The origin; `async with running()` serves.

    Attributes:
        answers: what it says to the first request, the second …; the last one stays.
        heard: the bytes of each connection.
        port: where it listens.
    """

    answers: tuple[bytes, ...] = (FINE,)
    heard: list[bytearray] = field(default_factory=list)
    port: int = 0
    _answered: int = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = bytearray()
        self.heard.append(own)
        said = 0
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                own += data
                for _ in list(_messages(bytes(own)))[said:]:
                    writer.write(self.answers[min(self._answered, len(self.answers) - 1)])
                    self._answered += 1
                    said += 1
        writer.close()

    @contextlib.asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["RecordingOrigin"]:
        """Serves on a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = int(server.sockets[0].getsockname()[1])
        try:
            yield self
        finally:
            server.close()

    def reached(self) -> list[str]:
        """Returns method and path of each request, of one connection after the other."""
        return [f"{head.method.decode()} {head.target.decode()}" for heard in self.heard for head in _messages(bytes(heard))]

    def heads(self) -> list[LenientHead]:
        """Returns the heads of all requests."""
        return [head for heard in self.heard for head in _messages(bytes(heard))]


def _messages(data: bytes) -> Iterator[LenientHead]:
    """Yields the requests in some bytes; what is ambiguous has no body, so that its body shows as requests."""
    while data and (head := read_head(data)) is not None:
        size = head.body_size(data[head.size :])
        yield head
        if size is None:
            return
        data = data[head.size + size :]
