"""Finds the lexicon's phrases in a text: one pass of one automaton over each view."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ahocorasick_rs import AhoCorasick, Implementation

from gatewayfilter.classify.lexicon import Lexicon
from gatewayfilter.classify.lexicon_file import ANY
from gatewayfilter.classify.near import MOST, ONE, OTHER, places


class Role(IntEnum):
    """What a phrase does for a category."""

    WORD = 0
    CONTEXT = 1
    PART = 2
    OFFER = 3
    NEAR = 4


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """One thing that a phrase means: for which category (`any` for all), as what, with which weight (0 for parts and offers).

    There is one object for each in a scanner: compared and hashed by identity, which is most of the cost of scoring.
    """

    phrase: str
    category: str
    role: Role
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A phrase in a text, at a character offset; `shown` is what stands there, where the meaning's phrase does not say it."""

    meaning: Meaning
    start: int
    shown: str = ""


@dataclass(slots=True)
class _Pattern:
    """What the automaton finds: the bare text, and what it means closed or open at its ends.

    Attributes:
        exception: whether it covers what it holds.
        meanings: whether the left and the right end is open, and the meaning.
        sides: the same for a side of a pair: its number, and which side.
        pairs: bits of the pairs of which this is the one side, and the other.
    """

    exception: bool = False
    meanings: list[tuple[bool, bool, Meaning]] = field(default_factory=list)
    sides: list[tuple[bool, bool, int, int]] = field(default_factory=list)
    pairs: list[int] = field(default_factory=lambda: [0, 0])


type _Side = tuple[_Pattern, int, int, bool, bool]
"""A phrase of a pair: its pattern, start, end, and whether each end touches a letter."""


class Scanner:
    """The compiled lexicon. Immutable; safe to share between threads.

    Attributes:
        parts: (category, phrase) → the meaning that says: this part of a combination is there.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.parts: dict[tuple[str, str], Meaning] = {}
        patterns: dict[str, _Pattern] = {}
        for phrase in lexicon.exceptions:
            patterns.setdefault(_bare(phrase), _Pattern()).exception = True
        for meaning in _meanings(lexicon):
            pattern = patterns.setdefault(_bare(meaning.phrase), _Pattern())
            if meaning.role is Role.PART:
                self.parts[meaning.category, meaning.phrase] = meaning
            pattern.meanings.append((meaning.phrase.startswith("*"), meaning.phrase.endswith("*"), meaning))
        self._near = [(name, near) for name, category in lexicon.categories.items() for near in category.near.values()]
        self._places = [[Meaning(near.name, name, Role.NEAR, near.weight) for _ in range(MOST)] for name, near in self._near]
        for number, (_, near) in enumerate(self._near):
            for side, phrases in ((ONE, near.one), (OTHER, near.other)):
                for phrase in phrases:
                    pattern = patterns.setdefault(_bare(phrase), _Pattern())
                    pattern.sides.append((phrase.startswith("*"), phrase.endswith("*"), number, side))
                    pattern.pairs[side] |= 1 << number
        self._patterns = list(patterns.values())
        # Whether an end must not touch a letter: only ends that are letters of an alphabet themselves.
        # Last, whether any meaning opens an end: what touches a letter counts for such patterns alone.
        self._closed = [
            (
                _alphabetic(text[0]),
                _alphabetic(text[-1]),
                any(left or right for left, right, *_ in (*pattern.meanings, *pattern.sides)),
            )
            for text, pattern in patterns.items()
        ]
        self._automaton = AhoCorasick(list(patterns), implementation=Implementation.ContiguousNFA) if patterns else None

    def scan(self, text: str) -> dict[Meaning, Hit]:
        """Returns the first hit of each meaning that counts.

        Does not count: a hit inside an exception, save context, which speaks there too; a word inside a longer word of its
        category (a part of a combination counts there). Linear in the text and its hits.
        """
        if self._automaton is None or not text:
            return {}
        hits: dict[Meaning, Hit] = {}
        beside: list[_Side] = []
        covered_to = 0
        reach: dict[str, int] = {}
        for start, minus_end, index, left_touches, right_touches in self._placed(text, self._automaton):
            end = -minus_end
            pattern = self._patterns[index]
            if pattern.exception and not left_touches and not right_touches:
                covered_to = max(covered_to, end)
            covered = end <= covered_to
            for left_open, right_open, meaning in pattern.meanings:
                part = (left_touches and not left_open) or (right_touches and not right_open)
                if part or (covered and meaning.role is not Role.CONTEXT):
                    continue
                if meaning.role is Role.WORD:
                    if end <= reach.get(meaning.category, 0):
                        continue
                    reach[meaning.category] = end
                if meaning not in hits:
                    hits[meaning] = Hit(meaning, start)
            if pattern.sides and not covered:
                beside.append((pattern, start, end, left_touches, right_touches))
        self._pair(text, beside, hits)
        return hits

    def _pair(self, text: str, beside: Sequence[_Side], hits: dict[Meaning, Hit]) -> None:
        """Adds a hit for each place where two phrases of a pair stand near each other (near.py).

        Args:
            text: what was searched.
            beside: the phrases of pairs in it, in the order of their starts.
            hits: where they are added.
        """
        one = other = 0
        for pattern, *_ in beside:
            one |= pattern.pairs[ONE]
            other |= pattern.pairs[OTHER]
        both = one & other
        if not both:  # as nearly always: their phrases need no further look
            return
        sides: dict[int, list[tuple[int, int, int]]] = {}
        for pattern, start, end, left_touches, right_touches in beside:
            if not (pattern.pairs[ONE] | pattern.pairs[OTHER]) & both:
                continue
            for left_open, right_open, number, side in pattern.sides:
                if both >> number & 1 and (left_open or not left_touches) and (right_open or not right_touches):
                    sides.setdefault(number, []).append((start, end, side))
        for number, found in sides.items():
            for meaning, (start, end) in zip(self._places[number], places(text, found), strict=False):
                hits[meaning] = Hit(meaning, start, text[start:end])

    def _placed(self, text: str, automaton: AhoCorasick) -> list[tuple[int, int, int, bool, bool]]:
        """Returns start, minus end, pattern and whether each end touches a letter, first and longest first.

        Matches that touch a letter where no meaning of theirs is open are left out: most of all, and told here at least cost.
        """
        padded = f" {text} "
        placed: list[tuple[int, int, int, bool, bool]] = []
        for index, start, end in automaton.find_matches_as_indexes(text, overlapping=True):
            left_closed, right_closed, ever_open = self._closed[index]
            # Nearly always a blank or a small letter: told without a call.
            before = padded[start] if left_closed else " "
            after = padded[end + 1] if right_closed else " "
            left_touches = before != " " and ("a" <= before <= "z" or _alphabetic(before))
            right_touches = after != " " and ("a" <= after <= "z" or _alphabetic(after))
            if ever_open or not (left_touches or right_touches):
                placed.append((start, -end, index, left_touches, right_touches))
        placed.sort()
        return placed


def _meanings(lexicon: Lexicon) -> Iterable[Meaning]:
    for phrase in sorted(lexicon.offers):
        yield Meaning(phrase, ANY, Role.OFFER, 0.0)
    for phrase, weight in lexicon.context.items():
        yield Meaning(phrase, ANY, Role.CONTEXT, -weight)
    for name, category in lexicon.categories.items():
        for phrase, weight in category.words.items():
            yield Meaning(phrase, name, Role.WORD, weight)
        for phrase, weight in category.context.items():
            yield Meaning(phrase, name, Role.CONTEXT, -weight)
        for phrase in {part for combination in category.combined() for part in combination.parts}:
            yield Meaning(phrase, name, Role.PART, 0.0)


def _bare(phrase: str) -> str:
    return phrase.removeprefix("*").removesuffix("*").strip()


def _alphabetic(character: str) -> bool:
    """Tells letters and digits of scripts that put blanks between words; Chinese, Japanese and Thai do not."""
    if character.isascii():
        return character.isalnum()
    return character.isalnum() and not (
        "\u0e00" <= character <= "\u0eff" or "\u2e80" <= character <= "\ua4cf" or character > "\uf8ff"
    )
