"""How statistics move a score where the words are not clear: what a text reads like, then the operator's own second opinion."""

from collections import Counter
from dataclasses import replace
from math import exp

from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.models.topic_model import TopicModel
from gatewayfilter.classify.score import UNPLACED, Judgement
from gatewayfilter.model import Evidence

GREY_FROM, GREY_TO = 0.5, 1.5
"""Scores between these shares of the limit are not clear."""
GREATEST_SHIFT = 0.5
"""Of the limit: what a model that is certain adds or takes away, so that it never overrules a clear score."""

READS_HARMFUL, READS_HARMLESS = 0.5, 0.1
"""Probabilities from which on, and down to which, what a text reads like counts."""
OVER, UNDER = 1.25, 0.75
"""Limits: where it takes a score to, inside the grey zone: the operator's own second opinion comes after it."""
HINTED, MOST_HINTED, HINT_BYTES = 0.1, 0.5, 2_000
"""Limits: what a category's words must come to before it matters what a page of up to so many bytes reads like, and at most;
in between as much more as the page is longer: in a long text some word of any category stands by chance."""
CLEAR = 3.0
"""Limits: a score from so many on is clear, whatever the text reads like."""


def asks_for_reading(found: Judgement, lexicon: Lexicon, length: int) -> bool:
    """Returns whether it matters what a text of so many bytes reads like: words hint at a category, and are not clear."""
    if found.category:
        return found.score < CLEAR * found.limit
    return any(_is_hinted(found, lexicon, name, length) for name in found.scores)


def with_reading(found: Judgement, lexicon: Lexicon, text: str, topics: TopicModel) -> Judgement:
    """Returns the judgement after what the text reads like.

    A page without a verdict whose words hint at a category, and that reads like that category, is over its limit: no page is
    harmful by statistics alone. One with a verdict that is not clear, and that reads harmless, is under it again; not
    where a person has words of his own.
    """
    shifts: dict[str, float] = {}
    category, said = "", ""
    length = len(text.encode(errors="replace"))
    if not found.category:
        reading = topics.read(text)
        if reading.harmful >= READS_HARMFUL and _is_hinted(found, lexicon, reading.category, length):
            # A score may be over its limit already, of fewer words than the category requires.
            missing = OVER * _limit(found, lexicon, reading.category) - found.scores[reading.category]
            shifts = {reading.category: max(missing, 0.0)}
            terms = " · ".join(topics.telling(text, reading.category))
            category, said = reading.category, f"reads like {reading.category} ({reading.harmful:.0%}): {terms}"
    else:
        limits = {name: _limit(found, lexicon, name) for name in found.scores}
        over = [name for name, score in found.scores.items() if score > limits[name]]
        unclear = all(found.scores[name] < CLEAR * limits[name] and name not in topics.additive for name in over)
        if unclear and (harmful := topics.most_harmful(text)) <= READS_HARMLESS:
            shifts = {name: UNDER * limits[name] - found.scores[name] for name in over}
            said = f"reads harmless ({1 - harmful:.0%})"
    return _shifted(found, lexicon, shifts, category, said) if shifts else found


def _is_hinted(found: Judgement, lexicon: Lexicon, name: str, length: int) -> bool:
    share = min(max(HINTED, HINTED * length / HINT_BYTES), MOST_HINTED)
    return found.scores.get(name, 0.0) >= share * _limit(found, lexicon, name)


def _shifted(found: Judgement, lexicon: Lexicon, shifts: dict[str, float], category: str, said: str) -> Judgement:
    scores = {name: round(score + shifts.get(name, 0.0), 3) for name, score in found.scores.items()}
    ranked = sorted(scores, key=lambda name: -scores[name] / _limit(found, lexicon, name))
    first = category or ranked[0]
    spoken = tuple(Evidence(said, name, round(shift, 3), "main", UNPLACED) for name, shift in shifts.items())
    return replace(
        found,
        category=category,
        score=scores[first],
        limit=_limit(found, lexicon, first),
        scores={name: scores[name] for name in ranked},
        evidence=(*spoken, *found.evidence) if category else (*found.evidence, *spoken),
    )


def is_grey(found: Judgement, lexicon: Lexicon) -> bool:
    """Returns whether any category's score is neither clearly under nor clearly over its limit."""
    return any(_grey(score / _limit(found, lexicon, name)) for name, score in found.scores.items())


def with_opinion(found: Judgement, lexicon: Lexicon, logit: float) -> Judgement:
    """Returns the judgement after the second opinion: scores in the grey zone move, the others stay.

    A category still needs its `min_words`: no page is harmful by statistics alone.

    Args:
        found: by the words.
        lexicon: the limits.
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
