"""From hits to scores, and from scores to a category.

    score = sum(word weight x zone factor) + sum(combination weight x zone factor) - context

Each word counts once a page, in the zone where it counts most. Words below `WEAK` name a topic, which a newspaper does too:
together they fill at most `WEAK_SHARE` of the limit, however many and wherever they stand. Where a page also makes an offer
("order now", "message us on …") each of up to `MAX_OFFERS` phrases of that kind lets them fill `OFFER_SHARE` more, the less the
longer the page is: in a long text topic words and offers meet by chance. Context is taken away once a phrase, with at most its
own weight (twice in the head of the page), and in all at most `CONTEXT_SHARE` of the score: no page buys itself free by quoting
a doctor. Only context that such a page could not show its visitors ("all of this is fraud": `DECISIVE` and more, where they read
it, twice in the title) takes `DECISIVE_SHARE` more each, at most `MOST_OF_CONTEXT`. A combination counts
in the weakest zone of its parts, at most once its own weight, and so do two phrases near each other (proximity.py). On pages
above `LONG_PAGE` both, and the share that topic words may fill, shrink with the length, down to `LEAST_OF_LONG`; words that
say what a page offers never do.

What a page is about stands in its head: beside an offer, a word of weight `HEAD_WORD` and more in title, description or keywords
counts as one word more towards `min_words`.

A page of few words has room for few of them: from `FULL_LIMIT` bytes down to `SHORTEST_PAGE` a category's limit falls, with the
logarithm of the length, to its `short_share`. The same words weigh more on a poster than in a book; nothing that is added to
a page raises its limit above the category's own. Where nothing but topic words and pairs were found
the limit stays whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from operator import itemgetter
from typing import NamedTuple

from gatewayfilter.classify.lexicon.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon.match_filter import Meaning, Role
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import ANY
from gatewayfilter.compiled import load
from gatewayfilter.model import ZONE_FACTORS, Evidence
from gatewayfilter.model.values.frozen import made

CONTEXT_SHARE = 0.8
DECISIVE = 12.0
DECISIVE_SHARE = 0.05
DECISIVE_ZONES = {"title": 2, "main": 1}
MOST_OF_CONTEXT = 0.95
HEAD_CONTEXT = 2.0
WEAK = 5.0
WEAK_SHARE = 0.5
OFFER_SHARE = 0.25
MAX_OFFERS = 4
SHORT_PAGE = 3_000
"""Bytes of text (UTF-8) up to which offers count in full."""
LONG_PAGE = 6_000
"""Above so many bytes, topic words and combinations count less: in a long text any two words meet by chance."""
LEAST_OF_LONG = 0.3
SHORTEST_PAGE, FULL_LIMIT = 100, 1_500
"""Bytes of text at which a limit has fallen to its share for short pages, and from which on it counts whole."""
HEAD_WORD = 8.0
MAX_EVIDENCE = 40
_MOST = {Role.WORD: max(ZONE_FACTORS.values()), Role.CONTEXT: HEAD_CONTEXT, Role.PART: 1.0, Role.OFFER: 1.0, Role.NEAR: 1.0}
"""What a zone makes of a hit at most."""
_FACTORS = {zone: {role: min(factor, _MOST[role]) for role in Role} for zone, factor in ZONE_FACTORS.items()}
UNPLACED = -1
"""Position of a word that only the squashed view shows."""


class ZoneHits(NamedTuple):
    """What was found in one view of a zone.

    Attributes:
        zone: its name.
        text: what was searched.
        placed: whether that is the normal view, in which places count.
        hits: meanings with start and end of their places.
    """

    zone: str
    text: str
    placed: bool
    hits: Mapping[Meaning, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Sum:
    """How one category's score came about.

    Attributes:
        strong: what words and combinations of weight `WEAK` and more add up to.
        topic: what the lighter ones add up to, of which `topic_counted` counts.
        context: sum of what counts against it, of which `context_counted` is taken away.
        limit: the score above which the page is of the category, at its length.
        words: how many different words and combinations were found, of which `min_words` are needed.
    """

    strong: float
    topic: float
    topic_counted: float
    context: float
    context_counted: float
    limit: float
    words: int
    min_words: int

    @property
    def score(self) -> float:
        """What is left."""
        return round(self.strong + self.topic_counted - self.context_counted, 3)


@dataclass(frozen=True, slots=True)
class Judgement:
    """All scores above zero, the category over its limit (`""` for none), and what counted, heaviest first.

    `certainty` and `doubt` as in `model.Classification`: words alone leave them open.
    """

    category: str
    score: float
    limit: float
    scores: dict[str, float]
    evidence: tuple[Evidence, ...]
    sums: dict[str, Sum] = field(default_factory=dict)
    certainty: float | None = None
    doubt: str = ""


type Found = tuple[str, str, float, str, int]
"""What becomes an `Evidence` if it is among the heaviest: word, category, weight, zone, position."""
type _Counted = tuple[Found, float, bool]
"""What counts for a category: with its own weight, and whether it is a pair of phrases near each other."""
type _AddedUp = tuple[list[Found], float, float, float, int, int, bool, bool]
"""What `add_up` returns."""
_EVIDENCE = ("word", "category", "weight", "zone", "position")
_compiled = load("gatewayfilter.classify._score")


class _Page(NamedTuple):
    """What all categories share.

    Attributes:
        length: bytes of visible text.
        offers: what the offers add up to.
        weak_share: of a limit, what topic words may fill.
        against_all: context that counts against every category.
    """

    length: int
    offers: float
    weak_share: float
    against_all: list[Found]


class _Tally:
    """What was found of one category, in the order of its first places.

    Attributes:
        name: the category's.
        evidence: all of it.
        sum: how the score comes about.
        score: the same as `sum.score`.
    """

    __slots__ = ("evidence", "name", "score", "sum")

    def __init__(self, category: Category, counted: list[_Counted], page: _Page) -> None:
        self.name = category.name
        self.evidence, strong, weak, against, words, decisive, told, headed = _add_up(
            counted, ZONE_FACTORS, DECISIVE_ZONES, DECISIVE, WEAK, HEAD_WORD
        )
        if words:
            for word, _, weight, zone, position in page.against_all:
                if word not in category.context:
                    self.evidence.append((word, category.name, weight, zone, position))
                    against -= weight
                    if -weight >= DECISIVE:
                        decisive += DECISIVE_ZONES.get(zone, 0)
            words += headed and page.offers > 0
        limit = limit_at(category, page.length) if told else category.limit
        topic = min(weak, limit * page.weak_share)
        most = min(MOST_OF_CONTEXT, CONTEXT_SHARE + DECISIVE_SHARE * decisive)
        taken = min(against, (strong + topic) * most)
        self.sum = Sum(strong, weak, topic, against, taken, limit, words, category.min_words)
        self.score = self.sum.score


def limit_at(category: Category, length: int) -> float:
    """Returns the category's limit for a page with so many bytes of visible text."""
    if category.short_share >= 1 or length >= FULL_LIMIT:
        return category.limit
    fullness = max(0.0, log(max(length, 1) / SHORTEST_PAGE) / log(FULL_LIMIT / SHORTEST_PAGE))
    return round(category.limit * (category.short_share + (1 - category.short_share) * fullness), 3)


def best(
    found: Iterable[ZoneHits],
    factors_of: Mapping[str, Mapping[Role, float]],
    zone_factors: Mapping[str, float],
    part: Role,
    near: Role,
) -> dict[Meaning, Found]:
    """Returns each meaning where it counts most, in the order of first places; a part weighs what its zone makes of it.

    Args:
        found: the hits.
        factors_of: zone → what it makes of each role.
        zone_factors: zone → its factor.
        part: the role of parts.
        near: the role of pairs, whose words are what stands in the text.
    """
    best: dict[Meaning, Found] = {}
    for zone, text, placed, hits in found:
        factors = factors_of[zone]
        for meaning, (start, end) in hits.items():
            role = meaning.role
            factor = factors[role]
            weight = factor if role is part else meaning.weight * factor
            if meaning in best:
                _, _, known, known_zone, _ = best[meaning]
                if abs(weight) <= abs(known) and (weight or factor <= zone_factors[known_zone]):
                    continue
            word = meaning.phrase if role is not near else text[start:end]
            best[meaning] = word, meaning.category, weight, zone, start if placed else UNPLACED
    return best


def add_up(
    counted: list[_Counted],
    zone_factors: Mapping[str, float],
    decisive_zones: Mapping[str, int],
    decisive: float,
    weak: float,
    head: float,
) -> _AddedUp:
    """Returns the evidence of a category, and what it adds up to.

    Args:
        counted: what counts for it and against it.
        zone_factors: zone → its factor.
        decisive_zones: zone → how often decisive context counts there.
        decisive: weight from which on context is decisive.
        weak: weight below which words are of a topic.
        head: weight from which on a word in the head is of an offer.

    Returns:
        The evidence; sums of strong words, of weak ones and of context; the number of words, and of decisive context; whether
        a strong word is no pair; whether one stands in the head.
    """
    evidence: list[Found] = []
    strong = light = against = 0.0
    words = signs = 0
    told = headed = False
    for found, own_weight, paired in counted:
        evidence.append(found)
        weight = found[2]
        if weight < 0:
            against -= weight
            if own_weight >= decisive:
                signs += decisive_zones.get(found[3], 0)
            continue
        words += 1
        if own_weight < weak:
            light += weight
            continue
        strong += weight
        told = told or not paired
        headed = headed or (own_weight >= head and zone_factors[found[3]] > 1)
    return evidence, strong, light, against, words, signs, told, headed


def heaviest(evidence: Iterable[Found], winner: str) -> list[Found]:
    """Returns evidence in the order in which it is shown: the winner's first, then by weight, then by word."""
    return sorted(evidence, key=lambda found: (found[1] != winner, -abs(found[2]), found[0]))


def counted_of(
    best: Mapping[Meaning, Found],
    combinations: Mapping[Meaning, Sequence[tuple[Combination, tuple[Meaning, ...]]]],
    chance: float,
    part: Role,
    near: Role,
) -> dict[str, list[_Counted]]:
    """Returns what counts for each category that anything counts for or against; what all share comes later.

    Args:
        best: each meaning where it counts most.
        combinations: the combinations of which a part is the first, with their parts.
        chance: what is left of the weights of combinations and pairs at the page's length.
        part: the role of parts.
        near: the role of pairs.
    """
    counted: dict[str, list[_Counted]] = {}
    for meaning, item in best.items():
        name = meaning.category
        if name == ANY:
            continue
        role = meaning.role
        if role is part:
            for combination, parts in combinations.get(meaning, ()):
                if all(other in best for other in parts):
                    _, _, least, zone, position = min((best[other] for other in parts), key=itemgetter(2))
                    weight = round(combination.weight * least * chance, 3)
                    whole = str(combination), name, weight, zone, position
                    counted.setdefault(name, []).append((whole, abs(combination.weight), False))
        elif role is near:
            word, _, weight, zone, position = item
            pair = word, name, round(weight * chance, 3), zone, position
            counted.setdefault(name, []).append((pair, meaning.weight, True))
        else:
            counted.setdefault(name, []).append((item, abs(meaning.weight), False))
    return counted


_best: Callable[..., dict[Meaning, Found]] = best if _compiled is None else _compiled.best
_add_up: Callable[..., _AddedUp] = add_up if _compiled is None else _compiled.add_up
_counted_of: Callable[..., dict[str, list[_Counted]]] = counted_of if _compiled is None else _compiled.counted_of
_heaviest: Callable[..., list[Found]] = heaviest if _compiled is None else _compiled.heaviest


class Judge:
    """The arithmetic over one lexicon and its scanner. Immutable; safe to share between threads."""

    def __init__(self, lexicon: Lexicon, scanner: Scanner) -> None:
        self._categories = lexicon.categories
        self._lowest_limit = min((category.limit for category in lexicon.categories.values()), default=0.0)
        # By one of its parts, so that a page pays only for combinations of which it has that part.
        self._combinations: dict[Meaning, list[tuple[Combination, tuple[Meaning, ...]]]] = {}
        for name, category in lexicon.categories.items():
            for combination in category.combined():
                parts = tuple(scanner.parts[name, part] for part in combination.parts)
                self._combinations.setdefault(parts[0], []).append((combination, parts))

    def judge(self, found: Iterable[ZoneHits], length: int) -> Judgement:
        """Adds up the hits.

        Args:
            found: the hits of each zone in each view.
            length: bytes of the page's visible text.
        """
        best = _best(found, _FACTORS, ZONE_FACTORS, Role.PART, Role.NEAR)
        chance = max(LEAST_OF_LONG, min(1.0, LONG_PAGE / max(length, 1)))
        counted = _counted_of(best, self._combinations, chance, Role.PART, Role.NEAR)
        if not counted:  # nothing counts for or against any category
            return Judgement("", 0.0, self._lowest_limit, {}, ())
        shared = [item for meaning, item in best.items() if meaning.category == ANY]
        placed = [item for item in shared if not item[2]]
        offers = sum(min(ZONE_FACTORS[item[3]], 1.0) for item in placed)
        share = WEAK_SHARE * chance + OFFER_SHARE * min(offers, MAX_OFFERS) * min(1.0, SHORT_PAGE / max(length, 1))
        page = _Page(length, offers, share, [item for item in shared if item[2]])
        tallies = [_Tally(self._categories[name], items, page) for name, items in counted.items()]
        return self._verdict([tally for tally in tallies if tally.sum.words], placed)

    def _verdict(self, tallies: Sequence[_Tally], offers: Sequence[Found]) -> Judgement:
        speaking = sorted((tally for tally in tallies if tally.score > 0), key=lambda tally: -tally.score / tally.sum.limit)
        over = [tally for tally in speaking if tally.score > tally.sum.limit and tally.sum.words >= tally.sum.min_words]
        first = next(iter(over or speaking), None)
        winner = over[0].name if over else ""
        evidence = _heaviest([found for tally in tallies for found in tally.evidence], winner)
        shown = evidence[:MAX_EVIDENCE] + list(offers[:MAX_OFFERS] if evidence else ())
        return Judgement(
            winner,
            first.score if first else 0.0,
            first.sum.limit if first else self._lowest_limit,
            {tally.name: tally.score for tally in speaking},
            made(Evidence, _EVIDENCE, shown),
            {tally.name: tally.sum for tally in tallies},
        )
