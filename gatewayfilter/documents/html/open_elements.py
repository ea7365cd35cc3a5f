"""The stack of open elements: which elements a tag ends, and whether markup is HTML or foreign (`svg`, `math`).

Source: HTML, 13.2.4.2, 13.2.6.4, 13.2.6.5.
Deviation: no node is built, no table repairs its content, `html`, `head` and `body` are not on the stack, and a formatting
element ends with its parent instead of being opened again behind it. `_markup.pyx` takes its tables from here.
"""

from typing import Final, NamedTuple

MAX_SEARCH = 256
"""Innermost elements among which the one is looked for that a tag ends."""

(P, LI, DD, CELL, ROW, SECTION, OPTION, GROUP, HEADING, LINK, BUTTON, RUBY_TEXT, FORMATTING) = (1 << bit for bit in range(13))
"""What an element may be ended as."""
(SPECIAL, LIST_STOP, SCOPE, LISTS, TABLE, SELECT, RUBY, ANY) = (1 << bit for bit in range(13, 21))
"""What stops the search for an element to end."""
(NEVER, P_CLOSER, FOREIGN_ROOT, BREAKOUT, SVG_TEXT, MATH_TEXT) = (1 << bit for bit in range(21, 27))
"""NEVER: is not on the stack. P_CLOSER: ends a paragraph. BREAKOUT: leaves foreign content. The last two hold HTML within it."""
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
    "optgroup option select tbody td template textarea tfoot th thead tr title script style foreignobject desc mi "
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


class OpenElements:
    """The elements that are open after some tags, and which of them hides its content.

    Attributes:
        hidden: place of the element that hides, -1 for none.
        shown: place of an element within that is shown again, -1 for none.
    """

    __slots__ = ("_bits", "_names", "_paragraphs", "_spaces", "hidden", "shown")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._bits: list[int] = []
        self._spaces: list[int] = []
        self._paragraphs = 0  # that are open: without any, none is looked for
        self.hidden = self.shown = -1

    def __len__(self) -> int:
        return len(self._names)

    @property
    def is_foreign(self) -> bool:
        """Whether what follows is foreign content."""
        return bool(self._spaces) and self._spaces[-1] != HTML and not self._holds_html(len(self._names) - 1)

    @property
    def allows_cdata(self) -> bool:
        """Whether the innermost element is foreign, one that holds HTML included."""
        return bool(self._spaces) and self._spaces[-1] != HTML

    @property
    def top(self) -> str:
        """Name of the innermost element, `""` for none."""
        return self._names[-1] if self._names else ""

    def start(self, name: str, attributes: str, *, foreign: bool, closed: bool) -> bool:
        """Takes a start tag (lower-case name) that was read as foreign markup or not; `closed` by `/>` counts only there.

        Returns whether the element is on the stack now.
        """
        rule = RULES.get(name, UNKNOWN)
        if foreign and not breaks_out(name, rule.bits, attributes):
            space = self._spaces[-1] if self._spaces else HTML
            return not closed and self._push(name, rule.bits, space)
        self.leave_foreign()
        if rule.closes:
            self._close(rule.closes, rule.stops)
        if rule.bits & P_CLOSER and self._paragraphs:
            self._close(P, BUTTON_SCOPE)
        if rule.bits & NEVER or (closed and rule.bits & FOREIGN_ROOT):
            return False
        return self._push(name, rule.bits, (SVG if name == "svg" else MATH) if rule.bits & FOREIGN_ROOT else HTML)

    def end(self, name: str) -> None:
        """Takes an end tag."""
        rule = RULES.get(name, UNKNOWN)
        place = len(self._names) - 1
        if place >= 0 and self._spaces[place] != HTML:
            if name in {"br", "p"}:
                self.leave_foreign()
            else:
                least = self._least()
                while place >= least and self._spaces[place] != HTML:
                    if self._names[place] == name:
                        self._cut(place)
                        return
                    place -= 1
        if rule.bits & NEVER:
            return
        self._end_html(name, rule)

    def leave_foreign(self) -> None:
        """Ends the innermost foreign elements."""
        while self.is_foreign:
            self._cut(len(self._names) - 1)

    def _end_html(self, name: str, rule: Rule) -> None:
        special = False
        heading = rule.bits & HEADING
        for place in range(len(self._names) - 1, self._least() - 1, -1):
            bits = self._bits[place]
            if self._spaces[place] == HTML and (self._names[place] == name or bits & heading):
                if special and rule.bits & FORMATTING:
                    self._take_out(place)
                else:
                    self._cut(place)
                return
            if bits & rule.end_stops:
                return
            special = special or bool(bits & SPECIAL)

    def _close(self, closes: int, stops: int) -> None:
        found = -1
        special = False
        for place in range(len(self._names) - 1, self._least() - 1, -1):
            bits = self._bits[place]
            if bits & closes and self._spaces[place] == HTML:
                found = place
            elif bits & stops:
                break
            elif found < 0:
                special = special or bool(bits & SPECIAL)
        if found >= 0 and special and closes & LINK:
            self._take_out(found)
        elif found >= 0:
            self._cut(found)

    def _push(self, name: str, bits: int, space: int) -> bool:
        self._paragraphs += bits & P
        self._names.append(name)
        self._bits.append(bits)
        self._spaces.append(space)
        return True

    def _cut(self, place: int) -> None:
        if self._paragraphs:
            self._paragraphs -= sum(bits & P for bits in self._bits[place:])
        del self._names[place:], self._bits[place:], self._spaces[place:]
        self.hidden = self.hidden if self.hidden < place else -1
        self.shown = self.shown if self.shown < place else -1

    def _take_out(self, place: int) -> None:
        self._paragraphs -= self._bits[place] & P
        del self._names[place], self._bits[place], self._spaces[place]
        if self.hidden >= place:
            self.hidden = -1 if self.hidden == place else self.hidden - 1
        if self.shown >= place:
            self.shown = -1 if self.shown == place else self.shown - 1

    def _least(self) -> int:
        return max(0, len(self._names) - MAX_SEARCH)

    def _holds_html(self, place: int) -> bool:
        return bool(self._bits[place] & (SVG_TEXT if self._spaces[place] == SVG else MATH_TEXT))


def breaks_out(name: str, bits: int, attributes: str) -> bool:
    """Returns whether a start tag ends the foreign content in which it stands."""
    if bits & BREAKOUT:
        return True
    if name != "font":
        return False
    lower = attributes.lower()
    return "color" in lower or "face" in lower or "size" in lower
