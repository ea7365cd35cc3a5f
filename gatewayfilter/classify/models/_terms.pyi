import numpy as np
from numpy.typing import NDArray

def distinct_terms(
    text: str, window: int, bits: int
) -> tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]: ...
