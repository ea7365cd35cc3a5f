"""Readings out of fold: each page is read by weights that were learned without its writer or set."""

import multiprocessing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from scripts.training.inputs import HARMLESS, LICENSED, WRITTEN
from scripts.training.reading import Document
from scripts.training.weights import Weights, fit, harmful_for_weights

FOLDS = 8
"""Of about the same size, so that each reading is nearly as good as one of a page that nobody has seen."""


def learned_from(document: Document) -> bool:
    """Returns whether weights may be learned from a document."""
    return document.half == "tune" or document.origin in LICENSED


def folds_of(documents: Sequence[Document]) -> dict[str, int]:
    """Returns the fold of each writer: the largest first, each into the smallest fold."""
    sizes: Counter[str] = Counter()
    for document in documents:
        sizes[_family(document.writer)] += sum(map(len, document.parts[:1]))
    folds: dict[str, int] = {}
    filled = [0] * FOLDS
    for writer, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        folds[writer] = filled.index(min(filled))
        filled[folds[writer]] += size
    return folds


def _family(writer: str) -> str:
    return writer if writer.startswith(WRITTEN) else writer.removesuffix("-fine")


@dataclass(frozen=True, slots=True)
class Readings:
    """What a document and its passage read like; a page of which no word speaks, and one without a passage, like nothing."""

    page: Reading
    passage: Reading


@dataclass(frozen=True, slots=True)
class _Task:
    """What a worker process does: it learns without a fold (`None`: from all) and reads what nothing was learned of."""

    documents: Sequence[Document]

    def __call__(self, fold: int | None) -> tuple[Weights, dict[int, Readings]]:
        training = [d for d in self.documents if learned_from(d) and (harmful_for_weights(d) or d.label == HARMLESS)]
        folds = folds_of(training)

        def held_out(document: Document) -> bool:
            return (folds.get(_family(document.writer), 0) if learned_from(document) else None) == fold

        weights = fit([document for document in training if fold is None or not held_out(document)])
        return weights, {index: _read(weights, d) for index, d in enumerate(self.documents) if held_out(d)}


def _read(weights: Weights, document: Document) -> Readings:
    page, passage = document.candidate, document.passage
    return Readings(
        NOTHING_READ if page is None else weights.read(document.parts, page.category),
        NOTHING_READ if passage is None else weights.read(passage.parts, passage.candidate.category),
    )


def read_out_of_fold(documents: Sequence[Document], jobs: int) -> tuple[Weights, list[Readings]]:
    """Returns weights that were learned from all, and a reading of each document that it took no part in."""
    found: Mapping[int, Readings] = {}
    with multiprocessing.get_context("fork").Pool(jobs, _Worker.start, (_Task(documents),)) as pool:
        done = pool.map(_Worker.run, [None, *range(FOLDS)], chunksize=1)
    for _, readings in done:
        found = {**found, **readings}
    return done[0][0], [found[index] for index in range(len(documents))]


class _Worker:
    """Holds the documents in a worker process, which inherits them."""

    task: _Task

    @classmethod
    def start(cls, task: _Task) -> None:
        """Keeps the task."""
        cls.task = task

    @classmethod
    def run(cls, fold: int | None) -> tuple[Weights, dict[int, Readings]]:
        """Learns without a fold."""
        return cls.task(fold)
