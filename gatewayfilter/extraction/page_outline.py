"""Outline of a page for an editor: its elements with numbers, and its text as pieces without any of the page's markup.

Reads hostile markup in one bounded pass; to be run in a process with limits all the same.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from resiliparse.parse.html import NodeType

from gatewayfilter.extraction.selectors import RulePage

MOST_ELEMENTS: Final = 2_000
"""Elements that get a number; what is behind them is left out."""
MOST_DEPTH: Final = 64
"""Elements within each other; what is within deeper ones is left out."""
MOST_TEXT: Final = 200_000
"""Characters of all pieces of text."""
MOST_NODES: Final = 30_000
"""Nodes that are looked at."""
_MOST_POSITIONS: Final = 20_000_000
"""Sum of the squares of the numbers of siblings: what `:nth-of-type` costs on the page, about 0.2 s."""
NO_PARENT: Final = -1
_LONGEST: Final = 160
"""Characters of an element's own text, and of a label."""

type Piece = tuple[Literal["open"], int, str, str] | tuple[Literal["text"], str] | tuple[Literal["close"]]
"""Begin of an element (number, kind, tag), text, or end of an element."""

_SKIPPED = "script style noscript template svg math iframe object embed applet audio video canvas link base frame frameset"
_LEFT_OUT: Final = frozenset(_SKIPPED.split())
_HEADINGS = "h1 h2 h3 h4 h5 h6 legend caption"
_PARAGRAPHS = "p blockquote dt dd address figcaption"
_BLOCKS = (
    "div section article main header footer nav aside ul ol dl form fieldset figure table tbody thead tfoot center details "
    "summary hgroup menu search"
)
_TAG: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SPACES: Final = re.compile(r"\s+")
_KINDS: Final = {
    **dict.fromkeys(_HEADINGS.split(), "heading"),
    **dict.fromkeys(_PARAGRAPHS.split(), "paragraph"),
    **dict.fromkeys(_BLOCKS.split(), "block"),
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("i", "em", "cite"), "emphasis"),
    **dict.fromkeys(("input", "select", "textarea", "button", "option"), "control"),
    **dict.fromkeys(("td", "th"), "cell"),
    "pre": "preformatted",
    "li": "item",
    "tr": "row",
    "a": "link",
    "img": "image",
    "br": "break",
    "hr": "rule",
}
"""How an element is shown; any other is `inline`."""


@dataclass(slots=True)
class OutlineElement:
    """An element of a page.

    Attributes:
        number: in the order of the page, from 0.
        tag: its name, small letters, digits and hyphens.
        label: id and classes as in a selector, or the name of a meta element; for people.
        text: the beginning of its own text, of a meta element its content.
        parent: number of the element around it, `NO_PARENT` for none.
        shown: it has a piece; what stands in the head has none.
    """

    number: int
    tag: str
    label: str
    text: str
    parent: int
    shown: bool


@dataclass(slots=True)
class PageOutline:
    """The elements of a page.

    Attributes:
        nodes: of the library's tree, by number.
        pieces: what is shown; elements are opened and closed in pairs.
        is_whole: nothing was left out for its size.
    """

    elements: list[OutlineElement] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    is_whole: bool = True
    _positions: int = 0

    @property
    def allows_positions(self) -> bool:
        """Whether `:nth-of-type` may be used: it takes quadratic time for siblings."""
        return self.is_whole and self._positions <= _MOST_POSITIONS

    def count(self, positions: int) -> None:
        """Adds the cost of positions among some siblings."""
        self._positions += positions

    def path(self, number: int) -> list[OutlineElement]:
        """Returns the elements around one, the outermost first."""
        found: list[OutlineElement] = []
        at = self.elements[number].parent
        while at != NO_PARENT:
            found.append(self.elements[at])
            at = self.elements[at].parent
        return found[::-1]


def read_outline(page: RulePage) -> PageOutline:
    """Returns the outline of a page, in one pass over at most `MOST_NODES` nodes.

    Siblings are followed by their pointers: a collection of children makes an object of every child for each index.
    """
    outline = PageOutline()
    if page.css_tree is not None:
        _Walk(outline).over(page.css_tree)
    return outline


class _Walk:
    """The pass over a tree, without recursion: elements can be nested fifty thousand deep."""

    def __init__(self, outline: PageOutline) -> None:
        self._outline = outline
        self._open: list[int] = []
        self._text_left = MOST_TEXT

    def over(self, document: Any) -> None:
        outline = self._outline
        nodes, siblings, seen = [document.first_child], [0], 0
        while nodes:
            node = nodes[-1]
            if node is None or seen >= MOST_NODES:
                outline.is_whole &= node is None
                nodes.pop()
                outline.count(siblings.pop() ** 2)
                if nodes:
                    self._close(self._open.pop())
                continue
            seen += 1
            nodes[-1] = node.next
            tag = node.tag or ""
            if tag == "#text":
                self._add_text(node.value or "")
            elif node.type is NodeType.ELEMENT:
                siblings[-1] += 1
                if self._enters(node, tag):
                    nodes.append(node.first_child)
                    siblings.append(0)

    def _enters(self, node: Any, tag: str) -> bool:
        """Adds an element. Returns whether its content is looked at."""
        outline = self._outline
        if tag in _LEFT_OUT or not _TAG.fullmatch(tag):
            return False
        if len(outline.elements) >= MOST_ELEMENTS or len(self._open) >= MOST_DEPTH:
            outline.is_whole = False
            return False
        around = outline.elements[self._open[-1]] if self._open else None
        in_head = tag == "head" or (around is not None and around.tag == "head")
        shown = not in_head and tag not in {"html", "body", "meta", "title"} and (around is None or _is_in_body(around))
        parent = NO_PARENT if around is None else around.number
        number = len(outline.elements)
        text = clean(node.getattr("content") or "")[:_LONGEST] if tag == "meta" else ""
        outline.elements.append(OutlineElement(number, tag, _label(node), text, parent, shown))
        outline.nodes.append(node)
        if shown:
            outline.pieces.append(("open", number, _KINDS.get(tag, "inline"), tag))
            if standing_in := _stands_in(node, tag):
                self._put(standing_in)
        self._open.append(number)
        return True

    def _close(self, number: int) -> None:
        if self._outline.elements[number].shown:
            self._outline.pieces.append(("close",))

    def _add_text(self, value: str) -> None:
        element = self._outline.elements[self._open[-1]] if self._open else None
        text = clean(value[:MOST_TEXT], keep_lines=element is not None and element.tag == "pre")
        if element is not None and len(element.text) < _LONGEST:
            element.text = f"{element.text} {text}".strip()[:_LONGEST]
        if element is not None and _is_in_body(element):
            self._put(text)

    def _put(self, text: str) -> None:
        text = text[: self._text_left]
        self._text_left -= len(text)
        self._outline.is_whole &= self._text_left > 0
        if text:
            self._outline.pieces.append(("text", text))


def _is_in_body(element: OutlineElement) -> bool:
    return element.shown or element.tag in {"html", "body"}


def clean(text: str, *, keep_lines: bool = False) -> str:
    """Returns a text without control characters, white space folded."""
    text = _CONTROLS.sub("", text)
    return text if keep_lines else _SPACES.sub(" ", text)


def _stands_in(node: Any, tag: str) -> str:
    """Returns what stands for an element without text of its own."""
    if tag == "img":
        source = (node.getattr("src") or "").partition("?")[0].rpartition("/")[2]
        return clean(node.getattr("alt") or source)[:_LONGEST] or "img"
    if tag in {"input", "textarea"}:
        return clean(node.getattr("value") or node.getattr("placeholder") or node.getattr("type") or tag)[:_LONGEST]
    return ""


def _label(node: Any) -> str:
    identity, classes = node.getattr("id") or "", (node.getattr("class") or "")[:1_000].split()
    named = node.getattr("property") or node.getattr("name") or ""
    shown = (f"#{identity}" if identity else "") + "".join(f".{name}" for name in classes[:3])
    return clean(shown or (f"[{named}]" if named else ""))[: _LONGEST // 2]
