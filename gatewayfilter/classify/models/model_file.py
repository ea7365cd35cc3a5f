"""Models as they lie on the disk: `.npz` archives that are bounded before they are unpacked, and never unpickled."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.errors import ClassifyError

type Arrays = Mapping[str, NDArray[Any]]


def load_model[T](path: Path, most_bytes: int, checked: Callable[[Arrays], T], advice: str = "") -> T | None:
    """Reads a model, `None` where there is none.

    Args:
        path: of the file.
        most_bytes: of the file, and of all that it unpacks to.
        checked: makes the model of the arrays; what it raises names the fault.
        advice: ends the sentence about a file that is no model.

    Raises:
        ClassifyError: the file cannot be read, or is no such model.
    """
    try:
        content = path.read_bytes() if path.stat().st_size <= most_bytes else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ClassifyError(f"cannot read the model {path}: {error.strerror}") from error
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_size(archive, most_bytes)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return checked(arrays)
    except Exception as error:  # what a damaged file makes of zipfile, zlib and NumPy is of many kinds
        raise ClassifyError(f"{path} is no model of this program ({error}){advice}") from error


def _check_size(archive: zipfile.ZipFile, most_bytes: int) -> None:
    if sum(item.file_size for item in archive.infolist()) > most_bytes:
        raise ValueError("it is too large")
