"""Protocols of review: the stores of fingerprints and review tasks, and what judges or explains content beside the classifier."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayfilter.interfaces.pages import Page
from gatewayfilter.model import (
    Classification,
    ContentId,
    ContentKind,
    Fingerprint,
    ReviewState,
    ReviewStep,
    ReviewTask,
    ScoreBreakdown,
    TaskOutline,
)


class FingerprintStore(Protocol):
    """Judged content by its identity. Expired ones are never found."""

    def find(self, content: ContentId, now: float) -> Fingerprint | None:
        """Returns the fingerprint whose key and proof are both these."""
        ...

    def newest(self, limit: int, now: float) -> list[Fingerprint]:
        """Returns those that were met last, the latest first."""
        ...

    def holds(self, kind: ContentKind) -> bool:
        """Tells whether there is any fingerprint of this kind."""
        ...

    def put(self, fingerprint: Fingerprint) -> None:
        """Adds a fingerprint, or replaces the one with the same kind and key; a person's is replaced by a person's only."""
        ...

    def put_all(self, fingerprints: Sequence[Fingerprint]) -> None:
        """Adds or replaces several, in one transaction."""
        ...

    def touch(self, hits: Mapping[ContentId, int], expires_at: float) -> None:
        """Counts hits and puts the expiry off to at least this time (Unix seconds)."""
        ...

    def remove(self, content: ContentId) -> bool:
        """Forgets one. Returns False when there was none."""
        ...

    def sweep(self, now: float) -> int:
        """Removes expired ones. Returns how many."""
        ...

    def stats(self) -> dict[str, int]:
        """Returns counts: each kind, `harmful`, `by_people`, `hits` in all, and `image_hits` of them."""
        ...


class ReviewStore(Protocol):
    """Tasks for people, and everything that was done to them."""

    def add(self, task: ReviewTask) -> int:
        """Adds a task; returns its number. A `group_id` of 0 becomes that number."""
        ...

    def get(self, task_id: int) -> ReviewTask | None:
        """Returns a task."""
        ...

    def newest_of(self, key: str) -> ReviewTask | None:
        """Returns the newest task about this list key."""
        ...

    def tasks(
        self,
        state: ReviewState | None = None,
        *,
        category: str = "",
        group_id: int = 0,
        after: int = 0,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[ReviewTask]:
        """Returns tasks with numbers above `after`, in the order of their numbers or the newest first."""
        ...

    def same_content(self, task: ReviewTask) -> list[ReviewTask]:
        """Returns the tasks whose pages have this task's body or text, itself with them, in the order of their numbers."""
        ...

    def outlines(self, category: str, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest open tasks of a category, the newest first."""
        ...

    def harmful_outlines(self, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest tasks about pages that are blocked, the newest first."""
        ...

    def open_count(self) -> int:
        """Returns how many tasks wait for a person."""
        ...

    def decide(self, task: ReviewTask, step: ReviewStep) -> ReviewStep:
        """Writes state, category, `decided_at` and `decided_by` of the task and the step in one transaction; returns the step."""
        ...

    def undo(self, task: ReviewTask, undone: int, step: ReviewStep) -> ReviewStep:
        """As `decide`, and marks the step with this number as undone."""
        ...

    def steps(self, task_id: int = 0, *, limit: int = 100) -> list[ReviewStep]:
        """Returns steps, of one task or (0) of all, the newest first."""
        ...

    def stats(self) -> list[tuple[str, str, int, float]]:
        """Returns (state, category, how many, when the oldest was made) for each state and category."""
        ...

    def decided_since(self, since: float) -> list[tuple[float, float]]:
        """Returns (when it was made, when it was decided) of tasks decided since then; all in Unix seconds."""
        ...


class ClassifyImage(Protocol):
    """Judges an image. None is bundled: `learn.image_classifier` names one that is installed beside the filter."""

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        """Judges an image; `None` when it cannot tell."""
        ...


class ReadText(Protocol):
    """Tells what a page says to the person who looks at it."""

    def text_of(self, page: Page) -> str:
        """Returns the visible text in the classifier's normal view, bounded."""
        ...


class ExplainScore(Protocol):
    """Tells how a page's score came about."""

    def breakdown_of(self, page: Page, category: str) -> ScoreBreakdown | None:
        """Returns it by the words in use, `None` where nothing on the page speaks of the category. Costs a judgement."""
        ...
