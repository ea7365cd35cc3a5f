"""`/api/v1/overview`: the timeline and the tops of a day, a week or a month."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.traffic.log_overview import LogShare, Span, make_overview
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.traffic.log import BucketModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/overview", tags=["log"])


class ShareModel(BaseModel):
    """The decisions of a client, category, site or list."""

    name: Annotated[str, Field(description="As shown: the name of a client, else what is logged.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]

    @classmethod
    def of(cls, share: LogShare) -> "ShareModel":
        """Returns the model of a share."""
        return cls(name=share.name, decisions=share.decisions, blocked=share.blocked)


class OverviewModel(BaseModel):
    """What happened in a time span."""

    since: Annotated[float, Field(description="Unix seconds.")]
    until: Annotated[float, Field(description="Unix seconds.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]
    uncounted: Annotated[int, Field(description="Newest decisions that are not counted yet.")]
    timeline: Annotated[list[BucketModel], Field(description="In order.")]
    clients: Annotated[list[ShareModel], Field(description="Clients with the most blocked requests.")]
    categories: Annotated[list[ShareModel], Field(description="Categories, likewise.")]
    sites: Annotated[list[ShareModel], Field(description="Hosts, likewise.")]
    lists: Annotated[list[ShareModel], Field(description="Lists, likewise.")]


@router.get("", operation_id="get_overview")
def get_overview(
    services: Services,
    _: Viewer,
    span: Annotated[Span, Query(description="24 hours, 7 or 30 days.")] = Span.DAY,
) -> OverviewModel:
    """Returns the overview."""
    found = make_overview(services.store.log_stats, services.clients(), span, services.clock(), services.zone)
    return OverviewModel(
        since=found.since,
        until=found.until,
        decisions=found.decisions,
        blocked=found.blocked,
        uncounted=found.uncounted,
        timeline=[
            BucketModel(start=one.start, allowed=one.allowed, blocked=one.blocked, unknown=one.unknown, learned=one.learned)
            for one in found.timeline.buckets
        ],
        clients=[ShareModel.of(one) for one in found.clients],
        categories=[ShareModel.of(one) for one in found.categories],
        sites=[ShareModel.of(one) for one in found.sites],
        lists=[ShareModel.of(one) for one in found.lists],
    )
