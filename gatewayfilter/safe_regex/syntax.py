"""The parser of JavaScript regular expressions in filter lists: returns a syntax tree.

Regular languages and look-around are accepted, back-references are not. Canonical URLs are ASCII, so a
character class is a 128-bit set, which makes overlap between parts of the expression one AND (cost_guard.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gatewayfilter.errors import RuleError

EVERY = (1 << 128) - 1
MAX_REGEX_LENGTH = 2_048
MAX_DEPTH = 20
MAX_REPEAT = 1_000


def _set_of(characters: str) -> int:
    return sum(1 << ord(character) for character in set(characters))


_DIGIT = _set_of("0123456789")
_WORD = _DIGIT | _set_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_SPACE = _set_of(" \t\n\r\f\v")
_SHORTHAND = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "D": EVERY & ~_DIGIT, "W": EVERY & ~_WORD, "S": EVERY & ~_SPACE}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_DOT = EVERY & ~_set_of("\n\r")
UPPER_CASE = _set_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER_CASE = UPPER_CASE << 32


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set (128 bits, one for each ASCII character)."""

    members: int


@dataclass(frozen=True, slots=True)
class Assertion:
    """Matches no characters: an anchor or a word boundary, or a look-around over `body`."""

    text: str
    body: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of parts."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An alternation."""

    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repetition of the body, `low` to `high` times; `high` is `None` without a bound."""

    body: "Node"
    low: int
    high: int | None
    lazy: bool


_BOUNDS: Mapping[str, tuple[int, int | None]] = MappingProxyType({"*": (0, None), "+": (1, None), "?": (0, 1)})

type Node = Chars | Assertion | Sequence | Choice | Repeat


def parse_regex(text: str, *, match_case: bool) -> Node:
    """Parses an expression (without its slashes).

    Raises:
        RuleError: it is not valid, too long, or not supported.
    """
    if len(text) > MAX_REGEX_LENGTH:
        raise RuleError(f"the regular expression is longer than {MAX_REGEX_LENGTH} characters")
    reader = _Reader(text, match_case=match_case)
    node = reader.choice(0)
    if reader.position < len(text):
        raise RuleError("the regular expression has an unmatched ')'")
    return node


def fold_case(members: int) -> int:
    """Returns the set with both cases of each of its letters."""
    return members | (members & UPPER_CASE) << 32 | (members & _LOWER_CASE) >> 32


class _Reader:
    """A recursive-descent parser."""

    def __init__(self, text: str, *, match_case: bool) -> None:
        self.text = text
        self.position = 0
        self._match_case = match_case

    def choice(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise RuleError("the regular expression is nested too deeply")
        branches = [self._sequence(depth)]
        while self._take("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.position):
            self.position += len(expected)
            return True
        return False

    def _next(self) -> str:
        if self.position >= len(self.text):
            raise RuleError("the regular expression ends too early")
        self.position += 1
        return self.text[self.position - 1]

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            parts.append(self._quantified(self._atom(depth)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _atom(self, depth: int) -> Node:
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._chars(self._class())
        if character == ".":
            return Chars(_DOT)
        if character in "^$":
            return Assertion(character)
        if character in "*+?":
            raise RuleError("the regular expression has nothing to repeat")
        if character == "\\":
            escaped = self._next()
            if escaped in "bB":
                return Assertion("\\" + escaped)
            return self._chars(self._escape(escaped))
        return self._chars(_single(character))

    def _chars(self, members: int) -> Chars:
        return Chars(members if self._match_case else fold_case(members))

    def _group(self, depth: int) -> Node:
        around = ""
        if self._take("?"):
            if self._take("<="):
                around = "(?<="
            elif self._take("<!"):
                around = "(?<!"
            elif self._take("="):
                around = "(?="
            elif self._take("!"):
                around = "(?!"
            elif self._take("<"):
                end = self.text.find(">", self.position)
                if not self.text[self.position : end].isidentifier():
                    raise RuleError("the regular expression has a group that is not supported")
                self.position = end + 1
            elif not self._take(":"):
                raise RuleError("the regular expression has a group that is not supported")
        body = self.choice(depth + 1)
        if not self._take(")"):
            raise RuleError("the regular expression has an unmatched '('")
        return Assertion(around, body) if around else body

    def _quantified(self, atom: Node) -> Node:
        bounds = self._quantifier()
        if bounds is None:
            return atom
        if isinstance(atom, Assertion):
            raise RuleError("the regular expression repeats an assertion")
        lazy = self._take("?")
        if self._quantifier() is not None:
            raise RuleError("the regular expression has nothing to repeat")
        return Repeat(atom, *bounds, lazy)

    def _quantifier(self) -> tuple[int, int | None] | None:
        mark = self.text[self.position : self.position + 1]
        if mark in _BOUNDS:
            self.position += 1
            return _BOUNDS[mark]
        if mark != "{":
            return None
        inner, closing, _ = self.text[self.position + 1 :].partition("}")
        low, comma, high = inner.partition(",")
        if not closing or not low.isdecimal() or not low.isascii() or not (high == "" or (high.isdecimal() and high.isascii())):
            return None
        if len(low) > 5 or len(high) > 5 or max(int(low), int(high or low)) > MAX_REPEAT:
            raise RuleError(f"the regular expression repeats more than {MAX_REPEAT} times")
        self.position += len(inner) + 2
        upper = (int(high) if high else None) if comma else int(low)
        if upper is not None and upper < int(low):
            raise RuleError("the regular expression has a range out of order")
        return int(low), upper

    def _escape(self, character: str) -> int:
        if character in _SHORTHAND:
            return _SHORTHAND[character]
        if character in _CONTROL:
            return 1 << ord(_CONTROL[character])
        if character in "xu":
            width = 2 if character == "x" else 4
            digits = self.text[self.position : self.position + width]
            if len(digits) < width or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise RuleError("the regular expression has an escape that is not supported")
            self.position += width
            return _single(chr(int(digits, 16)))
        if character.isdigit() or character in "ckpP":
            raise RuleError("the regular expression has a back-reference or an escape that is not supported")
        return _single(character)

    def _class(self) -> int:
        negated = self._take("^")
        members = 0
        while not self._take("]"):
            low, is_set = self._class_member()
            if self.text.startswith("-", self.position) and self.text[self.position + 1 : self.position + 2] not in {"]", ""}:
                self.position += 1
                high, high_is_set = self._class_member()
                members |= low | high | 1 << ord("-") if is_set or high_is_set else _range(low, high)
            else:
                members |= low
        return EVERY & ~(members if self._match_case else fold_case(members)) if negated else members

    def _class_member(self) -> tuple[int, bool]:
        character = self._next()
        if character != "\\":
            return _single(character), False
        escaped = self._next()
        if escaped == "b":
            return 1 << 8, False
        return self._escape(escaped), escaped in _SHORTHAND


def _single(character: str) -> int:
    """Returns the set of one character. For one beyond ASCII, which no canonical URL contains, it is empty."""
    return 1 << ord(character) if character.isascii() else 0


def _range(low: int, high: int) -> int:
    if not low:
        return 0
    if not high:
        return EVERY & ~(low - 1)
    if high < low:
        raise RuleError("the regular expression has a range out of order")
    return (high << 1) - low
