"""The weights of the text model: logistic regressions over windows, terms weighed by rarity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression

from gatewayfilter.classify.models.text_model import BITS, of_windows
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from scripts.training.inputs import CATEGORIES, LICENSED, SPAM, WRITTEN
from scripts.training.reading import Document, Part

INVERSE_PENALTY = 2.0
COMMON = 0.0025
"""Share of the windows at which a term counts half: what stands everywhere tells little."""
LICENSED_COUNTS = 0.2
"""What a window of the real sets counts to one of the samples: they are harmless nearly all, and of few sources."""
WRITTEN_COUNTS = 1.5
"""What a window of the texts of many genres counts: described sites come in seven forms each, these in one."""
MOST_WINDOWS = 3
"""Of a text, chosen by chance: long ones would outweigh all others."""
LEAST_SOURCES = 2
"""Sources in which a term stands before anything is learned of it."""
SEED = 5
_WHOLE = 255.0


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of all categories together and of each, by which texts are read.

    Attributes:
        weights: float32[1 + categories, 2 ** BITS] by place.
        rarity: uint8[2 ** BITS] by place.
        bias: float64[1 + categories].
    """

    weights: NDArray[np.float32]
    rarity: NDArray[np.uint8]
    bias: NDArray[np.float64]

    def read(self, parts: Sequence[Part], category: str) -> Reading:
        """Returns the reading of the most harmful part, as `TextModel.read_parts` does."""
        rows = [0, 1 + CATEGORIES.index(category)]
        return max((self._read(part, rows) for part in parts), key=lambda reading: reading.total, default=NOTHING_READ)

    def _read(self, part: Part, rows: list[int]) -> Reading:
        if not part:
            return NOTHING_READ
        windows = np.array([self._logits(window, rows) for window in part]).T + self.bias[rows][:, None]
        together = self._logits(part[0] if len(part) == 1 else np.unique(np.concatenate(part)), rows) + self.bias[rows]
        by_all, own = (of_windows(logits) for logits in windows)
        return Reading(*by_all, float(together[0]), *own, float(together[1]))

    def _logits(self, places: NDArray[np.uint32], rows: list[int]) -> NDArray[np.float64]:
        rarity = self.rarity[places] / _WHOLE
        sums = np.array([self.weights[row, places].sum() for row in rows], np.float64)
        return sums / max(float(np.sqrt(rarity @ rarity)), 1e-4)


def harmful_for_weights(document: Document) -> bool:
    """Returns whether a text counts as harmful when weights are learned."""
    return document.is_harmful or (document.origin == "en_spamassassin" and document.label in SPAM)


def fit(documents: Sequence[Document]) -> Weights:
    """Learns the weights. The same documents give the same weights on the same versions of the libraries."""
    rows, owner = _windows(documents)
    matrix = _matrix(rows)
    harmful = np.array([harmful_for_weights(document) for document in documents])[owner]
    language = np.array([document.language for document in documents])[owner]
    label = np.array([document.label if document.origin not in LICENSED else "" for document in documents])[owner]
    counts = np.array([_counts(document) for document in documents])[owner]
    sources = np.unique([document.source for document in documents], return_inverse=True)[1][owner]
    seen = csr_matrix((np.ones(len(sources), np.float32), (sources, np.arange(len(sources))))) @ matrix
    columns = np.flatnonzero(np.asarray((seen > 0).sum(axis=0)).ravel() >= LEAST_SOURCES)
    known = matrix[:, columns].tocsr()
    alike = _balanced(counts, language, harmful)
    share = np.asarray(known.multiply(alike[:, None]).sum(axis=0)).ravel() / alike.sum()
    rarity = np.maximum(1, np.rint(COMMON / (COMMON + share) * _WHOLE))
    weighed = known @ diags(rarity / _WHOLE)
    lengths = np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel())
    rows_of_one = (diags(1 / np.maximum(lengths, 1e-4)) @ weighed).tocsr()
    weights = np.zeros((1 + len(CATEGORIES), 1 << BITS), np.float32)
    bias = np.zeros(len(weights))
    model = LogisticRegression(C=INVERSE_PENALTY, tol=1e-5, max_iter=400, warm_start=True)
    of_all = model.fit(rows_of_one, harmful, sample_weight=alike).coef_, model.intercept_
    for row, category in enumerate(("", *CATEGORIES)):
        if category:  # the weights of all are a start that is near
            chosen = ~harmful | (label == category)
            told = harmful[chosen]
            model.coef_, model.intercept_ = of_all
            model.fit(rows_of_one[chosen], told, sample_weight=_balanced(counts[chosen], language[chosen], told))
        weights[row, columns] = model.coef_[0] * rarity / _WHOLE
        bias[row] = model.intercept_[0]
    rare = np.zeros(1 << BITS, np.uint8)
    rare[columns] = rarity.astype(np.uint8)
    return Weights(weights, rare, bias)


def _windows(documents: Sequence[Document]) -> tuple[list[NDArray[np.uint32]], NDArray[np.intp]]:
    """Returns the windows that are learned from, and the number of the document of each."""
    chance = np.random.default_rng(SEED)
    rows: list[NDArray[np.uint32]] = []
    owners: list[int] = []
    for index, document in enumerate(documents):
        part = document.parts[0] if document.parts else []
        chosen = range(len(part)) if len(part) <= MOST_WINDOWS else sorted(chance.choice(len(part), MOST_WINDOWS, replace=False))
        rows += [part[number] for number in chosen]
        owners += [index] * len(chosen)
    return rows, np.array(owners)


def _balanced(counts: NDArray[np.float64], language: NDArray[np.str_], harmful: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns what windows count, made so that each language is half harmful, and all languages alike."""
    counts = counts.copy()
    for tongue in np.unique(language):
        for kind in (False, True):
            those = (language == tongue) & (harmful == kind)
            counts[those] *= len(counts) / (4 * counts[those].sum())
    return counts


def _counts(document: Document) -> float:
    if document.origin in LICENSED and not harmful_for_weights(document):
        return LICENSED_COUNTS
    return WRITTEN_COUNTS if document.origin.startswith(WRITTEN) else 1.0


def _matrix(rows: Sequence[NDArray[np.uint32]]) -> csr_matrix:
    lengths = [len(row) for row in rows]
    places = np.concatenate(rows).astype(np.int32)
    return csr_matrix(
        (np.ones(len(places), np.float32), places, np.concatenate(([0], np.cumsum(lengths)))), (len(rows), 1 << BITS)
    )
