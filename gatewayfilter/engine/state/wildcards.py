"""Wildcards of manual rules: plain searches from left to right, in linear time."""

import re
from collections.abc import Callable
from typing import Final

from gatewayfilter.urls import Url

_PORT: Final = re.compile(r":[0-9]+$")


class SearchedUrl:
    """The lower-case texts of a URL that wildcards and regular expressions are matched against; computed once for all of them.

    Attributes:
        pages: the URL without its scheme, and without its port where it has one.
    """

    __slots__ = ("_url", "pages")

    def __init__(self, url: Url) -> None:
        page = url.key.lower()
        self._url = url
        self.pages: tuple[str, ...] = (page, url.host + page[len(url.netloc) :]) if url.port else (page,)

    @property
    def scheme(self) -> str:
        """The URL's scheme."""
        return self._url.scheme

    @property
    def text(self) -> str:
        """The whole URL."""
        return self._url.text.lower()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host, and the host with the port where it has one."""
        return (self._url.host, self._url.netloc) if self._url.port else (self._url.host,)


type Matches = Callable[[SearchedUrl], bool]
"""Returns whether a wildcard or regular expression matches a URL."""


def wildcard(pattern: str, *, allows: bool) -> Matches:
    """Returns the test for a wildcard.

    Args:
        pattern: as typed.
        allows: the rule allows. Where the pattern names a host, its `*` does not extend from the host into the path: a client
            could put that name into the path or query of any URL (``http://blocked/?.example.com/``).
    """
    head, mark, tail = pattern.lower().partition("://")
    fits_scheme, rest = (glob(head), tail) if mark else (None, head)
    patterns = [rest, rest[2:]] if rest.startswith("*.") else [rest]
    fits = [_fits_site(one) if allows and _names_host(one) else glob(one) for one in patterns]
    host_alone = "/" not in rest
    literal = max(rest.removeprefix("*.").split("*"), key=len)  # in every matching URL; the host alone is part of its page

    def matches(url: SearchedUrl) -> bool:
        if fits_scheme is not None and not fits_scheme(url.scheme):
            return False
        for fit in fits:
            for text in url.pages:
                if fit(text):
                    return True
            if host_alone:
                for text in url.hosts:
                    if fit(text):
                        return True
        return False

    return lambda url: (literal in url.pages[0] or literal in url.pages[-1]) and matches(url)


def _names_host(pattern: str) -> bool:
    """Returns whether the text before the first slash can only be a host: ``*.test.com/a*``, ``*.cdn.*/a``, ``*.a.b:81``."""
    host, slash, _ = pattern.partition("/")
    if "?" in host or "." not in host.strip("*"):
        return False
    return _PORT.search(host) is not None or (bool(slash) and (not host.endswith("*") or host.endswith(".*")))


def _fits_site(pattern: str) -> Callable[[str], bool]:
    host, slash, path = pattern.partition("/")
    fits_host, fits_path = glob(host), glob(slash + path)

    def fits(page: str) -> bool:
        site, slash, path = page.partition("/")
        return fits_host(site) and fits_path(slash + path)

    return fits


def glob(pattern: str) -> Callable[[str], bool]:
    """Returns a whole-text match in which `*` stands for any text; its time is the number of `*` times the length at most."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern.__eq__
    head, *middle, tail = parts
    middle = [part for part in middle if part]
    least = len(head) + len(tail)

    def fits(text: str) -> bool:
        if len(text) < least or not text.startswith(head) or not text.endswith(tail):
            return False
        position = len(head)
        end = len(text) - len(tail)
        for part in middle:
            position = text.find(part, position, end)
            if position < 0:
                return False
            position += len(part)
        return True

    return fits
