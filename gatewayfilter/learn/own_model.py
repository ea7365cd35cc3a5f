"""The operator's own model: trained on the pages that people decided, by a command or by itself when enough were decided.

A model that the operator trained from files of his own, or removed, is left alone: beside it stands a record of what it was
made from.
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatewayfilter.classify import MODEL_FILE, LinearModel
from gatewayfilter.classify.models.training import LEAST_OF_EACH, Example, train
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import ReviewStore
from gatewayfilter.model import ReviewKind, ReviewState, ReviewTask
from gatewayfilter.private_files import private
from gatewayfilter.urls import parse_url, registrable_domain

USEFUL_AUC: Final = 0.7
"""Area under the curve below which a model is little better than chance, and is not put to use."""
RECORD_FILE: Final = "model.json"
AGAIN_AFTER_S: Final = 86_400.0
"""A new model has blocked pages judged again and fingerprints made again: once a day is enough."""
AGAIN_AFTER: Final = 20
"""Decisions after which a model is trained again at the earliest, and `AGAIN_SHARE` of those before."""
AGAIN_SHARE: Final = 0.1
MOST_OF_EACH: Final = 2_500
"""Newest approved and rejected pages that take part in a training by itself: some 20 s of CPU time."""
MOST_OF_SITE: Final = 10
"""Of them, pages of one site (registrable domain): one site makes no model."""
_PAGE: Final = 500


class Origin(StrEnum):
    """What a model was made from, or that there is none by the operator's choice."""

    REVIEWS = "reviews"
    FILES = "files"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """The last training.

    Attributes:
        decided: pages that had been decided by then.
        at: Unix seconds.
    """

    origin: Origin
    decided: int
    at: float


class OwnModel:
    """The model in the folder of the operator's words, with the record of its training.

    Args:
        folder: of the words.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / MODEL_FILE
        self._record = folder / RECORD_FILE

    def put(self, model: LinearModel, origin: Origin, decided: int) -> bool:
        """Puts a model to use if it is useful, and records the training. Returns whether it is in use.

        Raises:
            ClassifyError: it cannot be written.
        """
        useful = model.auc >= USEFUL_AUC
        if useful:
            model.save(self.path)
        if useful or origin is Origin.REVIEWS:
            self.note(origin, decided)
        return useful

    def remove(self) -> bool:
        """Removes the model, until `put` is called again. Returns whether there was one.

        Raises:
            ClassifyError: it cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            removed = False
        except OSError as error:
            raise ClassifyError(f"cannot remove the model {self.path}: {error.strerror}") from error
        else:
            removed = True
        self.note(Origin.OFF, 0)
        return removed

    def is_due(self, decided: dict[ReviewState, int], now: float) -> bool:
        """Returns whether the model is to be trained by itself, after so many decisions.

        Args:
            decided: approved and rejected pages.
            now: Unix seconds.
        """
        if min(decided.get(state, 0) for state in (ReviewState.APPROVED, ReviewState.REJECTED)) < LEAST_OF_EACH:
            return False
        record = self.record()
        if record is None:
            return not self.path.exists()  # trained before there were records, perhaps from files
        more = sum(decided.values()) - record.decided
        return (
            record.origin is Origin.REVIEWS
            and now - record.at >= AGAIN_AFTER_S
            and more >= max(AGAIN_AFTER, AGAIN_SHARE * record.decided)
        )

    def record(self) -> TrainingRecord | None:
        """Returns the record of the last training, `None` where there is none that can be read."""
        try:
            document = json.loads(self._record.read_text(encoding="utf-8"))
            return TrainingRecord(Origin(document["origin"]), int(document["decided"]), float(document["at"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def note(self, origin: Origin, decided: int) -> None:
        """Records a training, or a removal.

        Raises:
            ClassifyError: it cannot be written.
        """
        record = TrainingRecord(origin, decided, time.time())
        aside = self._record.with_suffix(".aside")
        try:
            self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(aside, "w", encoding="utf-8", opener=private) as file:
                json.dump(asdict(record), file)
            aside.replace(self._record)
        except OSError as error:
            with suppress(OSError):
                aside.unlink()
            raise ClassifyError(f"cannot write {self._record}: {error.strerror}") from error


def decided_counts(reviews: ReviewStore) -> dict[ReviewState, int]:
    """Returns the number of approved and of rejected tasks.

    Raises:
        StoreError: the database refuses.
    """
    counts: dict[ReviewState, int] = {}
    for state, _, count, _ in reviews.stats():
        if state != ReviewState.OPEN:
            counts[ReviewState(state)] = counts.get(ReviewState(state), 0) + count
    return counts


def decided_examples(reviews: ReviewStore) -> Iterator[Example]:
    """Yields all decided pages with a text.

    Raises:
        StoreError: the database refuses.
    """
    for state in (ReviewState.APPROVED, ReviewState.REJECTED):
        after = 0
        while batch := reviews.tasks(state, after=after, limit=_PAGE):
            after = batch[-1].task_id
            yield from (_example(task) for task in batch if _has_text(task))


def newest_examples(reviews: ReviewStore) -> Iterator[Example]:
    """Yields the newest decided pages, at most `MOST_OF_EACH` approved and rejected ones and `MOST_OF_SITE` of a site.

    Raises:
        StoreError: the database refuses.
    """
    for state in (ReviewState.APPROVED, ReviewState.REJECTED):
        sites: dict[str, int] = {}
        for task in filter(_has_text, reviews.tasks(state, limit=MOST_OF_EACH, newest_first=True)):
            site = registrable_domain(parse_url(task.urls[-1]).host)
            sites[site] = sites.get(site, 0) + 1
            if sites[site] <= MOST_OF_SITE:
                yield _example(task)


def retrain(own: OwnModel, reviews: ReviewStore) -> LinearModel | None:
    """Trains on the newest decided pages, and puts the model to use if it is useful.

    CPU-bound, some 20 s: call it in a process of its own.

    Returns:
        The model that is in use now, `None` where the one before stays: too few pages take part, or the new one is little better
        than chance. It is not tried again before there are more decisions.

    Raises:
        ClassifyError: the model or its record cannot be written.
        StoreError: the database refuses.
    """
    decided = sum(decided_counts(reviews).values())
    try:
        model = train(newest_examples(reviews), time.time())
    except ClassifyError:  # too few different texts take part
        own.note(Origin.REVIEWS, decided)
        return None
    return model if own.put(model, Origin.REVIEWS, decided) else None


def _has_text(task: ReviewTask) -> bool:
    return task.kind is ReviewKind.PAGE and bool(task.text)


def _example(task: ReviewTask) -> Example:
    return Example(task.text, task.state is ReviewState.APPROVED)
