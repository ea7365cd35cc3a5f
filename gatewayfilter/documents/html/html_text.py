"""Visible text of an HTML page, from its tags: the Python of `markup.read_html`.

Which of the blocks are the main text is decided by text_density.py, or by main_text.py with another extractor. Which elements
are open is followed only while one of them hides its content (open_elements.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gatewayfilter.documents.html.frequent_tags import DESCRIPTIONS, KEYWORDS, PARTING_TAGS, PARTS, PLAIN, TITLES
from gatewayfilter.documents.html.open_elements import NONE, RULES, TABLE_PART, UNKNOWN, OpenElements
from gatewayfilter.documents.html.rendering import (
    DATA_PICTURE,
    DISPLAYED,
    HIDES,
    HIDING,
    INVISIBLE,
    MAX_DOCUMENTS,
    MAX_SPECIAL,
    NEVER_RENDERED,
    NEVER_RENDERED_SVG,
    NOTHING,
    SPECIAL,
    UNUSUAL_FOREIGN,
    VISIBLE,
    Special,
    effect_of,
    meta_of,
    special,
    undoes,
)
from gatewayfilter.documents.html.tags import (
    FOREIGN,
    NO_SCRIPT,
    RAW_TAGS,
    VOID_TAGS,
    Token,
    attribute_values,
    attributes_of,
    is_closed,
    text_of,
    text_of_pieces,
)
from gatewayfilter.documents.text_density import Block, split_by_density


@dataclass(slots=True)
class HtmlText:
    """The texts of a page by where they stand.

    Attributes:
        labels: what is shown of attributes: names of pictures, values of forms.
        hidden: what the markup declares invisible, and what stands where nothing is shown: `noscript`, `template` and others.
        documents: markup of documents within the page, not read yet.
        is_unusual: whether something stands there that hardly any honest page has: a second look is worth its while.
    """

    title: str = ""
    descriptions: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    is_unusual: bool = False

    def split_main(self) -> tuple[list[str], list[str]]:
        """Returns the texts of the main blocks and of the rest, in order; blocks that are mostly links are always rest.

        A page without an article (captions, a landing page) has all its other blocks as main text.
        """
        return split_by_density(self.blocks)


def texts_of(before: str, tokens: Sequence[Token]) -> HtmlText:
    """Returns the texts of a page: of what stands before its first token, and of its tokens."""
    return _Reader(tokens).read(before)


class _Reader:
    """Follows the tags: where blocks end, what is link, title or hidden."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._page = HtmlText()
        self._pieces: list[str] = []
        self._hidden_pieces: list[str] = []
        self._link_chars = 0
        self._in_link = False
        self._within = False  # a noscript
        self._elements = OpenElements()
        self._known = 0  # tokens whose elements are on the stack
        self._follows = False  # an element hides, thus the stack is kept
        self._hidden_by = HIDES  # INVISIBLE where elements within may be shown again
        self._hidden_name = ""
        self._asked = 0  # elements of which `special` was asked
        self._options = 0  # 1 in a closed select before its first option, 2 after it

    def read(self, before: str) -> HtmlText:  # noqa: C901, PLR0912  a call for each tag would cost as much as the rest
        pieces = self._pieces
        pieces.append(before)
        for place, (kind, name, attributes, text) in enumerate(self._tokens):
            # Most tags change nothing, and a third are links: decided here, where it costs least.
            if kind or self._follows or self._within:
                if kind not in {"script", "style"} or self._follows or self._within or "style" in attributes.lower():
                    self._token(place, kind, name.lower(), attributes, text)
                continue
            if not name or (name in PLAIN and not attributes):
                pass
            elif name == "/a":
                self._in_link = False
            elif (
                attributes
                and ("style" in (lower := attributes.lower()) or "hidden" in lower or "popover" in lower)
                and effect_of(attributes)
            ):
                self._tag(place, name.lower(), attributes)
            elif name == "a":
                self._in_link = True
            elif name in PARTS:
                if pieces:
                    self._end_block()
            elif name == "meta":
                self._meta(attributes)
            elif name not in PLAIN:
                self._tag(place, name.lower(), attributes)
            if text:
                if self._elements.hidden != NONE:
                    self._text(text)
                elif pieces or not text.isspace():
                    pieces.append(text)
                    if self._in_link:
                        self._link_chars += len(text)
        self._end_block()
        self._end_hidden()
        return self._page

    def _token(self, place: int, kind: str, name: str, attributes: str, text: str) -> None:
        """Takes a token that is not of the usual kind, or within what is hidden."""
        if self._within:
            if name == f"/{NO_SCRIPT}":
                self._within = False
            elif name.removeprefix("/") in PARTING_TAGS:
                self._end_hidden()
            text = text if kind not in RAW_TAGS else ""
        elif not name:
            pass
        elif self._follows:
            self._known = place + 1
            self._follow(kind, name, attributes)
        elif kind == FOREIGN:
            self._foreign(place, name, attributes)
        else:
            self._tag(place, name, attributes)
        if kind and kind != FOREIGN and not self._within:
            self._element_of_text(kind, attributes, text)
        elif text:
            self._text(text)

    def _tag(self, place: int, name: str, attributes: str) -> None:
        """Takes a tag where nothing is hidden."""
        if name[0] == "/":
            self._end_tag(name[1:])
            return
        effect, found = self._looks(name, attributes)
        if effect & HIDING and name not in VOID_TAGS and name != NO_SCRIPT:  # which is never on the stack, nor what is within
            self._catch_up(place)
            if self._elements.start(name, attributes, foreign=False, closed=is_closed(attributes)):
                self._hide(name, effect)
                return
        self._shown(name, attributes, found)

    def _foreign(self, place: int, name: str, attributes: str) -> None:
        effect = effect_of(attributes) if attributes else 0
        self._page.is_unusual |= name in UNUSUAL_FOREIGN
        if name in NEVER_RENDERED_SVG or effect & HIDING:
            self._catch_up(place)
            if self._elements.start(name, attributes, foreign=True, closed=is_closed(attributes)):
                self._hide(name, HIDES if name in NEVER_RENDERED_SVG else effect)
                return
        if name == "a":
            self._in_link = True
        elif name in PARTING_TAGS:
            self._end_block()

    def _follow(self, kind: str, name: str, attributes: str) -> None:
        """Takes a tag while an element hides."""
        if name[0] == "/":
            self._follow_end(name[1:], was_hidden=self._elements.shown == NONE)
        else:
            self._follow_start(name, attributes, foreign=kind == FOREIGN)

    def _follow_start(self, name: str, attributes: str, *, foreign: bool) -> None:
        elements = self._elements
        was_hidden = elements.shown == NONE
        if foreign:
            self._page.is_unusual |= name in UNUSUAL_FOREIGN
            effect, found = HIDES if name in NEVER_RENDERED_SVG else effect_of(attributes), NOTHING
        else:
            effect, found = self._looks(name, attributes)
        fostered = was_hidden and elements.fosters and not RULES.get(name, UNKNOWN).bits & TABLE_PART
        is_open = elements.start(name, attributes, foreign=foreign, closed=bool(attributes) and is_closed(attributes))
        if elements.hidden == NONE:
            self._unhide()
        elif (
            was_hidden
            and is_open
            and elements.shown == NONE
            and (not effect & HIDING if fostered else self._shows_again(name, attributes, effect))
        ):
            self._end_hidden()
            elements.shown = len(elements) - 1
            self._shown(name, attributes, found)
            return
        self._after(name, was_hidden=was_hidden)
        if elements.hidden == NONE or elements.shown != NONE:
            if effect & HIDING and is_open:
                self._hide(name, effect)
            elif foreign:
                if name in PARTING_TAGS:
                    self._end_block()
            else:
                self._shown(name, attributes, found)

    def _follow_end(self, name: str, *, was_hidden: bool) -> None:
        elements = self._elements
        root = elements.hidden
        elements.end(name)
        if elements.hidden == NONE:
            self._unhide()
            if was_hidden and len(elements) >= root:  # nothing but what was hidden has ended
                return
        self._after(name, was_hidden=was_hidden)
        if elements.shown != NONE or elements.hidden == NONE:
            self._end_tag(name)

    def _after(self, name: str, *, was_hidden: bool) -> None:
        if not was_hidden and self._elements.hidden > NONE == self._elements.shown:  # what was shown again has ended
            self._end_block()
        if name in PARTING_TAGS:
            self._end_hidden()

    def _shows_again(self, name: str, attributes: str, effect: int) -> bool:
        if self._hidden_name == "details":
            return name == "summary" and len(self._elements) == self._elements.hidden + 2
        if self._hidden_by == INVISIBLE:
            return effect == VISIBLE
        if self._hidden_by & HIDES or effect & HIDING or "style" not in attributes.lower():
            return False
        return undoes(attributes_of(attributes).get("style", ""), self._hidden_by)

    def _looks(self, name: str, attributes: str) -> tuple[int, Special]:
        """Returns what a tag does to its content, and what else there is to it."""
        effect = effect_of(attributes) if attributes and name not in {"html", "body"} else 0
        found = NOTHING
        if name in SPECIAL and (attributes or name != "iframe"):
            self._asked += bool(attributes)
            found = special(name, attributes if self._asked <= MAX_SPECIAL else "")
        if name == "input" and effect & HIDING:
            found = NOTHING
        if (found.hides and name not in {"select", "option", "optgroup"} and not (effect & DISPLAYED and name == "dialog")) or (
            name in NEVER_RENDERED and name not in SPECIAL and not effect & DISPLAYED
        ):
            effect |= HIDES
        elif name == "option" and self._options and not effect & HIDES:
            effect |= HIDES if self._options > 1 and found.hides else 0
            self._options = 2
        elif name == "select":
            self._options = int(found.hides)
        return effect, found

    def _catch_up(self, place: int) -> None:
        """Brings the stack to a token."""
        elements, tokens, known = self._elements, self._tokens, self._known
        while (known := elements.follow(tokens, known, place)) < place:
            kind, name, attributes, _ = tokens[known]
            known += 1
            lower = name.lower()
            if kind == NO_SCRIPT:
                while known < place and tokens[known][1].lower() != f"/{NO_SCRIPT}":
                    known += 1
            elif lower[0] == "/":
                elements.end(lower[1:])
            else:
                closed = attributes[-1:] == "/" and is_closed(attributes)
                elements.start(lower, attributes, foreign=kind == FOREIGN, closed=closed)
        self._known = place + 1

    def _hide(self, name: str, effect: int) -> None:
        elements = self._elements
        elements.hidden, elements.shown = len(elements) - 1, NONE
        self._follows, self._hidden_name, self._hidden_by = True, name, effect & HIDING

    def _unhide(self) -> None:
        self._end_hidden()
        self._follows = False

    def _end_tag(self, name: str) -> None:
        if name in PARTING_TAGS:
            self._end_block()
        if name == "a":
            self._in_link = False
        elif name == "select":
            self._options = 0

    def _shown(self, name: str, attributes: str, found: Special) -> None:
        """Takes the tag of an element that is shown."""
        if name in PARTING_TAGS:
            self._end_block()
        if name == "a":
            self._in_link = True
        elif name == "meta":
            self._meta(attributes)
        elif name == "img" and attributes:
            source, alt = attribute_values(attributes, ("src", "alt"))
            if alt := text_of(alt):
                self._page.labels.append(alt)
            if source[: len(DATA_PICTURE)].lower() == DATA_PICTURE and len(self._page.documents) < MAX_DOCUMENTS:
                found = special(name, attributes)
        self._page.labels.extend(found.labels)
        self._page.documents.extend(found.documents)
        if found.shadow or found.documents:
            self._page.is_unusual = True

    def _element_of_text(self, kind: str, attributes: str, text: str) -> None:
        """Takes the content of an element without markup."""
        hidden = self._follows and self._elements.shown == NONE
        if kind == NO_SCRIPT:
            self._within = True
            self._text(text)
        elif kind in RAW_TAGS:
            if kind in {"script", "style"} and not hidden and effect_of(attributes) & DISPLAYED:
                self._page.is_unusual = True
                self._end_block()
                self._text(text)
                self._end_block()
        elif kind == "title":
            text = text_of(text)
            if text and not self._page.title and not hidden:
                self._page.title = text
            elif text:
                self._page.hidden.append(text)
        elif kind == "textarea" and not hidden and effect_of(attributes) & HIDING:
            if text := text_of(text):
                self._page.hidden.append(text)
        else:
            self._page.is_unusual |= kind != "textarea"
            self._text(text)

    def _text(self, text: str) -> None:
        if not text:
            return
        hidden = self._within or (self._follows and self._elements.shown == NONE)
        if hidden and (self._within or not self._elements.fosters or text.isspace()):
            if self._hidden_pieces or not text.isspace():
                self._hidden_pieces.append(text)
        elif self._pieces or not text.isspace():
            self._pieces.append(text)
            if self._in_link:
                self._link_chars += len(text)

    def _end_block(self) -> None:
        if self._pieces:
            text = text_of_pieces(self._pieces)
            if text:
                self._page.blocks.append(Block(text, min(self._link_chars, len(text))))
            self._pieces.clear()
            self._link_chars = 0

    def _end_hidden(self) -> None:
        if self._hidden_pieces:
            if text := text_of_pieces(self._hidden_pieces):
                self._page.hidden.append(text)
            self._hidden_pieces.clear()

    def _meta(self, attributes: str) -> None:
        page = self._page
        name, content, documents = meta_of(attributes)
        if documents and len(page.documents) < MAX_DOCUMENTS:
            page.documents.extend(documents)
        if content and (name in DESCRIPTIONS or (name in TITLES and not page.title)):
            page.descriptions.append(content)
        elif content and name in KEYWORDS:
            page.keywords.append(content)
