"""Targets of redirects that come from a request: only paths of the dashboard."""

from typing import Final
from urllib.parse import urlsplit

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
