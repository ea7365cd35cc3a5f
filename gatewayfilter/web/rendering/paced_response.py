"""Pages in two pieces: the frame, then the rest, if that is long, no sooner than a browser has shown the frame.

A browser that gets the rest before its first paint parses and lays out all of it before it shows anything: 60 to 80 ms more for
a page of 2,000 elements. It takes the time of reading and rendering the rest, so that it rarely costs any. What is short is shown
as soon as the frame, and never waits.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

FRAME_S: Final = 0.1
"""From the frame to the rest at least: a browser shows it 60 to 90 ms after it has come."""
LONG: Final = 40_000
"""Bytes, or characters, of a rest that waits: some 600 elements."""
FRAME_END: Final = b'<div class="toolbar">'
"""In `base.html`: what stands before it is the same for every state of the filter."""


def is_navigation(request: Request) -> bool:
    """Returns whether a browser will show the answer as a page; not so scripts, and parts of pages."""
    return request.headers.get("sec-fetch-mode") == "navigate"


async def paced(parts: Iterator[str], pause_s: float) -> AsyncIterator[str]:
    """Yields the parts of a page: a long second one no sooner than `pause_s` after the first. They are made in threads."""
    loop = asyncio.get_running_loop()
    yield next(parts)
    due = loop.time() + pause_s
    rest = await run_in_threadpool("".join, parts)
    await asyncio.sleep(max(0.0, due - loop.time()) if len(rest) >= LONG else 0.0)
    yield rest


class PacedResponse(HTMLResponse):
    """A page that is rendered, in two pieces."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it. Nothing is received: who goes away meanwhile is not waited for."""
        del receive
        body = bytes(self.body)
        frame, end, rest = body.partition(FRAME_END)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if len(rest) >= LONG and scope["method"] != "HEAD":
            await send({"type": "http.response.body", "body": frame + end, "more_body": True})
            await asyncio.sleep(FRAME_S)
            body = rest
        await send({"type": "http.response.body", "body": body})
        if self.background is not None:
            await self.background()
