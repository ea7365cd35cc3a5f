"""How the linear model's second opinion moves a score, in the grey zone between clear verdicts alone."""

from collections import Counter
from dataclasses import replace
from math import exp

from gatewayfilter.classify.lexicon import Lexicon
from gatewayfilter.classify.score import UNPLACED, Judgement
from gatewayfilter.model import Evidence

GREY_FROM, GREY_TO = 0.5, 1.5
"""Scores between these shares of the limit are not clear."""
GREATEST_SHIFT = 0.5
"""Of the limit: what a model that is certain adds or takes away, so that it never overrules a clear score."""


def is_grey(found: Judgement, lexicon: Lexicon) -> bool:
    """Tells whether any category's score is neither clearly under nor clearly over its limit."""
    return any(_grey(score / _limit(found, lexicon, name)) for name, score in found.scores.items())


def with_opinion(found: Judgement, lexicon: Lexicon, logit: float) -> Judgement:
    """Returns the judgement after the second opinion: scores in the grey zone move, the others stay.

    A category still needs its `min_words`: no page is harmful by statistics alone.

    Args:
        found: by the words.
        lexicon: whose limits count.
        logit: the model's log-odds that the page is harmful.
    """
    probability = 1.0 / (1.0 + exp(-min(max(logit, -30.0), 30.0)))
    words = Counter(hit.category for hit in found.evidence if hit.weight > 0)
    scores: dict[str, float] = {}
    evidence = list(found.evidence)
    for name, score in found.scores.items():
        limit = _limit(found, lexicon, name)
        shift = round(GREATEST_SHIFT * limit * (2 * probability - 1), 3) if _grey(score / limit) else 0.0
        scores[name] = max(0.0, round(score + shift, 3))
        if shift:
            evidence.append(Evidence(f"second opinion {probability:.0%}", name, shift, "main", UNPLACED))
    ranked = sorted(scores, key=lambda name: -scores[name] / _limit(found, lexicon, name))
    over = [name for name in ranked if scores[name] > _limit(found, lexicon, name)]
    over = [name for name in over if words[name] >= lexicon.categories[name].min_words or name == found.category]
    first = (over or ranked)[0]
    return replace(
        found,
        category=over[0] if over else "",
        score=scores[first],
        limit=_limit(found, lexicon, first),
        scores={name: scores[name] for name in ranked if scores[name] > 0},
        evidence=tuple(evidence),
    )


def _limit(found: Judgement, lexicon: Lexicon, name: str) -> float:
    """Returns the limit that counted for the page, which is lower on short ones."""
    return found.sums[name].limit if name in found.sums else lexicon.categories[name].limit


def _grey(share: float) -> bool:
    return GREY_FROM <= share <= GREY_TO
