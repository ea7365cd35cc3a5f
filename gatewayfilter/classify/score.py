"""From hits to scores, and from scores to a category.

    score = Σ word weight × zone factor + Σ combination weight × zone factor − context

Each word counts once a page, in the zone where it counts most. Words below `WEAK` name a topic, which a newspaper does too:
together they fill at most `WEAK_SHARE` of the limit, however many and wherever they stand. Context is taken away once a
phrase, with at most its own weight, and in all at most `CONTEXT_SHARE` of the score: no page buys itself free by quoting a doctor.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gatewayfilter.classify.lexicon import Category, Lexicon
from gatewayfilter.classify.scanner import Hit, Meaning, Role, part_of
from gatewayfilter.classify.text import ZONE_FACTORS
from gatewayfilter.model import Evidence

CONTEXT_SHARE = 0.7
WEAK = 5.0
WEAK_SHARE = 0.5
MAX_EVIDENCE = 40
UNPLACED = -1
"""Position of a word that only the squashed view shows."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """All scores above zero, the category over its limit (`""` for none), and what counted, heaviest first."""

    category: str
    score: float
    limit: float
    scores: dict[str, float]
    evidence: tuple[Evidence, ...]


def judge(lexicon: Lexicon, hits: Iterable[tuple[str, bool, Hit]]) -> Judgement:
    """Adds up the hits.

    Args:
        lexicon: whose words were hit.
        hits: zone, whether the hit stands in the normal view, and the hit.
    """
    best: dict[Meaning, Evidence] = {}
    for zone, placed, hit in hits:
        meaning = hit.meaning
        factor = ZONE_FACTORS[zone] if meaning.role is Role.WORD else min(ZONE_FACTORS[zone], 1.0)
        weight = factor if meaning.role is Role.PART else meaning.weight * factor
        known = best.get(meaning)
        if known is None or abs(weight) > abs(known.weight):
            best[meaning] = Evidence(meaning.phrase, meaning.category, weight, zone, hit.start if placed else UNPLACED)
    by_category: dict[str, list[Evidence]] = {}
    for meaning, evidence in best.items():
        if meaning.role is not Role.PART:
            by_category.setdefault(meaning.category, []).append(evidence)
    parts = {meaning: evidence for meaning, evidence in best.items() if meaning.role is Role.PART}
    for name in {meaning.category for meaning in parts}:
        by_category.setdefault(name, []).extend(_combined(lexicon.categories[name], parts))
    strength = {(meaning.category, evidence.word): abs(meaning.weight) for meaning, evidence in best.items() if meaning.role is Role.WORD}
    scores = {
        name: score for name, found in by_category.items() if (score := _score(lexicon.categories[name], found, strength)) > 0
    }
    over = [name for name in scores if _is_over(lexicon.categories[name], scores[name], by_category[name])]
    winner = max(over, key=lambda name: scores[name] / lexicon.categories[name].limit, default="")
    shown = winner or max(scores, key=lambda name: scores[name] / lexicon.categories[name].limit, default="")
    evidence = sorted((hit for found in by_category.values() for hit in found), key=_heaviest(winner))
    return Judgement(
        winner,
        round(scores.get(shown, 0.0), 3),
        lexicon.categories[shown].limit if shown else min((one.limit for one in lexicon.categories.values()), default=0.0),
        {name: round(score, 3) for name, score in sorted(scores.items(), key=lambda item: -item[1])},
        tuple(evidence[:MAX_EVIDENCE]),
    )


def _combined(category: Category, parts: Mapping[Meaning, Evidence]) -> Iterable[Evidence]:
    for combination in category.combined():
        found = [parts.get(meaning) for meaning in part_of(combination, category.name)]
        present = [evidence for evidence in found if evidence is not None]
        if len(present) == len(found):
            weakest = min(present, key=lambda evidence: evidence.weight)
            yield Evidence(str(combination), category.name, combination.weight * weakest.weight, weakest.zone, weakest.position)


def _score(category: Category, found: Iterable[Evidence], strength: Mapping[tuple[str, str], float]) -> float:
    weak = strong = against = 0.0
    for evidence in found:
        if evidence.weight < 0:
            against -= evidence.weight
        elif strength.get((category.name, evidence.word), WEAK) < WEAK:
            weak += evidence.weight
        else:
            strong += evidence.weight
    speaking = strong + min(weak, category.limit * WEAK_SHARE)
    return speaking - min(against, speaking * CONTEXT_SHARE)


def _is_over(category: Category, score: float, found: Iterable[Evidence]) -> bool:
    return score > category.limit and sum(evidence.weight > 0 for evidence in found) >= category.min_words


def _heaviest(winner: str) -> Callable[[Evidence], tuple[bool, float, str]]:
    return lambda evidence: (evidence.category != winner, -abs(evidence.weight), evidence.word)
