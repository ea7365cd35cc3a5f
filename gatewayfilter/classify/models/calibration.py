"""The calibration: from words, reading and form to the certainty that a page is harmful.

Boosted trees over a few numbers of the page give log-odds: those of all categories, and for some categories a share of those
that were grown on its pages alone. For each category, script and size of page, three of their
values are the knots of the scale (`BLOCKED_FROM`), measured on pages that the weights were not trained on. A strictness blocks
from its knot on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.decision_trees import DecisionTrees
from gatewayfilter.classify.models.model_file import Arrays
from gatewayfilter.classify.models.text_reading import Reading
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
OWN_SHARE = 0.3
"""Of the log-odds, what the trees of a page's category give where it has its own."""
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
        passages: float64[`KINDS` x categories]: log-odds from which on a passage counts for its page.
        own: trees of the categories that have their own, by their place in `categories`.
    """

    categories: tuple[str, ...]
    trees: DecisionTrees
    knots: NDArray[np.float64]
    passages: NDArray[np.float64]
    own: Mapping[int, DecisionTrees] = field(default_factory=dict)

    def certainty(self, page: Candidate, reading: Reading) -> float:
        """Returns the certainty that a page is harmful, 0 to 1.

        Args:
            page: what the words say; its category must be one of `categories`.
            reading: of the page for this category.
        """
        return self.scaled(self.odds(page, reading), self.column(page))

    def odds(self, page: Candidate, reading: Reading) -> float:
        """Returns the log-odds of which `certainty` is made."""
        category = self.categories.index(page.category)
        return self.sum_of(category, inputs_of(page, category, reading))

    def sum_of(self, category: int, numbers: Sequence[float]) -> float:
        """Returns the log-odds for the numbers of a page (`inputs_of`), by the place of its category."""
        common = self.trees.sum_of(numbers)
        own = self.own.get(category)
        return common if own is None else (1 - OWN_SHARE) * common + OWN_SHARE * own.sum_of(numbers)

    def certainty_of_passages(self, page: Candidate) -> float:
        """Returns the certainty from which on a passage counts for its page: a long page has many passages."""
        column = self.column(page)
        return self.scaled(float(self.passages[column]), column)

    def column(self, page: Candidate) -> int:
        """Returns the column of a page's knots."""
        return KINDS * self.categories.index(page.category) + 2 * page.ideographic + (page.length > LONG_TEXT)

    def scaled(self, odds: float, column: int) -> float:
        """Returns the certainty for log-odds: linear between the knots, in log-odds, with slope 1 outside of them."""
        knots = self.knots[:, column].tolist()
        values = [log(value / (1 - value)) for value in BLOCKED_FROM.values()]
        if knots[0] < odds < knots[-1]:
            found = float(np.interp(odds, knots, values))
        else:
            end = 0 if odds <= knots[0] else -1
            found = values[end] + odds - knots[end]
        return 1.0 / (1.0 + exp(-min(max(found, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)))

    def arrays(self) -> dict[str, Any]:
        """Returns what a model file keeps."""
        found = {"categories": np.array(self.categories), "knots": self.knots, "passages": self.passages}
        found |= self.trees.arrays()
        for place, trees in sorted(self.own.items()):
            found |= {f"{self.categories[place]}_{name}": array for name, array in trees.arrays().items()}
        return found

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
        passages = arrays["passages"]
        if passages.shape != knots.shape[1:] or passages.dtype != np.float64 or not np.isfinite(passages).all():
            raise ValueError("its knots are damaged")
        trees, own = DecisionTrees.of(arrays, len(INPUTS)), {}
        for place, name in enumerate(categories):
            names_of = {part: f"{name}_{part}" for part in trees.arrays()}
            if any(key in arrays for key in names_of.values()):
                own[place] = DecisionTrees.of({part: arrays[key] for part, key in names_of.items()}, len(INPUTS))
        return cls(categories, trees, knots, passages, own)


INPUTS = {
    "ratio": 1, "strong": 1, "topic": 0, "context": -1, "exonerating": -1, "words": 1, "second": 0, "length": 0, "mean": 1,
    "top": 1, "most": 1, "joint": 1, "own_mean": 1, "own_top": 1, "own_most": 1, "own_joint": 1, "enough": 1, "verdict": 1,
    "ideographic": 0, "category": 0, "line": 0, "short": 0, "digits": 0, "latin": 0,
}  # fmt: skip
"""What the trees compare, and how certainty depends on it: 1 never falls as it rises, -1 never rises, 0 may do both."""


def inputs_of(page: Candidate, category: int, reading: Reading) -> list[float]:
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
        *reading,
        float(page.enough),
        float(page.verdict),
        float(page.ideographic),
        float(category),
        *page.form,
    ]
