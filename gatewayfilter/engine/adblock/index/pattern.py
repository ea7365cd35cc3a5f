"""The matcher of Adblock patterns: no backtracking, so the time is linear in the length of the URL for every pattern.

`*` stands for anything, `^` for one separator or the end, `|` for an end of the URL, `||` for the beginning of the host or of
one of its labels. The first position where a piece between two `*` matches is as good as any later one, so no piece is tried
again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gatewayfilter.engine.adblock.syntax.rule import NetworkRule
from gatewayfilter.safe_regex.cost_guard import guard_regex

type PatternTest = Callable[[str, int, int], bool]
"""(URL, start of its host, end of its host) → whether it matches. The URL is in lower case unless `$match-case`."""

type TailTest = Callable[[str, int], bool]
"""(URL, end of its host) → whether the rest behind the host matches."""

SEPARATORS = frozenset(chr(code) for code in range(128) if not (chr(code).isalnum() or chr(code) in "_-.%"))
"""What `^` matches: all but letters, digits and `_-.%`."""

LONG = 2_048
"""For a URL longer than this the last result of an expression is kept: one request may need it several times (matcher.py)."""

_HOST_PATTERN = re.compile(r"\|\|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)([/^:?].*)?", re.ASCII | re.DOTALL)
_WHOLE_HOST = re.compile(r"\|\|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\^", re.ASCII)
_HOST_BEGINNING = re.compile(r"\|\|([a-z0-9_.-]+)", re.ASCII)
_PIECES = re.compile(r"[*^]")


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class PatternShape:
    """What an index needs to know of a pattern.

    Attributes:
        host: the complete host name behind `||`, "" when there is none.
        is_host: only `^` follows that host: every URL of the host and its subdomains matches.
        literals: runs of lower-case characters that every matching URL contains; none with a line break, as no URL has one.
        is_literal: the pattern is one literal, anywhere in the URL.
        in_host: text that the host of every matching URL contains, "" for none.
    """

    host: str = ""
    is_host: bool = False
    literals: tuple[str, ...] = ()
    is_literal: bool = False
    in_host: str = ""


def shape_of(rule: NetworkRule) -> PatternShape:
    """Returns what an index needs to know of a rule's pattern."""
    pattern = rule.pattern
    whole = _WHOLE_HOST.fullmatch(pattern)
    if whole:  # nine rules out of ten
        host = whole[1]
        return PatternShape(host, is_host=True, literals=(host,), in_host=host)
    if rule.is_regex:
        found = guard_regex(pattern[1:-1], match_case=rule.match_case).literals
        return PatternShape(literals=tuple(literal for literal in found if "\n" not in literal))
    match = _HOST_PATTERN.fullmatch(pattern) if pattern[0] == "|" else None
    host, rest = (match[1], match[2] or "") if match else ("", "")
    body = pattern.lstrip("|").removesuffix("|").lower()
    pieces = _PIECES.split(body) if "*" in body or "^" in body else [body]
    literals = tuple([piece for piece in pieces if piece and "\n" not in piece])
    # Text behind "||" belongs to the host up to the first character that no host contains.
    in_host = _HOST_BEGINNING.match(pattern) if pattern[0] == "|" else None
    return PatternShape(host if rest else "", False, literals, literals == (pattern,), in_host[1] if in_host else "")


def compile_pattern(rule: NetworkRule) -> PatternTest:
    """Returns the test for a rule's pattern."""
    pattern = rule.pattern
    if rule.is_regex:
        return _regex_test(pattern[1:-1], match_case=rule.match_case)
    if pattern[0] == "|" and pattern.endswith("|") and pattern[-2:-1] not in {"/", "*", "^", "|", ""}:
        return _root_test(_wildcard_test(pattern))
    return _wildcard_test(pattern)


def _root_test(test: PatternTest) -> PatternTest:
    """Returns the test of a pattern with an end anchor, which ignores the slash of a URL without a path."""

    def test_both(text: str, host_start: int, host_end: int) -> bool:
        if test(text, host_start, host_end):
            return True
        return text.endswith("/") and text.find("/", host_start) == len(text) - 1 and test(text[:-1], host_start, host_end)

    return test_both


def _wildcard_test(pattern: str) -> PatternTest:
    match = _HOST_PATTERN.fullmatch(pattern)
    if match and not match[2] and pattern[-1].isalnum():
        return _label_test(match[1])
    if match and match[2]:
        return _host_test(match[1], match[2])
    host_anchor = pattern.startswith("||")
    body = pattern[2:] if host_anchor else pattern
    start_anchor = not host_anchor and body.startswith("|")
    body = body[start_anchor:]
    end_anchor = body.endswith("|")
    chain = _Chain(body[:-1] if end_anchor else body, at_end=end_anchor)
    if host_anchor and not chain.floating:
        return chain.test_at_labels
    if start_anchor and not chain.floating:
        return chain.test_at_start
    if host_anchor:
        return chain.test_from_host
    literal = chain.only_literal
    return chain.test_anywhere if literal is None else _literal_test(literal)


def _literal_test(literal: str) -> PatternTest:
    def test(text: str, host_start: int, host_end: int) -> bool:  # noqa: ARG001  # the signature of all tests
        return literal in text

    return test


def _regex_test(text: str, *, match_case: bool) -> PatternTest:
    guarded = guard_regex(text, match_case=match_case)
    search = guarded.compile().search
    max_length = guarded.max_length
    last = (0, False)  # one value, so that other threads see both halves of it

    def test(text: str, host_start: int, host_end: int) -> bool:  # noqa: ARG001  # the signature of all tests
        nonlocal last
        if len(text) <= LONG:
            return len(text) <= max_length and search(text) is not None
        key = hash(text)
        known, found = last
        if known != key:
            found = len(text) <= max_length and search(text) is not None
            last = (key, found)
        return found

    return test


def compile_tail(rule: NetworkRule) -> str | TailTest | None:
    """Returns the test for the rest behind a complete host name, where the host itself is known to match.

    Returns:
        The text that must follow when that is the whole test; `None` when the pattern is not of this kind.
    """
    match = None if rule.is_regex else _HOST_PATTERN.fullmatch(rule.pattern)
    if match is None or not match[2]:
        return None
    return _tail_test(match[2])


def tail_begin(rule: NetworkRule) -> str:
    """Returns the text that `compile_tail` wants right behind the host, "" for none."""
    match = _HOST_PATTERN.fullmatch(rule.pattern)
    rest = (match[2] or "") if match is not None else ""
    return _PIECES.split(rest.removesuffix("|"))[0]


def _tail_test(rest: str) -> str | TailTest:
    end_anchor = rest.endswith("|")
    rest = rest[:-1] if end_anchor else rest
    if not end_anchor and not _PIECES.search(rest):
        return rest
    chain = _Chain(rest, at_end=end_anchor)
    needed = max(_PIECES.split(rest), key=len)

    def test(text: str, host_end: int) -> bool:
        return needed in text and chain.matches_at(text, host_end)

    return test


def _label_test(name: str) -> PatternTest:
    """Returns the test for `||name` with nothing behind it: whole labels of the host, more may follow."""
    length = len(name)

    def test(text: str, host_start: int, host_end: int) -> bool:
        start = text.find(name, host_start, host_end)
        while start >= 0:
            end = start + length
            if (start == host_start or text[start - 1] == ".") and (end == host_end or text[end] == "."):
                return True
            start = text.find(name, start + 1, host_end)
        return False

    return test


def _host_test(host: str, rest: str) -> PatternTest:
    """Returns the test for a complete host name and the rest behind it, which has one possible position."""
    length = len(host)
    tail = _tail_test(rest)

    def test(text: str, host_start: int, host_end: int) -> bool:
        start = host_end - length
        if not text.startswith(host, start) or (start != host_start and text[start - 1] != "."):
            return False
        return text.startswith(tail, host_end) if isinstance(tail, str) else tail(text, host_end)

    return test


class _Piece:
    """A piece of a pattern between two `*`: literals with single separators between them."""

    __slots__ = ("parts", "span")

    def __init__(self, text: str) -> None:
        self.parts = text.split("^")
        self.span = len(text)

    def end_at(self, text: str, position: int) -> int:
        """Returns the end of a match that begins at the position, -1 without one."""
        size = len(text)
        last = len(self.parts) - 1
        for index, part in enumerate(self.parts):
            if not text.startswith(part, position):
                return -1
            position += len(part)
            if index == last:
                break
            if position < size:
                if text[position] not in SEPARATORS:
                    return -1
                position += 1
        return position

    def find(self, text: str, position: int) -> int:
        """Returns the end of the first match from the position on, -1 without one."""
        parts = self.parts
        if len(parts) == 1:
            found = text.find(parts[0], position)
            return -1 if found < 0 else found + len(parts[0])
        lead = next((index for index, part in enumerate(parts) if part), None)
        if lead is None:
            return next((end for start in range(position, len(text) + 1) if (end := self.end_at(text, start)) >= 0), -1)
        found = text.find(parts[lead], position + lead)
        while found >= 0:
            end = self.end_at(text, found - lead)
            if end >= 0:
                return end
            found = text.find(parts[lead], found + 1)
        return -1

    def stands_at_end(self, text: str, position: int) -> bool:
        """Returns whether the URL ends with this piece, beginning at the position or later."""
        size = len(text)
        first = max(position, size - self.span)
        return any(self.end_at(text, start) == size for start in range(first, min(first + len(self.parts), size + 1)))


class _Chain:
    """The pieces of a pattern, in order.

    Attributes:
        floating: the pattern begins with `*`: any text may precede it.
    """

    __slots__ = ("_at_end", "_pieces", "floating")

    def __init__(self, body: str, *, at_end: bool) -> None:
        texts = body.split("*")
        self.floating = texts[0] == ""
        self._at_end = at_end and texts[-1] != ""
        self._pieces = [_Piece(text) for text in texts if text]

    @property
    def only_literal(self) -> str | None:
        """The literal to search for, if that is the whole test."""
        if len(self._pieces) == 1 and not self._at_end and len(self._pieces[0].parts) == 1:
            return self._pieces[0].parts[0]
        return None

    def matches_at(self, text: str, position: int) -> bool:
        """Returns whether a chain that is not floating matches with its first piece exactly at the position."""
        first = self._pieces[0]
        if self._at_end and len(self._pieces) == 1:
            return first.end_at(text, position) == len(text)
        end = first.end_at(text, position)
        return end >= 0 and self._follows(text, end, 1)

    def _follows(self, text: str, position: int, index: int) -> bool:
        pieces = self._pieces
        last = len(pieces) - self._at_end
        for piece in pieces[index:last]:
            position = piece.find(text, position)
            if position < 0:
                return False
        return not self._at_end or pieces[-1].stands_at_end(text, position)

    def test_at_start(self, text: str, host_start: int, host_end: int) -> bool:  # noqa: ARG002  # the signature of all tests
        """For `|pattern`."""
        return self.matches_at(text, 0)

    def test_at_labels(self, text: str, host_start: int, host_end: int) -> bool:
        """For `||pattern`: the first piece is tried at every label of the host, the rest only once.

        A piece that begins with a dot is tried at every dot: `||.example.com^` matches subdomains alone.
        """
        first = self._pieces[0]
        if first.parts[0].startswith("."):
            return self._test_at_dots(text, host_start, host_end)
        start = host_start
        while host_start <= start < host_end:
            end = first.end_at(text, start)
            if end >= 0:
                if not (self._at_end and len(self._pieces) == 1):
                    return self._follows(text, end, 1)
                if end == len(text):
                    return True
            start = text.find(".", start, host_end) + 1
        return False

    def _test_at_dots(self, text: str, host_start: int, host_end: int) -> bool:
        start = text.find(".", host_start, host_end)
        while start >= 0:
            if self.matches_at(text, start):
                return True
            start = text.find(".", start + 1, host_end)
        return False

    def test_from_host(self, text: str, host_start: int, host_end: int) -> bool:  # noqa: ARG002  # the signature of all tests
        """For `||*pattern`: anywhere from the start of the host."""
        return self._follows(text, host_start, 0)

    def test_anywhere(self, text: str, host_start: int, host_end: int) -> bool:  # noqa: ARG002  # the signature of all tests
        """For a pattern without a start anchor."""
        return self._follows(text, 0, 0)
