"""The text model: logistic regression over hashed words, pairs and triples, read in windows of a text.

A list of words finds what its author thought of; this model finds texts written like harmful pages, and texts that only speak
of the subject: a report, a warning, a lesson, an ordinary offer. It comes with the words (`lists/words/text-model.npz`), is
trained by `scripts/train_text_model.py`, and calibration.py combines it with the words. An ideograph counts as a word, so Chinese
needs no segmenter.

Deviation: the papers judge by words alone (docs/decisions/0010-text-model.md).
"""

import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.calibration import Calibration
from gatewayfilter.classify.models.model_file import Arrays, load_model
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
_KEPT_WHOLE = 0.9999
"""Share of the weights that a byte can hold; a few very large ones would make all others coarse."""
_VERSION = 3
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
    at = (np.arange(len(words)) * count // max(len(words), 1)).astype(np.uint32)
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


class Reading(NamedTuple):
    """What a text reads like: log-odds that it is harmful, by window.

    Attributes:
        mean: of all windows.
        top: mean of the most harmful third.
        most: of the most harmful window.
    """

    mean: float
    top: float
    most: float


NOTHING_READ = Reading(-2.0, -2.0, -2.0)
"""Of a text without a word."""


@dataclass(frozen=True, slots=True)
class TextModel:
    """A trained model. Immutable; safe to share between threads.

    Attributes:
        weights: int8[2 ** BITS], in units of `scale`.
        rarity: uint8[2 ** BITS], by 255: how much a term counts, the more the rarer it is; 0 where it is unknown.
        bias: log-odds of a window without a known term.
        calibration: how its readings and the words make a certainty.
        additive: categories in which a word verdict always stands, since the operator has added words to them.
    """

    weights: NDArray[np.int8]
    rarity: NDArray[np.uint8]
    scale: float
    bias: float
    calibration: Calibration
    additive: frozenset[str] = field(default=frozenset())

    def read(self, text: str) -> Reading:
        """Returns what a part of a text, in its normal view, reads like. Some 0.2 ms for a long one."""
        terms = distinct_terms(text)
        if not terms.words:
            return NOTHING_READ
        sums = np.bincount(terms.windows, self.weights[terms.places], terms.window_count) * self.scale
        rarity = self.rarity[terms.places].astype(np.float64)
        lengths = np.sqrt(np.bincount(terms.windows, rarity * rarity, terms.window_count)) / _WHOLE
        logits = np.sort(sums / np.maximum(lengths, _LEAST_LENGTH)) + self.bias
        third = -max(1, (len(logits) + 1) // 3)
        return Reading(float(logits.mean()), float(logits[third:].mean()), float(logits[-1]))

    def read_parts(self, text: str) -> Reading:
        """Returns what the most harmful part of a whole text reads like: harmless text before the subject does not hide it.

        Of a text of more than `MOST_PARTS` parts, the first ones and the last are read.
        """
        starts = list(range(0, max(len(text), 1), MAX_CHARACTERS))
        if len(starts) > MOST_PARTS:
            starts = [*starts[: MOST_PARTS - 1], len(text) - MAX_CHARACTERS]
        return max((self.read(text[at : at + MAX_CHARACTERS]) for at in starts), key=lambda reading: reading.mean)

    def telling(self, text: str, *, harmful: bool) -> tuple[str, ...]:
        """Returns the terms of a text, at most `MOST_TERMS`, by which it reads most like a harmful or a harmless page."""
        terms = terms_of(text)
        places, first = np.unique(terms.places, return_index=True)
        says = self.weights[places].astype(np.int32) * (1 if harmful else -1)
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
        if weights.shape != (1 << BITS,) or weights.dtype != np.int8 or rarity.shape != (1 << BITS,) or rarity.dtype != np.uint8:
            raise ValueError("its weights are damaged")
        if numbers.shape != (2,) or numbers.dtype != np.float64 or not np.isfinite(numbers).all():
            raise ValueError("its weights are damaged")
        return cls(weights, rarity, float(numbers[0]), float(numbers[1]), Calibration.of(arrays))


def packed(weights: NDArray[np.float64], rarity: NDArray[np.uint8], bias: float, calibration: Calibration) -> TextModel:
    """Returns a model of weights float64[2 ** BITS], kept in a byte each; the few largest are cut off."""
    known = np.abs(weights[weights != 0])
    scale = max(float(np.quantile(known, _KEPT_WHOLE)) / 127.0, 1e-9) if len(known) else 1.0
    small = np.clip(np.rint(weights / scale), -127, 127).astype(np.int8)
    return TextModel(small, rarity, scale, bias, calibration)


def save(model: TextModel, path: Path) -> None:
    """Writes a model, the same bytes for the same model."""
    arrays = {
        "version": np.array([_VERSION, BITS]),
        "weights": model.weights,
        "rarity": model.rarity,
        "numbers": np.array([model.scale, model.bias]),
        **model.calibration.arrays(),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)
