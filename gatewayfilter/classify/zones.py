"""A page's text by zones, and the zones' weights."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import md5

from gatewayfilter.classify.ignored_words import IgnoredWords
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.documents.html.html_text import HtmlText
from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import MAX_HTML
from gatewayfilter.documents.main_text import split_main
from gatewayfilter.settings import Extractor
from gatewayfilter.urls import unescaped

MAX_ZONE = 150_000
"""Characters of a zone that are scanned; of a longer one, the first two thirds and the last third of so many."""
MAX_HEAD_ZONE = 2_000
"""The same for title, description, keywords and URL."""
MAX_TITLE = 300
LITTLE_TEXT = 200
"""Characters of main text below which links, and then the names of pictures too, count as main text."""

IDEOGRAPHIC_HEAD, IDEOGRAPHIC_SHARE = 1_000, 0.1
"""Characters that are looked at, and the share of ideographs from which on a page counts as written in them."""
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff]+")
_URL_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class PageText:
    """The zones of a page in their normal view. What several readers ask of them is found once.

    Attributes:
        title: as the page writes it, bounded, for people.
        zones: zone → text; only zones that have any, in the order of `ZONE_FACTORS`.
    """

    title: str
    zones: dict[str, str]

    def visible(self) -> str:
        """What a person sees: title, main text and the rest, a line between them."""
        return self._visible

    def length(self) -> int:
        """Bytes of the visible text in UTF-8, in which an ideograph counts about as much as the letters of its translation."""
        return len(self._encoded) - 2  # of the lines between

    def is_ideographic(self) -> bool:
        """Returns whether the page is written in Chinese or Japanese, by the beginning of its visible text."""
        return self._ideographic

    def without(self, ignored: str) -> "PageText":
        """Returns the page without the words of a text."""
        words = IgnoredWords(ignored)
        return PageText(self.title, {zone: words.taken_out_of(text) for zone, text in self.zones.items()})

    def digest(self) -> bytes:
        """MD5 of the visible text, 16 bytes."""
        return md5(self._encoded, usedforsecurity=False).digest()

    @cached_property
    def _visible(self) -> str:
        return "\n".join(self.zones.get(zone, "") for zone in ("title", "main", "rest"))

    @cached_property
    def _ideographic(self) -> bool:
        head = self._visible[:IDEOGRAPHIC_HEAD]
        return not head.isascii() and sum(map(len, _IDEOGRAPHS.findall(head))) > IDEOGRAPHIC_SHARE * len(head)

    @cached_property
    def _encoded(self) -> bytes:
        return self._visible.encode(errors="replace")


def page_text(
    html: str,
    url: str = "",
    extractor: Extractor = Extractor.DENSITY,
    named: Mapping[str, str] | None = None,
    page: HtmlText | None = None,
) -> PageText:
    """Reads the zones of an HTML page.

    Args:
        html: the markup.
        url: its address, `""` for none.
        extractor: separates main text from the rest.
        named: zone → text that an extraction rule found, which takes the zone's place. What a rule leaves out of the main text
            is `rest`: no rule hides anything.
        page: what `read_html` made of the markup, where it was read already.

    Comments, scripts and styles do not count. Hidden text does not count, since anybody who can put it on a page would get
    that page blocked; but when the markup hides more than it shows, a script shows it: then it counts as `rest`.
    """
    page = page or read_html(html)
    main, rest = split_main(html, page, extractor)
    shown = sum(map(len, main)) + sum(map(len, rest))
    labels = list(dict.fromkeys(page.labels))
    if sum(map(len, page.hidden)) > shown:
        rest = rest + page.hidden
    if sum(map(len, main)) < LITTLE_TEXT:  # a page of links or pictures: their names are its text
        main, rest = main + rest, []
        if shown < LITTLE_TEXT:
            main, labels = main + labels, []
    if named and named.get("main"):
        chosen = frozenset(named["main"].split("\n"))
        rest = [text for text in (block.text for block in page.blocks) if text not in chosen]
        main = [named["main"]]
    zones = {
        "title": page.title,
        "description": "\n".join(dict.fromkeys(page.descriptions)),
        "keywords": "\n".join(page.keywords),
        "url": url_words(url),
        "main": "\n".join(main),
        "rest": "\n".join((*rest, *labels)),
    }
    zones |= {zone: text for zone, text in (named or {}).items() if text and zone != "main"}
    return _page_text(zones["title"], zones)


def plain_text(text: str, url: str = "", title: str = "") -> PageText:
    """Reads plain text: all of it is main text."""
    return _page_text(title, {"title": title, "url": url_words(url), "main": text[:MAX_HTML]})


def url_words(url: str) -> str:
    """Returns the words of a URL: ``best-casino.example/free%20spins`` gives ``best casino example free spins``."""
    rest = url.partition("://")[2] or url
    return _URL_MARKS.sub(" ", unescaped(rest[:MAX_HEAD_ZONE])).strip()


def _page_text(title: str, zones: dict[str, str]) -> PageText:
    normal = {zone: normal_view(_bounded(zone, text)) for zone, text in zones.items() if text}
    return PageText(title[:MAX_TITLE], {zone: _bounded(zone, text) for zone, text in normal.items() if text})


def _bounded(zone: str, text: str) -> str:
    if zone not in {"main", "rest"}:
        return text[:MAX_HEAD_ZONE]
    if len(text) <= MAX_ZONE:
        return text
    tail = MAX_ZONE // 3
    return f"{text[: MAX_ZONE - tail - 1]}\n{text[-tail:]}"
