"""From hits to scores, and from scores to a category.

    score = sum(word weight x zone factor) + sum(combination weight x zone factor) - context

Each word counts once a page, in the zone where it counts most. Words below `WEAK` name a topic, which a newspaper does too:
together they fill at most `WEAK_SHARE` of the limit, however many and wherever they stand. Where a page also makes an offer
("order now", "message us on …") each of up to `MAX_OFFERS` phrases of that kind lets them fill `OFFER_SHARE` more, the less the
longer the page is: in a long text topic words and offers meet by chance. Context is taken away once a phrase, with at most its
own weight (twice in the head of the page), and in all at most `CONTEXT_SHARE` of the score: no page buys itself free by quoting
a doctor. Only context that such a page could not show its visitors ("all of this is fraud": `DECISIVE` and more, where they read
it, twice in the title) takes `DECISIVE_SHARE` more each, at most `MOST_OF_CONTEXT`. A combination counts
in the weakest zone of its parts, at most once its own weight, and so do two phrases near each other (near.py). On pages above
`LONG_PAGE` both, and the share that topic words may fill, shrink with the length, down to `LEAST_OF_LONG`; words that say what a
page offers never do.

What a page is about stands in its head: beside an offer, a word of weight `HEAD_WORD` and more in title, description or keywords
counts as one word more towards `min_words`.

A page of few words has room for few of them: from `FULL_LIMIT` bytes down to `SHORTEST_PAGE` a category's limit falls, with the
logarithm of the length, to its `short_share`. The same words weigh more on a poster than in a book; nothing that is added to
a page raises its limit above the category's own. Where nothing but topic words and pairs were found
the limit stays whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import log

from gatewayfilter.classify.lexicon import Category, Combination, Lexicon
from gatewayfilter.classify.lexicon_file import ANY
from gatewayfilter.classify.scanner import Hit, Meaning, Role, Scanner
from gatewayfilter.classify.text import ZONE_FACTORS
from gatewayfilter.model import Evidence

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
UNPLACED = -1
"""Position of a word that only the squashed view shows."""


@dataclass(frozen=True, slots=True)
class Sum:
    """How one category's score came about.

    Attributes:
        strong: what words and combinations of weight `WEAK` and more add up to.
        topic: what the lighter ones add up to, of which `topic_counted` counts.
        context: what speaks against it adds up to, of which `context_counted` is taken away.
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
    """All scores above zero, the category over its limit (`""` for none), and what counted, heaviest first."""

    category: str
    score: float
    limit: float
    scores: dict[str, float]
    evidence: tuple[Evidence, ...]
    sums: dict[str, Sum] = field(default_factory=dict)


@dataclass(slots=True)
class _Tally:
    """What was found of one category."""

    category: Category
    evidence: list[Evidence]
    length: int
    offers: float
    weak_share: float
    headed: bool = False
    told: bool = False
    strong: float = 0.0
    weak: float = 0.0
    against: float = 0.0
    decisive: int = 0
    words: int = 0

    def add(self, evidence: Evidence, own_weight: float, *, paired: bool = False) -> None:
        self.evidence.append(evidence)
        if evidence.weight < 0:
            self.against -= evidence.weight
            self.decisive += own_weight >= DECISIVE and DECISIVE_ZONES.get(evidence.zone, 0)
            return
        self.words += 1
        if own_weight < WEAK:
            self.weak += evidence.weight
        else:
            self.strong += evidence.weight
            self.told = self.told or not paired
            self.headed = self.headed or (own_weight >= HEAD_WORD and ZONE_FACTORS[evidence.zone] > 1)

    @property
    def counted_words(self) -> int:
        return self.words + (self.headed and self.offers > 0)

    @property
    def limit(self) -> float:
        return limit_at(self.category, self.length) if self.told else self.category.limit

    @property
    def sum(self) -> Sum:
        weak = min(self.weak, self.limit * self.weak_share)
        most = min(MOST_OF_CONTEXT, CONTEXT_SHARE + DECISIVE_SHARE * self.decisive)
        against = min(self.against, (self.strong + weak) * most)
        return Sum(self.strong, self.weak, weak, self.against, against, self.limit, self.counted_words, self.category.min_words)

    def is_over(self, score: float) -> bool:
        return score > self.limit and self.counted_words >= self.category.min_words


def limit_at(category: Category, length: int) -> float:
    """Returns the category's limit for a page with so many bytes of visible text."""
    if category.short_share >= 1 or length >= FULL_LIMIT:
        return category.limit
    fullness = max(0.0, log(max(length, 1) / SHORTEST_PAGE) / log(FULL_LIMIT / SHORTEST_PAGE))
    return round(category.limit * (category.short_share + (1 - category.short_share) * fullness), 3)


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

    def judge(self, hits: Iterable[tuple[str, bool, Hit]], length: int) -> Judgement:
        """Adds up the hits.

        Args:
            hits: zone, whether the hit stands in the normal view, and the hit.
            length: bytes of the page's visible text.
        """
        best: dict[Meaning, Evidence] = {}
        for zone, placed, hit in hits:
            meaning = hit.meaning
            factor = min(ZONE_FACTORS[zone], _MOST[meaning.role])
            weight = factor if meaning.role is Role.PART else meaning.weight * factor
            known = best.get(meaning)
            if known is None or abs(weight) > abs(known.weight) or (not weight and factor > ZONE_FACTORS[known.zone]):
                best[meaning] = Evidence(
                    hit.shown or meaning.phrase, meaning.category, weight, zone, hit.start if placed else UNPLACED
                )
        offers = sum(min(ZONE_FACTORS[found.zone], 1.0) for meaning, found in best.items() if meaning.role is Role.OFFER)
        chance = max(LEAST_OF_LONG, min(1.0, LONG_PAGE / max(length, 1)))
        share = WEAK_SHARE * chance + OFFER_SHARE * min(offers, MAX_OFFERS) * min(1.0, SHORT_PAGE / max(length, 1))
        tallies: dict[str, _Tally] = {}
        for evidence, own_weight, paired in self._counting(best, chance):
            name = evidence.category
            if name not in tallies:
                tallies[name] = _Tally(self._categories[name], [], length, offers, share)
            tallies[name].add(evidence, own_weight, paired=paired)
        shared = [found for meaning, found in best.items() if meaning.category == ANY]
        for tally in (tally for tally in tallies.values() if tally.words):
            for found in shared:
                if found.weight and found.word not in tally.category.context:
                    tally.add(Evidence(found.word, tally.category.name, found.weight, found.zone, found.position), -found.weight)
        return self._verdict(tallies, [found for found in shared if not found.weight])

    def _counting(self, best: Mapping[Meaning, Evidence], chance: float) -> Iterator[tuple[Evidence, float, bool]]:
        for meaning, evidence in best.items():
            if meaning.category == ANY:
                continue
            if meaning.role is Role.NEAR:
                shrunk = Evidence(
                    evidence.word, evidence.category, round(evidence.weight * chance, 3), evidence.zone, evidence.position
                )
                yield shrunk, meaning.weight, True
                continue
            if meaning.role is not Role.PART:
                yield evidence, abs(meaning.weight), False
                continue
            for combination, parts in self._combinations.get(meaning, ()):
                found = [best[part] for part in parts if part in best]
                if len(found) == len(parts):
                    weakest = min(found, key=lambda part: part.weight)
                    weight = round(combination.weight * weakest.weight * chance, 3)
                    yield (
                        Evidence(str(combination), meaning.category, weight, weakest.zone, weakest.position),
                        abs(combination.weight),
                        False,
                    )

    def _verdict(self, tallies: Mapping[str, _Tally], offers: list[Evidence]) -> Judgement:
        sums = {tally.category.name: tally.sum for tally in tallies.values() if tally.words}
        speaking = sorted(
            (tally for tally in tallies.values() if tally.words and sums[tally.category.name].score > 0),
            key=lambda tally: -sums[tally.category.name].score / tally.limit,
        )
        over = [tally for tally in speaking if tally.is_over(sums[tally.category.name].score)]
        first = next(iter(over or speaking), None)
        winner = over[0].category.name if over else ""
        evidence = sorted(
            (found for tally in tallies.values() if tally.words for found in tally.evidence),
            key=lambda found: (found.category != winner, -abs(found.weight), found.word),
        )
        return Judgement(
            winner,
            sums[first.category.name].score if first else 0.0,
            first.limit if first else self._lowest_limit,
            {tally.category.name: sums[tally.category.name].score for tally in speaking},
            (*evidence[:MAX_EVIDENCE], *(offers[:MAX_OFFERS] if evidence else ())),
            sums,
        )
