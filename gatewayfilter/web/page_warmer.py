"""The pages that are opened first, asked for ahead by the process itself: with all that their first view reads.

That is modules, templates, statements, the words and numbers of a language, the counts of a day. It is done when the dashboard
has started, and while a person types a password: the first page takes no longer than the next ones.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

from starlette.types import ASGIApp, Message, Scope

from gatewayfilter.web.access.identity import Identity, Role
from gatewayfilter.web.rendering.pages import pages_of_process

FIRST: Final = ("/", "/log", "/clients", "/lists", "/requests", "/rules")
"""The pages."""
_READER: Final = "made ready"
"""Who asks for them, in the log of a fault; no account."""


def compile_templates(folder: Path) -> list[Any]:
    """Compiles all templates into a folder, in a child process: what that needs stays out of the dashboard's memory."""
    pages = pages_of_process()
    pages.keep_small(folder)
    pages.compile_all()
    return []


def warm_pages(app: ASGIApp, language: str) -> None:
    """Asks for the pages, in an event loop of its own; some 0.4 s of CPU the first time in a process.

    Args:
        app: the application of the dashboard.
        language: of the person who will see them.
    """
    asyncio.run(_ask(app, language))


async def _ask(app: ASGIApp, language: str) -> None:
    for path in FIRST:
        await app(_scope(path, language), _Waiting(), _drop)


def _scope(path: str, language: str) -> Scope:
    """Returns a request whose sender is known: no cookie is looked up, and no request from outside can carry this."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"accept-language", language.encode())],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {"identity": Identity(_READER, Role.ADMIN, language=language)},
    }


class _Waiting:
    """Receives the request, and then nothing more."""

    def __init__(self) -> None:
        self._was_sent = False

    async def __call__(self) -> Message:
        if self._was_sent:
            await asyncio.Event().wait()
        self._was_sent = True
        return {"type": "http.request", "body": b"", "more_body": False}


async def _drop(_: Any) -> None:
    """Takes an answer that nobody reads."""
