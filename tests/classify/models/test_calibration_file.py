"""What a model file says of trees and knots: each way in which they may be damaged, and what is right at the very edge."""

from typing import Any

import numpy as np
import pytest

from gatewayfilter.classify.models.calibration import INPUTS, KINDS, Calibration, Candidate, inputs_of
from gatewayfilter.classify.models.decision_trees import INNER, LEAVES, DecisionTrees
from gatewayfilter.classify.models.text_reading import Reading
from gatewayfilter.classify.page_form import Form

TREES: dict[str, Any] = {
    "start": np.array([0.5]),
    "inputs": np.zeros((1, INNER), np.int16),
    "limits": np.zeros((1, INNER), np.float32),
    "leaves": np.zeros((1, LEAVES), np.float32),
}


def trees(count: int, **changed: Any) -> dict[str, Any]:
    return TREES | {name: np.repeat(TREES[name], count, axis=0) for name in ("inputs", "limits", "leaves")} | changed


def calibration(names: tuple[str, ...] = ("a",), **changed: Any) -> dict[str, Any]:
    knots = np.repeat([[0.0], [1.0], [2.0]], KINDS * len(names), axis=1)
    return {"categories": np.array(names), "knots": knots, "passages": knots[1], **TREES} | changed


DAMAGED_TREES: list[dict[str, Any]] = [
    {"inputs": np.full((1, INNER), 4, np.int16)}, {"inputs": np.full((1, INNER), -1, np.int16)},
    {"inputs": np.zeros((1, INNER + 1), np.int16)}, {"inputs": np.zeros((1, INNER), np.int32)},
    {"inputs": np.zeros((0, INNER), np.int16)}, {"inputs": np.array(0, np.int16)}, trees(2_001),
    {"start": np.array([0.5], np.float32)}, {"start": np.array([0.5, 0.5])}, {"start": np.array(0.5)},
    {"start": np.array([np.inf])},
    {"limits": np.zeros((1, LEAVES), np.float32)}, {"limits": np.zeros((1, INNER))},
    {"limits": np.full((1, INNER), np.nan, np.float32)}, {"limits": np.zeros((2, INNER), np.float32)},
    {"leaves": np.zeros((1, INNER), np.float32)}, {"leaves": np.zeros((1, LEAVES))},
    {"leaves": np.full((1, LEAVES), np.nan, np.float32)}, {"leaves": np.full((1, LEAVES), -np.inf, np.float32)},
]  # fmt: skip


def test_damaged_trees_are_named() -> None:
    for changed in DAMAGED_TREES:
        with pytest.raises(ValueError, match=r"^its trees are damaged$"):
            DecisionTrees.of(TREES | changed, 4)


def test_trees_at_the_edge_are_right() -> None:
    most = DecisionTrees.of(trees(2_000, inputs=np.full((2_000, INNER), 3, np.int16)), 4)
    assert (most.start, most.inputs.shape, most.leaves.shape) == (0.5, (2_000, INNER), (2_000, LEAVES))
    limits = np.full((1, INNER), np.inf, np.float32)
    leaves = np.arange(LEAVES, dtype=np.float32).reshape(1, -1)
    one = DecisionTrees.of(TREES | {"limits": limits, "leaves": leaves}, 1)
    assert one.sum_of([9.0]) == 0.5
    assert DecisionTrees.of(TREES | {"leaves": leaves}, 1).sum_of([9.0]) == 15.5
    assert DecisionTrees.of(TREES | {"leaves": leaves}, 1).sum_of([0.0]) == 0.5  # not above its limit
    assert {name: array.tolist() for name, array in one.arrays().items()} == {
        name: array.tolist() for name, array in (TREES | {"limits": limits, "leaves": leaves}).items()
    }


DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"categories": np.array([["a"]])}, "categories"), ({"categories": np.array([1])}, "categories"),
    (calibration(("a", "a")), "categories"), (calibration(tuple(map(str, range(65)))), "categories"),
    ({"categories": np.array([], "U1")}, "categories"),
    ({"knots": np.repeat([[0.0], [1.0], [2.0]], KINDS + 1, axis=1)}, "knots"),
    ({"knots": np.repeat([[0.0], [1.0]], KINDS, axis=1)}, "knots"),
    ({"knots": calibration()["knots"].astype(np.float32)}, "knots"), ({"knots": calibration()["knots"] * np.nan}, "knots"),
    ({"knots": np.repeat([[0.0], [1.0], [1.0]], KINDS, axis=1)}, "knots"),
    ({"knots": np.repeat([[0.0], [1.0], [np.inf]], KINDS, axis=1)}, "knots"),
    ({"passages": np.zeros(KINDS + 1)}, "knots"), ({"passages": np.zeros(KINDS, np.float32)}, "knots"),
    ({"passages": np.full(KINDS, np.nan)}, "knots"), ({"inputs": np.full((1, INNER), len(INPUTS), np.int16)}, "trees"),
    ({"a_start": TREES["start"]} | {f"a_{name}": TREES[name] for name in ("limits", "leaves")} | {"a_inputs":
    np.full((1, INNER), len(INPUTS), np.int16)}, "trees"),
]  # fmt: skip


def test_a_damaged_calibration_is_named() -> None:
    for changed, said in DAMAGED:
        with pytest.raises(ValueError, match=rf"^its {said} are damaged$"):
            Calibration.of(calibration() | changed)


def test_a_right_calibration_is_read_as_it_was_written() -> None:
    names = tuple(map(str, range(64)))
    assert Calibration.of(calibration(names)).categories == names
    own = {f"b_{name}": array + 1 if name == "start" else array for name, array in TREES.items()}
    found = Calibration.of(calibration(("a", "b")) | own)
    assert (list(found.own), found.own[1].start, found.trees.start) == ([1], 1.5, 0.5)
    assert found.sum_of(0, [0.0] * len(INPUTS)) == 0.5
    assert found.sum_of(1, [0.0] * len(INPUTS)) == pytest.approx(0.7 * 0.5 + 0.3 * 1.5)
    written = found.arrays()
    assert set(written) == {"categories", "knots", "passages", *TREES, *own}
    assert written["b_start"].tolist() == [1.5]
    assert written["passages"].tolist() == [1.0] * 2 * KINDS
    with pytest.raises(KeyError):
        Calibration.of(calibration() | {"a_start": TREES["start"]})


def test_what_the_trees_look_at() -> None:
    form = Form(0.1, 0.2, 0.3, 0.4)
    page = Candidate(
        "x", 1.0, 2.0, 3.0, 4.0, -5.0, 6, enough=True, verdict=False, second=7.0, length=8, ideographic=True, form=form
    )
    read = Reading(*map(float, range(8)))
    logs = np.log1p([1.0, 2.0, 3.0, 4.0]).tolist()
    found = inputs_of(page, 3, read)
    assert found == pytest.approx([*logs, -5.0, np.log1p(6), np.log1p(7.0), np.log(20), *read, 1.0, 0.0, 1.0, 3.0, *form])
    below = inputs_of(page._replace(ratio=-1.0, second=-1.0, length=21), 3, read)
    assert [below[0], below[6], below[7]] == pytest.approx([0.0, 0.0, np.log(21)])
    assert len(found) == len(INPUTS)
