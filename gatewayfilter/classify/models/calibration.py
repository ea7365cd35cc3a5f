"""The calibration: from words, reading and form to the certainty that a page is harmful.

Boosted trees over a few numbers of the page give log-odds. For each category, script and size of page, three of their
values are the knots of the scale (`BLOCKED_FROM`), measured on pages that the weights were not trained on. A strictness blocks
from its knot on.
"""

from dataclasses import dataclass
from math import exp, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.decision_trees import DecisionTrees
from gatewayfilter.classify.models.model_file import Arrays
from gatewayfilter.classify.page_form import Form
from gatewayfilter.settings import Strictness

BLOCKED_FROM = {Strictness.STRICT: 0.3, Strictness.STANDARD: 0.9, Strictness.RELAXED: 0.99}
"""Certainty from which on each strictness blocks."""
DOUBT = BLOCKED_FROM[Strictness.STRICT]
"""Certainty from which on a page that is not blocked goes to review."""
_SHORTEST = 20
LONG_TEXT = 1_500
"""Bytes of visible text above which a page has the knots of long ones."""
KINDS = 4
"""Columns of knots a category: alphabetic short, alphabetic long, ideographic short, ideographic long."""
_MOST_CATEGORIES = 64
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
        second: highest ratio of the other categories.
        length: bytes of visible text.
        ideographic: whether the page is written in ideographs.
        form: of its visible text.
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
    form: Form


@dataclass(frozen=True, slots=True)
class Calibration:
    """Trees over the page's numbers, and the knots of the scale. Immutable.

    Attributes:
        categories: names, in the order of the columns.
        trees: over `inputs_of`.
        knots: float64[3, `KINDS` x categories]: log-odds at which certainty has the values of `BLOCKED_FROM`, ascending.
    """

    categories: tuple[str, ...]
    trees: DecisionTrees
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
        return self.trees.sum_of(inputs_of(page, self.categories.index(page.category), mean, top, most))

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
        return {"categories": np.array(self.categories), "knots": self.knots, **self.trees.arrays()}

    @classmethod
    def of(cls, arrays: Arrays) -> "Calibration":
        """Returns the calibration of a model file.

        Raises:
            ValueError: its arrays are damaged.
        """
        names, knots = arrays["categories"], arrays["knots"]
        categories = tuple(map(str, names.tolist())) if names.ndim == 1 and names.dtype.kind == "U" else ()
        if not 1 <= len(categories) <= _MOST_CATEGORIES or len(set(categories)) < len(categories):
            raise ValueError("its categories are damaged")
        if knots.shape != (len(BLOCKED_FROM), KINDS * len(categories)) or knots.dtype != np.float64:
            raise ValueError("its knots are damaged")
        if not np.isfinite(knots).all() or (np.diff(knots, axis=0) <= 0).any():
            raise ValueError("its knots are damaged")
        return cls(categories, DecisionTrees.of(arrays, len(INPUTS)), knots)


INPUTS = {
    "ratio": 1, "strong": 1, "topic": 0, "context": -1, "exonerating": -1, "words": 1, "second": 0, "length": 0, "mean": 1,
    "top": 1, "most": 1, "enough": 1, "verdict": 1, "ideographic": 0, "category": 0, "line": 0, "short": 0, "digits": 0,
    "latin": 0,
}  # fmt: skip
"""What the trees compare, and how certainty depends on it: 1 never falls as it rises, -1 never rises, 0 may do both."""


def inputs_of(page: Candidate, category: int, mean: float, top: float, most: float) -> list[float]:
    """Returns the numbers of a page, in the order of `INPUTS`."""
    return [
        log1p(max(page.ratio, 0.0)),
        log1p(page.strong),
        log1p(page.topic),
        log1p(page.context),
        page.exonerating,
        log1p(page.words),
        log1p(max(page.second, 0.0)),
        log(max(page.length, _SHORTEST)),
        mean,
        top,
        most,
        float(page.enough),
        float(page.verdict),
        float(page.ideographic),
        float(category),
        *page.form,
    ]
