"""What stands on a page, as one value: title, description, keywords, links with their text, images with their alt text.

Source: [cloud-crawler §5.1]: the text of a link and the note beside a picture say what a video or picture shows.
"""

from dataclasses import dataclass, replace

from gatewayfilter.classify.charset import decode
from gatewayfilter.classify.html_text import MAX_HTML, attributes_of, iter_tokens, read_html, text_of
from gatewayfilter.classify.pdf_text import is_pdf, pdf_text
from gatewayfilter.interfaces import Page

HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
MAX_LINKS = 5_000
MAX_IMAGES = 2_000
MAX_TEXT = 500
"""Characters of a link's or a picture's text."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link: its reference as written, what it says (the alt text of a picture where that is all), its `rel` and `type`.

    `on_page` is False for a `link` element of the head, which a reader does not see.
    """

    reference: str
    text: str = ""
    rel: str = ""
    kind: str = ""
    on_page: bool = True


@dataclass(frozen=True, slots=True)
class PageImage:
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
    page = read_html(html)
    main, rest = page.split_main()
    base, links, images = read_references(html)
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
    reader = _References()
    for name, attributes, text in iter_tokens(html):
        reader.token(name, attributes, text)
    reader.end_link()
    return reader.base, tuple(reader.links), tuple(reader.images)


class _References:
    """Follows the tags that refer to something; between a link and its end, the text and the pictures' texts."""

    def __init__(self) -> None:
        self.base = ""
        self.links: list[PageLink] = []
        self.images: list[PageImage] = []
        self._open: PageLink | None = None
        self._pieces: list[str] = []

    def token(self, name: str, attributes: str, text: str) -> None:
        """Takes a tag and the text after it."""
        if name in {"a", "/a"}:
            self.end_link()
        if attributes and name in {"a", "area", "link", "base", "img"}:
            self._refer(name, attributes_of(attributes))
        if self._open is not None and len(self._pieces) < MAX_TEXT:
            self._pieces.append(text or " ")

    def end_link(self) -> None:
        """Keeps the link that is open, if any."""
        link, self._open = self._open, None
        if link is not None:
            self._keep(replace(link, text=text_of("".join(self._pieces))[:MAX_TEXT]))
        self._pieces.clear()

    def _refer(self, name: str, values: dict[str, str]) -> None:
        if name == "img":
            self._image(values.get("src", "").strip(), text_of(values.get("alt", ""))[:MAX_TEXT])
            return
        reference = values.get("href", "").strip()
        if not reference:
            return
        if name == "base":
            self.base = self.base or reference
            return
        link = PageLink(reference, "", values.get("rel", "").lower(), values.get("type", "").lower(), on_page=name != "link")
        if name == "a":
            self._open = link
        else:
            self._keep(replace(link, text=text_of(values.get("alt", ""))[:MAX_TEXT]))

    def _image(self, source: str, alt: str) -> None:
        if source and len(self.images) < MAX_IMAGES:
            self.images.append(PageImage(source, alt))
        if self._open is not None:
            self._pieces.append(f" {alt} ")

    def _keep(self, link: PageLink) -> None:
        if len(self.links) < MAX_LINKS:
            self.links.append(link)
