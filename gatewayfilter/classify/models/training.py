"""Trains the linear model on pages that people have decided: logistic regression with L2, by L-BFGS over sparse rows."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.linear_model import BITS, MAX_CHARACTERS, LinearModel, features
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.errors import ClassifyError

LEAST_OF_EACH = 20
"""Harmful and harmless examples below which nothing is trained: their cross-validation would be chance."""
MAX_EXAMPLES = 50_000
FOLDS = 5
_STEPS = 60
_MEMORY = 8
_HALVINGS = 20
"""Lengths of a step that are tried."""
_MAX_LOG_ODDS = 30.0
_PENALTY = 1.0
"""L2, for the sum of the losses; from 0.3 to 3 the area under the curve changed by less than .01."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text and whether people found it harmful."""

    text: str
    harmful: bool


def read_examples(lines: Iterable[str], name: str) -> list[Example]:
    """Reads JSON lines `{"text": …, "label": …}`; a label is a category, `""` for harmless. At most `MAX_EXAMPLES`.

    Raises:
        ClassifyError: a line is none; the sentence names `name` and line.
    """
    found: list[Example] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            text, label = document["text"], document["label"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ClassifyError(f'{name}:{number}: no JSON object with "text" and "label"') from error
        if not isinstance(text, str) or not isinstance(label, str | bool):
            raise ClassifyError(f'{name}:{number}: "text" must be text, and "label" a category ("" for harmless)')
        if text.strip() and len(found) < MAX_EXAMPLES:
            found.append(Example(text, bool(label)))
    return found


def train(examples: Iterable[Example], trained_at: float) -> LinearModel:
    """Trains on all examples and measures by `FOLDS`-fold cross-validation. Texts that stand there twice count once.

    Some 20 s of CPU time for 5,000 short texts.

    Raises:
        ClassifyError: there are too few harmful or harmless ones.
    """
    known, labels = _known(examples)
    rows = _Rows.of(known)
    order = np.random.default_rng(7).permutation(len(known))
    harmful, harmless = order[labels[order] == 1], order[labels[order] == 0]
    areas = []
    for start in range(FOLDS):
        fold = np.concatenate((harmful[start::FOLDS], harmless[start::FOLDS]))
        rest = np.setdiff1d(order, fold)
        weights, bias = _fit(rows.take(rest), labels[rest])
        areas.append(area_under_curve(rows.take(fold).score(weights) + bias, labels[fold]))
    return _model(rows, labels, float(np.mean(areas)), trained_at)


def fit(examples: Iterable[Example]) -> LinearModel:
    """Trains as `train` does without measuring: `auc` is 0.5. For measurements on texts kept apart.

    Raises:
        ClassifyError: there are too few harmful or harmless ones.
    """
    known, labels = _known(examples)
    return _model(_Rows.of(known), labels, 0.5, 0.0)


def _known(examples: Iterable[Example]) -> tuple[list[str], NDArray[np.float64]]:
    known = {normal_view(example.text[:MAX_CHARACTERS]): example.harmful for example in examples}
    labels = np.fromiter(known.values(), dtype=np.float64, count=len(known))
    harmful = int(labels.sum())
    if min(harmful, len(known) - harmful) < LEAST_OF_EACH:
        raise ClassifyError(
            f"training needs at least {LEAST_OF_EACH} harmful and {LEAST_OF_EACH} harmless pages; "
            f"there are {harmful} and {len(known) - harmful}"
        )
    return list(known), labels


def _model(rows: "_Rows", labels: NDArray[np.float64], auc: float, trained_at: float) -> LinearModel:
    weights, bias = _fit(rows, labels)
    return LinearModel(weights.astype(np.float32), float(bias), len(labels), int(labels.sum()), auc, trained_at)


def area_under_curve(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    """Returns the chance that a harmful text scores above a harmless one; equal scores count half."""
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    del values
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    positive = labels == 1
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(labels) - count)))


class _Rows:
    """Sparse rows: `indices` and `values` one after another, row r from `starts[r]` on."""

    def __init__(self, indices: NDArray[np.uint32], values: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        self.indices, self.values, self.lengths = indices, values, lengths
        self.owners = np.repeat(np.arange(len(lengths)), lengths)

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Rows":
        found = [features(text) for text in texts]
        lengths = np.array([len(row.indices) for row in found])
        return cls(np.concatenate([row.indices for row in found]), np.concatenate([row.values for row in found]), lengths)

    def take(self, chosen: NDArray[np.int64]) -> "_Rows":
        starts = np.concatenate(([0], np.cumsum(self.lengths)))
        places = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in chosen])
        return _Rows(self.indices[places], self.values[places], self.lengths[chosen])

    def score(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the product of each row with weights by place, float64[2 ** BITS]."""
        return self.dot(weights[self.indices])

    def dot(self, chosen: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the product of each row with one weight for each of its entries."""
        return np.bincount(self.owners, weights=chosen * self.values, minlength=len(self.lengths))

    def back(self, residuals: NDArray[np.float64], compact: NDArray[np.int64], size: int) -> NDArray[np.float64]:
        """Returns the transposed product, by compact place."""
        return np.bincount(compact, weights=residuals[self.owners] * self.values, minlength=size)


def _fit(rows: _Rows, labels: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Minimises the balanced logistic loss; the last coordinate is the bias, without a penalty."""
    count = len(labels)
    # Of the 2 ** BITS places a text uses a few thousand: only those that occur take part.
    places, compact = np.unique(rows.indices, return_inverse=True)
    share = labels.mean()
    balance = np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = rows.dot(point[compact]) + point[-1]
        wrong = np.logaddexp(0.0, np.where(labels == 1, -logits, logits))
        residuals = balance * (1.0 / (1.0 + np.exp(-np.clip(logits, -_MAX_LOG_ODDS, _MAX_LOG_ODDS))) - labels)
        gradient = np.append(rows.back(residuals, compact, len(places)) + _PENALTY * point[:-1] * 0.1, residuals.sum())
        return float((balance * wrong).sum() + 0.05 * _PENALTY * (point[:-1] ** 2).sum()), gradient

    point = np.zeros(len(places) + 1)
    value, gradient = loss(point)
    pairs: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    for _ in range(_STEPS):
        direction = _direction(gradient, pairs)
        slope = float(gradient @ direction)
        step = 1.0 if pairs else 1.0 / max(float(np.linalg.norm(gradient)), 1e-9)
        for _ in range(_HALVINGS):
            moved = point + step * direction
            new_value, new_gradient = loss(moved)
            if new_value <= value + 1e-4 * step * slope:
                break
            step /= 2
        else:
            break
        pairs = [*pairs[1 - _MEMORY :], (moved - point, new_gradient - gradient)]
        settled = value - new_value < 1e-4 * count
        point, value, gradient = moved, new_value, new_gradient
        if settled:
            break
    weights = np.zeros(1 << BITS)
    weights[places] = point[:-1]
    return weights, float(point[-1])


def _direction(
    gradient: NDArray[np.float64], pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> NDArray[np.float64]:
    """The two loops of L-BFGS: minus the inverse Hessian, as the last steps tell of it, times the gradient."""
    direction = -gradient
    scaled: list[tuple[NDArray[np.float64], NDArray[np.float64], float]] = []
    for moved, turned in reversed(pairs):
        scale = float(moved @ direction) / float(moved @ turned)
        scaled.append((moved, turned, scale))
        direction = direction - scale * turned
    if pairs:
        moved, turned = pairs[-1]
        direction = direction * (float(moved @ turned) / float(turned @ turned))
    for moved, turned, scale in reversed(scaled):
        direction = direction + (scale - float(turned @ direction) / float(moved @ turned)) * moved
    return direction
