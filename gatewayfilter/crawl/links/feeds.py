"""Links of sitemaps (XML, gzip, index) and feeds (RSS 0.9 to 2.0, Atom): read by expat as far as they are well-formed.

No entity is ever expanded: a file that declares one is read no further, and nothing outside the file is fetched.
"""

import contextlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from xml.parsers import expat

from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.interfaces import Page

MAX_BYTES = 5_000_000
"""Decoded bytes of a file that are read; compressed ones end there too."""
MAX_LINKS = 5_000
MAX_ELEMENTS = 200_000
MAX_DEPTH = 64
MAX_TEXT = 4_096
_GZIP = b"\x1f\x8b"
_LOOKED_AT = 1_024
_ROOT = re.compile(rb"<(?:[\w.-]{1,40}:)?(urlset|sitemapindex|rss|RDF|feed)[\s>]")


class FeedKind(Enum):
    """What a file lists: sitemaps, pages of a site, or news."""

    SITEMAP_INDEX = "sitemapindex"
    SITEMAP = "urlset"
    RSS = "rss"
    RDF = "RDF"
    ATOM = "feed"


@dataclass(slots=True)
class Feed:
    """The links of a sitemap or feed, as written, in order, bounded.

    Attributes:
        complete: it was read to its end; False for one that is broken, cut, too large, or declares entities.
    """

    kind: FeedKind
    links: list[str] = field(default_factory=list)
    complete: bool = False


class _StopError(Exception):
    """A bound is reached."""


def feed_of(page: Page) -> Feed | None:
    """Returns the links of a page that is a sitemap or feed, by its root element; `None` for any other. Never raises."""
    body = page.body
    if body.startswith(_GZIP):
        body = gunzip(body, MAX_BYTES)
    found = _ROOT.search(body[:_LOOKED_AT].replace(b"\0", b""))
    if found is None:
        return None
    feed = Feed(FeedKind(found[1].decode()))
    text = decode(body[:MAX_BYTES], page.headers.get("content-type", "")).text
    reader = _Reader(feed)
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = reader.refuse
    parser.buffer_text = True
    with contextlib.suppress(expat.ExpatError, _StopError, ValueError):
        parser.Parse(text.encode("utf-8", "replace"), True)
        feed.complete = True
    return feed


def gunzip(body: bytes, limit: int) -> bytes:
    """Returns at most `limit` bytes of a gzip file; what came before damage counts."""
    decoder = zlib.decompressobj(wbits=31)
    with contextlib.suppress(zlib.error):
        return decoder.decompress(body, limit)
    return b""


class _Reader:
    """Follows the elements. Namespaces are dropped: half of the files have the wrong one."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._elements = 0
        self._wanted: Callable[[list[str]], bool] = {
            FeedKind.SITEMAP: lambda path: path[-2:] == ["url", "loc"],
            FeedKind.SITEMAP_INDEX: lambda path: path[-2:] == ["sitemap", "loc"],
            FeedKind.RSS: lambda path: path[-2:] == ["item", "link"],
            FeedKind.RDF: lambda path: path[-2:] == ["item", "link"],
            FeedKind.ATOM: lambda _: False,
        }[feed.kind]

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._path.append(name.rpartition(" ")[2])
        self._text.clear()
        self._length = 0
        if self._elements > MAX_ELEMENTS or len(self._path) > MAX_DEPTH:
            raise _StopError
        if (
            self._feed.kind is FeedKind.ATOM
            and self._path[-2:] == ["entry", "link"]
            and attributes.get("rel", "alternate") == "alternate"
        ):
            self._add(attributes.get("href", ""))

    def end(self, _: str) -> None:
        if self._wanted(self._path):
            self._add("".join(self._text))
        self._path.pop()
        self._text.clear()
        self._length = 0

    def data(self, text: str) -> None:
        if self._length < MAX_TEXT:
            self._text.append(text)
            self._length += len(text)

    def refuse(self, *_: object) -> None:
        raise _StopError

    def _add(self, link: str) -> None:
        if link := link.strip()[:MAX_TEXT]:
            self._feed.links.append(link)
        if len(self._feed.links) >= MAX_LINKS:
            raise _StopError
