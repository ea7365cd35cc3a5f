"""An origin whose bodies, encodings and headers a test chooses, and clients that speak to it through the proxy."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import brotli
import zstandard
from aiohttp import web

ENCODERS = {
    "": lambda body: body,
    "gzip": partial(gzip.compress, mtime=0),  # tests compare two encodings of one body
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@dataclass
class Answer:
    """What the origin says on one path."""

    body: bytes = b"<!DOCTYPE html><html><head><title>t</title></head><body>ad</body></html>"
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/html; charset=utf-8"})
    status: int = 200
    encoding: str = ""
    pieces: int = 1
    endless: bool = False


@dataclass
class EditOrigin:
    """A site by path. `seen` are the requests that reached it."""

    answers: dict[str, Answer] = field(default_factory=dict)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    cut_off: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.raw_path, {name.lower(): value for name, value in request.headers.items()}))
        answer = self.answers.get(request.path, Answer())
        body = ENCODERS[answer.encoding](answer.body)
        headers = dict(answer.headers)
        if answer.encoding:
            headers["content-encoding"] = answer.encoding
        if answer.pieces == 1 and not answer.endless:
            return web.Response(status=answer.status, headers=headers, body=body)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        try:
            step = max(1, len(body) // answer.pieces)
            for start in range(0, len(body), step):
                await response.write(body[start : start + step])
                await asyncio.sleep(0)
            while answer.endless:
                await response.write(b"x" * 65536)
        except (ConnectionError, asyncio.CancelledError):
            self.cut_off.set()
            raise
        return response


@asynccontextmanager
async def edit_origin() -> AsyncIterator[EditOrigin]:
    """Serves on loopback."""
    origin = EditOrigin()
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", origin.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        origin.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await web.SockSite(runner, listener.dup()).start()
    try:
        yield origin
    finally:
        await runner.cleanup()
