"""Alternative spellings of a URL under which servers may serve the same page; a block of a page covers all of them.

Lists and rules use the path of the site's own links. Many servers also serve the page under a path with doubled slashes
(nginx `merge_slashes`), with parameters (`/page;v=1`, Servlet containers), with escapes where none are needed, or with dots,
spaces or line ends behind a segment (Windows, `$` in the routes of frameworks). No standard requires these to be the same
page, so an allowing entry covers its own spelling only.

Source: RFC 3986 §2.3, §3.3 and §6.2.2.
"""

import re
from typing import Final

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import Url, parse_url

_NEEDLESS: Final = re.compile(r"%(?:2[1246-9A-Fa-f]|3[0-9A-Ea-e]|[4-6][0-9A-Fa-f]|7[0-9A-Ea-e])")
"""Escapes of visible ASCII, except `%`, `?` and `#`, which change their meaning when unescaped."""
_SLASHES: Final = re.compile(r"//+")
_PARAMETERS: Final = re.compile(r";[^/]*")
_MARKS: Final = frozenset({"%20", "%7F", "%7f", *(f"%{high}{low}" for high in "01" for low in "0123456789ABCDEFabcdef")})
"""Spaces and line ends that servers may leave away behind a segment, as they do dots."""
_LAST_ESCAPES: Final = re.compile(r"%(?:20|[01][0-9A-Fa-f]|7[Ff])(?=[/;.]|$)")


def _unescaped(path: str) -> str:
    if "%" not in path:
        return path
    return _NEEDLESS.sub(lambda found: chr(int(found[0][1:], 16)), path)


def _cut(path: str) -> str:
    if ";" in path:
        path = _PARAMETERS.sub("", path)
    if "./" in path or "%" in path or path.endswith("."):
        path = "/".join([_without_marks(part) if part[-1:] == "." or part[-3:-2] == "%" else part for part in path.split("/")])
    return path


def _without_marks(segment: str) -> str:
    """Returns a segment without dots, spaces and line ends at its end; one that has nothing else keeps them."""
    end = len(segment)
    while end:
        if segment[end - 1] == ".":
            end -= 1
        elif segment[max(end - 3, 0) : end] in _MARKS:
            end -= 3
        else:
            return segment[:end]
    return segment


def _merged(path: str) -> str:
    return path if "//" not in path else _SLASHES.sub("/", path)


def has_spellings(url: Url) -> bool:
    """Returns whether a URL may have other spellings. For nearly all URLs this costs a few searches for a character."""
    path = url.path
    if ";" in path or "//" in path or "./" in path or path.endswith("."):
        return True
    if "%" not in url.text:
        return False
    key, query = url.key, url.query
    if "%" in path and (_NEEDLESS.search(path) is not None or _LAST_ESCAPES.search(path) is not None):
        return True
    return len(query) > 1 and not key.endswith(query) and _differ(key, url)


def _differ(key: str, url: Url) -> bool:
    """Returns whether a key differs from its URL by more than the case of escapes."""
    return len(key) != len(url.netloc) + len(url.path) + len(url.query)


def spellings_of(url: Url) -> tuple[Url, ...]:
    """Returns the other spellings of a URL, at most eight; none for nearly all URLs.

    Each of the three differences (escapes, parameters and dots, slashes) is undone alone and with each of the others, as a rule
    may itself contain one of them.
    """
    if not has_spellings(url):
        return ()
    path, mark, query = url.key[len(url.netloc) :].partition("?")
    paths = [path]
    for undo in (_unescaped, _cut, _merged):
        paths = list(dict.fromkeys([*paths, *map(undo, paths)]))
    begin = f"{url.scheme}://{url.netloc}"
    found: dict[str, Url] = {}
    for text in paths:
        try:
            other = parse_url(f"{begin}{text}{mark}{query}")
        except UrlError:  # not a path that can be requested
            continue
        if len(other.text) != len(url.text) or other.key != url.key:  # otherwise it differs only in the case of an escape
            found[other.text] = other
    return tuple(found.values())
