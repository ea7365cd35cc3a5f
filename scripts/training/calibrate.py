"""The calibration of the text model: weights of a page's numbers, and the knots of the scale of certainty.

Readings are made out of fold: by weights that were learned without the page's writer or set. The calibration's weights are fitted
to the samples and the licensed sets; its knots are chosen on the other real sets and on the licensed ones, out of fold.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from gatewayfilter.classify.models.calibration import KINDS, LONG_TEXT, Calibration, numbers_of
from gatewayfilter.classify.models.text_model import Reading
from scripts.training.inputs import CATEGORIES, HARMLESS, LICENSED, WRITERS
from scripts.training.reading import Document
from scripts.training.weights import fit

FOLDS = 4
INVERSE_PENALTY = 0.3
MOST_OF_A_SET = 500
LONGEST_WEIGHT = 3.0
FAR = -9.0
"""Log-odds of pages of which no word speaks."""
STEP = 0.1
SMALLEST_GAP = 0.3
GROUPS = {
    "html": ("html_aeb", "html_gne", "html_parsers_misc", "html_readability", "html_trafilatura"),
    "general": (
        "zh_dureader_web", "zh_wiki_cmrc", "zh_tnews_csldcp", "zh_thucnews_titles", "zh_medical_qa", "zh_it_docs", "en_agnews",
        "en_website_classif", "en_video_titles", "en_enron1", "en_spamassassin", "zh_hardneg_laws",
    ),
    "apps": ("zh_iflytek_apps",),
    "messages": ("en_smishing", "zh_sms_spam"),
    "near": (
        "zh_hardneg_security_news", "zh_hardneg_antifraud", "zh_hardneg_lifehacker", "en_hardneg_security_news",
        "en_hardneg_news", "en_hardneg_gov_health", "en_hardneg_docs", "en_hardneg_museum",
    ),
    "described": tuple(f"{writer}-fine" for writer in WRITERS),
}  # fmt: skip
"""Harmless pages by what they are like."""
FOUND = ("en_gambling_pages", "zh_gambling_pages", "zh_adult_titles", "en_agora_drugs", "en_malware_lures", "en_phishkit_html")
MAILS = ("en_phishing_pot", "zh_telecom_fraud", "en_enron1", "en_smishing", "zh_sms_spam", "en_spamassassin")
"""Sets whose harmful rows are no pages, or whose categories come from keyword rules: they do not count."""
MOST_BLOCKED: tuple[Mapping[str, float], ...] = (
    {"html": 0.03, "general": 0.015, "apps": 0.10, "messages": 0.06, "near": 0.10, "described": 0.20},
    {"html": 0.0025, "general": 0.002, "apps": 0.02, "messages": 0.01, "near": 0.022, "described": 0.12},
    {"html": 0.0, "general": 0.0004, "apps": 0.003, "messages": 0.002, "near": 0.004, "described": 0.008},
)
"""Share of the harmless pages of each group that a strictness may block, in the order of `BLOCKED_FROM`."""


def fold_of(document: Document) -> int:
    """Returns the fold of a document, by its writer or set."""
    return int(hashlib.md5(f"f{document.writer}".encode(), usedforsecurity=False).hexdigest(), 16) % FOLDS


def learned_from(document: Document) -> bool:
    """Returns whether weights may be learned from a document."""
    return document.half == "tune" or document.origin in LICENSED


def read_out_of_fold(documents: Sequence[Document], training: Sequence[Document]) -> list[Reading]:
    """Returns a reading of each document by weights that were learned without its writer or set."""
    readings: list[Reading] = [Reading(0.0, 0.0, 0.0)] * len(documents)
    learned = [learned_from(document) for document in documents]
    for fold in range(FOLDS):
        weights = fit([document for document in training if fold_of(document) != fold])
        for index, document in enumerate(documents):
            if learned[index] and fold_of(document) == fold:
                readings[index] = weights.read(document.parts)
    return readings


class Calibrator:
    """Fits a calibration to documents and their readings.

    Attributes:
        odds: log-odds of each document, `FAR` where no word speaks of a category; those of the fit.
    """

    def __init__(self, documents: Sequence[Document], readings: Sequence[Reading]) -> None:
        self._documents = documents
        self._hinted = np.array([document.candidate is not None for document in documents])
        self._numbers = np.zeros((len(documents), 20 + 6 * len(CATEGORIES)))
        self._column = np.full(len(documents), -1)
        for index, (document, reading) in enumerate(zip(documents, readings, strict=True)):
            if (page := document.candidate) is not None:
                category = CATEGORIES.index(page.category)
                shared, own = numbers_of(page, *reading)
                self._numbers[index, :20] = shared
                self._numbers[index, 20 + 6 * category : 26 + 6 * category] = own
                self._column[index] = KINDS * category + 2 * page.ideographic + (page.length > LONG_TEXT)
        self._harmful = np.array([document.is_harmful for document in documents])
        self._origin = np.array([document.origin for document in documents])
        harmless = np.array([document.label == HARMLESS for document in documents])
        self._groups = {name: harmless & np.isin(self._origin, sets) for name, sets in GROUPS.items()}
        learned = np.array([learned_from(document) for document in documents])
        mails = np.isin(self._origin, MAILS) & ~harmless
        self._fitted = learned & self._hinted & (self._harmful | harmless) & ~mails
        self.odds = np.full(len(documents), FAR)

    def fit(self) -> Calibration:
        """Returns the calibration."""
        weights = self._weights()
        self.odds = np.where(self._hinted, self._numbers @ weights, FAR)
        knots = np.array([self._knots(most) for most in MOST_BLOCKED])
        for row in (1, 2):
            knots[row] = np.maximum(knots[row], knots[row - 1] + SMALLEST_GAP)
        return Calibration(CATEGORIES, weights, knots)

    def blocked(self, knots: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which documents are blocked from these knots on, one a column."""
        return self._hinted & (self.odds >= knots[self._column])

    def _weights(self) -> NDArray[np.float64]:
        counts = np.zeros(len(self._documents))
        for name in np.unique(self._origin[self._fitted]):
            those = self._fitted & (self._origin == name)
            counts[those] = min(LONGEST_WEIGHT, MOST_OF_A_SET / those.sum())
        scale = self._numbers[self._fitted].std(axis=0) + 1e-3
        scale[0] = 1.0
        model = LogisticRegression(C=INVERSE_PENALTY, max_iter=600, tol=1e-5, fit_intercept=False)
        rows = self._numbers[self._fitted] / scale
        model.fit(rows, self._harmful[self._fitted], sample_weight=counts[self._fitted])
        return np.asarray(model.coef_[0] / scale)

    def _knots(self, most: Mapping[str, float]) -> NDArray[np.float64]:
        """Returns a knot a column, raised where that costs least until no group has more blocked than `most`."""
        columns = range(KINDS * len(CATEGORIES))
        those = self._harmful & self._hinted & (np.isin(self._origin, FOUND) | (self._fitted & ~np.isin(self._origin, LICENSED)))
        counts = np.zeros(len(self._documents))
        for name in np.unique(self._origin[those]):
            of_set = those & (self._origin == name)
            counts[of_set] = (3.0 if name in FOUND else 1.0) / of_set.sum()
        harmless = {g: [np.sort(self.odds[m & (self._column == c)]) for c in columns] for g, m in self._groups.items()}
        harmful = [(self.odds[those & (self._column == c)], counts[those & (self._column == c)]) for c in columns]
        size = {group: float(mask.sum()) for group, mask in self._groups.items()}
        knots = np.full(len(columns), -1.5)

        def blocked(group: str, column: int, knot: float) -> int:
            return len(harmless[group][column]) - int(np.searchsorted(harmless[group][column], knot))

        while True:
            spare = {g: sum(blocked(g, c, knots[c]) for c in columns) - most[g] * size[g] for g in size}
            over = {group: count for group, count in spare.items() if count > 0}
            best, step = max(
                (
                    (
                        sum(
                            min(blocked(g, c, knots[c]) - blocked(g, c, knots[c] + up), count) / count
                            for g, count in over.items()
                        )
                        / (float(harmful[c][1][(harmful[c][0] >= knots[c]) & (harmful[c][0] < knots[c] + up)].sum()) + 2e-3),
                        (c, up),
                    )
                    for c in columns
                    for up in (STEP, 3 * STEP, 8 * STEP)
                ),
                default=(0.0, (0, 0.0)),
            )
            if not over or best <= 0:
                return knots
            knots[step[0]] += step[1]
