"""The stack of open elements: which elements a tag ends, and whether markup is HTML or foreign (`svg`, `math`).

Source: HTML, 13.2.4.2, 13.2.6.4, 13.2.6.5.
Deviation: no node is built, no table repairs its content, `html`, `head` and `body` are not on the stack, and a formatting
element ends with its parent instead of being opened again behind it. `_markup.pyx` takes its tables from here.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

NONE: Final = -1
"""No place on the stack."""
MAX_SEARCH = 256
"""Innermost elements among which the one is looked for that a tag ends."""

(P, LI, DD, CELL, ROW, SECTION, OPTION, GROUP, HEADING, LINK, BUTTON, RUBY_TEXT, FORMATTING) = (1 << bit for bit in range(13))
"""What an element may be ended as."""
(SPECIAL, LIST_STOP, SCOPE, LISTS, TABLE, SELECT, RUBY, ANY) = (1 << bit for bit in range(13, 21))
"""What stops the search for an element to end."""
(NEVER, P_CLOSER, FOREIGN_ROOT, BREAKOUT, SVG_TEXT, MATH_TEXT) = (1 << bit for bit in range(21, 27))
"""NEVER: is not on the stack. P_CLOSER: ends a paragraph. BREAKOUT: leaves foreign content. The last two hold HTML within it."""
(NOBR, FORM, ROWS, TABLE_PART) = (1 << bit for bit in range(27, 31))
"""ROWS: text in it goes before its table. TABLE_PART: belongs into a table."""
IMPLIED = P | LI | DD | OPTION | GROUP | RUBY_TEXT
"""What the end tag of a form ends."""
BUTTON_SCOPE = SCOPE | BUTTON


class Rule(NamedTuple):
    """What the tags of an element do.

    Attributes:
        bits: what it is.
        closes: which elements its start tag ends, up to one of `stops`.
        end_stops: which elements keep its end tag from reaching further out.
    """

    bits: int
    closes: int
    stops: int
    end_stops: int


UNKNOWN: Final = Rule(ANY, 0, 0, SPECIAL)
"""The rule of an element without one."""


_HEADINGS: Final = "h1 h2 h3 h4 h5 h6"
_CLOSERS: Final = (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header "
    f"hgroup main menu nav ol p search section summary ul {_HEADINGS} pre listing form plaintext xmp hr li dd dt "
    "table"
)
_SPECIAL: Final = (
    "applet basefont bgsound button caption col colgroup frameset iframe marquee noembed noframes noscript object "
    "select tbody td template textarea tfoot th thead tr title script style foreignobject desc mi "
    "mo mn ms mtext annotation-xml"
)
_VOID: Final = "area base br col embed hr img input link meta param source track wbr keygen"
_NEVER: Final = (
    f"html head body frame frameset plaintext xmp script style iframe noembed noframes title textarea noscript {_VOID}"
)
_SCOPES: Final = "applet caption table td th marquee object template foreignobject desc title mi mo mn ms mtext annotation-xml"
_BREAKOUT: Final = (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu "
    "meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_PARTS: Final = {
    P: "p",
    LI: "li",
    DD: "dd dt",
    CELL: "td th",
    ROW: "tr",
    SECTION: "tbody thead tfoot caption colgroup",
    OPTION: "option",
    GROUP: "optgroup",
    HEADING: _HEADINGS,
    LINK: "a",
    BUTTON: "button",
    RUBY_TEXT: "rt rp rb rtc",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    SPECIAL: f"{_CLOSERS} {_SPECIAL}",
    LIST_STOP: " ".join({*_CLOSERS.split(), *_SPECIAL.split()} - {"address", "div", "p"}),
    SCOPE: _SCOPES,
    LISTS: "ol ul",
    TABLE: "table template",
    SELECT: "select datalist",
    RUBY: "ruby",
    NEVER: _NEVER,
    P_CLOSER: _CLOSERS,
    FOREIGN_ROOT: "svg math",
    BREAKOUT: _BREAKOUT,
    SVG_TEXT: "foreignobject desc title",
    MATH_TEXT: "mi mo mn ms mtext",
    NOBR: "nobr",
    FORM: "form",
    ROWS: "table tbody thead tfoot tr",
    TABLE_PART: "table tbody thead tfoot tr td th caption colgroup col style script template form",
}
_STARTS: Final = {
    "li": (LI, LIST_STOP),
    "dd dt": (DD, LIST_STOP),
    "td th": (CELL, TABLE),
    "tr": (CELL | ROW, TABLE),
    "tbody thead tfoot caption colgroup": (CELL | ROW | SECTION, TABLE),
    "option": (OPTION, SELECT | GROUP),
    "optgroup": (OPTION | GROUP, SELECT),
    "a": (LINK, SCOPE),
    "nobr": (NOBR, SCOPE),
    "button": (BUTTON, SCOPE),
    "rt rp rb rtc": (RUBY_TEXT, RUBY | SPECIAL),
    _HEADINGS: (HEADING, ANY),
}
_ENDS: Final = {
    " ".join({*_CLOSERS.split(), "button", "select", "applet", "marquee", "object"}): SCOPE,
    "p": BUTTON_SCOPE,
    "li": SCOPE | LISTS,
    "td th tr tbody thead tfoot caption colgroup table": TABLE,
    "template": 0,
    _PARTS[FORMATTING]: SCOPE,
}


def _rules() -> dict[str, Rule]:
    closing = {name: values for names, values in _STARTS.items() for name in names.split()}
    ending = {name: stops for names, stops in _ENDS.items() for name in names.split()}
    bits: dict[str, int] = {}
    for bit, names in _PARTS.items():
        for name in names.split():
            bits[name] = bits.get(name, ANY) | bit
    return {name: Rule(found, *closing.get(name, (0, 0)), ending.get(name, SPECIAL)) for name, found in bits.items()}


RULES: Final = _rules()
HTML, SVG, MATH = range(3)

type Element = tuple[str, int, int]
"""Name, bits of its rule, and whether it is HTML or foreign."""


_COUNTED: Final = P | LINK
_UNRULED: Final = (
    "abbr acronym bdi bdo cite data del dfn figcaption ins kbd label legend map mark output picture q samp slot time"
)
"""Frequent names without a rule."""
_TAGS: Final = {
    name: ((name, rule.bits, HTML), rule.bits, rule.closes, rule.stops)
    for name, rule in (dict.fromkeys(_UNRULED.split(), UNKNOWN) | RULES).items()
    if not rule.bits & (FOREIGN_ROOT | FORM) and name != "table"
} | {f"/{name}": (("", NEVER, HTML), NEVER, 0, 0) for name, rule in RULES.items() if rule.bits & NEVER}
"""Name of a tag → what it puts on the stack, and its rule, in one look-up; of end tags, those alone that do nothing."""


class OpenElements:
    """The elements that are open after some tags, and which of them hides its content.

    Attributes:
        hidden: place of the element that hides, `NONE` for none.
        shown: place of an element within that is shown again, `NONE` for none.
    """

    __slots__ = ("_links", "_paragraphs", "_stack", "hidden", "shown")

    def __init__(self) -> None:
        self._stack: list[Element] = []
        self._paragraphs = self._links = 0  # that are open: without any, none is looked for
        self.hidden = self.shown = NONE

    def __len__(self) -> int:
        return len(self._stack)

    @property
    def is_foreign(self) -> bool:
        """Whether what follows is foreign content."""
        return bool(self._stack) and self._stack[-1][2] != HTML and not _holds_html(self._stack[-1])

    @property
    def allows_cdata(self) -> bool:
        """Whether the innermost element is foreign, one that holds HTML included."""
        return bool(self._stack) and self._stack[-1][2] != HTML

    def open_table(self) -> int:
        """Returns the place of the table before which text and elements that follow are put, `NONE` for none."""
        for place in range(len(self._stack) - 1, self._least() - 1, -1):
            bits = self._stack[place][1]
            if not bits & ROWS:
                break
            if bits & TABLE:
                return place
        return NONE

    @property
    def fosters(self) -> bool:
        """Whether text and elements that follow are put before a table that hides its content, or stands in what does so."""
        return NONE < self.open_table() <= self.hidden

    def follow(self, tokens: Sequence[tuple[str, str, str, str]], place: int, stop: int) -> int:
        """Takes tokens (tags.Token) as long as they are simple; returns the place of the first that is not, or `stop`.

        Simple are start tags of HTML that end nothing, and end tags of the innermost element: `start` and `end` would do the
        same of them, but a call for each tag would cost as much as all else.
        """
        stack = self._stack
        for at in range(place, stop):
            kind, name, _, _ = tokens[at]
            found = _TAGS.get(name)
            top, top_bits, space = stack[-1] if stack else ("", NEVER, HTML)
            if found is None:
                if not name:
                    continue
                if not top or name[1:] != top or name[0] != "/":
                    return at
                stack.pop()
                if top_bits & _COUNTED:
                    self._count_out(top_bits)
                continue
            element, bits, closes, stops = found
            if (
                space != HTML
                or (kind and kind in {"svg", "noscript"})
                or (closes and top and (self._links if bits & LINK else top_bits & closes or not top_bits & stops))
                or (bits & P_CLOSER and self._paragraphs)
            ):
                return at
            if not bits & NEVER:
                stack.append(element)
                if bits & _COUNTED:
                    self._paragraphs += bits & P != 0
                    self._links += bits & LINK != 0
        return stop

    def start(self, name: str, attributes: str, *, foreign: bool, closed: bool) -> bool:
        """Takes a start tag (lower-case name) that was read as foreign markup or not; `closed` by `/>` counts only there.

        Returns whether the element is on the stack now.
        """
        rule = RULES.get(name, UNKNOWN)
        bits = rule.bits
        stack = self._stack
        if foreign and not breaks_out(name, bits, attributes):
            return not closed and self._push((name, bits, stack[-1][2] if stack else HTML))
        if stack and stack[-1][2] != HTML:
            self.leave_foreign()
        if bits & FORM and self._has_form():
            return False
        if name == "table" and (table := self.open_table()) != NONE:
            self._cut(table)
        if rule.closes and (self._links or not bits & LINK):
            self._close(rule.closes, rule.stops)
        if bits & P_CLOSER and self._paragraphs:
            self._close(P, BUTTON_SCOPE)
        if bits & NEVER or (closed and bits & FOREIGN_ROOT):
            return False
        return self._push((name, bits, (SVG if name == "svg" else MATH) if bits & FOREIGN_ROOT else HTML))

    def end(self, name: str) -> None:
        """Takes an end tag."""
        rule = RULES.get(name, UNKNOWN)
        stack = self._stack
        place = len(stack) - 1
        if place >= 0 and stack[place][2] != HTML:
            if name in {"br", "p"}:
                self.leave_foreign()
            else:
                least = self._least()
                while place >= least and stack[place][2] != HTML:
                    if stack[place][0] == name:
                        self._cut(place)
                        return
                    place -= 1
        if rule.bits & NEVER:
            return
        self._end_html(name, rule)

    def leave_foreign(self) -> None:
        """Ends the innermost foreign elements."""
        while self.is_foreign:
            self._cut(len(self._stack) - 1)

    def _end_html(self, name: str, rule: Rule) -> None:
        special = False
        heading = rule.bits & HEADING
        stack = self._stack
        for place in range(len(stack) - 1, self._least() - 1, -1):
            found, bits, space = stack[place]
            if space == HTML and (found == name or bits & heading):
                if rule.bits & FORM:
                    self._end_form(place)
                elif special and rule.bits & FORMATTING:
                    self._take_out(place)
                else:
                    self._cut(place)
                return
            if bits & rule.end_stops:
                return
            special = special or bool(bits & SPECIAL)

    def _close(self, closes: int, stops: int) -> None:
        found = NONE
        special = False
        stack = self._stack
        for place in range(len(stack) - 1, self._least() - 1, -1):
            _, bits, space = stack[place]
            if bits & closes and space == HTML:
                found = place
            elif bits & stops:
                break
            elif found == NONE:
                special = special or bool(bits & SPECIAL)
        if found != NONE and special and closes & (LINK | NOBR):
            self._take_out(found)
        elif found != NONE:
            self._cut(found)

    def _push(self, element: Element) -> bool:
        if element[1] & _COUNTED:
            self._paragraphs += element[1] & P != 0
            self._links += element[1] & LINK != 0
        self._stack.append(element)
        return True

    def _count_out(self, bits: int) -> None:
        self._paragraphs -= bits & P != 0
        self._links -= bits & LINK != 0

    def _cut(self, place: int) -> None:
        if self._paragraphs or self._links:
            for _, bits, _ in self._stack[place:]:
                self._count_out(bits)
        del self._stack[place:]
        if self.hidden >= place:
            self.hidden = NONE
        if self.shown >= place:
            self.shown = NONE

    def _take_out(self, place: int) -> None:
        self._count_out(self._stack.pop(place)[1])
        if self.hidden >= place:
            self.hidden = NONE if self.hidden == place else self.hidden - 1
        if self.shown >= place:
            self.shown = NONE if self.shown == place else self.shown - 1

    def _has_form(self) -> bool:
        return any(bits & FORM for _, bits, _ in self._stack[self._least() :])

    def _end_form(self, place: int) -> None:
        """Takes a form off the stack; elements within that its end tag does not end stay open, and hidden if it was."""
        while self._stack[-1][1] & IMPLIED and len(self._stack) > place + 1:
            self._cut(len(self._stack) - 1)
        if len(self._stack) == place + 1:
            self._cut(place)
            return
        del self._stack[place]
        self.hidden -= self.hidden > place
        self.shown -= self.shown > place

    def _least(self) -> int:
        return max(0, len(self._stack) - MAX_SEARCH)


def _holds_html(element: Element) -> bool:
    return bool(element[1] & (SVG_TEXT if element[2] == SVG else MATH_TEXT))


def breaks_out(name: str, bits: int, attributes: str) -> bool:
    """Returns whether a start tag ends the foreign content in which it stands."""
    if bits & BREAKOUT:
        return True
    lower = attributes.lower() if name == "font" else ""
    return "color" in lower or "face" in lower or "size" in lower
