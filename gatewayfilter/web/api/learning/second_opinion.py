"""`/api/v1/model`: the statistical model that is trained on the pages that people decided, and what their decisions tell."""

from contextlib import closing
from typing import Annotated, Final

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.errors import MissingItemError
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.child_process import ChildProcess
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/model", tags=["model"])

_JOBS: Final = "gatewayfilter.use_cases.operation.second_opinion"
_TRAINING_S: Final = 120.0
"""Six times what 2,500 pages of each kind take."""
_WEEK_S: Final = 7 * 86_400.0


class OpinionModel(BaseModel):
    """The model."""

    used: Annotated[bool, Field(description="Whether there is one in use; pages are judged by words alone without.")]
    examples: Annotated[int, Field(description="Texts that it was trained on.")] = 0
    harmful: Annotated[int, Field(description="Harmful ones among them.")] = 0
    auc: Annotated[float, Field(description="Area under the curve by cross-validation: 0.5 is chance, 1 is perfect.")] = 0.0
    trained_at: Annotated[float, Field(description="Unix seconds.")] = 0.0


class FalseBlockModel(BaseModel):
    """Decisions of a week in a category."""

    week: Annotated[str, Field(description="ISO week, as `2026-W47`; empty for all weeks.")]
    category: Annotated[str, Field(description="Code of the category; empty for all.")]
    decided: Annotated[int, Field(description="Blocked pages that people decided.")]
    false_blocks: Annotated[int, Field(description="Of them, those that they found harmless.")]
    rate: Annotated[float | None, Field(description="Share of these, null without decisions.")]
    reviewed: Annotated[int, Field(description="Further pages that were decided without having been blocked.")]


class LoweredModel(BaseModel):
    """A word that weighs less in second looks, by rejected pages."""

    category: Annotated[str, Field(description="Of the word.")]
    word: Annotated[str, Field(description="The word.")]
    factor: Annotated[float, Field(description="Share of its weight that counts.")]
    rejected: Annotated[int, Field(description="Sites with rejected pages that had it.")]
    approved: Annotated[int, Field(description="Sites with approved pages that had it.")]


class FalseBlocksModel(BaseModel):
    """False blocks that people found."""

    weeks: Annotated[list[FalseBlockModel], Field(description="The newest first, at the end by category and for all.")]
    lowered: Annotated[list[LoweredModel], Field(description="The lightest first.")]


@router.get("", operation_id="get_model")
def get_model(services: Services, _: Viewer) -> OpinionModel:
    """Returns what the model in use was trained on and how well it does."""
    return OpinionModel(**services.child.run(f"{_JOBS}:status", services.settings))


@router.post("/train", operation_id="train_model")
def train(services: Services, identity: Admin) -> OpinionModel:
    """Trains on the decided reviews; `used` is false, and the old model stays, where that is little better than chance."""
    with closing(ChildProcess(_TRAINING_S)) as child:
        found = child.run(f"{_JOBS}:train", services.settings, services.clock())
    record(services, identity, "model.trained", "model", f"{found['examples']} texts")
    return OpinionModel(**found)


@router.delete("", operation_id="remove_model", status_code=204, response_class=Response)
def remove(services: Services, identity: Admin) -> None:
    """Removes the model: pages are judged by words alone. None is trained by itself afterwards."""
    if not services.child.run(f"{_JOBS}:remove", services.settings):
        raise MissingItemError("there is no model")
    record(services, identity, "model.off", "model")


@router.get("/false-blocks", operation_id="get_false_blocks")
def false_blocks(
    services: Services, _: Viewer, weeks: Annotated[int, Query(ge=1, le=520, description="How far back.")] = 12
) -> FalseBlocksModel:
    """Returns how many blocked pages people found harmless, and which words weigh less since."""
    since = services.clock() - weeks * _WEEK_S
    return FalseBlocksModel(**services.child.run(f"{_JOBS}:false_block_report", services.settings, since))
