"""What a text reads like: multinomial logistic regression over hashed words and pairs of neighbouring words.

A list of words finds what its author thought of; this finds texts written like harmful pages, in other words. It comes
with the words (`lists/words/topics.npz`), trained by `scripts/train_topics.py` on described sites and harmless texts, and
score_adjustment.py uses it where the words are not clear. An ideograph counts as a word, so Chinese needs no segmenter.

Deviation: the papers judge by words alone (docs/decisions/0010-topic-model.md).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify.models.model_file import load_model
from gatewayfilter.classify.normalize.views import squashed_view

TOPICS_FILE = "topics.npz"
"""Its name in a folder of words."""
BITS = 18
"""Words and pairs fall into 2 ** BITS places."""
MAX_CHARACTERS = 4000
"""Of a text; more costs time and changes few verdicts."""
MOST_PARTS = 10
MOST_TERMS = 3
MAX_TERM = 40
"""Characters of a term that is shown."""
HARMLESS = ""
_MAX_FILE = 16_000_000
_MOST_CATEGORIES = 64
_VERSION = 1
_WORD = re.compile(r"[a-z']+|[0-9]+|[^\W_]")
_PAIR = np.uint32(0x9E3779B1)
_FINISH = np.uint32(0x85EBCA6B)


@dataclass(frozen=True, slots=True)
class Terms:
    """The words and pairs of a text: `places` uint32[k] of each as it stands there, and the words that they are made of.

    The first `len(words)` places are those of the words, the others those of each word with its successor.
    """

    places: NDArray[np.uint32]
    words: list[str]

    def shown(self, index: int) -> str:
        """Returns the word or pair at an index of `places`, bounded."""
        if index < len(self.words):
            return self.words[index][:MAX_TERM]
        first, second = self.words[index - len(self.words) :][:2]
        return (f"{first} {second}" if first.isascii() and second.isascii() else f"{first}{second}")[:MAX_TERM]


def terms_of(text: str) -> Terms:
    """Returns the terms of a text in its normal view, tricks undone. Linear in its length, of which `MAX_CHARACTERS` are read."""
    words = _WORD.findall(squashed_view(text[:MAX_CHARACTERS]))
    codes = np.fromiter((_code(word) if len(word) < MAX_TERM else _plain_code(word) for word in words), np.uint32, len(words))
    pairs = codes[:-1] * _PAIR ^ codes[1:]
    mixed = np.concatenate((codes, pairs)) * _FINISH
    return Terms((mixed ^ (mixed >> np.uint32(15))) * _PAIR >> np.uint32(32 - BITS), words)


def _plain_code(word: str) -> int:
    return crc32(word.encode(errors="replace"))


_code = lru_cache(maxsize=1 << 15)(_plain_code)
"""For words of some length at most: a page full of letters cannot fill the cache."""


class Reading(NamedTuple):
    """What a text reads like.

    Attributes:
        harmful: probability that it is harmful at all, 0 to 1.
        category: the harmful category that it reads most like.
    """

    harmful: float
    category: str


@dataclass(frozen=True, slots=True)
class TopicModel:
    """A trained model. Immutable; safe to share between threads.

    Attributes:
        categories: the names of its columns; the first is `HARMLESS`.
        rows: int32[2 ** BITS], place → row of `weights`; places that nothing was learned of have row 0, which is zero.
        weights: float32[rows, categories].
        bias: float32[categories].
        additive: categories from which it takes nothing away, since a person has words of his own in them.
    """

    categories: tuple[str, ...]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    additive: frozenset[str] = frozenset()

    def read(self, text: str) -> Reading:
        """Returns what a text, in its normal view, reads like. Some 0.3 ms for a long text."""
        rows = self.rows[np.unique(terms_of(text).places)]
        if not len(rows):
            return Reading(0.0, HARMLESS)
        logits = self.weights[rows[rows > 0]].sum(axis=0) / sqrt(len(rows)) + self.bias
        likely = np.exp(logits - logits.max())
        return Reading(1.0 - float(likely[0] / likely.sum()), self.categories[int(likely[1:].argmax()) + 1])

    def most_harmful(self, text: str) -> float:
        """Returns the probability that the most harmful part of a whole text is harmful, 1.0 for one of more than `MOST_PARTS`.

        Harmless text before the subject of a page does not hide it.
        """
        if len(text) > MOST_PARTS * MAX_CHARACTERS:
            return 1.0
        return max((self.read(text[at : at + MAX_CHARACTERS]).harmful for at in range(0, len(text), MAX_CHARACTERS)), default=0.0)

    def telling(self, text: str, category: str) -> tuple[str, ...]:
        """Returns the words and pairs of a text, at most `MOST_TERMS`, by which it reads most like a category."""
        terms = terms_of(text)
        places, first = np.unique(terms.places, return_index=True)
        weights = self.weights[self.rows[places]]
        says = weights[:, self.categories.index(category)] - weights[:, 0]
        strongest = [index for index in np.argsort(-says, kind="stable")[:MOST_TERMS].tolist() if says[index] > 0]
        return tuple(terms.shown(index) for index in sorted(first[strongest].tolist()))

    @classmethod
    def load(cls, path: Path) -> "TopicModel | None":
        """Reads a model, `None` where there is none.

        Raises:
            ClassifyError: the file is no such model.
        """
        names = ("version", "categories", "places", "weights", "scales", "bias")
        return load_model(path, _MAX_FILE, lambda arrays: cls._checked(*(arrays[name] for name in names)))

    @classmethod
    def _checked(
        cls,
        version: NDArray[np.int64],
        categories: NDArray[np.str_],
        places: NDArray[np.uint32],
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        bias: NDArray[np.float32],
    ) -> "TopicModel":
        if version.shape != (2,) or version.tolist() != [_VERSION, BITS]:
            raise ValueError("it is of another version")
        names = tuple(map(str, categories.tolist())) if categories.ndim == 1 and categories.dtype.kind == "U" else ()
        if not 2 <= len(names) <= _MOST_CATEGORIES or names[0] != HARMLESS or len(set(names)) < len(names):
            raise ValueError("its categories are damaged")
        if places.ndim != 1 or places.dtype != np.uint32 or (np.diff(places.astype(np.int64)) <= 0).any():
            raise ValueError("its places are damaged")
        if len(places) and places[-1] >= 1 << BITS:
            raise ValueError("its places are damaged")
        if weights.shape != (len(names), len(places)) or weights.dtype != np.int8:
            raise ValueError("its weights are damaged")
        for numbers in (scales, bias):
            if numbers.shape != (len(names),) or numbers.dtype != np.float32 or not np.isfinite(numbers).all():
                raise ValueError("its weights are damaged")
        rows = np.zeros(1 << BITS, np.int32)
        rows[places] = np.arange(1, len(places) + 1)
        table = np.zeros((len(places) + 1, len(names)), np.float32)
        table[1:] = (weights * scales[:, None]).T
        return cls(names, rows, table, bias)


def pack(path: Path, categories: tuple[str, ...], weights: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
    """Writes a model, `HARMLESS` first: weights float64[categories, 2 ** BITS], kept in a byte each where not nothing."""
    scales = np.maximum(np.abs(weights).max(axis=1) / 127.0, 1e-9)
    small = np.rint(weights / scales[:, None]).astype(np.int8)
    places = np.flatnonzero(small.any(axis=0)).astype(np.uint32)
    np.savez_compressed(
        path,
        version=np.array([_VERSION, BITS]),
        categories=np.array(categories),
        places=places,
        weights=small[:, places],
        scales=scales.astype(np.float32),
        bias=bias.astype(np.float32),
    )
