"""The calibration of the text model: trees over a page's numbers, and the knots of the scale of certainty.

Readings are made out of fold (folds.py). The trees are fitted to the samples and the licensed sets; the knots are chosen on the
other real sets and on the licensed ones, out of fold.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.calibration import INPUTS, KINDS, LONG_TEXT, Calibration, inputs_of
from gatewayfilter.classify.models.text_model import Reading
from scripts.training.folds import learned_from
from scripts.training.inputs import CATEGORIES, HARMLESS, LICENSED, WRITERS
from scripts.training.knots import Aim, KnotSearch, Table, table
from scripts.training.reading import Document
from scripts.training.trees import fit_trees

MOST_OF_A_SET = 500
LARGEST_COUNT = 3.0
FAR = -99.0
"""Log-odds of pages of which no word speaks."""
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
    "daily": ("daily",),
    "ordinary": ("ordinary",),
    "mail": ("en_enron1",),
    "sites": ("en_website_classif",),
    "warnings": ("zh_hardneg_antifraud",),
}  # fmt: skip
"""Harmless pages by what they are like; some sets have a bound of their own besides."""
MARGINS = {"html": 0.5, "warnings": 0.5, "general": 0.3, "apps": 0.2, "near": 0.2}
"""Log-odds by which the pages of a group stay below the knots: others like them, which nobody has seen, lie around them."""
DESCRIBED = "described"
FOUND: Mapping[str, tuple[float, float]] = {
    "en_gambling_pages": (0.985, 4.0),
    "zh_gambling_pages": (0.98, 3.0),
    "zh_adult_titles": (0.96, 2.5),
    "en_agora_drugs": (0.96, 1.0),
    "en_malware_lures": (0.85, 1.5),
    "en_phishkit_html": (0.3, 0.15),
    DESCRIBED: (0.98, 9.0),
}
"""Real harmful pages, and those of which weights are learned: the share that should be found, and what the set counts."""
NEW_GENRES = ("texts-tables", "texts-listings", "texts-phones", "texts-downloads")
"""Texts of genres that no other set has: read out of fold they look like no page that the bundled weights read. Not fitted to."""
MAILS = ("en_phishing_pot", "zh_telecom_fraud", "en_enron1", "en_smishing", "zh_sms_spam", "en_spamassassin")
"""Sets whose harmful rows are no pages, or whose categories come from keyword rules: they do not count."""
_STRICT_SETS = {"daily": 0.08, "ordinary": 0.08, "mail": 0.05, "sites": 0.05, "warnings": 0.17}
_SETS = {"daily": 0.024, "ordinary": 0.018, "mail": 0.005, "sites": 0.0036, "warnings": 0.025}
_RELAXED_SETS = {"daily": 0.004, "ordinary": 0.004, "mail": 0.001, "sites": 0.001, "warnings": 0.001}
MOST_BLOCKED: tuple[Mapping[str, float], ...] = (
    {"html": 0.04, "general": 0.015, "apps": 0.04, "messages": 0.05, "near": 0.06, "described": 0.12, **_STRICT_SETS},
    {"html": 0.0, "general": 0.0016, "apps": 0.005, "messages": 0.009, "near": 0.01, "described": 0.05, **_SETS},
    {"html": 0.0, "general": 0.0004, "apps": 0.002, "messages": 0.002, "near": 0.003, "described": 0.006, **_RELAXED_SETS},
)
"""Share of the harmless pages of each group that a strictness may block, in the order of `BLOCKED_FROM`."""


class Calibrator:
    """Fits a calibration to documents and their readings.

    Attributes:
        odds: log-odds of each document, `FAR` where no word speaks of a category; those of the fit.
    """

    def __init__(self, documents: Sequence[Document], readings: Sequence[Reading]) -> None:
        self._numbers = np.zeros((len(documents), len(INPUTS)), np.float32)
        self._column = np.full(len(documents), -1)
        for index, (document, reading) in enumerate(zip(documents, readings, strict=True)):
            if (page := document.candidate) is not None:
                category = CATEGORIES.index(page.category)
                self._numbers[index] = inputs_of(page, category, *reading)
                self._column[index] = KINDS * category + 2 * page.ideographic + (page.length > LONG_TEXT)
        self._hinted = self._column >= 0
        self._harmful = np.array([document.is_harmful for document in documents])
        self._harmless = np.array([document.label == HARMLESS for document in documents])
        self._origin = np.array([document.origin for document in documents])
        self._reported = np.array([document.half == "report" for document in documents])
        learned = np.array([learned_from(document) for document in documents])
        mails = np.isin(self._origin, MAILS) & ~self._harmless
        labelled = self._harmful | self._harmless
        self._fitted = learned & self._hinted & labelled & ~mails & ~np.isin(self._origin, NEW_GENRES)
        self.odds = np.full(len(documents), FAR)

    def fit(self) -> Calibration:
        """Returns the calibration."""
        counts = np.zeros(len(self.odds))
        for name in np.unique(self._origin[self._fitted]):
            those = self._fitted & (self._origin == name)
            counts[those] = min(LARGEST_COUNT, MOST_OF_A_SET / those.sum())
        trees = fit_trees(self._numbers[self._fitted], self._harmful[self._fitted], counts[self._fitted])
        for index in np.flatnonzero(self._hinted):
            self.odds[index] = trees.sum_of(self._numbers[index].tolist())
        knots = np.array([self.knots(most) for most in MOST_BLOCKED])
        knots[0] = np.minimum(knots[0], knots[1] - SMALLEST_GAP)  # `standard` is as it was chosen
        knots[2] = np.maximum(knots[2], knots[1] + SMALLEST_GAP)
        return Calibration(CATEGORIES, trees, knots)

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
