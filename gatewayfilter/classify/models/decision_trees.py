"""Boosted decision trees: the sum of many small trees, evaluated with numpy alone.

Each tree is complete: `DEPTH` comparisons lead to one of its leaves, whose value is added up. Where a tree ends earlier, the
comparisons left lead to the first leaf below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.model_file import Arrays

DEPTH = 4
INNER = 2**DEPTH - 1
LEAVES = 2**DEPTH
_MOST_TREES = 2_000


@dataclass(frozen=True, slots=True)
class DecisionTrees:
    """Trees over a fixed number of inputs. Immutable; safe to share between threads.

    Attributes:
        start: what the sum begins with.
        inputs: int16[trees, `INNER`]: which input a node compares. The children of node i are the nodes 2 i + 1 and 2 i + 2.
        limits: float32[trees, `INNER`]: above its limit the path goes to the second child.
        leaves: float32[trees, `LEAVES`]: what a tree adds.
    """

    start: float
    inputs: NDArray[np.int16]
    limits: NDArray[np.float32]
    leaves: NDArray[np.float32]

    def sum_of(self, values: Sequence[float]) -> float:
        """Returns the sum for the inputs of one page. Some 0.03 ms for 200 trees."""
        above = np.asarray(values, np.float32)[self.inputs] > self.limits
        tree = np.arange(len(above))
        node = above[:, 0].astype(np.intp) + 1
        for _ in range(DEPTH - 1):
            node += node + 1 + above[tree, node]
        return self.start + float(self.leaves[tree, node - INNER].sum())

    def arrays(self) -> dict[str, Any]:
        """Returns what a model file keeps."""
        return {"start": np.array([self.start]), "inputs": self.inputs, "limits": self.limits, "leaves": self.leaves}

    @classmethod
    def of(cls, arrays: Arrays, count: int) -> "DecisionTrees":
        """Returns the trees of a model file.

        Args:
            arrays: of the file.
            count: number of inputs.

        Raises:
            ValueError: its arrays are damaged.
        """
        start, inputs, limits, leaves = (arrays[name] for name in ("start", "inputs", "limits", "leaves"))
        trees = inputs.size // INNER
        if not 1 <= trees <= _MOST_TREES or start.shape != (1,) or start.dtype != np.float64 or not np.isfinite(start).all():
            raise ValueError("its trees are damaged")
        if inputs.shape != (trees, INNER) or inputs.dtype != np.int16 or inputs.min() < 0 or inputs.max() >= count:
            raise ValueError("its trees are damaged")
        for numbers, width in ((limits, INNER), (leaves, LEAVES)):
            if numbers.shape != (trees, width) or numbers.dtype != np.float32 or np.isnan(numbers).any():
                raise ValueError("its trees are damaged")
        if not np.isfinite(leaves).all():
            raise ValueError("its trees are damaged")
        return cls(float(start[0]), inputs, limits, leaves)
