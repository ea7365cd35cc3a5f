"""Redirects: after a change, and to targets that come from a request, which are paths of the dashboard only."""

from typing import Final
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

_LONGEST: Final = 2_000


def own_path(target: str) -> str:
    r"""Returns a path of the dashboard with its query; `/` for anything that could lead a browser elsewhere.

    Browsers read `//host` and `/\host` as another host, and leave out tabs and line breaks.
    """
    if not target.startswith("/") or len(target) > _LONGEST or not target.isprintable() or "\\" in target:
        return "/"
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    return target if not parts.scheme and not parts.netloc and not target.startswith("//") else "/"


def done(request: Request, path: str) -> Response:
    """Returns the answer to a form whose change was made: the page at `path`, by htmx as by the browser itself."""
    if request.headers.get("hx-request") == "true":
        return Response(status_code=200, headers={"hx-redirect": path})
    return RedirectResponse(path, 303)
