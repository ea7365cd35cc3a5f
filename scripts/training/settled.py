"""The knots of `standard`, settled: chosen once more by the finished model, on pages of which its weights learned nothing.

The trainer chooses knots while it reads pages out of fold, and aims at described sites most of which the weights are learned
from. The last step has tighter bounds for real pages, sets that the trainer has no bound for, and no page that the weights know.
The kept writer's sites have no part in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify import PageClassifier
from gatewayfilter.classify.models.calibration import BLOCKED_FROM, KINDS, Calibration
from gatewayfilter.classify.models.text_model import TextModel
from gatewayfilter.classify.score_adjustment import candidate_of
from gatewayfilter.classify.signs.page_signs import sign_of
from gatewayfilter.settings import Strictness
from scripts.training.bounds import (
    FAR,
    PASSAGES_OVER,
    SETTLED_FOUND,
    SETTLED_GROUPS,
    SETTLED_MARGINS,
    SETTLED_MOST,
    SMALLEST_GAP,
    SPREAD,
    SPREADS,
)
from scripts.training.inputs import CATEGORIES, HARMLESS, LICENSED, Sample
from scripts.training.knots import Aim, table
from scripts.training.steady_knots import spread, steady_knots

_STRICT, _STANDARD, _RELAXED = (
    list(BLOCKED_FROM).index(one) for one in (Strictness.STRICT, Strictness.STANDARD, Strictness.RELAXED)
)


def unlearned(samples: Iterable[Sample]) -> list[Sample]:
    """Returns the samples of which no weights were learned."""
    return [sample for sample in samples if sample.half != "tune" and sample.origin not in LICENSED]


@dataclass(frozen=True, slots=True)
class Odds:
    """Pages as the model reads them, the product's passages and login clones aside.

    Attributes:
        samples: the pages.
        odds: log-odds of each, `FAR` where no word speaks of a category.
        column: of its knot, -1 where no word speaks.
        spared: whether neither words nor reading confirm a page, so that it is not blocked. Part of what this spares is spent:
            bounds for general texts and mail are tighter than they were without it.
        signed: whether a sign of its own blocks a page, whatever its odds; knots are chosen as if it did not.
    """

    samples: Sequence[Sample]
    odds: NDArray[np.float64]
    column: NDArray[np.intp]
    spared: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((), np.bool_))
    signed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((), np.bool_))

    @classmethod
    def read(cls, samples: Sequence[Sample], classifier: PageClassifier, model: TextModel) -> "Odds":
        """Reads pages, in some 0.6 ms each."""
        odds, column = np.full(len(samples), FAR), np.full(len(samples), -1)
        spared, signed = np.zeros((2, len(samples)), np.bool_)
        for index, sample in enumerate(samples):
            text, found, lexicon = classifier.by_words(sample.page)
            page = candidate_of(found, lexicon, CATEGORIES, text)
            if page is not None:
                read = model.read_parts if found.category else model.read
                reading = read(text.visible(), page.category)
                odds[index] = model.calibration.odds(page, reading)
                column[index] = model.calibration.column(page)
                spared[index] = not page.verdict and not reading.confirms
                signed[index] = bool(sign_of(page.category, text.visible()))
        return cls(samples, odds, column, spared, signed)

    def blocked(self, knots: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which pages are blocked from these knots on, one a column."""
        return (self.column >= 0) & (self.odds >= knots[self.column]) & ~self.spared | self.signed

    def half(self, seed: int) -> NDArray[np.bool_]:
        """Returns a half of the pages, of each site all or none, another one for each seed."""
        return np.array([crc32(f"{seed} {sample.source}".encode()) % 2 == 0 for sample in self.samples])

    def knots(self, seen: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Returns the knots of `standard`, chosen on those of the pages that are `seen`; `None` for all."""
        seen = np.full(len(self.samples), fill_value=True) if seen is None else seen
        origin = np.array([sample.origin for sample in self.samples])
        harmless = np.array([sample.label == HARMLESS for sample in self.samples])
        harmful = np.array([sample.is_harmful for sample in self.samples])
        blocked, most, aims = {}, {}, {}
        for name, sets in SETTLED_GROUPS.items():
            those = seen & harmless & np.isin(origin, sets)
            blocked[name] = self._table(those, 1.0, SETTLED_MARGINS[name])
            most[name] = SETTLED_MOST[name] * float(those.sum())
        for name, (share, counts) in SETTLED_FOUND.items():
            those = seen & harmful & (origin == name)
            found = self._table(those, 1.0 / max(int(those.sum()), 1))
            aims[name] = Aim(spread(found, SPREADS.get(name, SPREAD)), share, counts)
        return steady_knots(blocked, most, aims)

    def _table(self, those: NDArray[np.bool_], count: float, margin: float = 0.0) -> NDArray[np.float64]:
        counts = np.full(int(those.sum()), count)
        column = np.where(self.spared, -1, self.column)
        return table(self.odds[those] + margin, column[those], counts, KINDS * len(CATEGORIES))


def with_knots(calibration: Calibration, standard: NDArray[np.float64]) -> Calibration:
    """Returns a calibration with these knots of `standard`; the others, and the limits of passages, give way."""
    knots = calibration.knots.copy()
    knots[_STANDARD] = standard
    knots[_STRICT] = np.minimum(knots[_STRICT], standard - SMALLEST_GAP)
    knots[_RELAXED] = np.maximum(knots[_RELAXED], standard + SMALLEST_GAP)
    return replace(calibration, knots=knots, passages=np.maximum(calibration.passages, knots[_RELAXED] + PASSAGES_OVER))
