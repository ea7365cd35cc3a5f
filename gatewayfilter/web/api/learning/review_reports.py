"""`/api/v1/reviews/…` and `/api/v1/fingerprints`: counts and steps of reviews, proposed phrases, content that is known again."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.review.review_reports import review_counts
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.learning.reviews import StepModel, step_model
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter(tags=["reviews"])


class ReviewCountModel(BaseModel):
    """Tasks of a state and category."""

    state: Annotated[str, Field(description="open, approved or rejected.")]
    category: Annotated[str, Field(description="Code of the category.")]
    tasks: Annotated[int, Field(description="How many.")]
    oldest_hours: Annotated[float, Field(description="Age of the oldest.")]


class ReviewStatsModel(BaseModel):
    """How many tasks wait, and how fast they are decided."""

    open: Annotated[int, Field(description="Tasks that wait.")]
    oldest_open_hours: Annotated[float | None, Field(description="How long the oldest of them has waited.")]
    decided_in_7_days: Annotated[int, Field(description="Tasks that were decided in the last 7 days.")]
    median_hours_to_decision: Annotated[float | None, Field(description="How long half of them waited at most.")]
    counts: Annotated[list[ReviewCountModel], Field(description="By state and category.")]


class TaskStepModel(StepModel):
    """A step on a task."""

    task: Annotated[int, Field(description="Number of the task.")]


class StepList(BaseModel):
    """Steps on all tasks."""

    items: Annotated[list[TaskStepModel], Field(description="The newest first.")]


class PhraseModel(BaseModel):
    """A phrase that would cover a word, so that it does not count."""

    phrase: Annotated[str, Field(description="The phrase; `POST /words/CATEGORY/add` takes it over as an exception.")]
    word: Annotated[str, Field(description="The word that counted against harmless pages.")]
    category: Annotated[str, Field(description="Category of the word.")]
    pages: Annotated[int, Field(description="Harmless pages on which it stands.")]


class PhraseList(BaseModel):
    """Proposed phrases."""

    items: Annotated[list[PhraseModel], Field(description="Those of most pages first.")]


@router.get("/reviews/stats", operation_id="get_review_stats")
def stats(services: Services, _: Viewer) -> ReviewStatsModel:
    """Returns how many tasks wait in each category, for how long, and how fast tasks were decided this week."""
    return ReviewStatsModel(**review_counts(services.store, services.clock()))


@router.get("/reviews/steps", operation_id="list_review_steps")
def steps(services: Services, _: Viewer, limit: Annotated[int, Query(ge=1, le=500, description="Most items.")] = 50) -> StepList:
    """Returns what was decided, by whom and when, of all tasks."""
    found = services.store.reviews.steps(limit=limit)
    return StepList(items=[TaskStepModel(**step_model(step).model_dump(), task=step.task_id) for step in found])


@router.get("/reviews/phrases", operation_id="list_review_phrases")
def phrases(
    services: Services, _: Viewer, limit: Annotated[int, Query(ge=1, le=100, description="Most items.")] = 20
) -> PhraseList:
    """Returns exception phrases: what stands around the words on rejected pages, and on no approved one."""
    found = services.child.run("gatewayfilter.use_cases.review.review_reports:phrases", services.settings, limit)
    return PhraseList(items=[PhraseModel(**one) for one in found])


@router.get("/fingerprints", operation_id="get_fingerprint_counts", tags=["fingerprints"])
def fingerprints(services: Services, _: Viewer) -> dict[str, int]:
    """Returns how many fingerprints of judged content there are by kind, how many are harmful, and how often they were found."""
    return dict(services.store.fingerprints.stats())
