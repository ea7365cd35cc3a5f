"""The API of reviews. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ReviewStatsModel(TypedDict):
    """How many tasks wait, and how fast they are decided."""

    open: int
    oldest_open_hours: float | None
    decided_in_7_days: int
    median_hours_to_decision: float | None
    counts: list[ReviewCountModel]


class ReviewCountModel(TypedDict):
    """Tasks of a state and category."""

    state: str
    category: str
    tasks: int
    oldest_hours: float


class StepList(TypedDict):
    """Steps on all tasks."""

    items: list[TaskStepModel]


class TaskStepModel(TypedDict):
    """A step on a task."""

    at: float
    who: str
    action: str
    undone: bool
    note: str
    task: int


class PhraseList(TypedDict):
    """Proposed phrases."""

    items: list[PhraseModel]


class PhraseModel(TypedDict):
    """A phrase that would cover a word, so that it does not count."""

    phrase: str
    word: str
    category: str
    pages: int


class TaskList(TypedDict):
    """A page of tasks."""

    items: list[ListedTaskModel]
    next: str | None


class ListedTaskModel(TypedDict):
    """A task in a list."""

    id: int
    kind: str
    state: str
    url: str
    final_url: str
    category: str
    title: str
    score: float
    limit: float
    certainty: float | None
    blocked: bool
    doubtful: bool
    group: int
    created_at: float
    decided_at: float | None
    decided_by: str
    asked: int


class AlikeList(TypedDict):
    """Groups of similar pages."""

    items: list[AlikeModel]


class AlikeModel(TypedDict):
    """Open tasks with similar pages."""

    group: int
    tasks: int


class ManyModel(TypedDict):
    """A step on several tasks."""

    move: Literal["approve", "reject", "change", "undo", "redo"]
    category: NotRequired[str]
    note: NotRequired[str]
    alike: NotRequired[bool]
    overturn: NotRequired[bool]
    tasks: list[int]


class DecidedModel(TypedDict):
    """What a step decided."""

    tasks: list[TaskModel]
    refused: list[str]


class TaskModel(TypedDict):
    """A page or host that was judged harmful or doubtful."""

    id: int
    kind: str
    state: str
    url: str
    final_url: str
    category: str
    title: str
    score: float
    limit: float
    certainty: float | None
    blocked: bool
    doubtful: bool
    group: int
    created_at: float
    decided_at: float | None
    decided_by: str


class TaskDetails(TypedDict):
    """A task with everything beside it."""

    id: int
    kind: str
    state: str
    url: str
    final_url: str
    category: str
    title: str
    score: float
    limit: float
    certainty: float | None
    blocked: bool
    doubtful: bool
    group: int
    created_at: float
    decided_at: float | None
    decided_by: str
    text: str
    terms: list[TermModel]
    same_content: list[int]
    alike: list[int]
    requests: list[int]
    steps: list[StepModel]
    host_harmful: dict[str, int]
    host_harmless: int
    devices: int


class TermModel(TypedDict):
    """A word of the score."""

    word: str
    zone: str
    weight: float
    base: float
    factor: float
    position: int


class StepModel(TypedDict):
    """A step that a person took."""

    at: float
    who: str
    action: str
    undone: bool
    note: str


class ReviewMoveModel(TypedDict):
    """A step on tasks."""

    move: Literal["approve", "reject", "change", "undo", "redo"]
    category: NotRequired[str]
    note: NotRequired[str]
    alike: NotRequired[bool]
    overturn: NotRequired[bool]


class ReviewsApi:
    """Operations of reviews."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_review_stats(self) -> Answer[ReviewStatsModel]:
        """Returns how many tasks wait in each category, for how long, and how fast tasks were decided this week."""
        return self._transport.send(Call("GET", "/api/v1/reviews/stats"))

    def list_review_steps(self, *, limit: int | None = None) -> Answer[StepList]:
        """Returns what was decided, by whom and when, of all tasks."""
        return self._transport.send(Call("GET", "/api/v1/reviews/steps", query={"limit": limit}))

    def list_review_phrases(self, *, limit: int | None = None) -> Answer[PhraseList]:
        """Returns exception phrases: what stands around the words on rejected pages, and on no approved one."""
        return self._transport.send(Call("GET", "/api/v1/reviews/phrases", query={"limit": limit}))

    def get_fingerprint_counts(self) -> Answer[dict[str, int]]:
        """Returns how many fingerprints of judged content there are by kind, how many are harmful, and how often they were found."""
        return self._transport.send(Call("GET", "/api/v1/fingerprints"))

    def list_reviews(
        self,
        *,
        state: Literal["open", "approved", "rejected", "all"] | None = None,
        category: str | None = None,
        group_of: int | None = None,
        asked: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Answer[TaskList]:
        """Returns tasks, the oldest first, and after them those about pages in doubt."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/reviews",
                query={
                    "state": state,
                    "category": category,
                    "group_of": group_of,
                    "asked": asked,
                    "after": after,
                    "limit": limit,
                },
            )
        )

    def list_review_groups(self, *, limit: int | None = None) -> Answer[AlikeList]:
        """Returns the groups of open tasks with similar pages, the largest first."""
        return self._transport.send(Call("GET", "/api/v1/reviews/groups", query={"limit": limit}))

    def decide_reviews(self, body: ManyModel) -> Answer[DecidedModel]:
        """Takes a step on several tasks; those that cannot be decided are reported, and the others are still decided."""
        return self._transport.send(Call("POST", "/api/v1/reviews/decide", body=body))

    def get_review(self, number: int) -> Answer[TaskDetails]:
        """Returns a task with its text, its evidence, and what a decision on it decides too."""
        return self._transport.send(Call("GET", "/api/v1/reviews/{number}", parameters={"number": number}))

    def decide_review(self, number: int, body: ReviewMoveModel) -> Answer[DecidedModel]:
        """Takes a step on a task, and on the open tasks about the same content with it."""
        return self._transport.send(Call("POST", "/api/v1/reviews/{number}/decide", parameters={"number": number}, body=body))
