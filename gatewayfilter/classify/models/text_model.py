"""The text model: logistic regressions over hashed words, pairs and triples, read in windows of a text.

A list of words finds what its author thought of; this model finds texts written like harmful pages, and texts that only speak
of the subject: a report, a warning, a lesson, an ordinary offer. It comes with the words (`lists/words/text-model.npz`), is
trained by `scripts/train_text_model.py`, and calibration.py combines it with the words. An ideograph counts as a word, so Chinese
needs no segmenter. One regression tells harmful texts of all categories from harmless ones, and one for each category those of
the category alone: what offers drugs is not written like what offers bets.

Deviation: the papers judge by words alone (docs/decisions/0010-text-model.md).
"""

import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.calibration import Calibration
from gatewayfilter.classify.models.model_file import Arrays, load_model
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from gatewayfilter.classify.normalize.views import squashed_view
from gatewayfilter.compiled import load

TEXT_MODEL_FILE = "text-model.npz"
"""Its name in a folder of words."""
BITS = 20
"""Words, pairs and triples fall into 2 ** BITS places."""
WINDOW = 128
"""Words of a window: about what a described site, a message or the beginning of an article has."""
MAX_CHARACTERS = 4000
"""Of a part; more costs time and changes few verdicts."""
MOST_PARTS = 10
MOST_TERMS = 3
MAX_TERM = 40
"""Characters of a term that is shown."""
_MAX_FILE = 8_000_000
"""Bytes of a file, of all that it unpacks to, and of the weights in memory."""
_MOST_ROWS = _MAX_FILE >> BITS
_KEPT_WHOLE = 0.9999
"""Share of the weights that a byte can hold; a few very large ones would make all others coarse."""
_VERSION = 4
_WORD = re.compile(r"[a-z']+|[0-9]+|[^\W_]")
_PAIR = np.uint32(0x9E3779B1)
_FINISH = np.uint32(0x85EBCA6B)
_TRIPLE = np.uint32(77)
_WHOLE = 255.0
_LEAST_LENGTH = 1e-4
_PLACE = np.uint32((1 << BITS) - 1)
_SHIFT = np.uint32(BITS)


@dataclass(frozen=True, slots=True)
class Terms:
    """The words, pairs and triples of a text.

    Attributes:
        words: in order.
        places: uint32[k] of the words, then of each word with its successor, then of each with its two successors.
        windows: uint32[k], the window in which each begins.
        count: number of windows.
    """

    words: list[str]
    places: NDArray[np.uint32]
    windows: NDArray[np.uint32]
    count: int

    def shown(self, index: int) -> str:
        """Returns the term at an index of `places`, bounded."""
        length = 1
        while index >= len(self.words) - length + 1:
            index -= len(self.words) - length + 1
            length += 1
        said = self.words[index : index + length]
        return (" " if all(map(str.isascii, said)) else "").join(said)[:MAX_TERM]


def terms_of(text: str) -> Terms:
    """Returns the terms of a text in its normal view, tricks undone. Linear in its length, of which `MAX_CHARACTERS` are read."""
    words = _WORD.findall(squashed_view(text[:MAX_CHARACTERS]))
    count = max(1, round(len(words) / WINDOW))
    codes = np.fromiter(map(crc32, " ".join(words).encode(errors="replace").split()), np.uint32, len(words))
    at = (np.arange(len(words)) * count // len(words)).astype(np.uint32)
    pairs = codes[:-1] * _PAIR ^ codes[1:]
    triples = pairs[:-1] * _PAIR + codes[2:] + _TRIPLE
    mixed = np.concatenate((codes, pairs, triples)) * _FINISH
    places = (mixed ^ (mixed >> np.uint32(15))) * _PAIR >> np.uint32(32 - BITS)
    return Terms(words, places, np.concatenate((at, at[: len(pairs)], at[: len(triples)])), count)


def windows_of(terms: Terms) -> list[NDArray[np.uint32]]:
    """Returns the different places of each window, ascending: what the model is trained on."""
    keys = np.unique(terms.windows << _SHIFT | terms.places)
    starts = np.searchsorted(keys >> _SHIFT, np.arange(1, terms.count, dtype=np.uint32))
    return [window & _PLACE for window in np.split(keys, starts)]


class DistinctTerms(NamedTuple):
    """The terms of a text, each once a window; in which order is left open.

    Attributes:
        words: how many the text has.
        window_count: number of windows.
        windows, places: int64[k] each.
        is_first: bool[k], whether a place is in no earlier row.
    """

    words: int
    window_count: int
    windows: NDArray[np.int64]
    places: NDArray[np.int64]
    is_first: NDArray[np.bool_]


def plain_distinct_terms(text: str) -> DistinctTerms:
    """Returns the different terms of a text in its normal view. _terms.pyx does the same in a tenth of the time."""
    terms = terms_of(text)
    keys = np.unique(terms.windows << _SHIFT | terms.places)
    places = (keys & _PLACE).astype(np.int64)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[np.unique(places, return_index=True)[1]] = True
    return DistinctTerms(len(terms.words), terms.count, (keys >> _SHIFT).astype(np.int64), places, is_first)


_compiled = load("gatewayfilter.classify.models._terms")


def distinct_terms(text: str) -> DistinctTerms:
    """Returns the different terms of a text in its normal view, of which `MAX_CHARACTERS` are read. 0.1 ms for a long one."""
    if _compiled is None:
        return plain_distinct_terms(text)
    return DistinctTerms(*_compiled.distinct_terms(squashed_view(text[:MAX_CHARACTERS]), WINDOW, BITS))


def plain_sums(
    terms: DistinctTerms, rarity: NDArray[np.uint8], weights: NDArray[np.int8], row: int
) -> tuple[NDArray[np.float64], ...]:
    """Adds up terms: squares of their rarities, their weights in the first row, and in another.

    Returns:
        float64[windows + 1] each: of each window, and of all terms together, each place once. All are whole numbers.
    """
    kinds = np.square(rarity[terms.places].astype(np.float64)), *(weights[of, terms.places].astype(np.float64) for of in (0, row))
    return tuple(np.append(np.bincount(terms.windows, kind, terms.window_count), kind[terms.is_first].sum()) for kind in kinds)


def sums_of(
    terms: DistinctTerms, rarity: NDArray[np.uint8], weights: NDArray[np.int8], row: int
) -> Iterable[NDArray[np.float64]]:
    """Returns what `plain_sums` does."""
    if _compiled is None:
        return plain_sums(terms, rarity, weights, row)
    found: NDArray[np.float64] = _compiled.sums(
        terms.windows, terms.places, terms.is_first.view(np.uint8), terms.window_count, rarity, weights, row
    )
    return found


@dataclass(frozen=True, slots=True)
class TextModel:
    """A trained model. Immutable; safe to share between threads.

    Attributes:
        weights: int8[1 + categories, 2 ** BITS] by place, in units of `scale`: of all categories, then of each of `calibration`.
        rarity: uint8[2 ** BITS], by 255: how much a term counts, the more the rarer it is; 0 where it is unknown.
        scale: float64[1 + categories].
        bias: float64[1 + categories], log-odds of a window without a known term.
        calibration: how its readings and the words make a certainty.
        additive: categories in which a word verdict always stands, since the operator has added words to them.
    """

    weights: NDArray[np.int8]
    rarity: NDArray[np.uint8]
    scale: NDArray[np.float64]
    bias: NDArray[np.float64]
    calibration: Calibration
    additive: frozenset[str] = field(default=frozenset())

    def read(self, text: str, category: str) -> Reading:
        """Returns what a part of a text, in its normal view, reads like for a category. Some 0.3 ms for a long one."""
        terms = distinct_terms(text)
        if not terms.words:
            return NOTHING_READ
        row = 1 + self.calibration.categories.index(category)
        squares, common, own = sums_of(terms, self.rarity, self.weights, row)
        lengths = np.maximum(np.sqrt(squares) / _WHOLE, _LEAST_LENGTH)
        numbers: list[float] = []
        for place, added in ((0, common), (row, own)):
            logits = added * self.scale[place] / lengths + self.bias[place]
            numbers += [*of_windows(logits[:-1]), float(logits[-1])]
        return Reading(*numbers)

    def read_parts(self, text: str, category: str) -> Reading:
        """Returns what the most harmful part of a whole text reads like: harmless text before the subject does not hide it.

        Of a text of more than `MOST_PARTS` parts, the first ones and the last are read.
        """
        starts = list(range(0, max(len(text), MAX_CHARACTERS), MAX_CHARACTERS))
        if len(starts) > MOST_PARTS:
            starts = [*starts[: MOST_PARTS - 1], len(text) - MAX_CHARACTERS]
        parts = (self.read(text[at : at + MAX_CHARACTERS], category) for at in starts)
        return max(parts, key=lambda reading: reading.total)

    def telling(self, text: str, category: str, *, harmful: bool) -> tuple[str, ...]:
        """Returns the terms of a text, at most `MOST_TERMS`, by which it reads most like a category or most harmless."""
        terms = terms_of(text)
        places, first = np.unique(terms.places, return_index=True)
        rows = [0, 1 + self.calibration.categories.index(category)]
        says = (self.scale[rows] if harmful else -self.scale[rows]) @ self.weights[np.ix_(rows, places)]
        strongest = [index for index in np.argsort(-says, kind="stable")[:MOST_TERMS].tolist() if says[index] > 0]
        return tuple(terms.shown(index) for index in sorted(first[strongest].tolist()))

    @classmethod
    def load(cls, path: Path) -> "TextModel | None":
        """Reads a model, `None` where there is none.

        Raises:
            ClassifyError: the file is no such model.
        """
        return load_model(path, _MAX_FILE, cls._checked)

    @classmethod
    def _checked(cls, arrays: Arrays) -> "TextModel":
        version, weights, rarity, numbers = (arrays[name] for name in ("version", "weights", "rarity", "numbers"))
        if version.shape != (2,) or version.tolist() != [_VERSION, BITS]:
            raise ValueError("it is of another version")
        calibration = Calibration.of(arrays)
        rows = 1 + len(calibration.categories)
        if rarity.shape != (1 << BITS,) or rarity.dtype != np.uint8 or rows > _MOST_ROWS:
            raise ValueError("its weights are damaged")
        if weights.shape != (rows, np.count_nonzero(rarity)) or weights.dtype != np.int8:
            raise ValueError("its weights are damaged")
        if numbers.shape != (2, rows) or numbers.dtype != np.float64 or not np.isfinite(numbers).all():
            raise ValueError("its weights are damaged")
        placed = np.zeros((rows, 1 << BITS), np.int8)
        placed[:, rarity > 0] = weights
        return cls(placed, rarity, numbers[0], numbers[1], calibration)


def of_windows(logits: NDArray[np.float64]) -> list[float]:
    """Returns mean, mean of the most harmful third, and the most of the log-odds of windows."""
    logits = np.sort(logits)
    third = -max(1, (len(logits) + 1) // 3)
    return [float(logits.mean()), float(logits[third:].mean()), float(logits[-1])]


def packed(
    weights: NDArray[np.float64], rarity: NDArray[np.uint8], bias: NDArray[np.float64], calibration: Calibration
) -> TextModel:
    """Returns a model of weights float64[1 + categories, 2 ** BITS], kept in a byte each; the few largest are cut off."""
    small = np.zeros(weights.shape, np.int8)
    scale = np.ones(len(weights))
    for row, of_row in enumerate(weights):
        if (known := np.abs(of_row[of_row != 0])).size:
            scale[row] = max(float(np.quantile(known, _KEPT_WHOLE)) / 127.0, 1e-9)
        small[row] = np.clip(np.rint(of_row / scale[row]), -127, 127)
    return TextModel(small, rarity, scale, bias, calibration)


def save(model: TextModel, path: Path) -> None:
    """Writes a model, the same bytes for the same model; of the weights those of known terms."""
    arrays = {
        "version": np.array([_VERSION, BITS]),
        "weights": model.weights[:, model.rarity > 0],
        "rarity": model.rarity,
        "numbers": np.array([model.scale, model.bias]),
        **model.calibration.arrays(),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)
