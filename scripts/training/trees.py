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
    return DecisionTrees(start, inputs, limits, leaves)


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
