"""`/api/v1/overview`: the timeline and the tops of a day, a week or a month."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.use_cases.traffic.log_overview import LogShare, Span, make_overview
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.traffic.log import BucketModel, CountModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/overview", tags=["log"])


class OverviewModel(BaseModel):
    """What happened in a time span."""

    since: Annotated[float, Field(description="Unix seconds.")]
    until: Annotated[float, Field(description="Unix seconds.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]
    uncounted: Annotated[int, Field(description="Newest decisions that are not counted yet.")]
    timeline: Annotated[list[BucketModel], Field(description="In order.")]
    clients: Annotated[list[CountModel], Field(description="Clients with the most blocked requests.")]
    categories: Annotated[list[CountModel], Field(description="Categories, likewise.")]
    sites: Annotated[list[CountModel], Field(description="Hosts, likewise.")]
    lists: Annotated[list[CountModel], Field(description="Lists, likewise.")]


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
        clients=[_counted(one) for one in found.clients],
        categories=[_counted(one) for one in found.categories],
        sites=[_counted(one) for one in found.sites],
        lists=[_counted(one) for one in found.lists],
    )


def _counted(share: LogShare) -> CountModel:
    return CountModel(name=share.name, decisions=share.decisions, blocked=share.blocked)
