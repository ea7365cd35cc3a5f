"""Small models of texts, and the calibration that goes with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gatewayfilter.classify.models.calibration import (
    INPUTS,
    KINDS,
    Calibration,
)
from gatewayfilter.classify.models.decision_trees import INNER, LEAVES, DecisionTrees
from gatewayfilter.classify.models.text_model import (
    BITS,
    TEXT_MODEL_FILE,
    TextModel,
    packed,
    save,
    terms_of,
)

BUNDLED = Path(__file__).parents[3] / "lists" / "words"
NAMES = ("gambling", "drugs")
STEPS = np.arange(-6.0, 6.0, 0.1)


def trees(**changed: Any) -> DecisionTrees:
    """Returns trees whose sum is the mean reading, in steps of 0.1."""
    inputs = np.full((len(STEPS), INNER), list(INPUTS).index("mean"), np.int16)
    limits = np.full((len(STEPS), INNER), np.inf, np.float32)
    limits[:, 0] = STEPS
    leaves = np.zeros((len(STEPS), LEAVES), np.float32)
    leaves[:, LEAVES // 2] = 0.1
    return replace(DecisionTrees(-6.0, inputs, limits, leaves), **changed)


def calibration(**changed: Any) -> Calibration:
    """Returns one in which the mean reading alone counts, with knots at 0, 1 and 2."""
    knots = np.repeat([[0.0], [1.0], [2.0]], KINDS * len(NAMES), axis=1)
    return replace(Calibration(NAMES, trees(), knots, knots[2] + 1.0), **changed)


def made(folder: Path, bias: float = 0.0, **words: float) -> TextModel:
    """Writes and returns a model in which some words say that a text is harmful, or harmless if below zero.

    They say half as much of the first category, and nothing of the second.
    """
    weights = np.zeros((1 + len(NAMES), 1 << BITS))
    rarity = np.zeros(1 << BITS, np.uint8)
    for word, weight in words.items():
        weights[0, terms_of(word).places[0]] = weight
        weights[1, terms_of(word).places[0]] = weight / 2
        rarity[terms_of(word).places[0]] = 255
    save(packed(weights, rarity, np.array([bias, bias / 2, 0.0]), calibration()), folder / TEXT_MODEL_FILE)
    model = TextModel.load(folder / TEXT_MODEL_FILE)
    assert model is not None
    return model
