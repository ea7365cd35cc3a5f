"""Review tasks: harmful pages and domains for a person to decide on, and the steps that people took.

Source: [page-dedup] tasks for review by a person.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from gatewayfilter.model.classification import Classification, ScoreBreakdown
from gatewayfilter.model.fingerprint import ContentId
from gatewayfilter.urls import parse_url


class ReviewState(StrEnum):
    """Where a task of a person stands."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"


class ReviewKind(StrEnum):
    """What a task is about."""

    PAGE = "page"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """Something that the classifier judged harmful, for a person to look at.

    Attributes:
        task_id: the database's number, 0 before it has one.
        key: the list key that is or would be blocked.
        final_url: what answered, after redirects; `""` where that was `url`. It is or would be blocked too.
        category: of the verdict as it stands: the classifier's, or the one a person gave.
        group_id: the first of the tasks whose pages are alike; its own number for the first.
        blocked: whether it is blocked until somebody decides.
        score_breakdown: in `category` when the task was made, `None` for a domain and for tasks of before it was kept.
        text: what the page says, bounded.
        simhash: of the text, for likeness (learn/review/similarity.py), 0 without text.
        page, content: the page's and its visible text's identity, `None` for a domain.
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

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the page: the one that was asked for, and the one that answered where that was another."""
        return (self.url, self.final_url) if self.final_url else (self.url,)

    @property
    def keys(self) -> tuple[str, ...]:
        """The list keys that a person's word is about, `key` first."""
        return (self.key, parse_url(self.final_url).key) if self.final_url else (self.key,)


@dataclass(frozen=True, slots=True)
class ReviewStep:
    """One thing that a person did to a task.

    Attributes:
        action: `approve`, `reject`, `change` or `undo`.
        undone: it was taken back later.
        detail: what is needed to take it back.
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
    """What of a task tells whether another page is like its page."""

    task_id: int
    group_id: int
    title: str
    simhash: int
    page_digest: bytes
    category: str = ""
