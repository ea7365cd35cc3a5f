"""Review tasks: harmful pages and domains for a reviewer's decision, and the steps taken on them.

Source: [page-dedup] tasks for review by a person.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from gatewayfilter.model.classification import Classification, ScoreBreakdown
from gatewayfilter.model.fingerprint import ContentId
from gatewayfilter.urls import parse_url


class ReviewState(StrEnum):
    """The state of a review task."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"


class ReviewKind(StrEnum):
    """The subject of a task."""

    PAGE = "page"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """A page or domain that was classified as harmful or doubtful, for review.

    Attributes:
        task_id: the database's number, 0 before it has one.
        key: the list key that is or would be blocked.
        final_url: the URL after redirects, `""` if it is `url`. It is or would be blocked too.
        category: of the current verdict: the classifier's, or the reviewer's.
        group_id: number of the first task with a similar page; its own number for the first.
        blocked: whether it is blocked until the decision.
        doubtful: the classifier allowed the page and was in doubt; such tasks come last in the queue.
        score_breakdown: in `category` when the task was created, `None` for a domain and for older tasks.
        text: visible text of the page, bounded.
        simhash: of the text, for similarity (learn/review/similarity.py), 0 without text.
        page, content: identities of the page and of its visible text, `None` for a domain.
        created_at, decided_at: Unix seconds.
    """

    task_id: int
    kind: ReviewKind
    url: str
    key: str
    category: str
    classification: Classification
    blocked: bool
    created_at: float
    state: ReviewState = ReviewState.OPEN
    group_id: int = 0
    text: str = ""
    simhash: int = 0
    page: ContentId | None = None
    content: ContentId | None = None
    decided_at: float | None = None
    decided_by: str = ""
    final_url: str = ""
    score_breakdown: ScoreBreakdown | None = None
    doubtful: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the page: the requested one, and the one after redirects if it differs."""
        return (self.url, self.final_url) if self.final_url else (self.url,)

    @property
    def keys(self) -> tuple[str, ...]:
        """The list keys that the decision covers, `key` first."""
        return (self.key, parse_url(self.final_url).key) if self.final_url else (self.key,)


@dataclass(frozen=True, slots=True)
class ReviewStep:
    """One step of a reviewer on a task.

    Attributes:
        action: `approve`, `reject`, `change` or `undo`.
        undone: the step was undone later.
        detail: data for undoing it.
    """

    step_id: int
    task_id: int
    at: float
    who: str
    action: str
    undone: bool = False
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskOutline:
    """The outline of a task, for comparing its page with another."""

    task_id: int
    group_id: int
    title: str
    simhash: int
    page_digest: bytes
    category: str = ""
