"""What stands on a page, as one value: title, description, keywords, links with their text, images with their alt text."""

import re
from dataclasses import dataclass

from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.html.markup import Markup, read_markup
from gatewayfilter.documents.html.references import PageImage, PageLink
from gatewayfilter.documents.html.tags import MAX_HTML
from gatewayfilter.documents.pdf_text import is_pdf, pdf_text
from gatewayfilter.interfaces import Page

HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_HTML_DOCUMENT = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<(?:!DOCTYPE HTML|HTML)[ >]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageParts:
    """The parts of a page, each list in the order of the page and bounded.

    Attributes:
        base: the reference of the first `base` element, `""` for none.
        main: the main text, a block each; `rest` the other visible text.
    """

    title: str
    description: str
    keywords: str
    base: str
    links: tuple[PageLink, ...]
    images: tuple[PageImage, ...]
    main: tuple[str, ...]
    rest: tuple[str, ...]


def read_parts(html: str) -> PageParts:
    """Reads the parts of a page. Never raises; linear and bounded as `read_markup`."""
    return parts_from(read_markup(html))


def parts_from(markup: Markup) -> PageParts:
    """Returns the parts of a page whose markup was read already."""
    page, (base, links, images) = markup
    main, rest = page.split_main()
    description = page.descriptions[0] if page.descriptions else ""
    return PageParts(page.title, description, ", ".join(page.keywords), base, links, images, tuple(main), tuple(rest))


def parts_of(page: Page) -> PageParts:
    """Returns the parts of a fetched page; of plain text and PDF title and main text, of anything else nothing. Never raises."""
    if is_pdf(page.content_type, page.body):
        title, text = pdf_text(page.body)
        return PageParts(title, "", "", "", (), (), tuple(text.splitlines()), ())
    kind = page.content_type
    if kind not in HTML_TYPES and not kind.startswith("text/"):
        return PageParts("", "", "", "", (), (), (), ())
    text = decode(page.body[:MAX_HTML], page.headers.get("content-type", "")).text
    if kind in HTML_TYPES:
        return read_parts(text)
    return PageParts("", "", "", "", (), (), tuple(text.splitlines()), ())


def is_html_document(body: bytes) -> bool:
    """Returns whether a body begins as HTML documents do, whatever its origin calls it."""
    return _HTML_DOCUMENT.match(body) is not None
