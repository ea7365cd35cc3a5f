"""The knots of the scale of certainty: for each kind of page, the log-odds from which on a strictness blocks.

Chosen so that most harmful pages are found while no group of harmless pages has more blocked than it may. Prices for each group
give a start (with given prices each knot can be chosen by itself); then single knots move as long as that finds more, again and
again from the best choice with a few knots raised by chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LOWEST, HIGHEST, STEP = -5.0, 9.0, 0.1
ROUNDS = 400
WANTED = 3.0
"""What a page counts that is missing to a set's aim, to one beyond it (`BEYOND`)."""
BEYOND = 0.3
KICKS = 150
"""How often some knots are raised by chance, `KICKED` of them, each by up to `HIGHEST_KICK` steps."""
KICKED = 3
HIGHEST_KICK = 24
SEED = 5
_HIGH_KNOT = 1e-4
_SAME = 1e-9

type Table = NDArray[np.float64]
"""float64[kinds, steps]: what is blocked of a kind from a knot on."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A set of harmful pages.

    Attributes:
        found: share of the set.
        share: that should be found.
        counts: to the other sets.
    """

    found: Table
    share: float
    counts: float


def grid() -> NDArray[np.float64]:
    """Returns the knots that are tried."""
    return np.arange(LOWEST, HIGHEST + _SAME, STEP)


def table(odds: NDArray[np.float64], kinds: NDArray[np.intp], counts: NDArray[np.float64], number: int) -> Table:
    """Returns what some pages add up to that are blocked from each knot on, by kind.

    Args:
        odds: of each page.
        kinds: of each page, -1 for pages that are never blocked.
        counts: of each page.
        number: of kinds.
    """
    steps = grid()
    blocked = np.zeros((number, len(steps)))
    for kind in range(number):
        those = kinds == kind
        above = np.searchsorted(steps, odds[those], side="right")
        blocked[kind] = np.cumsum(np.bincount(above, counts[those], len(steps) + 1)[::-1])[::-1][1:]
    return blocked


class KnotSearch:
    """Chooses a knot for each kind of page.

    Args:
        harmless: group → number of its pages that are blocked.
        most: group → number that may be.
        aims: the sets of harmful pages.
    """

    def __init__(self, harmless: Mapping[str, Table], most: Mapping[str, float], aims: Mapping[str, Aim]) -> None:
        self._harmless = harmless
        self._most = most
        self._aims = aims
        self._kinds = np.arange(len(next(iter(harmless.values()))))

    def knots(self) -> NDArray[np.float64]:
        """Returns the knots."""
        best = self._moved(self._by_prices())
        chance = np.random.default_rng(SEED)
        for _ in range(KICKS):
            other = best.copy()
            raised = chance.choice(len(best), min(KICKED, len(best)), replace=False)
            other[raised] += chance.integers(1, HIGHEST_KICK + 1, len(raised))
            other = self._moved(np.minimum(other, len(grid()) - 1))
            if self._missing(other) < self._missing(best) - _SAME:
                best = other
        return grid()[best]

    def _total(self, blocked: Table, chosen: NDArray[np.intp]) -> float:
        return float(blocked[self._kinds, chosen].sum())

    def _allowed(self, chosen: NDArray[np.intp]) -> bool:
        return all(self._total(blocked, chosen) <= self._most[group] + _SAME for group, blocked in self._harmless.items())

    def _missing(self, chosen: NDArray[np.intp]) -> float:
        found = np.array([[self._total(aim.found, chosen)] for aim in self._aims.values()])
        return float(self._left(found)[0])

    def _by_prices(self) -> NDArray[np.intp]:
        """Returns the best choice met while the prices of false blocks and of missed pages are moved towards their bounds."""
        high = grid() * _HIGH_KNOT
        prices = dict.fromkeys(self._harmless, 1.0)
        worth = {name: aim.counts for name, aim in self._aims.items()}
        best = np.full(len(self._kinds), len(high) - 1)
        for number in range(ROUNDS):
            gain = sum(worth[name] * aim.found for name, aim in self._aims.items()) + high
            for group, blocked in self._harmless.items():
                gain = gain - prices[group] * blocked / max(self._most[group], 0.5)
            chosen = len(high) - 1 - np.argmax(gain[:, ::-1], axis=1)
            if self._allowed(chosen) and self._missing(chosen) < self._missing(best):
                best = chosen
            pace = 0.3 / (1 + number / 40)
            for group, blocked in self._harmless.items():
                over = np.log((self._total(blocked, chosen) + 0.3) / (self._most[group] + 0.3))
                prices[group] = float(np.clip(prices[group] * np.exp(pace * np.clip(over, -1, 1)), 1e-3, 100))
            for name, aim in self._aims.items():
                short = np.clip((aim.share - self._total(aim.found, chosen)) * 4, -0.2, 1)
                worth[name] = float(np.clip(worth[name] * np.exp(pace * short), 0.2 * aim.counts, 10 * aim.counts))
        return best

    def _moved(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Returns a choice in which no single knot can be moved so that more is found."""
        harmless = np.array(list(self._harmless.values()))
        found = np.array([aim.found for aim in self._aims.values()])
        most = np.array([[self._most[group]] for group in self._harmless])
        chosen, missing, moving = chosen.copy(), self._missing(chosen), True
        while moving:
            moving = False
            for kind in self._kinds:
                others = self._kinds[self._kinds != kind]
                blocked = harmless[:, others, chosen[others]].sum(axis=1)[:, None] + harmless[:, kind]
                left = self._left(found[:, others, chosen[others]].sum(axis=1)[:, None] + found[:, kind])
                left[(blocked > most + _SAME).any(axis=0)] = np.inf
                step = int(left.argmin())
                if left[step] < missing - _SAME:
                    chosen[kind], missing, moving = step, float(left[step]), True
        return chosen

    def _left(self, found: Table) -> NDArray[np.float64]:
        """Returns what is missing at each step, for the shares found of each set."""
        shares, counts = np.array([[aim.share, aim.counts] for aim in self._aims.values()]).T[:, :, None]
        return np.asarray((counts * (WANTED * np.maximum(0.0, shares - found) + BEYOND * (1 - found))).sum(axis=0))
