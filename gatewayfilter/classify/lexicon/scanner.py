"""Finds the lexicon's phrases in a text, in one pass over each view: by an automaton, or compiled, which gives the same."""

from collections.abc import Callable, Iterable

from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.match_filter import (
    EXCEPTION,
    LEFT,
    OPEN,
    RIGHT,
    SIDE,
    Automaton,
    Hits,
    Meaning,
    Patterns,
    Role,
    is_alphabetic,
)
from gatewayfilter.classify.lexicon.proximity import MOST, ONE, OTHER
from gatewayfilter.classify.lexicon.word_file import ANY
from gatewayfilter.compiled import load

__all__ = ["Meaning", "Role", "Scanner"]

_compiled = load("gatewayfilter.classify.lexicon._scanner")


class Scanner:
    """The compiled lexicon. Immutable; safe to share between threads.

    Attributes:
        lexicon: what was compiled.
        parts: (category, phrase) → the meaning that marks this part of a combination.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.parts: dict[tuple[str, str], Meaning] = {}
        meanings: dict[str, list[tuple[int, int, str, Meaning]]] = {_bare(phrase): [] for phrase in lexicon.exceptions}
        exceptions = len(meanings)  # they are the first patterns
        for meaning in _meanings(lexicon):
            if meaning.role is Role.PART:
                self.parts[meaning.category, meaning.phrase] = meaning
            item = _opened(meaning.phrase), int(meaning.role), meaning.category, meaning
            meanings.setdefault(_bare(meaning.phrase), []).append(item)
        sides: dict[str, list[tuple[int, int, int]]] = {}
        of_places: list[list[Meaning]] = []
        for name, near in ((name, near) for name, category in lexicon.categories.items() for near in category.near.values()):
            for side, phrases in ((ONE, near.one), (OTHER, near.other)):
                for phrase in phrases:
                    meanings.setdefault(_bare(phrase), [])
                    sides.setdefault(_bare(phrase), []).append((_opened(phrase), len(of_places), side))
            of_places.append([Meaning(near.name, name, Role.NEAR, near.weight) for _ in range(MOST)])
        kinds = bytearray()
        for number, (text, found) in enumerate(meanings.items()):
            beside = sides.get(text, ())
            kind = _ends(text) | (EXCEPTION if number < exceptions else 0) | (SIDE if beside else 0)
            for opened, *_ in (*found, *beside):
                if opened:
                    kind |= OPEN
            kinds.append(kind)
        sides_of = {number: tuple(sides[text]) for number, text in enumerate(meanings) if text in sides}
        patterns = Patterns(bytes(kinds), list(map(tuple, meanings.values())), sides_of, of_places)
        scan: Callable[[str], Hits] = (Automaton if _compiled is None else _compiled.Finder)(list(meanings), patterns).scan
        self._scan = scan

    def scan(self, text: str) -> Hits:
        """Returns each meaning that counts (match_filter.py), with start and end of its first place.

        Linear in the text and what is found; compiled, in the text times the length of the longest phrase at worst.
        """
        return self._scan(text)


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


def _opened(phrase: str) -> int:
    return (LEFT if phrase.startswith("*") else 0) | (RIGHT if phrase.endswith("*") else 0)


def _ends(bare: str) -> int:
    return (LEFT if is_alphabetic(bare[0]) else 0) | (RIGHT if is_alphabetic(bare[-1]) else 0)
