"""The cost guard of regular expressions in filter lists: computes an upper bound of their cost before they run.

The standard library's `re` backtracks. An expression is therefore analysed first. All long repetitions together cost one power of
the URL's length. Each repetition that is ambiguous (its body and what follows it overlap in a character) adds another power, and
so does a match that may begin inside a repetition. Ambiguity inside a repetition makes it exponential, which is refused. The
other expressions run only on URLs so short that they end within `STEP_BUDGET` steps (docs/adblock.md, "Regular expressions").
Expressions that cost too much are left to RE2, which is slower for simple expressions but never backtracks.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Protocol, cast

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex.literals import literals_of
from gatewayfilter.safe_regex.syntax import (
    EVERY,
    UPPER_CASE,
    Assertion,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    parse_regex,
)
from gatewayfilter.urls import MAX_URL_LENGTH

STEP_BUDGET = 4_000_000
"""Steps of the backtracking matcher that one expression may take on one URL: some 40 ms, as a step takes about 10 ns."""

_LINEAR_STEPS = 4
"""Steps of the backtracking matcher in the time that RE2 takes for one character at worst."""

_INSTRUCTIONS = 16
"""Instructions of RE2 in the time of one step."""

MIN_URL_LENGTH = 250
"""An expression that is only affordable on URLs shorter than this is refused."""

_WIDE = 50
"""A bounded repetition over a range of this size counts as unbounded; comparing this many characters counts as one step."""


class Searches(Protocol):
    """A compiled expression."""

    def search(self, text: str, pos: int = ..., endpos: int = ..., /) -> object | None:
        """Returns a match of the expression in the text between two positions, else `None`."""
        ...


class CostlyError(RuleError):
    """Backtracking would cost too much."""


@dataclass(frozen=True, slots=True)
class GuardedRegex:
    """An expression that is safe to run on URLs up to `max_length` characters.

    Attributes:
        text: the expression in the syntax of `re`, without repetitions at its ends that do not affect whether it matches; in
            lower case unless `match_case` is set.
        literals: lower-case runs that every match contains.
        linear: it is run by RE2, as written in its list: backtracking would cost too much.
        degree, factor: a search takes at most `factor * length ** degree` steps.
        once: steps in addition, independent of the length: a match can begin at the start of the text only.
    """

    text: str
    max_length: int
    match_case: bool
    literals: tuple[str, ...]
    linear: bool = False
    degree: int = 1
    factor: int = 1
    once: int = 0

    def steps(self, length: int = MAX_URL_LENGTH) -> int:
        """Returns the maximum number of steps of a search by the backtracking matcher in a text up to a length."""
        longest: int = min(length, self.max_length) ** self.degree
        return self.once + self.factor * longest

    def compile(self) -> Searches:
        """Returns the expression, compiled for a search in the URL, which is in lower case unless `match_case` is set."""
        if self.linear:
            from gatewayfilter.safe_regex.re2 import compile_linear  # noqa: PLC0415  2 MB that few expressions need

            return cast("Searches", compile_linear(self.text, "" if self.match_case else "i"))
        return re.compile(self.text, re.ASCII)


@lru_cache(maxsize=256)  # compiling a list asks three times for each; with the longest expressions some 2 MB
def guard_regex(text: str, *, match_case: bool = False) -> GuardedRegex:
    """Analyses and translates an expression of a filter list (without its slashes).

    Raises:
        RuleError: it is not valid, uses what is not supported, or costs too much.
    """
    tree = _without_free_ends(parse_regex(text, match_case=match_case))
    try:
        guarded = _guard_tree(tree, match_case=match_case)
    except CostlyError as costly:
        linear = _left_to_re2(text, tree, match_case=match_case)
        if linear is None:
            raise costly from None
        return linear
    if guarded.max_length == MAX_URL_LENGTH:
        return guarded
    # A long URL must not evade a rule. Expressions with look-around can only be tried on short URLs.
    return _left_to_re2(text, tree, match_case=match_case) or guarded


def _left_to_re2(text: str, tree: Node, *, match_case: bool) -> GuardedRegex | None:
    from gatewayfilter.safe_regex.re2 import compile_linear  # noqa: PLC0415  as above

    try:
        size: int = compile_linear(text, "" if match_case else "i").programsize
    except RuleError:
        return None
    factor = _LINEAR_STEPS + size // _INSTRUCTIONS
    return GuardedRegex(text, MAX_URL_LENGTH, match_case, literals_of(tree), linear=True, factor=factor)


def _guard_tree(tree: Node, *, match_case: bool) -> GuardedRegex:
    cost = _Cost()
    cost.visit(tree, follow=0, in_loop=False)
    overlapping = bool(_first(tree) & cost.loop_characters)
    degree = max(1, cost.degree + (overlapping and not _is_anchored(tree)))
    ways, width = cost.factor, _short_width(tree)
    cost.multiply(1 + width // _WIDE, in_loop=False)
    max_length = min(MAX_URL_LENGTH, int((STEP_BUDGET / cost.factor) ** (1 / degree)))
    if max_length < MIN_URL_LENGTH:
        raise CostlyError("the regular expression is too costly")
    text = _emit(tree, EVERY if match_case else EVERY & ~UPPER_CASE)
    factor, once = cost.factor, 0
    if degree == 1:  # every compared character counts here, from every position where a match may begin
        once, factor = (ways * width, ways) if _is_anchored(tree) else (0, ways * (1 + width))
    guarded = GuardedRegex(text, max_length, match_case, literals_of(tree), degree=degree, factor=factor, once=once)
    try:
        guarded.compile()
    except (re.error, RecursionError, OverflowError) as error:
        raise RuleError(f"the regular expression is not supported: {error}") from error
    return guarded


def _without_free_ends(node: Node) -> Node:
    """Returns the tree without redundant parts: for a repetition at either end the minimum count is enough."""
    if isinstance(node, Choice):
        return Choice(tuple(map(_without_free_ends, node.branches)))
    parts = list(node.parts) if isinstance(node, Sequence) else [node]
    for end in (0, -1):
        while parts and isinstance(part := parts[end], Repeat) and part.low != part.high:
            if part.low:
                parts[end] = Repeat(part.body, part.low, part.low, lazy=False)
            else:
                del parts[end]
    return Sequence(tuple(parts))


def _short_width(node: Node) -> int:
    """Returns the maximum number of characters of a match outside of long repetitions."""
    match node:
        case Chars():
            return 1
        case Assertion(_, body):
            return 0 if body is None else _short_width(body)
        case Sequence(parts):
            return sum(map(_short_width, parts))
        case Choice(branches):
            return max(map(_short_width, branches))
        case Repeat(body, _, high):
            width = _short_width(body)
            return width if high is None or _is_long(node) else width * high


def _is_long(node: Repeat) -> bool:
    return node.high is None or node.high - node.low >= _WIDE or node.high * _short_width(node.body) >= MIN_URL_LENGTH


def _loops(node: Node) -> bool:
    """Returns whether a part contains a long repetition."""
    match node:
        case Repeat(body):
            return _is_long(node) or _loops(body)
        case Sequence(parts) | Choice(parts):
            return any(map(_loops, parts))
        case Assertion(_, body):
            return body is not None and _loops(body)
        case Chars():
            return False


def _nullable(node: Node) -> bool:
    match node:
        case Chars():
            return False
        case Assertion():
            return True
        case Sequence(parts):
            return all(_nullable(part) for part in parts)
        case Choice(branches):
            return any(_nullable(branch) for branch in branches)
        case Repeat(body, low):
            return low == 0 or _nullable(body)


def _first(node: Node) -> int:
    """Returns the characters that a match can begin with: any, if a lookahead contains a long repetition."""
    match node:
        case Chars(members):
            return members
        case Assertion(_, body):
            return EVERY if body is not None and _loops(body) else 0
        case Sequence(parts):
            found = 0
            for part in parts:
                found |= _first(part)
                if not _nullable(part):
                    break
            return found
        case Choice(branches):
            found = 0
            for branch in branches:
                found |= _first(branch)
            return found
        case Repeat(body):
            return _first(body)


def _prefix(node: Node) -> tuple[int, ...]:
    """Returns the character sets of the fixed beginning of every match, one per position."""
    parts = node.parts if isinstance(node, Sequence) else (node,)
    return tuple(part.members for part in takewhile(lambda part: isinstance(part, Chars), parts) if isinstance(part, Chars))


class _Cost:
    """Computes the cost of a tree, from its end to its beginning, by the choices of a backtracking matcher.

    Attributes:
        degree: power of the URL's length in the cost of a match from one starting position.
        factor: constant factor of that cost.
        loop_characters: characters that long repetitions run over.
    """

    def __init__(self) -> None:
        self.degree = 0
        self.factor = 1
        self.loop_characters = 0

    def visit(self, node: Node, follow: int, *, in_loop: bool) -> None:
        """Adds the cost of a part that one of the characters `follow` follows."""
        match node:
            case Assertion(_, body) if body is not None:
                self._visit_around(body, in_loop=in_loop)
            case Sequence(parts):
                for part in reversed(parts):
                    self.visit(part, follow, in_loop=in_loop)
                    follow = _first(part) | (follow if _nullable(part) else 0)
            case Choice(branches):
                self._visit_choice(branches, follow, in_loop=in_loop)
            case Repeat():
                self._visit_repeat(node, follow, in_loop=in_loop)
            case Chars() | Assertion():
                pass

    def _visit_around(self, body: Node, *, in_loop: bool) -> None:
        rest, self.degree = self.degree, 0
        self.visit(body, 0, in_loop=in_loop)
        self.degree = max(rest, self.degree + (in_loop and self.degree > 0))

    def _visit_choice(self, branches: tuple[Node, ...], follow: int, *, in_loop: bool) -> None:
        seen: list[tuple[int, ...]] = []
        alike = 1
        rest = most = self.degree
        for branch in branches:
            prefix = _prefix(branch)
            alike += any(all(own & other for own, other in zip(prefix, earlier, strict=False)) for earlier in seen)
            seen.append(prefix)
            self.degree = rest
            self.visit(branch, follow, in_loop=in_loop)
            most = max(most, self.degree)
        self.degree = most
        self.multiply(alike, in_loop=in_loop)

    def multiply(self, ways: int, *, in_loop: bool) -> None:
        """Multiplies the cost by a number of alternatives.

        Raises:
            RuleError: there are too many.
        """
        if ways > 1 and in_loop:
            raise CostlyError("the regular expression can take exponential time")
        self.factor *= ways
        if self.factor > STEP_BUDGET:
            raise CostlyError("the regular expression is too costly")

    def _visit_repeat(self, node: Repeat, follow: int, *, in_loop: bool) -> None:
        body, low, high = node.body, node.low, node.high
        first = _first(body)
        ambiguous = high != low and bool(first & follow)
        if ambiguous:
            self.multiply(2 if high is None else high - low + 1, in_loop=in_loop)
        if _is_long(node):
            self.loop_characters |= _all_characters(body)
            self.degree = max(1, self.degree + ambiguous)
        repeats = high is None or high > 1
        if repeats and not isinstance(body, Chars):
            if _nullable(body) and high != low:
                raise CostlyError("the regular expression can take exponential time")
            self.visit(body, first | follow, in_loop=True)
        else:
            self.visit(body, follow, in_loop=in_loop)


def _all_characters(node: Node) -> int:
    match node:
        case Chars(members):
            return members
        case Assertion():
            return 0
        case Sequence(parts) | Choice(parts):
            found = 0
            for part in parts:
                found |= _all_characters(part)
            return found
        case Repeat(body):
            return _all_characters(body)


def _is_anchored(node: Node) -> bool:
    match node:
        case Sequence(parts):
            return bool(parts) and _is_anchored(parts[0])
        case Choice(branches):
            return all(map(_is_anchored, branches))
    return node == Assertion("^")


def _emit(node: Node, alphabet: int) -> str:
    match node:
        case Chars(members):
            return _emit_set(members, alphabet)
        case Assertion(text, None):
            return r"\Z" if text == "$" else text
        case Assertion(text, body) if body is not None:
            return f"{text}{_emit(body, alphabet)})"
        case Sequence(parts):
            return "".join(
                f"(?:{_emit(part, alphabet)})" if isinstance(part, Choice) else _emit(part, alphabet) for part in parts
            )
        case Choice(branches):
            return "|".join(_emit(branch, alphabet) for branch in branches)
        case Repeat(body, low, high, lazy):
            inner = _emit(body, alphabet) if isinstance(body, Chars) else f"(?:{_emit(body, alphabet)})"
            marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
            mark = marks.get((low, high)) or f"{{{low},{'' if high is None else high}}}"
            return inner + mark + ("?" if lazy else "")
    raise AssertionError(node)


@lru_cache(maxsize=512)
def _emit_set(members: int, alphabet: int) -> str:
    left = members & alphabet
    if left.bit_count() == 1:
        return re.escape(chr(left.bit_length() - 1))
    if not left:
        return r"[^\x00-\x7f]"
    negated = members.bit_count() > 64 and members != EVERY
    if negated:
        left = EVERY & ~members
    elif members == EVERY:
        left = EVERY
    ranges: list[str] = []
    while left:
        low = (left ^ (left - 1)).bit_length() - 1
        run = left >> low
        width = (run ^ (run + 1)).bit_length() - 1
        ranges.append(f"\\x{low:02x}" if width == 1 else f"\\x{low:02x}-\\x{low + width - 1:02x}")
        left &= ~(((1 << width) - 1) << low)
    return f"[{'^' if negated else ''}{''.join(ranges)}]"
