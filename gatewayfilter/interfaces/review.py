"""Interfaces of review: stores of fingerprints and review tasks, the image classifier, and explanations of scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """The store of classified content by its identity. Expired entries are never returned."""

    def find(self, content: ContentId, now: float) -> Fingerprint | None:
        """Returns the fingerprint with this key and this proof."""
        ...

    def find_all(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        """Returns those of these contents that `find` returns, at the cost of one look-up."""
        ...

    def newest(self, limit: int, now: float) -> list[Fingerprint]:
        """Returns those with the latest hits, the latest first."""
        ...

    def holds(self, kind: ContentKind) -> bool:
        """Returns whether there is any fingerprint of this kind."""
        ...

    def put(self, fingerprint: Fingerprint) -> None:
        """Adds a fingerprint, or replaces the one with the same kind and key; a reviewer's is replaced by a reviewer's only."""
        ...

    def put_all(self, fingerprints: Sequence[Fingerprint]) -> None:
        """Adds or replaces several, in one transaction."""
        ...

    def touch(self, hits: Mapping[ContentId, int], expires_at: float) -> None:
        """Counts hits and extends the expiry to at least this time (Unix seconds)."""
        ...

    def remove(self, content: ContentId) -> bool:
        """Deletes one. Returns False when there was none."""
        ...

    def sweep(self, now: float) -> int:
        """Removes expired ones. Returns their number."""
        ...

    def stats(self) -> dict[str, int]:
        """Returns counts: each kind, `harmful`, `by_people`, `hits` in all, and `image_hits` of them."""
        ...


class ReviewStore(Protocol):
    """The store of review tasks and of all steps taken on them."""

    def add(self, task: ReviewTask) -> int:
        """Adds a task; returns its number. A `group_id` of 0 becomes that number."""
        ...

    def renew(self, task: ReviewTask) -> bool:
        """Replaces an open task by another one about the same list key, in its group. Returns False when it is not open."""
        ...

    def get(self, task_id: int) -> ReviewTask | None:
        """Returns a task."""
        ...

    def newest_of(self, key: str) -> ReviewTask | None:
        """Returns the newest task for this list key."""
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
        doubtful: bool | None = None,
    ) -> list[ReviewTask]:
        """Returns tasks with numbers above `after`, in the order of their numbers or the newest first.

        With `doubtful` only those about pages in doubt, or only the others.
        """
        ...

    def same_content(self, task: ReviewTask) -> list[ReviewTask]:
        """Returns the tasks with the same page body or text as this one, itself included, by number."""
        ...

    def outlines(self, category: str, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest open tasks of a category, the newest first."""
        ...

    def harmful_outlines(self, limit: int) -> list[TaskOutline]:
        """Returns the outlines of the newest tasks of blocked pages, the newest first."""
        ...

    def open_count(self, *, doubtful: bool = False) -> int:
        """Returns the number of open tasks; with `doubtful` only of those about pages in doubt."""
        ...

    def decide(self, task: ReviewTask, step: ReviewStep) -> ReviewStep:
        """Writes state, category, `decided_at` and `decided_by` of the task and the step in one transaction; returns the step."""
        ...

    def undo(self, task: ReviewTask, undone: int, step: ReviewStep) -> ReviewStep:
        """Does `decide`, and marks the step with this number as undone."""
        ...

    def steps(self, task_id: int = 0, *, limit: int = 100) -> list[ReviewStep]:
        """Returns steps, of one task or (0) of all, the newest first."""
        ...

    def stats(self) -> list[tuple[str, str, int, float]]:
        """Returns (state, category, count, creation of the oldest) for each state and category."""
        ...

    def decided_since(self, since: float) -> list[tuple[float, float]]:
        """Returns (creation, decision) of tasks decided since then; all in Unix seconds."""
        ...


@dataclass(frozen=True, slots=True)
class DecidedPage:
    """A page that a reviewer decided, as far as feedback needs it.

    Attributes:
        url: after redirects.
        group_id: of its task: pages that are nearly the same have one number.
        rejected: the reviewer found it harmless; otherwise harmful, in `category`.
        classification: the classifier's, when the task was opened.
    """

    task_id: int
    url: str
    group_id: int
    rejected: bool
    category: str
    classification: Classification


@dataclass(frozen=True, slots=True)
class PageDecision:
    """One decision that stands, for statistics.

    Attributes:
        category: the classifier's.
        rejected: the reviewer found the page harmless.
        blocked: the page was blocked when it was decided.
        decided_at: Unix seconds.
    """

    category: str
    rejected: bool
    blocked: bool
    decided_at: float


class DecisionHistory(Protocol):
    """The decisions of reviewers on pages, without those that were undone."""

    def last_step(self) -> int:
        """Returns the number of the newest step, 0 for none: it changes with every decision, undo and redo."""
        ...

    def decided_pages(self, limit: int) -> list[DecidedPage]:
        """Returns the pages with a decision that stands, the newest tasks first."""
        ...

    def decisions_since(self, since: float) -> list[PageDecision]:
        """Returns the decisions that stand and were made since then (Unix seconds), in the order of their times."""
        ...


class ClassifyImage(Protocol):
    """The image classifier. None is bundled: `learn.image_classifier` names one that is installed separately."""

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        """Classifies an image; `None` without a result."""
        ...


class ReadText(Protocol):
    """Extracts the visible text of a page for reviewers."""

    def text_of(self, page: Page) -> str:
        """Returns the visible text in the classifier's normal view, bounded."""
        ...


class ExplainScore(Protocol):
    """Explains a page's score."""

    def breakdown_of(self, page: Page, category: str) -> ScoreBreakdown | None:
        """Returns the breakdown by the words in use, `None` for a page without words of the category. Costs a classification."""
        ...
