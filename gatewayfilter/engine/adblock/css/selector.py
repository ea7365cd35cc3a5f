"""A strict parser of CSS selectors: what it accepts is valid in every browser and can share a CSS rule with others.

One invalid selector voids its whole CSS rule, and text from a list must not close the `<style>` element around it. So nothing is
passed on unchecked: every token is recognised, and `<` is escaped.

Source: Selectors Level 4, and CSS Syntax Level 3 for the tokens.
"""

import re
from dataclasses import dataclass

from gatewayfilter.errors import RuleError

MAX_LENGTH = 4_096
MAX_DEPTH = 8

_ESCAPE = r"\\(?:[0-9A-Fa-f]{1,6}[ ]?|[^\n\r\f0-9A-Fa-f<])"
_NAME_CHAR = rf"(?:[A-Za-z0-9_\u0080-\U0010ffff-]|{_ESCAPE})"
_IDENT = rf"(?:--|-?(?:[A-Za-z_\u0080-\U0010ffff]|{_ESCAPE})){_NAME_CHAR}*"
_STRING = r"""(?:"(?:[^"\\\n\r\f]|\\[^\n\r\f])*"|'(?:[^'\\\n\r\f]|\\[^\n\r\f])*')"""

_PART = re.compile(
    rf"""
      (?P<simple>(?:\*|{_IDENT})?(?:[#.]{_IDENT})+|\*|{_IDENT})
    | \[\s*(?P<attribute>{_IDENT})\s*(?:(?P<operator>[~|^$*]?=)\s*(?P<value>{_STRING}|{_IDENT})\s*(?P<case>[iIsS]?)\s*)?\]
    | (?P<colons>::?)(?P<pseudo>{_IDENT})(?P<open>\()?
    """,
    re.VERBOSE,
)
_COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")
_NTH = re.compile(r"\s*(?:even|odd|[+-]?\d*n(?:\s*[+-]\s*\d+)?|[+-]?\d+)\s*", re.IGNORECASE)
_ARGUMENT = re.compile(rf"\s*(?:{_IDENT}|{_STRING})\s*")

_EVERYWHERE = frozenset(
    {
        *("active", "after", "any-link", "before", "checked", "default", "disabled", "empty", "enabled", "first-child"),
        *("first-letter", "first-line", "first-of-type", "focus", "focus-visible", "focus-within", "hover", "in-range"),
        *("indeterminate", "invalid", "last-child", "last-of-type", "link", "marker", "only-child", "only-of-type"),
        *("optional", "out-of-range", "placeholder", "placeholder-shown", "read-only", "read-write", "required", "root"),
        *("scope", "selection", "target", "valid", "visited"),
    }
)
"""Pseudo-classes and -elements without an argument that all browsers support."""

_OLD_ELEMENTS = frozenset({"after", "before", "first-letter", "first-line"})
_ELEMENTS = _OLD_ELEMENTS | {"marker", "placeholder", "selection"}
_NEWER = frozenset(
    {"autofill", "defined", "fullscreen", "modal", "open", "popover-open", "user-invalid", "user-valid", "backdrop"}
)
"""Those that some browsers lack: each selector with one gets a CSS rule of its own."""

_LISTS = frozenset({"not", "is", "where", "has"})
_NTHS = frozenset({"nth-child", "nth-last-child", "nth-last-of-type", "nth-of-type"})
_WORDS = frozenset({"lang", "dir"})

PROCEDURAL = frozenset(
    {
        *("-abp-contains", "-abp-has", "-abp-properties", "contains", "has-text", "if", "if-not", "matches-attr", "matches-css"),
        *("matches-css-after", "matches-css-before", "matches-media", "matches-path", "matches-prop", "matches-property"),
        *("min-text-length", "nth-ancestor", "others", "properties", "remove", "remove-attr", "remove-class", "shadow", "style"),
        *("upward", "watch-attr", "watch-attrs", "xpath"),
    }
)
"""Procedural operators, which need a script in the page; uBlock Origin and AdGuard write them like pseudo-classes."""


class ProceduralError(RuleError):
    """The selector is procedural; `operator` is the operator's name."""

    def __init__(self, operator: str) -> None:
        super().__init__(f"only a script in the page could do ':{operator}()'")
        self.operator = operator


@dataclass(frozen=True, slots=True)
class Selector:
    """A valid selector.

    Attributes:
        text: with single spaces and `<` escaped.
        shared: every browser supports all of it, so it can share a CSS rule with others.
    """

    text: str
    shared: bool


def read_selector(text: str) -> Selector:
    """Parses a selector, or several with commas between them.

    Raises:
        ProceduralError: it needs a script in the page.
        RuleError: it is not valid.
    """
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        raise RuleError(f"a selector has 1 to {MAX_LENGTH} characters")
    reader = _Reader(text)
    read = reader.selectors(depth=0, relative=False)
    if reader.position != len(text):
        raise reader.error()
    return Selector(read, reader.shared)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.position = 0
        self.shared = True

    def error(self) -> RuleError:
        return RuleError(f"not a valid selector from {self._text[self.position : self.position + 40]!r} on")

    def selectors(self, *, depth: int, relative: bool) -> str:
        """Parses up to the closing parenthesis or the end."""
        if depth > MAX_DEPTH:
            raise RuleError("the selector is nested too deeply")
        found: list[str] = []
        while True:
            self._skip_spaces()
            found.append(self._complex(depth=depth, relative=relative))
            self._skip_spaces()
            if not self._text.startswith(",", self.position):
                return ",".join(found)
            self.position += 1

    def _skip_spaces(self) -> None:
        text = self._text
        while self.position < len(text) and text[self.position] in " \t\n\r\f":
            self.position += 1

    def _complex(self, *, depth: int, relative: bool) -> str:
        pieces: list[str] = []
        if relative and (match := _COMBINATOR.match(self._text, self.position)) and match[1]:
            pieces.append(match[1])
            self.position = match.end()
        while True:
            pieces.append(self._compound(depth))
            match = _COMBINATOR.match(self._text, self.position)
            if match is None or match.end() == len(self._text) or self._text[match.end()] in ",)":
                if match is not None and match[1]:
                    raise self.error()
                return "".join(pieces)
            self.position = match.end()
            pieces.append(match[1] or " ")

    def _compound(self, depth: int) -> str:
        pieces: list[str] = []
        element = False
        while match := _PART.match(self._text, self.position):
            simple = match["simple"]
            if simple is not None and pieces and simple[0] not in "#.":
                break  # a type selector can only come first
            if element and not match["pseudo"]:
                raise self.error()
            self.position = match.end()
            if simple is not None:
                pieces.append(simple)
            elif match["attribute"]:
                value = match["value"]
                case = f" {match['case']}" if match["case"] else ""
                tail = f"{match['operator']}{_safe(value)}{case}" if value else ""
                pieces.append(f"[{match['attribute']}{tail}]")
            else:
                element = element or len(match["colons"]) == 2
                pieces.append(self._pseudo(match, depth))
        if not pieces:
            raise self.error()
        return "".join(pieces)

    def _pseudo(self, match: re.Match[str], depth: int) -> str:
        name = match["pseudo"].lower()
        colons = match["colons"]
        if name in PROCEDURAL and (match["open"] or name in {"remove", "others"}):
            raise ProceduralError(name)
        if not match["open"]:
            self._know(name, colons)
            return f"{colons}{name}"
        if colons == "::":
            raise self.error()
        if name in _LISTS:
            self.shared = self.shared and name == "not"
            inside = self.selectors(depth=depth + 1, relative=name == "has")
            self.shared = self.shared and not (name == "not" and re.search(r"[ ,>+~]", inside))
        elif name in _NTHS:
            inside = self._take(_NTH).lower()
        elif name in _WORDS:
            inside = _safe(self._take(_ARGUMENT))
        else:
            raise self.error()
        if not self._text.startswith(")", self.position):
            raise self.error()
        self.position += 1
        return f":{name}({inside})"

    def _know(self, name: str, colons: str) -> None:
        if name in _EVERYWHERE and (name in _OLD_ELEMENTS or (name in _ELEMENTS) is (colons == "::")):
            return
        if name not in _NEWER and not name.startswith(("-webkit-", "-moz-", "-ms-")):
            raise self.error()
        self.shared = False

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self.position)
        if match is None:
            raise self.error()
        self.position = match.end()
        return match[0].strip()


def _safe(text: str) -> str:
    """Returns a string that cannot close the element around the style sheet."""
    return text.replace("<", r"\3c ")
