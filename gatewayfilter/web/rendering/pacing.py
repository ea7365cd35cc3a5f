"""Pages in two pieces: the frame, then the rest, if that is long, no sooner than a browser has shown the frame.

A browser that gets a long rest before its first paint lays out all of it before it shows anything
(docs/benchmarks.md#dashboard). The rest is read and rendered meanwhile; only where that takes less than the pause does it wait.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

from fastapi import Request
from starlette.concurrency import run_in_threadpool

FRAME_S: Final = 0.07
"""From the frame to the rest at least: a browser shows it 60 to 90 ms after it has come."""
LONG: Final = 8_000
"""Characters of a rest that waits."""


def is_navigation(request: Request) -> bool:
    """Returns whether a browser will show the answer as a page; not so scripts, and parts of pages."""
    return request.headers.get("sec-fetch-mode") == "navigate"


async def paced(parts: Iterator[str], pause_s: float) -> AsyncIterator[str]:
    """Yields the parts of a page: a long second one no sooner than `pause_s` after the first. They are made in threads."""
    loop = asyncio.get_running_loop()
    yield next(parts)
    due = loop.time() + pause_s
    rest = await run_in_threadpool("".join, parts)
    if len(rest) >= LONG:
        await asyncio.sleep(max(0.0, due - loop.time()))
    yield rest
