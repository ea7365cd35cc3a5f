"""What is remembered of judged content, and what people are asked about it: values, and the protocols of their stores.

Source: [page-dedup] fingerprints with their verdict and a validity; tasks for review by a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.urls import parse_url


class ContentKind(StrEnum):
    """What a fingerprint was taken of."""

    PAGE = "page"
    TEXT = "text"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class ContentId:
    """Content by what it is, wherever it was found.

    Attributes:
        digest: MD5, 16 bytes: the key. Two contents with the same MD5 can be made on purpose, so it is never believed alone.
        proof: 128 bits of a keyed BLAKE3 of the whole content, 16 bytes, which nobody outside can aim at.
    """

    kind: ContentKind
    digest: bytes
    proof: bytes


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Content that was judged, with its verdict.

    Attributes:
        judge: who judged: `""` for the classifier, else the person's name.
        words: version of the lexicon that judged, `""` for a person, whose word does not age.
        url: where it was first seen.
        judged_at, expires_at: Unix seconds; a hit puts the expiry off.
        hits: how often it was met again.
    """

    content: ContentId
    classification: Classification
    judge: str
    words: str
    url: str
    judged_at: float
    expires_at: float
    hits: int = 0


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
class ScoreBreakdown:
    """How a page's score in one category came about: ``strong + topic_counted - context_counted + opinion``.

    Attributes:
        words_version: names the words, the model and the extraction rules that judged.
        strong: what words and combinations that say what a page offers add up to.
        topic: what words that name a topic add up to, of which `topic_counted` counts.
        context: what speaks against it adds up to, of which `context_counted` is taken away.
        opinion: what the second opinion adds, or takes away where it is negative; 0 without one.
        limit: the score above which a page of this length is of the category.
        words: how many different words and combinations were found, of which `min_words` are needed.
    """

    words_version: str
    category: str
    strong: float
    topic: float
    topic_counted: float
    context: float
    context_counted: float
    opinion: float
    score: float
    limit: float
    words: int
    min_words: int


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
