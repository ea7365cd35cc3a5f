"""Origins on loopback for the crawler's tests: raw ones, so that they can break every rule."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from gatewayfilter.config import CrawlSettings

type Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def reply(body: bytes = b"<p>hello", *headers: str, status: str = "200 OK", content_type: str = "text/html") -> bytes:
    """Returns a well-formed answer; a lone surrogate in a header stands for a byte that is no UTF-8."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {content_type}", *headers]
    return "\r\n".join(lines).encode(errors="surrogateescape") + b"\r\n\r\n" + body


class Origin:
    """A site: path → answer; remembers the requests that it got."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.heads: list[str] = []
        self.port = 0
        self.running = 0
        self.most_running = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                self.requests.append(path)
                self.heads.append(head)
                self.running += 1
                self.most_running = max(self.most_running, self.running)
                try:
                    answer = self.answers.get(path, reply(b"none", status="404 Not Found"))
                    if isinstance(answer, bytes):
                        writer.write(answer)
                        await writer.drain()
                    else:
                        await answer(writer)
                        break
                finally:
                    self.running -= 1
        self.tasks.discard(task)
        writer.close()


@contextlib.asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Origin]:
    site = Origin()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in list(site.tasks):
            task.cancel()
        await asyncio.gather(*site.tasks, return_exceptions=True)


def loopback_settings(**changes: object) -> CrawlSettings:
    values: dict[str, object] = {
        "allow_networks": ("127.0.0.0/8",),
        "per_host_delay_s": 0.0,
        "per_host_delay_max_s": 0.0,  # a loaded machine is no slow host
        "timeout_s": 15.0,  # a loaded machine does not fail a page; who wants that sets another
        "max_bytes": 100_000,
        **changes,
    }
    return CrawlSettings.model_validate(values)
