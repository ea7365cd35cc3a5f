"""Visible text of an HTML page, from its tags: the Python of `markup.read_html`.

Which of the blocks are the main text is decided by text_density.py, or by main_text.py with another extractor.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gatewayfilter.documents.tags import VOID_TAGS, Token, attribute_values, text_of
from gatewayfilter.documents.text_density import Block, split_by_density

_HIDDEN = re.compile(
    r"(?<![\w-])hidden(?![\w-])(?<!: hidden)(?<!:hidden)|display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden"
    r"|font-size\s{0,9}:\s{0,9}0(?![.\d])"
)
_ARIA_HIDDEN = re.compile(r"aria-hidden|type\s{0,9}=\s{0,9}[\"']?hidden")

_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small span strike "
    "strong sub sup time tt u var wbr blink"
)
_BLOCK_TAGS = "p div ul ol dl table section article header footer nav aside main form h1 h2 h3 h4 h5 h6 pre"
INLINE_TAGS = frozenset(_INLINE.split())
"""Tags that end no block."""
_PLAIN = frozenset(slash + name for name in INLINE_TAGS - {"a"} for slash in ("", "/"))
"""Tags that neither end a block nor mean anything without attributes."""
_IDLE_TAGS = "div li ul p td tr span section header h2 h3 path svg use symbol label option script style"
_IDLE = frozenset(slash + name for name in _IDLE_TAGS.split() for slash in ("", "/"))
"""Frequent tags that change nothing without attributes where no text waits."""
_MEANINGFUL = frozenset({"a", "/a", "title", "/title", "template", "meta", "img", "area", "input"})
"""Tags that are more than the end of a block."""
_ORDINARY = frozenset(
    slash + name
    for name in f"{_IDLE_TAGS} {_BLOCK_TAGS} b i em strong small button figure picture source i".split()
    for slash in ("", "/")
)
"""Frequent tags that mean nothing more than where a block ends, unless their attributes hide them."""
ENDS_PARAGRAPH = frozenset(_BLOCK_TAGS.split())
"""Tags that end a paragraph whose end tag is left out."""
TITLES = frozenset({"og:title", "twitter:title"})
DESCRIPTIONS = frozenset({"description", "og:description", "twitter:description"})
KEYWORDS = frozenset({"keywords", "news_keywords"})
NEVER_HIDDEN = frozenset({"html", "body"})
LABEL_TYPES = frozenset({"", "button", "submit", "image"})
"""Types of an `input` whose value a reader sees."""


@dataclass(slots=True)
class HtmlText:
    """The texts of a page by where they stand; `hidden` is what the markup declares invisible."""

    title: str = ""
    descriptions: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def split_main(self) -> tuple[list[str], list[str]]:
        """Returns the texts of the main blocks and of the rest, in order; blocks that are mostly links are always rest.

        A page without an article (captions, a landing page) has all its other blocks as main text.
        """
        return split_by_density(self.blocks)


def texts_of(before: str, tokens: Sequence[Token]) -> HtmlText:
    """Returns the texts of a page: of what stands before its first token, and of its tokens."""
    return _Reader().read(before, tokens)


def hides(attributes: str) -> bool:
    """Returns whether the attributes of a tag hide what it contains."""
    lower = attributes.lower()
    if "none" in lower or "hidden" in lower or "font-size" in lower:
        return _HIDDEN.search(_ARIA_HIDDEN.sub("", lower)) is not None
    return False


class _Reader:
    """Follows the tags: where blocks end, what is link, title or hidden."""

    def __init__(self) -> None:
        self._page = HtmlText()
        self._pieces: list[str] = []
        self._link_chars = 0
        self._in_link = False
        self._in_title = False
        self._hidden_by = ""
        self._hidden_depth = 0

    def read(self, before: str, tokens: Sequence[Token]) -> HtmlText:  # noqa: C901, PLR0912  a call for each tag would cost as much as the rest
        pieces = self._pieces
        pieces.append(before)
        for _, name, attributes, text in tokens:
            # Most tags change nothing, and a third are links: decided here, where it costs least.
            if not name:
                pass
            elif self._hidden_by:
                self._tag(name.lower(), attributes)
            elif name == "/a":
                self._in_link = False
            elif attributes:
                lower = attributes.lower()
                if "none" in lower or "hidden" in lower or "font-size" in lower:
                    self._tag(name.lower(), attributes)
                elif name == "a":
                    self._in_link = True
                elif name not in _ORDINARY:
                    self._tag(name.lower(), attributes)
                elif pieces and name not in _PLAIN:
                    self._end_block()
            elif name not in (_PLAIN if pieces else _IDLE):
                if name in _ORDINARY:
                    self._end_block()
                else:
                    self._tag(name.lower(), attributes)
            if text and (pieces or not text.isspace()):
                pieces.append(text)
                if self._in_link:
                    self._link_chars += len(text)
        if not self._page.blocks:
            self._hidden_by = ""
        self._end_block()
        return self._page

    def _tag(self, name: str, attributes: str) -> None:
        closing = name[0] == "/"
        bare = name[1:] if closing else name
        if self._pieces and bare not in INLINE_TAGS:
            self._end_block()
        if self._hidden_by:
            self._follow_hidden(bare, closing=closing)
        elif attributes and not closing and bare not in VOID_TAGS:
            self._begin_hidden(bare, attributes)
        if name in _MEANINGFUL:
            self._meaning(name, attributes)

    def _meaning(self, name: str, attributes: str) -> None:
        if name in {"a", "/a"}:
            self._in_link = name == "a"
        elif name in {"title", "/title"}:
            self._in_title = name == "title"
        elif name == "template":
            if not self._hidden_by:
                self._hide(name)
        elif name == "meta":
            self._meta(attributes)
        else:
            self._label(attributes)

    def _end_block(self) -> None:
        text = text_of("".join(self._pieces))
        if text:
            if self._in_title and not self._page.title:
                self._page.title = text
            elif self._hidden_by:
                self._page.hidden.append(text)
            else:
                self._page.blocks.append(Block(text, min(self._link_chars, len(text))))
        self._pieces.clear()
        self._link_chars = 0

    def _begin_hidden(self, name: str, attributes: str) -> None:
        if name not in NEVER_HIDDEN and hides(attributes):
            self._hide(name)

    def _hide(self, name: str) -> None:
        self._end_block()
        self._hidden_by, self._hidden_depth = name, 1

    def _follow_hidden(self, name: str, *, closing: bool) -> None:
        if name == self._hidden_by:
            self._hidden_depth += -1 if closing else 1
        ended = self._hidden_depth <= 0 or (self._hidden_by == "p" and name in ENDS_PARAGRAPH)
        if ended or (closing and name in {"body", "html"}):
            self._end_block()
            self._hidden_by = ""

    def _meta(self, attributes: str) -> None:
        lower = attributes.lower()
        if "description" not in lower and "keywords" not in lower and "title" not in lower:
            return
        name, named, content = attribute_values(attributes, ("name", "property", "content"))
        name, content = (name or named).lower(), text_of(content)
        if not content:
            return
        if name in DESCRIPTIONS:
            self._page.descriptions.append(content)
        elif name in KEYWORDS:
            self._page.keywords.append(content)
        elif name in TITLES and not self._page.title:
            self._page.descriptions.append(content)

    def _label(self, attributes: str) -> None:
        kind, *labels = attribute_values(attributes, ("type", "alt", "value"))
        if kind.lower() in LABEL_TYPES:
            self._page.labels.extend(text for label in labels if (text := text_of(label)))
