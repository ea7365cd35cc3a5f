import numpy as np
from numpy.typing import NDArray

def distinct_terms(
    text: str, window: int, bits: int
) -> tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]: ...
def sums(
    windows: NDArray[np.int64],
    places: NDArray[np.int64],
    is_first: NDArray[np.uint8],
    count: int,
    rarity: NDArray[np.uint8],
    weights: NDArray[np.int8],
    row: int,
) -> NDArray[np.float64]: ...
