"""What the words make of each page, and its windows: all that weights and calibration are fitted to. On all cores."""

import multiprocessing
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import batched
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.classify import PageClassifier, load_classifier
from gatewayfilter.classify.models.calibration import Candidate
from gatewayfilter.classify.models.text_model import MAX_CHARACTERS, MOST_PARTS, terms_of, windows_of
from gatewayfilter.classify.score_adjustment import candidate_of
from gatewayfilter.classify.zones import PageText
from scripts.training.inputs import CATEGORIES, HARMLESS, Sample

type Part = list[NDArray[np.uint32]]
"""The places of each window of a part of a text."""


@dataclass(frozen=True, slots=True)
class DensePassage:
    """The densest passage of a long harmless page, of which the words alone have a verdict.

    Attributes:
        candidate: what the words say of it.
        parts: its text.
    """

    candidate: Candidate
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A page as the model meets it.

    Attributes:
        candidate: what the words say of the nearest category; `None` where they hint at none.
        parts: the first part of the text; of pages with a verdict of the words all that the product reads.
        passage: of a harmless page; `None` where it has none.
    """

    origin: str
    writer: str
    source: str
    half: str
    language: str
    label: str
    candidate: Candidate | None
    parts: tuple[Part, ...]
    passage: DensePassage | None

    @property
    def is_harmful(self) -> bool:
        """Whether the label is one of the categories."""
        return self.label in CATEGORIES


class _Reader:
    """Reads pages in a worker."""

    classifier: PageClassifier

    @classmethod
    def start(cls, words: Path) -> None:
        """Loads the words."""
        cls.classifier = load_classifier([words], topics=False)

    @classmethod
    def read(cls, samples: tuple[Sample, ...]) -> list[Document]:
        """Reads some pages."""
        return [cls._document(sample) for sample in samples]

    @classmethod
    def _document(cls, sample: Sample) -> Document:
        text, found, lexicon = cls.classifier.by_words(sample.page)
        candidate = candidate_of(found, lexicon, CATEGORIES, text)
        passage = cls._passage(text) if sample.label == HARMLESS else None
        return Document(*sample[:6], candidate, _parts(text, all_parts=bool(found.category)), passage)

    @classmethod
    def _passage(cls, text: PageText) -> DensePassage | None:
        found = cls.classifier.passage_by_words(text)
        if found is None:
            return None
        candidate = candidate_of(found[1], cls.classifier.lexicon, CATEGORIES, found[0])
        return None if candidate is None else DensePassage(candidate, _parts(found[0], all_parts=True))


def _parts(text: PageText, *, all_parts: bool) -> tuple[Part, ...]:
    visible = text.visible()
    count = min(-(-len(visible) // MAX_CHARACTERS), MOST_PARTS) if all_parts else 1
    parts = tuple(windows_of(terms_of(visible[at * MAX_CHARACTERS :])) for at in range(max(count, 1)))
    return tuple([window for window in part if len(window)] for part in parts)


def read_all(samples: Iterable[Sample], words: Path, jobs: int) -> list[Document]:
    """Reads pages by the words of a folder, in order."""
    with multiprocessing.get_context("spawn").Pool(jobs, _Reader.start, (words,)) as pool:
        return [document for some in pool.imap(_Reader.read, batched(samples, 200), chunksize=1) for document in some]
