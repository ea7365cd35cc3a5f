"""The calibration of the text model: trees over a page's numbers, and the knots of the scale of certainty.

Readings are made out of fold (folds.py). The trees are fitted to the samples and the licensed sets; the knots are chosen on the
other real sets and on the licensed ones, out of fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.calibration import INPUTS, KINDS, LONG_TEXT, Calibration, inputs_of
from gatewayfilter.classify.models.decision_trees import DecisionTrees
from scripts.training.bounds import (
    DESCRIBED,
    FAR,
    FOUND,
    GROUPS,
    MARGINS,
    MOST_BLOCKED,
    PASSAGE_MARGIN,
    PASSAGES_OVER,
    SMALLEST_GAP,
)
from scripts.training.folds import Readings, learned_from
from scripts.training.inputs import CATEGORIES, HARMLESS, LICENSED
from scripts.training.knots import Aim, KnotSearch, Table, table
from scripts.training.reading import Document
from scripts.training.trees import fit_trees

SHARED = frozenset(map(CATEGORIES.index, ("adult", "malware")))
"""Categories without trees of their own: with them fewer of their real pages are found."""
MOST_OF_A_SET = 500
LARGEST_COUNT = 3.0
NEW_GENRES = ("texts-tables", "texts-listings", "texts-phones", "texts-downloads")
"""Texts of genres that no other set has: read out of fold they look like no page that the bundled weights read. Not fitted to."""
KNOWN_TO_WORDS = (
    "pages", "second", "third", "fourth", "wide", "late", "further", "fine", "second-fine", "third-fine", "fourth-fine",
)  # fmt: skip
"""Described sites by which the words were extended: by words alone 99 of 100 of the harmful ones are over their limit (`further`
aside), of other writers' 50 to 90, and hardly a harmless one. Trees that are fitted to them ask too much of the words."""
MAILS = ("en_phishing_pot", "zh_telecom_fraud", "en_enron1", "en_smishing", "zh_sms_spam", "en_spamassassin")
"""Sets whose harmful rows are no pages, or whose categories come from keyword rules: they do not count."""


class Calibrator:
    """Fits a calibration to documents and their readings.

    Attributes:
        odds: log-odds of each document, `FAR` where no word speaks of a category; those of the fit.
    """

    def __init__(self, documents: Sequence[Document], readings: Sequence[Readings]) -> None:
        self._numbers = np.zeros((len(documents), len(INPUTS)), np.float32)
        self._column = np.full(len(documents), -1)
        for index, (document, reading) in enumerate(zip(documents, readings, strict=True)):
            if (page := document.candidate) is not None:
                category = CATEGORIES.index(page.category)
                self._numbers[index] = inputs_of(page, category, reading.page)
                self._column[index] = KINDS * category + 2 * page.ideographic + (page.length > LONG_TEXT)
        self._passages = [
            (document.passage.candidate, reading.passage)
            for document, reading in zip(documents, readings, strict=True)
            if document.passage is not None and document.label == HARMLESS
        ]
        self._hinted = self._column >= 0
        self._harmful = np.array([document.is_harmful for document in documents])
        self._harmless = np.array([document.label == HARMLESS for document in documents])
        self._origin = np.array([document.origin for document in documents])
        self._reported = np.array([document.half == "report" for document in documents])
        learned = np.array([learned_from(document) for document in documents])
        mails = np.isin(self._origin, MAILS) & ~self._harmless
        labelled = self._harmful | self._harmless
        left_out = np.isin(self._origin, (*NEW_GENRES, *KNOWN_TO_WORDS))
        self._fitted = learned & self._hinted & labelled & ~mails & ~left_out
        self.odds = np.full(len(documents), FAR)

    def fit(self) -> Calibration:
        """Returns the calibration."""
        counts = np.zeros(len(self.odds))
        for name in np.unique(self._origin[self._fitted]):
            those = self._fitted & (self._origin == name)
            counts[those] = min(LARGEST_COUNT, MOST_OF_A_SET / those.sum())
        common = self._grown(self._fitted, counts)
        category = self._column // KINDS
        own = {at: self._grown(self._fitted & (category == at), counts) for at, _ in enumerate(CATEGORIES) if at not in SHARED}
        nothing = np.zeros((len(MOST_BLOCKED), KINDS * len(CATEGORIES)))
        scale = Calibration(CATEGORIES, common, nothing, nothing[0], own)
        for index in np.flatnonzero(self._hinted):
            self.odds[index] = scale.sum_of(int(category[index]), self._numbers[index].tolist())
        knots = np.array([self.knots(most) for most in MOST_BLOCKED])
        knots[0] = np.minimum(knots[0], knots[1] - SMALLEST_GAP)  # `standard` is as it was chosen
        knots[2] = np.maximum(knots[2], knots[1] + SMALLEST_GAP)
        passages = knots[2] + PASSAGES_OVER
        for candidate, reading in self._passages:
            column = scale.column(candidate)
            passages[column] = max(passages[column], scale.odds(candidate, reading) + PASSAGE_MARGIN)
        return replace(scale, knots=knots, passages=passages)

    def _grown(self, those: NDArray[np.bool_], counts: NDArray[np.float64]) -> DecisionTrees:
        return fit_trees(self._numbers[those], self._harmful[those], counts[those])

    def blocked(self, knots: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which documents are blocked from these knots on, one a column."""
        return self._hinted & (self.odds >= knots[self._column])

    def knots(self, most: Mapping[str, float], seen: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Returns a knot a column, so that most is found and no group has more blocked than `most`.

        Args:
            most: share of each group that may be blocked.
            seen: documents that it is chosen on; `None` for all. Reporting halves of described sites never count.
        """
        seen = ~self._reported if seen is None else seen & ~self._reported
        harmless, allowed = {}, {}
        for name, sets in GROUPS.items():
            those = seen & self._harmless & np.isin(self._origin, sets)
            harmless[name] = self._table(those, those.astype(np.float64), MARGINS.get(name, 0.0))
            allowed[name] = max(most[name] * float(those.sum()), 0.5)
        return KnotSearch(harmless, allowed, self._aims(seen)).knots()

    def _aims(self, seen: NDArray[np.bool_]) -> dict[str, Aim]:
        aims = {}
        learned = self._fitted & ~np.isin(self._origin, LICENSED)
        for name, (share, counts) in FOUND.items():
            those = seen & self._harmful & (learned if name == DESCRIBED else self._origin == name)
            share_of = np.zeros(len(self.odds))
            for origin in np.unique(self._origin[those]):  # each set of a writer alike
                of_set = those & (self._origin == origin)
                share_of[of_set] = 1.0 / of_set.sum()
            aims[name] = Aim(self._table(those, share_of / max(share_of.sum(), 1e-9)), share, counts)
        return aims

    def _table(self, those: NDArray[np.bool_], counts: NDArray[np.float64], margin: float = 0.0) -> Table:
        return table(self.odds[those] + margin, self._column[those], counts[those], KINDS * len(CATEGORIES))
