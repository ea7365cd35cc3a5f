"""`/api/v1/reviews`: learned pages and hosts that wait for a person, and their decisions."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, Field

from gatewayfilter.errors import MissingError, ReviewError
from gatewayfilter.model import ReviewState, ReviewStep, ReviewTask
from gatewayfilter.use_cases.review.review_answers import decide_recorded
from gatewayfilter.use_cases.review.review_deciding import Decided, Decision, ReviewMove, also_decided
from gatewayfilter.use_cases.review.review_evidence import host_record, terms_of
from gatewayfilter.use_cases.review.review_tasks import (
    POSITION,
    TaskQuery,
    find_task,
    read_position,
    task_facts,
    task_page,
    write_position,
)
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Approver, Viewer
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/reviews", tags=["reviews"])

Number = Annotated[int, Path(ge=1, le=2**53, description="Number of the task.")]


class TaskModel(BaseModel):
    """A page or host that was judged harmful or doubtful."""

    id: Annotated[int, Field(description="Its number.")]
    kind: Annotated[str, Field(description="page or domain.")]
    state: Annotated[str, Field(description="open, approved or rejected.")]
    url: Annotated[str, Field(description="The page.")]
    final_url: Annotated[str, Field(description="The page after redirects, empty where there was none.")]
    category: Annotated[str, Field(description="Category of the verdict.")]
    title: Annotated[str, Field(description="Title of the page.")]
    score: Annotated[float, Field(description="Score of the page.")]
    limit: Annotated[float, Field(description="Score from which a page is harmful.")]
    certainty: Annotated[float | None, Field(description="Probability that it is harmful, 0 to 1.")]
    blocked: Annotated[bool, Field(description="Whether it is blocked.")]
    doubtful: Annotated[bool, Field(description="It was allowed in doubt.")]
    group: Annotated[int, Field(description="Number of the first task with a similar page.")]
    created_at: Annotated[float, Field(description="Unix seconds.")]
    decided_at: Annotated[float | None, Field(description="Unix seconds of the decision.")]
    decided_by: Annotated[str, Field(description="Who decided.")]


class ListedTaskModel(TaskModel):
    """A task in a list."""

    asked: Annotated[int, Field(description="How often users requested to unblock it.")]


class TermModel(BaseModel):
    """A word of the score."""

    word: Annotated[str, Field(description="The word or combination.")]
    zone: Annotated[str, Field(description="Where it stands: title, description, keywords, main, rest, url.")]
    weight: Annotated[float, Field(description="What it adds: base times factor.")]
    base: Annotated[float, Field(description="Weight of the word.")]
    factor: Annotated[float, Field(description="Factor of the zone.")]
    position: Annotated[int, Field(description="Character offset in the zone's text.")]


class StepModel(BaseModel):
    """A step that a person took."""

    at: Annotated[float, Field(description="Unix seconds.")]
    who: Annotated[str, Field(description="The person.")]
    action: Annotated[str, Field(description="approve, reject, change or undo.")]
    undone: Annotated[bool, Field(description="It was undone later.")]
    note: Annotated[str, Field(description="The reason.")]


class TaskDetails(TaskModel):
    """A task with everything beside it."""

    text: Annotated[str, Field(description="Visible text of the page, bounded; never its markup.")]
    terms: Annotated[list[TermModel], Field(description="Words that count for the category, heaviest first.")]
    same_content: Annotated[list[int], Field(description="Open tasks that a decision decides too.")]
    alike: Annotated[list[int], Field(description="Open tasks with similar pages.")]
    requests: Annotated[list[int], Field(description="Requests of users to unblock the page.")]
    steps: Annotated[list[StepModel], Field(description="The newest first.")]
    host_harmful: Annotated[dict[str, int], Field(description="Other pages of the host by harmful category.")]
    host_harmless: Annotated[int, Field(description="Other pages of the host that are harmless.")]
    devices: Annotated[int, Field(description="Devices among the host's newest requests in the log.")]


class TaskList(BaseModel):
    """A page of tasks."""

    items: Annotated[list[ListedTaskModel], Field(description="The oldest first; those in doubt after all others.")]
    next: Annotated[str | None, Field(description="What `after` of the next page is, null on the last.")]


class AlikeModel(BaseModel):
    """Open tasks with similar pages."""

    group: Annotated[int, Field(description="Number of the first task.")]
    tasks: Annotated[int, Field(description="How many wait.")]


class AlikeList(BaseModel):
    """Groups of similar pages."""

    items: Annotated[list[AlikeModel], Field(description="The largest first.")]


class ReviewMoveModel(BaseModel):
    """A step on tasks."""

    move: Annotated[Literal["approve", "reject", "change", "undo", "redo"], Field(description="The step.")]
    category: Annotated[str, Field("", max_length=100, description="The right category, of `change`.")]
    note: Annotated[str, Field("", max_length=500, description="The reason.")]
    alike: Annotated[bool, Field(False, description="Also open tasks with similar pages.")]
    overturn: Annotated[bool, Field(False, description="Also where another reviewer has decided already.")]

    def decision(self, who: str) -> Decision:
        """Returns it as the use case takes it."""
        return Decision(ReviewMove(self.move), who, self.note, self.category, self.overturn)


class ManyModel(ReviewMoveModel):
    """A step on several tasks."""

    tasks: Annotated[list[int], Field(min_length=1, max_length=500, description="Numbers of tasks.")]


class DecidedModel(BaseModel):
    """What a step decided."""

    tasks: Annotated[list[TaskModel], Field(description="The tasks as they are now: those named, and those decided with them.")]
    refused: Annotated[list[str], Field(description="One sentence for each task that could not be decided.")]


@router.get("", operation_id="list_reviews")
def list_reviews(
    services: Services,
    _: Viewer,
    state: Annotated[Literal["open", "approved", "rejected", "all"], Query(description="Which tasks.")] = "open",
    category: Annotated[str, Query(max_length=100, description="Only of this category.")] = "",
    group_of: Annotated[int, Query(ge=0, le=2**53, description="Only pages similar to this task's.")] = 0,
    *,
    asked: Annotated[bool, Query(description="Only pages that users requested to unblock.")] = False,
    after: Annotated[str, Query(pattern=f"^$|{POSITION}", description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most items.")] = 50,
) -> TaskList:
    """Returns tasks, the oldest first, and after them those about pages in doubt."""
    query = TaskQuery(None if state == "all" else ReviewState(state), category, group_of, asked)
    found = task_page(services.store, query, limit, read_position(after))
    items = [ListedTaskModel(**_facts(item.task), asked=item.asked) for item in found.tasks]
    return TaskList(items=items, next=write_position(found.after) or None)


@router.get("/groups", operation_id="list_review_groups")
def list_groups(
    services: Services, _: Viewer, limit: Annotated[int, Query(ge=1, le=200, description="Most items.")] = 50
) -> AlikeList:
    """Returns the groups of open tasks with similar pages, the largest first."""
    return AlikeList(items=[AlikeModel(group=group, tasks=count) for group, count in services.store.reviews.groups(limit)])


@router.post("/decide", operation_id="decide_reviews")
def decide_many(services: Services, who: Approver, many: ManyModel) -> DecidedModel:
    """Takes a step on several tasks; those that cannot be decided are reported, and the others are still decided."""
    tasks = [number for number in many.tasks if 1 <= number <= 2**53]
    return _model(_decide(services, who, tasks, many))


@router.get("/{number}", operation_id="get_review")
def get_review(services: Services, _: Viewer, number: Number) -> TaskDetails:
    """Returns a task with its text, its evidence, and what a decision on it decides too."""
    task = find_task(services.store, number)
    facts, also = task_facts(services.store, task), also_decided(services.store, task)
    host = host_record(services.store, task)
    return TaskDetails(
        **_facts(task),
        text=task.text,
        terms=[
            TermModel(
                word=term.hit.word,
                zone=term.hit.zone,
                weight=term.hit.weight,
                base=round(term.base, 3),
                factor=term.factor,
                position=term.hit.position,
            )
            for term in terms_of(task)
        ],
        same_content=[other.task_id for other in also.same],
        alike=[other.task_id for other in also.alike],
        requests=[request.request_id for request in facts.requests],
        steps=[step_model(step) for step in facts.steps],
        host_harmful=dict(host.harmful),
        host_harmless=host.harmless,
        devices=host.devices,
    )


@router.post("/{number}/decide", operation_id="decide_review")
def decide_one(services: Services, who: Approver, number: Number, step: ReviewMoveModel) -> DecidedModel:
    """Takes a step on a task, and on the open tasks about the same content with it."""
    find_task(services.store, number)
    done = _decide(services, who, [number], step)
    if not done.tasks:
        raise (MissingError if done.all_missing else ReviewError)("; ".join(done.refused))
    return _model(done)


def _decide(services: Services, who: Approver, tasks: list[int], step: ReviewMoveModel) -> Decided:
    return decide_recorded(
        services.settings, services.store, who.actor, services.clock, tasks, step.decision(who.name), alike=step.alike
    )


def _model(done: Decided) -> DecidedModel:
    return DecidedModel(tasks=[TaskModel(**_facts(item.task)) for item in done.tasks], refused=list(done.refused))


def step_model(step: ReviewStep) -> StepModel:
    """Returns the model of a step."""
    return StepModel(at=step.at, who=step.who, action=step.action, undone=step.undone, note=str(step.detail.get("note", "")))


def _facts(task: ReviewTask) -> dict[str, Any]:
    judged = task.classification
    return {
        "id": task.task_id,
        "kind": task.kind.value,
        "state": task.state.value,
        "url": task.url,
        "final_url": task.final_url,
        "category": task.category,
        "title": judged.title,
        "score": judged.score,
        "limit": judged.limit,
        "certainty": judged.certainty,
        "blocked": task.blocked,
        "doubtful": task.doubtful,
        "group": task.group_id,
        "created_at": task.created_at,
        "decided_at": task.decided_at,
        "decided_by": task.decided_by,
    }
