"""References of a page, from its tags: the Python of `markup.read_references`.

Source: [cloud-crawler §5.1]: the text of a link and the note beside a picture describe a video or picture.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from gatewayfilter.documents.html.tags import RAW_TAGS, Token, attribute_values, text_of, text_of_pieces, unescaped

_REFERRING = frozenset(
    "".join(letters)
    for name in ("a", "/a", "area", "link", "base", "img")
    for letters in product(*zip(name.lower(), name.upper(), strict=True))
)
"""As they may be written: decided without a call."""
MAX_LINKS = 5_000
MAX_IMAGES = 2_000
MAX_TEXT = 500
"""Characters of a link's or a picture's text."""


class PageLink(NamedTuple):
    """A link: its reference as written, its text (the alt text of a picture where that is all), its `rel` and `type`.

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


class References(NamedTuple):
    """What a page refers to: the first `base` element's reference (`""` for none), links and images in order, bounded."""

    base: str
    links: tuple[PageLink, ...]
    images: tuple[PageImage, ...]


def references_of(tokens: Sequence[Token]) -> References:
    """Returns what the tags of a page refer to."""
    reader = _Reader()
    pieces = reader.pieces
    for kind, name, attributes, text in tokens:
        if name in _REFERRING:
            reader.tag(name.lower(), attributes)
        if reader.is_open and len(pieces) < MAX_TEXT:
            pieces.append(text if text and kind not in RAW_TAGS else " ")
    reader.end_link()
    return References(reader.base, tuple(reader.links), tuple(reader.images))


class _Reader:
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
            self._image(*attribute_values(attributes, ("src", "alt")))
            return
        reference, rel, kind, alt = attribute_values(attributes, ("href", "rel", "type", "alt"))
        reference, rel, kind = unescaped(reference).strip(), unescaped(rel).lower(), unescaped(kind).lower()
        if not reference:
            return
        if name == "base":
            self.base = self.base or reference
        elif name == "a":
            self._open, self.is_open = (reference, rel, kind), True
        else:
            self._keep(PageLink(reference, text_of(alt)[:MAX_TEXT], rel, kind, on_page=name != "link"))

    def end_link(self) -> None:
        """Keeps the link that is open, if any."""
        if self.is_open:
            reference, rel, kind = self._open
            self.is_open = False
            self._keep(PageLink(reference, text_of_pieces(self.pieces)[:MAX_TEXT], rel, kind))
            self.pieces.clear()

    def _image(self, source: str, alt: str) -> None:
        source = unescaped(source).strip()
        if source and len(self.images) < MAX_IMAGES:
            self.images.append(PageImage(source, text_of(alt)[:MAX_TEXT]))
        if self.is_open:
            self.pieces.append(f" {alt} ")

    def _keep(self, link: PageLink) -> None:
        if len(self.links) < MAX_LINKS:
            self.links.append(link)
