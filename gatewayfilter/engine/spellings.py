"""Other spellings of a URL by which servers may serve the same page, so that a block of a page holds for all of them.

Lists and rules write a path as its site does. Many servers also serve the page under a path with doubled slashes
(nginx `merge_slashes`), with parameters (`/page;v=1`, Servlet containers), with escapes where none are needed, or with dots,
spaces or line ends behind a segment (Windows, `$` in the routes of frameworks). By no standard do these have to be the same
page: what a list allows is allowed under its own spelling alone.

Source: RFC 3986 §2.3, §3.3 and §6.2.2.
"""

import re
from typing import Final

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import Url, parse_url

_NEEDLESS: Final = re.compile(r"%(?:2[1246-9A-Fa-f]|3[0-9A-Ea-e]|[4-6][0-9A-Fa-f]|7[0-9A-Ea-e])")
"""Escapes of visible ASCII, but for `%`, `?` and `#`: without their escapes these would mean something else."""
_SLASHES: Final = re.compile(r"//+")
_PARAMETERS: Final = re.compile(r";[^/]*")
_LAST_MARKS: Final = re.compile(r"(?<=[^./])(?<!%20)(?<!%[01][0-9A-Fa-f])(?<!%7[Ff])(?:\.|%20|%[01][0-9A-Fa-f]|%7[Ff])++(?=/|$)")
"""Begins where the marks begin: a search from each of many would take time by the square of their number."""
_LAST_ESCAPES: Final = re.compile(r"%(?:20|[01][0-9A-Fa-f]|7[Ff])(?=[/;.]|$)")


def _unescaped(path: str) -> str:
    return _NEEDLESS.sub(lambda found: chr(int(found[0][1:], 16)), path)


def _cut(path: str) -> str:
    return _LAST_MARKS.sub("", _PARAMETERS.sub("", path))


def _merged(path: str) -> str:
    return _SLASHES.sub("/", path)


def has_spellings(url: Url) -> bool:
    """Tells whether a URL may have other spellings. Cost: some searches for a character, nothing else for nearly all URLs."""
    path = url.path
    if ";" in path or "//" in path or "./" in path or path.endswith("."):
        return True
    if "%" not in url.text:
        return False
    key, query = url.key, url.query
    if "%" in path and (_NEEDLESS.search(path) is not None or _LAST_ESCAPES.search(path) is not None):
        return True
    return bool(query) and not key.endswith(query) and _differ(key, url)


def _differ(key: str, url: Url) -> bool:
    """Tells whether a key differs from its URL by more than the case of escapes."""
    return len(key) != len(url.netloc) + len(url.path) + len(url.query)


def spellings_of(url: Url) -> tuple[Url, ...]:
    """Returns the other spellings of a URL, at most eight; none for nearly all URLs.

    Each of the three differences (escapes, parameters and dots, slashes) is undone alone and with each of the others: a rule may
    itself be written with one of them.
    """
    if not has_spellings(url):
        return ()
    path, mark, query = url.key[len(url.netloc) :].partition("?")
    paths = [path]
    for undo in (_unescaped, _cut, _merged):
        paths += [undo(known) for known in paths]
    begin = f"{url.scheme}://{url.netloc}"
    found: dict[str, Url] = {}
    for text in dict.fromkeys(paths):
        try:
            other = parse_url(f"{begin}{text}{mark}{query}")
        except UrlError:  # no path that can be asked for
            continue
        if other.key != url.key or len(other.text) != len(url.text):  # else it is the same but for the case of an escape
            found[other.text] = other
    return tuple(found.values())
