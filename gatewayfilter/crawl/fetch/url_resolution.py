"""The resolution of references in pages and redirects to absolute URLs."""

import re
from collections.abc import Callable
from typing import Final

from gatewayfilter.compiled import load
from gatewayfilter.urls import Url, parse_url

_DROPPED: Final = str.maketrans("", "", "\t\r\n")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")

_compiled = load("gatewayfilter._urls")


def _no_plain_link(_kind: type[Url], _base: Url, _reference: str) -> Url | None:
    return None


_plain_link: Callable[[type[Url], Url, str], Url | None] = _no_plain_link if _compiled is None else _compiled.plain_link


def resolve(base: Url, reference: str) -> Url:
    r"""Returns the canonical URL that a reference means on a page: white space dropped and `\` read as `/`, as browsers do.

    About 1.5 µs; 0.8 with compiled code, which reads nine of ten. Source: WHATWG URL §4.4.

    Raises:
        UrlError: not an http(s) URL.
    """
    link = _plain_link(Url, base, reference)
    return resolve_any(base, reference) if link is None else link


def resolve_any(base: Url, reference: str) -> Url:
    """Returns what `resolve` does, in Python alone."""
    text = reference.strip()
    if not text.isprintable():  # ten times as fast where there is nothing to drop
        text = text.translate(_DROPPED)
    if "\\" in text:
        head, mark, query = text.partition("?")
        text = head.replace("\\", "/") + mark + query
    return parse_url(_absolute(base, text))


def _absolute(base: Url, text: str) -> str:
    """Returns a reference with what it leaves to its base; the parser takes dots out of the path later."""
    if text.startswith("/"):  # most links
        return f"{base.scheme}:{text}" if text.startswith("//") else f"{base.scheme}://{base.netloc}{text}"
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _with_base(base, text)
    rest = text[scheme.end() :]
    # "http:x" on a page of the same scheme means "x"; that is older than the standard.
    return _with_base(base, rest) if scheme[0][:-1].lower() == base.scheme and not rest.startswith("//") else text


def _with_base(base: Url, text: str) -> str:
    origin = f"{base.scheme}://{base.netloc}"
    match text[:1]:
        case "" | "#":
            return base.text
        case "/":
            return f"{origin}{text}"
        case "?":
            return f"{origin}{base.path}{text}"
    return f"{origin}{base.path[: base.path.rfind('/') + 1]}{text}"
