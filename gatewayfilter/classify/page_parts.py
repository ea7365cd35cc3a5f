"""What stands on a page, as one value: title, description, keywords, links with their text, images with their alt text.

Source: [cloud-crawler §5.1]: the text of a link and the note beside a picture say what a video or picture shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from gatewayfilter.classify.charset import decode
from gatewayfilter.classify.html_text import MAX_HTML, HtmlText, Token, read_html, some_attributes_of, text_of, tokens_of
from gatewayfilter.classify.pdf_text import is_pdf, pdf_text
from gatewayfilter.interfaces import Page

HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
_REFERRING = frozenset(
    "".join(letters)
    for name in ("a", "/a", "area", "link", "base", "img")
    for letters in product(*zip(name.lower(), name.upper(), strict=True))
)
"""As they may be written: told without a call."""
MAX_LINKS = 5_000
MAX_IMAGES = 2_000
MAX_TEXT = 500
"""Characters of a link's or a picture's text."""


class PageLink(NamedTuple):
    """A link: its reference as written, what it says (the alt text of a picture where that is all), its `rel` and `type`.

    `on_page` is False for a `link` element of the head, which a reader does not see.
    """

    reference: str
    text: str = ""
    rel: str = ""
    kind: str = ""
    on_page: bool = True


class PageImage(NamedTuple):
    """A picture: its reference as written and its alt text."""

    reference: str
    alt: str = ""


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
    """Reads the parts of a page. Never raises; linear and bounded as `read_html`."""
    tokens = tokens_of(html)
    return parts_with_texts(tokens, read_html(html, tokens))


def parts_with_texts(tokens: Sequence[Token], page: HtmlText) -> PageParts:
    """Returns the parts of a page whose texts were read already."""
    main, rest = page.split_main()
    base, links, images = _references(tokens)
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


def read_references(html: str) -> tuple[str, tuple[PageLink, ...], tuple[PageImage, ...]]:
    """Returns base, links and images of a page, without its texts."""
    return _references(tokens_of(html))


def _references(tokens: Sequence[Token]) -> tuple[str, tuple[PageLink, ...], tuple[PageImage, ...]]:
    reader = _References()
    pieces = reader.pieces
    for _, name, attributes, text in tokens:
        if name in _REFERRING:
            reader.tag(name.lower(), attributes)
        if reader.is_open and len(pieces) < MAX_TEXT:
            pieces.append(text or " ")
    reader.end_link()
    return reader.base, tuple(reader.links), tuple(reader.images)


class _References:
    """Follows the tags that refer to something; between a link and its end, `pieces` takes the text and the pictures' texts."""

    def __init__(self) -> None:
        self.base = ""
        self.links: list[PageLink] = []
        self.images: list[PageImage] = []
        self.pieces: list[str] = []
        self.is_open = False
        self._open = ("", "", "")

    def tag(self, name: str, attributes: str) -> None:
        """Takes a tag of those that refer."""
        if name in {"a", "/a"}:
            self.end_link()
        if not attributes or name == "/a":
            return
        if name == "img":
            source, alt = some_attributes_of(attributes, ("src", "alt"))
            self._image(source.strip(), text_of(alt)[:MAX_TEXT])
            return
        reference, rel, kind, alt = some_attributes_of(attributes, ("href", "rel", "type", "alt"))
        reference = reference.strip()
        if not reference:
            return
        if name == "base":
            self.base = self.base or reference
        elif name == "a":
            self._open, self.is_open = (reference, rel.lower(), kind.lower()), True
        else:
            self._keep(PageLink(reference, text_of(alt)[:MAX_TEXT], rel.lower(), kind.lower(), on_page=name != "link"))

    def end_link(self) -> None:
        """Keeps the link that is open, if any."""
        if self.is_open:
            reference, rel, kind = self._open
            self.is_open = False
            self._keep(PageLink(reference, text_of("".join(self.pieces))[:MAX_TEXT], rel, kind))
            self.pieces.clear()

    def _image(self, source: str, alt: str) -> None:
        if source and len(self.images) < MAX_IMAGES:
            self.images.append(PageImage(source, alt))
        if self.is_open:
            self.pieces.append(f" {alt} ")

    def _keep(self, link: PageLink) -> None:
        if len(self.links) < MAX_LINKS:
            self.links.append(link)
