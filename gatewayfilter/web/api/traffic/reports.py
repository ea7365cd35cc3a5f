"""`/api/v1/reports`: the report of a time span."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import LogDimension
from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.use_cases.traffic.log_report import make_report
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.api.traffic.log import CountModel
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/reports", tags=["log"])


class NewDeviceModel(BaseModel):
    """A client whose first decision lies in the span."""

    client: Annotated[str, Field(description="As logged.")]
    name: Annotated[str, Field(description="Empty for an unnamed one.")]
    first_at: Annotated[float, Field(description="Unix seconds.")]


class AskedModel(BaseModel):
    """A request to unblock a page."""

    number: Annotated[int, Field(description="Of the request.")]
    url: Annotated[str, Field(description="The blocked page.")]
    who: Annotated[str, Field(description="Name of the client, or its address.")]
    comment: Annotated[str, Field(description="Of the person who asked.")]
    state: Annotated[str, Field(description="`open`, `approved`, `denied` or `closed`.")]
    word: Annotated[str, Field(description="The answer.")]
    at: Annotated[float, Field(description="Unix seconds.")]


class LearnedModel(BaseModel):
    """A page that was learned to be blocked."""

    url: Annotated[str, Field(description="The page.")]
    category: Annotated[str, Field(description="Code of the category.")]
    at: Annotated[float, Field(description="Unix seconds.")]


class ReportModel(BaseModel):
    """The report of a time span."""

    since: Annotated[float, Field(description="Unix seconds.")]
    until: Annotated[float, Field(description="Unix seconds.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]
    clients: Annotated[list[CountModel], Field(description="By client.")]
    blocked_by: Annotated[dict[str, list[CountModel]], Field(description="`host`, `category`, `source`, `reason`.")]
    new_devices: Annotated[list[NewDeviceModel], Field(description="The newest first.")]
    requests: Annotated[list[AskedModel], Field(description="Requests to unblock with their answers, the newest first.")]
    learned: Annotated[list[LearnedModel], Field(description="The newest pages that were learned to be blocked.")]
    learned_count: Annotated[int, Field(description="Number of all of them.")]
    lists: Annotated[int, Field(description="Enabled subscriptions.")]
    failing: Annotated[list[str], Field(description="Those whose last update failed.")]


@router.get("", operation_id="get_report")
def get_report(
    services: Services,
    _: Viewer,
    since: Annotated[str, Query(max_length=50, description="`today`, `yesterday`, `7d`, `2030-01-31`.")] = "7d",
    until: Annotated[str, Query(max_length=50, description="As `since`; empty for now.")] = "",
) -> ReportModel:
    """Returns what was blocked, for whom and why, new devices, requests, learned pages, and the lists' state."""
    now = services.clock()
    begin = read_moment(since, now, back=True, zone=services.zone)
    end = read_moment(until, now, back=True, zone=services.zone) if until else None
    if end is not None and end <= begin:
        raise PolicyError("the report ends before it begins")
    found = make_report(services.store, services.settings, begin, end)
    dimensions = (LogDimension.HOST, LogDimension.CATEGORY, LogDimension.SOURCE, LogDimension.REASON)
    return ReportModel(
        since=found.since,
        until=found.until,
        decisions=found.summary.decisions,
        blocked=found.summary.blocked,
        clients=[CountModel(**asdict(one)) for one in found.clients],
        blocked_by={one.name.lower(): [CountModel(**asdict(count)) for count in found.blocked(one)] for one in dimensions},
        new_devices=[NewDeviceModel(**asdict(one)) for one in found.new_devices],
        requests=[
            AskedModel(
                number=one.request_id,
                url=one.url,
                who=one.who,
                comment=one.comment,
                state=one.state.value,
                word=one.word,
                at=one.at,
            )
            for one in found.requests
        ],
        learned=[LearnedModel(url=one.url, category=one.category, at=one.created_at) for one in found.learned],
        learned_count=found.learned_count,
        lists=found.sources,
        failing=list(found.failing),
    )
