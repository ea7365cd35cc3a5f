"""Knots chosen by prices, with harmful pages spread."""

import numpy as np
import pytest
from numpy.typing import NDArray

from scripts.training.knots import Aim, Table, grid, table
from scripts.training.steady_knots import spread, steady_knots


def pages(*odds: float, kinds: tuple[int, ...] | None = None, count: float = 1.0, number: int = 1) -> Table:
    places = np.array(kinds or (0,) * len(odds), np.intp)
    return table(np.array(odds), places, np.full(len(odds), count), number)


def blocked(of: Table, knots: NDArray[np.float64]) -> float:
    return sum(float(np.interp(knot, grid(), row)) for knot, row in zip(knots, of, strict=True))


def test_a_spread_page_counts_half_where_it_lies_and_little_far_away() -> None:
    wide = spread(pages(1.0), 0.5)[0]
    at = {round(float(knot), 1): float(share) for knot, share in zip(grid(), wide, strict=True)}
    assert at[1.0] == pytest.approx(0.5, abs=0.05)
    assert at[-1.0] > 0.99
    assert at[3.0] < 0.01
    assert (np.diff(wide) <= 1e-12).all()


def test_a_knot_goes_below_the_lowest_page_where_there_is_room() -> None:
    found = pages(2.0, 3.0, count=0.5)
    fine = pages(-3.0)
    near, far = (
        steady_knots({"general": fine}, {"general": 0.0}, {"drugs": Aim(spread(found, width), 1.0, 1.0)})[0]
        for width in (0.1, 1.0)
    )
    assert -3.0 < far < near <= 2.0


def test_no_page_of_a_group_without_room_is_blocked() -> None:
    fine = pages(1.0, 0.0, kinds=(0, 1), number=2)
    found = spread(pages(*[0.0] * 9, *[2.0] * 9, kinds=(0,) * 9 + (1,) * 9, count=1 / 18, number=2), 0.6)
    knots = steady_knots({"html": fine}, {"html": 0.0}, {"drugs": Aim(found, 1.0, 9.0)})
    assert knots[0] > 1.0
    assert 0.0 < knots[1] < 2.0


def test_a_bound_is_kept_and_used_where_it_finds_most() -> None:
    chance = np.random.default_rng(7)
    kinds = tuple(chance.integers(0, 3, 900).tolist())
    fine = pages(*chance.normal(-1.0, 1.0, 900).tolist(), kinds=kinds, number=3)
    found = spread(pages(*chance.normal(1.0, 1.0, 900).tolist(), kinds=kinds, count=1 / 900, number=3), 0.5)
    knots = steady_knots({"near": fine}, {"near": 27.0}, {"drugs": Aim(found, 1.0, 1.0)})
    assert blocked(fine, knots) == pytest.approx(27.0, rel=0.1)
    assert blocked(found, knots) > 0.5
    assert (steady_knots({"near": fine}, {"near": 27.0}, {"drugs": Aim(found, 1.0, 1.0)}) == knots).all()
    wider = steady_knots({"near": fine}, {"near": 54.0}, {"drugs": Aim(found, 1.0, 1.0)})
    assert (wider <= knots).all()
