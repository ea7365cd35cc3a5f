"""Knots that hold for pages nobody has seen: all chosen at once, by prices, with harmful pages spread around where they lie.

The lowest page of a set is no limit for others like it. So each harmful page counts as a normal curve around its log-odds, and a
knot goes below the lowest as far as the harmless groups have room; these have margins instead (bounds.py). A price for each
group and a worth for each set, within the worth of a page that is missing to its aim and of one beyond it, make each knot a
choice by itself. Prices and worths move until all bounds are kept, and the mean of the last choices is taken: the choice of no
single page.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scripts.training.knots import BEYOND, STEP, WANTED, Aim, Table, grid

ROUNDS = 2_000
"""Of which the second half counts."""
PRICE_PACE, WORTH_PACE = 0.5, 5.0
_WIDEST = 4.0
"""Widths up to which a curve is counted."""
_LEAST = 0.5
_HIGH_KNOT = 1e-7


def spread(table: Table, width: float) -> Table:
    """Returns a table of pages each of which lies around its place, in a normal curve of this width."""
    reach = round(_WIDEST * width / STEP)
    curve = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) * STEP / max(width, STEP)))
    wide = np.pad(table, ((0, 0), (reach, reach)), mode="edge")
    return np.array([np.convolve(kind, curve / curve.sum(), "valid") for kind in wide])


def steady_knots(harmless: Mapping[str, Table], most: Mapping[str, float], aims: Mapping[str, Aim]) -> NDArray[np.float64]:
    """Returns a knot for each kind of page.

    Args:
        harmless: group → number of its pages that are blocked.
        most: group → number that may be; of a group of which none may be, none is.
        aims: the sets of harmful pages.
    """
    priced = [group for group in harmless if most[group] > 0]
    bounds = np.array([max(most[group], _LEAST) for group in priced])
    found = np.array([aim.found for aim in aims.values()])
    blocked = np.zeros((len(priced), *found.shape[1:]))
    for row, group in enumerate(priced):
        blocked[row] = harmless[group] / bounds[row]
    shares, counts = np.array([[aim.share, aim.counts] for aim in aims.values()]).T
    steps, kinds = grid(), np.arange(found.shape[1])
    walls = sum((harmless[group] > 0 for group in harmless if most[group] <= 0), np.zeros(found.shape[1:], np.bool_))
    allowed = np.where(walls, -np.inf, np.arange(len(steps)) * _HIGH_KNOT)
    prices, worth = np.full(len(priced), BEYOND), counts * (BEYOND + WANTED / 2)
    mean = np.zeros(len(kinds))
    for number in range(ROUNDS):
        gain = np.tensordot(worth, found, 1) - np.tensordot(prices, blocked, 1) + allowed
        chosen = len(steps) - 1 - np.argmax(gain[:, ::-1], axis=1)
        pace = 1 / np.sqrt(1 + number)
        over = blocked[:, kinds, chosen].sum(axis=1) - 1
        prices = np.maximum(0.0, prices + PRICE_PACE * pace * over)
        short = shares - found[:, kinds, chosen].sum(axis=1)
        worth = np.clip(worth + WORTH_PACE * pace * counts * short, BEYOND * counts, (BEYOND + WANTED) * counts)
        if number >= ROUNDS // 2:
            mean += steps[chosen] / (ROUNDS - ROUNDS // 2)
    return mean
