"""The calibration: from words and reading to the certainty that a page is harmful.

A logistic regression over a few numbers of the page gives log-odds. For each category, script and size of page, three of their
values are the knots of the scale (`BLOCKED_FROM`), measured on pages that the weights were not trained on. A strictness blocks
from its knot on.
"""

from dataclasses import dataclass
from math import exp, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.model_file import Arrays
from gatewayfilter.settings import Strictness

BLOCKED_FROM = {Strictness.STRICT: 0.3, Strictness.STANDARD: 0.9, Strictness.RELAXED: 0.99}
"""Certainty from which on each strictness blocks."""
DOUBT = BLOCKED_FROM[Strictness.STRICT]
"""Certainty from which on a page that is not blocked goes to review."""
_MIDDLE = 6.0
"""Natural logarithm of the bytes of a page of usual length (400)."""
_SHORTEST = 20
LONG_TEXT = 1_500
"""Bytes of visible text above which a page has the knots of long ones."""
KINDS = 4
"""Columns of knots a category: alphabetic short, alphabetic long, ideographic short, ideographic long."""
_MOST_CATEGORIES = 64
_SHARED = 20
_OWN = 6
"""Numbers that all categories weigh alike, and that each weighs on its own."""
_MAX_LOG_ODDS = 30.0


class Candidate(NamedTuple):
    """What the words make of the category that a page most probably belongs to.

    Attributes:
        ratio: score as a share of the limit.
        strong: what words that state an offer add up to, as a share of the limit; so are `topic` and `context`.
        exonerating: context as a share of all words: `log1p(context) - log1p(words)`.
        words: number of different words.
        enough: whether these are as many as the category requires.
        verdict: whether the words alone find the page harmful.
        second: ratio of the next category.
        length: bytes of visible text.
        ideographic: whether the page is written in ideographs, 0 or 1.
    """

    category: str
    ratio: float
    strong: float
    topic: float
    context: float
    exonerating: float
    words: int
    enough: bool
    verdict: bool
    second: float
    length: int
    ideographic: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of the page's numbers, and the knots of the scale. Immutable.

    Attributes:
        categories: names, in the order of the columns.
        weights: float64[`_SHARED` + `_OWN` x categories].
        knots: float64[3, `KINDS` x categories]: log-odds at which certainty has the values of `BLOCKED_FROM`, ascending.
    """

    categories: tuple[str, ...]
    weights: NDArray[np.float64]
    knots: NDArray[np.float64]

    def certainty(self, page: Candidate, mean: float, top: float, most: float) -> float:
        """Returns the certainty that a page is harmful, 0 to 1.

        Args:
            page: what the words say; its category must be one of `categories`.
            mean: log-odds of the reading, of all windows (text_model.Reading).
            top: of the most harmful third.
            most: of the most harmful window.
        """
        return self.scaled(self.odds(page, mean, top, most), self.column(page))

    def odds(self, page: Candidate, mean: float, top: float, most: float) -> float:
        """Returns the log-odds of which `certainty` is made."""
        own = _SHARED + _OWN * self.categories.index(page.category)
        shared, of_category = numbers_of(page, mean, top, most)
        return float(self.weights[:_SHARED] @ shared + self.weights[own : own + _OWN] @ of_category)

    def column(self, page: Candidate) -> int:
        """Returns the column of a page's knots."""
        return KINDS * self.categories.index(page.category) + 2 * page.ideographic + (page.length > LONG_TEXT)

    def scaled(self, odds: float, column: int) -> float:
        """Returns the certainty for log-odds: linear between the knots, in log-odds, with slope 1 outside of them."""
        knots = self.knots[:, column].tolist()
        values = [log(value / (1 - value)) for value in BLOCKED_FROM.values()]
        if odds <= knots[0]:
            found = values[0] + odds - knots[0]
        elif odds >= knots[-1]:
            found = values[-1] + odds - knots[-1]
        else:
            found = float(np.interp(odds, knots, values))
        return 1.0 / (1.0 + exp(-min(max(found, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)))

    def arrays(self) -> dict[str, Any]:
        """Returns what a model file keeps."""
        return {"categories": np.array(self.categories), "calibration": self.weights, "knots": self.knots}

    @classmethod
    def of(cls, arrays: Arrays) -> "Calibration":
        """Returns the calibration of a model file.

        Raises:
            ValueError: its arrays are damaged.
        """
        names, weights, knots = arrays["categories"], arrays["calibration"], arrays["knots"]
        categories = tuple(map(str, names.tolist())) if names.ndim == 1 and names.dtype.kind == "U" else ()
        if not 1 <= len(categories) <= _MOST_CATEGORIES or len(set(categories)) < len(categories):
            raise ValueError("its categories are damaged")
        for numbers, shape in (
            (weights, (_SHARED + _OWN * len(categories),)),
            (knots, (len(BLOCKED_FROM), KINDS * len(categories))),
        ):
            if numbers.shape != shape or numbers.dtype != np.float64 or not np.isfinite(numbers).all():
                raise ValueError("its calibration is damaged")
        if (np.diff(knots, axis=0) <= 0).any():
            raise ValueError("its calibration is damaged")
        return cls(categories, weights, knots)


def numbers_of(page: Candidate, mean: float, top: float, most: float) -> tuple[list[float], list[float]]:
    """Returns the numbers of a page that all categories weigh alike, and those that each weighs on its own."""
    ratio, strong, context = log1p(max(page.ratio, 0.0)), log1p(page.strong), log1p(page.context)
    length = log(max(page.length, _SHORTEST)) - _MIDDLE
    verdict, ideographic = float(page.verdict), float(page.ideographic)
    shared = [
        1.0,
        ratio,
        strong,
        log1p(page.topic),
        context,
        page.exonerating,
        log1p(page.words),
        log1p(max(page.second, 0.0)),
        length,
        mean,
        top,
        most,
        float(page.enough),
        length * ratio,
        min(page.ratio, 1.0),
        mean * length,
        verdict,
        verdict * mean,
        ideographic,
        ideographic * mean,
    ]
    return shared, [1.0, ratio, mean, top, context, length]
