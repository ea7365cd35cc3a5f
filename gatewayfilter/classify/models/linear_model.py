"""A second opinion: logistic regression over hashed character n-grams.

It needs no word segmenter, so one model reads Chinese and English alike. Weights are plain numbers in an `.npz` file: what is
loaded is bounded and checked, and never unpickled.

Deviation: no tf-idf. Hashed and normalised counts came within .01 AUC of it (docs/classification.md) and need no vocabulary.
"""

import io
import os
import tempfile
from dataclasses import dataclass
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.model_file import load_model
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.errors import ClassifyError

MODEL_FILE = "model.npz"
"""Its name in the folder of the operator's words."""
BITS = 18
"""Weights: 2 ** BITS, 1 MB; with 2 ** 20 the area under the curve was the same."""
SIZES = (1, 2, 3, 4)
"""Lengths of the n-grams."""
MAX_CHARACTERS = 4000
"""Of a page; more costs time and changes no verdict."""
_MAX_FILE = 8_000_000
_VERSION = 1
_MULTIPLIER = np.uint32(0x9E3779B1)
_FINISH = np.uint32(0x85EBCA6B)


@dataclass(frozen=True, slots=True)
class Features:
    """One text: `indices` uint32[k], ascending and different, and `values` float32[k], of length 1 together."""

    indices: NDArray[np.uint32]
    values: NDArray[np.float32]


def features(text: str) -> Features:
    """Returns the n-grams of a text in its normal view. Linear in its length, of which `MAX_CHARACTERS` are read."""
    codes = np.frombuffer(text[:MAX_CHARACTERS].encode("utf-32-le", "replace"), dtype="<u4").astype(np.uint32)
    grams: list[NDArray[np.uint32]] = []
    rolling = np.zeros(len(codes), dtype=np.uint32)
    for size in SIZES:
        if len(codes) < size:
            break
        rolling = rolling[: len(codes) - size + 1] * _MULTIPLIER + codes[size - 1 :] + np.uint32(size)
        grams.append(((rolling ^ (rolling >> np.uint32(15))) * _FINISH) >> np.uint32(32 - BITS))
    if not grams:
        return Features(np.zeros(0, np.uint32), np.zeros(0, np.float32))
    indices, counts = np.unique(np.concatenate(grams), return_counts=True)
    values = np.sqrt(counts).astype(np.float32)
    return Features(indices, values / np.float32(np.linalg.norm(values)))


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A trained model.

    Attributes:
        weights: float32[2 ** BITS]; `bias` belongs to them.
        examples: how many texts it was trained on, `harmful` of them harmful.
        auc: area under the ROC curve by cross-validation: how well it separates texts that it was not trained on.
        trained_at: Unix seconds.
    """

    weights: NDArray[np.float32]
    bias: float
    examples: int
    harmful: int
    auc: float
    trained_at: float

    def logit(self, text: str) -> float:
        """Returns the log-odds that a text, in its normal view, is harmful; 0.0 is undecided. Some 0.5 ms for a long text."""
        found = features(text)
        return float(self.weights[found.indices] @ found.values) + self.bias

    def probability(self, text: str) -> float:
        """Returns the probability that a text as people write it is harmful, 0 to 1."""
        return 1.0 / (1.0 + exp(-min(max(self.logit(normal_view(text)), -30.0), 30.0)))

    def save(self, path: Path) -> None:
        """Writes the model whole and renames it into place.

        Raises:
            ClassifyError: it cannot be written.
        """
        content = io.BytesIO()
        numbers = np.array([_VERSION, BITS, self.bias, self.examples, self.harmful, self.auc, self.trained_at])
        np.savez_compressed(content, weights=self.weights, numbers=numbers)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as aside:
                aside.write(content.getvalue())
                aside.flush()
                os.fsync(aside.fileno())
            Path(aside.name).replace(path)
        except OSError as error:
            raise ClassifyError(f"cannot write the model {path}: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path) -> "LinearModel | None":
        """Reads a model, `None` where there is none.

        Raises:
            ClassifyError: the file is no such model.
        """
        advice = ": train it anew, or `gatewayfilter learn off`"
        return load_model(path, _MAX_FILE, lambda arrays: cls._checked(arrays["weights"], arrays["numbers"]), advice)

    @classmethod
    def _checked(cls, weights: NDArray[np.float32], numbers: NDArray[np.float64]) -> "LinearModel":
        if numbers.shape != (7,) or numbers.dtype != np.float64 or not np.isfinite(numbers).all():
            raise ValueError("its numbers are damaged")
        version, bits, bias, examples, harmful, auc, trained_at = map(float, numbers)
        if (version, bits) != (_VERSION, BITS):
            raise ValueError("it is of another version")
        if weights.shape != (1 << BITS,) or weights.dtype != np.float32 or not np.isfinite(weights).all():
            raise ValueError("its weights are damaged")
        return cls(weights, bias, int(examples), int(harmful), auc, trained_at)
