"""The trees of the calibration: gradient boosting, made into the complete trees that the program evaluates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from gatewayfilter.classify.models.calibration import INPUTS
from gatewayfilter.classify.models.decision_trees import DEPTH, INNER, LEAVES, DecisionTrees

TREES = 200
PACE = 0.06
MOST_LEAVES = 8
LEAST_OF_A_LEAF = 60
PENALTY = 5.0
RATIO_COUNTS = 1.0
"""What the logarithm of the score, as a share of the limit, counts beside the grown trees: few described sites come to the
scores of real ones, so that the grown trees hardly tell one limit from ten."""
HIGHEST_RATIO = 4.8
STAIRS = 2
"""Trees that make the stairs of the ratio."""


def fit_trees(numbers: NDArray[np.float32], harmful: NDArray[np.bool_], counts: NDArray[np.float64]) -> DecisionTrees:
    """Returns trees fitted to pages, one a row of numbers in the order of `INPUTS`."""
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=PACE,
        max_depth=DEPTH,
        max_leaf_nodes=MOST_LEAVES,
        min_samples_leaf=LEAST_OF_A_LEAF,
        l2_regularization=PENALTY,
        monotonic_cst=list(INPUTS.values()),
        early_stopping=False,
        random_state=0,
    )
    model.fit(numbers, harmful, sample_weight=counts)
    grown = [trees[0].nodes for trees in model._predictors]  # noqa: SLF001  no public name for it
    inputs = np.zeros((len(grown), INNER), np.int16)
    limits = np.full((len(grown), INNER), np.inf, np.float32)
    leaves = np.zeros((len(grown), LEAVES), np.float32)
    for tree, nodes in enumerate(grown):
        _lay_out(nodes, 0, 0, inputs[tree], limits[tree], leaves[tree])
    start = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001
    stairs = _stairs()
    return DecisionTrees(
        start,
        np.concatenate((inputs, np.full((STAIRS, INNER), list(INPUTS).index("ratio"), np.int16))),
        np.concatenate((limits, stairs[:, _in_order()])),
        np.concatenate((leaves, np.tile(_height() * np.arange(LEAVES, dtype=np.float32), (STAIRS, 1)))),
    )


def _height() -> np.float32:
    return np.float32(RATIO_COUNTS * HIGHEST_RATIO / (LEAVES * STAIRS))


def _stairs() -> NDArray[np.float32]:
    """Returns the limits of each tree of the stairs, ascending: those of the second lie between those of the first."""
    steps = np.linspace(0, HIGHEST_RATIO, LEAVES * STAIRS, endpoint=False, dtype=np.float32)[1:]
    return np.array([steps[tree::STAIRS][:INNER] for tree in range(STAIRS)])


def _in_order() -> NDArray[np.intp]:
    """Returns for each node of a complete tree how many nodes lie left of it."""
    places = np.arange(1, INNER + 1)
    depth = np.floor(np.log2(places)).astype(np.intp)
    width = LEAVES >> depth
    return (places - (1 << depth)) * width + width // 2 - 1


def _lay_out(
    nodes: Any, grown: int, place: int, inputs: NDArray[np.int16], limits: NDArray[np.float32], leaves: NDArray[np.float32]
) -> None:
    """Puts a grown node and all below it into its place; an early leaf into the first leaf below its place."""
    node = nodes[grown]
    if place >= INNER:
        leaves[place - INNER] = node["value"]
    elif node["is_leaf"]:
        _lay_out(nodes, grown, 2 * place + 1, inputs, limits, leaves)
    else:
        inputs[place], limits[place] = node["feature_idx"], node["num_threshold"]
        _lay_out(nodes, node["left"], 2 * place + 1, inputs, limits, leaves)
        _lay_out(nodes, node["right"], 2 * place + 2, inputs, limits, leaves)
