"""How statistics decide beside the words: the certainty by the bundled text model, then the operator's own second opinion."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log1p

from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.models.calibration import BLOCKED_FROM, DOUBT, Candidate
from gatewayfilter.classify.models.text_model import TextModel
from gatewayfilter.classify.page_form import form_of
from gatewayfilter.classify.passages import Passage
from gatewayfilter.classify.score import UNPLACED, Judgement
from gatewayfilter.classify.signs.bet_taking import CATEGORY as BETTING
from gatewayfilter.classify.signs.page_signs import sign_of
from gatewayfilter.classify.zones import PageText
from gatewayfilter.model import Classification, Evidence
from gatewayfilter.settings import Strictness

GREY_FROM, GREY_TO = 0.5, 1.5
"""Scores between these shares of the limit are not clear."""
GREATEST_SHIFT = 0.5
"""Of the limit: what a model that is certain adds or takes away, so that it never overrules a clear score."""

OVER, UNDER = 1.25, 0.75
"""Limits: where a decision by certainty takes a score to; the operator's own second opinion comes after it, in the grey zone."""
PASSAGE_CERTAINTY = BLOCKED_FROM[Strictness.STANDARD]
"""Certainty of a page of which one passage alone is beyond doubt."""
CLONE_CERTAINTY = 0.95
"""Certainty of a login clone: `relaxed` sends it to review."""
HINTED, MOST_HINTED, HINT_BYTES = 0.1, 0.5, 2_000
"""Limits: what a category's words must come to before a text of up to so many bytes is read, and at most; in between as much more
as the page is longer. No page is harmful by statistics alone, and in a long text some word of any category stands by chance."""
SIGN_CERTAINTY = 0.95
"""Certainty of a page with a sign of its category: `relaxed` sends it to review."""
UNCONFIRMED = 0.85
"""Certainty, at most, of a page on which the words have no verdict and that does not read like its category: `standard` sends it
to review."""
PAYMENTS, BETTING_FROM = "fraud", 0.5
"""Pages on which bettors pay in and out are full of words of payment fraud: they are weighed as `BETTING` where its words come to
this share of those of `PAYMENTS`."""


def with_certainty(
    found: Judgement, lexicon: Lexicon, page: PageText, model: TextModel, strictness: Strictness | None = None
) -> Judgement:
    """Returns the judgement after the text was read: certainty, and whether that blocks the page or sends it to review.

    Only one category is weighed (`candidate_of`). A verdict of the words stands unchanged in categories that the model was
    not calibrated for, and in those in which the operator has words of their own.

    Args:
        found: by the words.
        lexicon: the limits.
        page: the text.
        model: reads it.
        strictness: certainty from which on a page is blocked; `None` for a passage, which must be beyond doubt.
    """
    known = model.calibration.categories
    if found.category and (found.category not in known or found.category in model.additive):
        return found
    nearest = candidate_of(found, lexicon, known, page)
    if nearest is None:
        return replace(found, certainty=0.0)
    name = nearest.category
    text = page.visible()
    certainty, sign = _weighed(nearest, text, model)
    least = model.calibration.certainty_of_passages(nearest) if strictness is None else BLOCKED_FROM[strictness]
    blocked = certainty >= least
    doubt = name if not blocked and certainty >= DOUBT else ""
    judged = replace(found, certainty=round(certainty, 4), doubt=doubt)
    if blocked == bool(found.category) and (not blocked or name == found.category):
        return judged
    if blocked:
        # A score may be over its limit already, of fewer words than the category requires.
        missing = OVER * _limit(found, lexicon, name) - found.scores[name]
        terms = " · ".join(model.telling(text, name, harmful=True))
        said = sign or f"reads like {name} ({certainty:.0%}): {terms}"
        return _shifted(judged, lexicon, {name: max(missing, 0.0)}, name, said)
    over = [other for other, score in found.scores.items() if score > _limit(found, lexicon, other)]
    own = [other for other in over if other not in known or other in model.additive]
    over = [other for other in over if other not in own]
    lowered = {other: UNDER * _limit(found, lexicon, other) - found.scores[other] for other in over}
    terms = " · ".join(model.telling(text, name, harmful=False))
    standing = [other for other in own if found.sums[other].words >= found.sums[other].min_words]
    if standing:  # of the words alone, as if they had found no other category
        judged = replace(found, certainty=None)
    first = max(standing, key=lambda other: found.scores[other] / _limit(found, lexicon, other), default="")
    return _shifted(judged, lexicon, lowered, first, f"reads harmless ({1 - certainty:.0%}): {terms}")


def _weighed(page: Candidate, text: str, model: TextModel) -> tuple[float, str]:
    """Returns the certainty that a page is harmful, and the sign that gave it where words and reading did not."""
    read = model.read_parts if page.verdict else model.read
    reading = read(text, page.category)
    certainty = model.calibration.certainty(page, reading)
    if not page.verdict and not reading.confirms:
        certainty = min(certainty, UNCONFIRMED)
    sign = sign_of(page.category, text) if certainty < SIGN_CERTAINTY else ""
    return SIGN_CERTAINTY if sign else certainty, sign


def with_passage(found: Judgement, judged: Judgement, passage: Passage, strictness: Strictness) -> Judgement:
    """Returns the judgement of a page after its densest passage was judged by itself.

    A passage of which words and reading are beyond doubt makes the page as certain as `standard` requires.

    Args:
        found: of the whole page, which is not blocked.
        judged: of the passage.
        passage: where it stands.
        strictness: certainty from which on a page is blocked.
    """
    if not judged.category or judged.certainty is None:
        return found
    if strictness is Strictness.RELAXED:
        return replace(found, certainty=max(PASSAGE_CERTAINTY, found.certainty or 0.0), doubt=judged.category)
    placed = tuple(
        hit if hit.position == UNPLACED else replace(hit, zone=passage.zone, position=hit.position + passage.start)
        for hit in judged.evidence
    )
    return replace(
        found,
        category=judged.category,
        score=judged.score,
        limit=judged.limit,
        scores={**found.scores, judged.category: judged.score},
        evidence=placed,
        certainty=max(PASSAGE_CERTAINTY, found.certainty or 0.0),
        doubt="",
    )


def as_login_clone(found: Classification, clone: Evidence, lexicon: Lexicon, strictness: Strictness) -> Classification:
    """Returns the judgement of a page that was found to be a login clone: its words and what it reads like do not count."""
    limit = lexicon.category(clone.category).limit
    score = round(OVER * limit, 3)
    blocked = BLOCKED_FROM[strictness] <= CLONE_CERTAINTY
    return replace(
        found,
        category=clone.category if blocked else "",
        score=score if blocked else found.score,
        limit=limit if blocked else found.limit,
        scores={**found.scores, clone.category: score} if blocked else found.scores,
        evidence=(replace(clone, weight=score if blocked else 0.0), *found.evidence),
        certainty=max(CLONE_CERTAINTY, found.certainty or 0.0),
        doubt="" if blocked else clone.category,
    )


def candidate_of(found: Judgement, lexicon: Lexicon, categories: Sequence[str], page: PageText) -> Candidate | None:
    """Returns what the words make of the category that the page most probably belongs to.

    That is the one nearest to its limit, but for `BETTING`. `None` where the words hint at none of these categories.
    """
    shares = {name: score / _limit(found, lexicon, name) for name, score in found.scores.items() if name in categories}
    name = max(shares, key=lambda name: shares[name], default="")
    length = page.length()
    least = min(max(HINTED, HINTED * length / HINT_BYTES), MOST_HINTED)
    if not name or shares[name] < least:
        return None
    if name == PAYMENTS and shares.get(BETTING, 0.0) >= max(BETTING_FROM * shares[name], least):
        name = BETTING
    total = found.sums[name]
    ideographic = page.is_ideographic()
    return Candidate(
        name,
        shares[name],
        total.strong / total.limit,
        total.topic_counted / total.limit,
        total.context_counted / total.limit,
        log1p(total.context_counted) - log1p(total.strong + total.topic),
        total.words,
        enough=total.words >= total.min_words,
        verdict=bool(found.category),
        second=max((share for other, share in shares.items() if other != name), default=0.0),
        length=length,
        ideographic=ideographic,
        form=form_of(page.visible(), ideographic=ideographic),
    )


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

    A page that it withdraws from a category is in doubt. A category still needs its `min_words`: no page is harmful by statistics
    alone.

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
    category = over[0] if over else ""
    changed = category != found.category
    return replace(
        found,
        certainty=None if changed else found.certainty,
        doubt="" if category else found.category or found.doubt,
        category=category,
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
