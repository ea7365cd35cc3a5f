"""Returns which of the automaton's matches count: whole words, not covered by an exception, not inside a longer word."""

import functools
import re
from array import array
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from gatewayfilter.classify.lexicon.proximity import ONE, OTHER, places

_SURROGATES = re.compile("[\ud800-\udfff]")


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


WORD, CONTEXT = int(Role.WORD), int(Role.CONTEXT)
"""Bare, because they are compared at each match."""
LEFT, RIGHT, OPEN, EXCEPTION, SIDE = 1, 2, 4, 8, 16
"""Bits of a pattern's kind: its left, its right end is a letter of an alphabet; some meaning opens an end; it is an exception,
which covers what it holds; it is a side of a pair."""


class Patterns(NamedTuple):
    """What the automaton finds, and what it means, by the patterns' numbers.

    Attributes:
        kinds: a byte of bits for each.
        meanings: for each meaning of each, which ends are open, its role, its category, and itself.
        sides: of those that are sides of pairs, for each, which ends are open, the pair's number, and which side.
        places: pair → what its places mean, the first place first.
    """

    kinds: bytes
    meanings: list[tuple[tuple[int, int, str, Meaning], ...]]
    sides: dict[int, tuple[tuple[int, int, int], ...]]
    places: list[list[Meaning]]


type Sides = tuple[tuple[int, int, int], ...]
type Match = tuple[int, int, int]
"""A match of the automaton: number of the pattern, start and end."""
type Hits = dict[Meaning, tuple[int, int]]
"""Each meaning that counts, with start and end of its first place."""


class Automaton:
    """An automaton over the phrases of a lexicon. Immutable; safe to share between threads.

    Args:
        texts: the phrases, bare; none empty, none twice.
        patterns: what they mean, by the same numbers.
    """

    def __init__(self, texts: list[str], patterns: Patterns) -> None:
        self._patterns = patterns
        self._sided = SideGroups(patterns)
        self._automaton = AhoCorasick(texts, implementation=Implementation.ContiguousNFA) if texts else None

    def scan(self, text: str) -> Hits:
        """Returns what counts of a text."""
        if self._automaton is None or not text:
            return {}
        try:
            matches = self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:  # halves of a pair: no character, and no phrase holds one
            matches = self._automaton.find_matches_as_indexes(_SURROGATES.sub("\ufffd", text), overlapping=True)
        return settle(text, matches, self._patterns, self._sided)


class SideGroups:
    """The patterns that are sides of the same pairs, in a table that stays in the processor's cache. Immutable.

    Attributes:
        of: pattern → its group; 0 for one that is no side.
        groups: of each, the pairs of which it is the one side and the other, as bits, and its sides.
    """

    def __init__(self, patterns: Patterns) -> None:
        known: dict[Sides, int] = {(): 0}
        self.of = array("I", bytes(4 * len(patterns.kinds)))
        for number, sides in patterns.sides.items():
            self.of[number] = known.setdefault(sides, len(known))
        self.groups = [(_pairs_of(sides, ONE), _pairs_of(sides, OTHER), sides) for sides in known]


def _pairs_of(sides: Sides, which: int) -> int:
    return functools.reduce(int.__or__, (1 << pair for _, pair, side in sides if side == which), 0)


def settle(text: str, matches: list[Match], patterns: Patterns, sided: SideGroups) -> Hits:
    """Returns what counts of a text. Linear in the text and the matches, but for sorting them.

    Does not count: what touches a letter at a closed end; a match inside an exception, save context, which counts there too; a
    word inside a longer word of its category (a part of a combination counts there). Phrases of a pair that stand near each other
    (proximity.py) have a meaning for each such place.

    Args:
        text: what was searched.
        matches: all of them, overlapping ones too.
        patterns: what was looked for.
        sided: of which pairs the patterns are sides.
    """
    kinds, meanings, _, _ = patterns
    group_of = sided.of
    hits: Hits = {}
    beside: list[tuple[int, int, int, int]] = []
    covered_to = 0
    reach: dict[str, int] = {}
    for start, minus_end, number, touches in _placed(text, matches, kinds):
        end = -minus_end
        kind = kinds[number]
        if kind & EXCEPTION and not touches and end > covered_to:
            covered_to = end
        covered = end <= covered_to
        for opened, role, category, meaning in meanings[number]:
            if touches & ~opened or (covered and role != CONTEXT):
                continue
            if role == WORD:
                if end <= reach.get(category, 0):
                    continue
                reach[category] = end
            if meaning not in hits:
                hits[meaning] = start, end
        if kind & SIDE and not covered:
            beside.append((group_of[number], start, end, touches))
    if len(beside) > 1:
        _pair(text, beside, patterns.places, sided, hits)
    return hits


def _pair(
    text: str, beside: list[tuple[int, int, int, int]], of_pairs: list[list[Meaning]], sided: SideGroups, hits: Hits
) -> None:
    """Adds the places where two phrases of a pair stand near each other.

    Args:
        text: what was searched.
        beside: the phrases of pairs, first and longest first: group, start, end, and which ends touch a letter.
        of_pairs: pair → what its places mean.
        sided: the groups.
        hits: where they are added.
    """
    met = {group: sided.groups[group] for group in {group for group, _, _, _ in beside}}  # few, of many phrases
    ones = functools.reduce(int.__or__, (as_one for as_one, _, _ in met.values()))
    others = functools.reduce(int.__or__, (as_other for _, as_other, _ in met.values()))
    whole = ones & others
    if not whole:
        return
    met = {group: found for group, found in met.items() if (found[0] | found[1]) & whole}
    phrases: dict[int, list[tuple[int, int, int]]] = {}
    for group, start, end, touches in beside:
        if group in met:  # most phrases of pairs stand alone
            for opened, pair, side in met[group][2]:
                if whole >> pair & 1 and not touches & ~opened:
                    phrases.setdefault(pair, []).append((start, end, side))
    for pair, found in phrases.items():
        if len(found) > 1:
            hits.update(zip(of_pairs[pair], places(text, found), strict=False))


def _placed(text: str, matches: list[Match], kinds: bytes) -> list[tuple[int, int, int, int]]:
    """Returns start, minus end, pattern and which ends touch a letter, first and longest first.

    Matches that touch a letter where no meaning of theirs is open are left out: these are most, and this is the cheapest place.
    """
    padded = f" {text} "
    placed: list[tuple[int, int, int, int]] = []
    for number, start, end in matches:
        kind = kinds[number]
        touches = 0
        # Nearly always a blank or a small letter: decided without a call.
        if kind & LEFT and (before := padded[start]) != " " and ("a" <= before <= "z" or is_alphabetic(before)):
            if not kind & OPEN:
                continue
            touches = LEFT
        if kind & RIGHT and (after := padded[end + 1]) != " " and ("a" <= after <= "z" or is_alphabetic(after)):
            if not kind & OPEN:
                continue
            touches |= RIGHT
        placed.append((start, -end, number, touches))
    placed.sort()
    return placed


def is_alphabetic(character: str) -> bool:
    """Whether it is a letter or digit of a script that puts blanks between words; Chinese, Japanese and Thai do not."""
    if character.isascii():
        return character.isalnum()
    return character.isalnum() and not (
        "\u0e00" <= character <= "\u0eff" or "\u2e80" <= character <= "\ua4cf" or character >= "\uf900"
    )
