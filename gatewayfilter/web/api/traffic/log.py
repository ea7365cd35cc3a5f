"""`/api/v1/log`: pages, counts and timelines of decisions."""

from dataclasses import asdict
from typing import Annotated

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel, Field

from gatewayfilter.model import LogDimension, LogQuery, LogRecord, client_of
from gatewayfilter.use_cases.traffic.log_clients import LogClients
from gatewayfilter.use_cases.traffic.log_overview import Span, span_edges
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Viewer
from gatewayfilter.web.access.log_conditions import Conditions
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/log", tags=["log"])


class DecisionModel(BaseModel):
    """A decision of the log."""

    id: Annotated[int, Field(description="Number of the decision; newer ones have higher numbers.")]
    at: Annotated[float, Field(description="Unix seconds.")]
    client: Annotated[str, Field(description="Address as logged, or `user:NAME`.")]
    client_name: Annotated[str, Field(description="Name of the client, empty for an unnamed one.")]
    user: Annotated[str, Field(description="Name under which the client logged in to the proxy.")]
    method: Annotated[str, Field(description="HTTP method.")]
    url: Annotated[str, Field(description="As logged: without its query or path where `log.privacy` cuts them.")]
    type: Annotated[str, Field(description="Resource type, such as `script`.")]
    action: Annotated[str, Field(description="`allow` or `block`.")]
    reason: Annotated[str, Field(description="Reason code.")]
    list: Annotated[str, Field(description="The list that decided, empty for none.")]
    rule: Annotated[str, Field(description="The entry or rule as written in its list.")]
    category: Annotated[str, Field(description="Code of the category, empty for none.")]
    elapsed_us: Annotated[int, Field(description="Duration of the decision in microseconds.")]

    @classmethod
    def of(cls, number: int, record: LogRecord, clients: LogClients) -> "DecisionModel":
        """Returns the model of a record."""
        return cls(
            id=number,
            at=record.at,
            client=client_of(record),
            client_name=clients.name(client_of(record)),
            user=record.user,
            method=record.method,
            url=record.url,
            type=record.resource_type,
            action=record.action,
            reason=record.reason,
            list=record.source_list,
            rule=record.rule,
            category=record.category,
            elapsed_us=record.elapsed_us,
        )


class DecisionPage(BaseModel):
    """A page of decisions, the newest first."""

    items: Annotated[list[DecisionModel], Field(description="The decisions.")]
    next: Annotated[int | None, Field(description="`after` of the next page, null where there is none.")]
    searched_to: Annotated[float | None, Field(description="Time of the oldest decision that was looked at.")]
    complete: Annotated[bool, Field(description="False where the search ended in time, before the page was full.")]


class CountModel(BaseModel):
    """Decisions that have a name in common."""

    name: Annotated[str, Field(description="As logged, or that of a client; empty for rare names that are not kept apart.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]


class StatsModel(BaseModel):
    """Counts of a time span, widened to whole hours."""

    since: Annotated[float | None, Field(description="Beginning of the first hour that is counted.")]
    until: Annotated[float | None, Field(description="End of the last one.")]
    decisions: Annotated[int, Field(description="Number of decisions.")]
    blocked: Annotated[int, Field(description="Blocked ones among them.")]
    uncounted: Annotated[int, Field(description="Newest decisions that are not counted yet.")]
    tops: Annotated[
        dict[str, list[CountModel]],
        Field(description="The most frequent names: `client`, `host`, `category`, `source`, `reason`."),
    ]


class BucketModel(BaseModel):
    """A part of a timeline."""

    start: Annotated[float, Field(description="Unix seconds.")]
    allowed: Annotated[int, Field(description="Allowed requests, those of unknown URLs left out.")]
    blocked: Annotated[int, Field(description="Blocked requests.")]
    unknown: Annotated[int, Field(description="Allowed requests of URLs on no list.")]
    learned: Annotated[int, Field(description="Of all of these, decided by a learned entry.")]


class TimelineModel(BaseModel):
    """Decisions over time."""

    buckets: Annotated[list[BucketModel], Field(description="In order, empty ones included.")]
    until: Annotated[float, Field(description="End of the last one, Unix seconds.")]
    uncounted: Annotated[int, Field(description="Newest decisions that are not counted yet.")]


@router.get("", operation_id="list_decisions")
def list_decisions(
    services: Services,
    _: Viewer,
    conditions: Conditions,
    after: Annotated[int | None, Query(ge=1, description="Continues after this number: `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most decisions of a page.")] = 100,
) -> DecisionPage:
    """Returns the newest decisions that fulfil all conditions."""
    clients = services.clients()
    query = conditions.query(clients, services.clock(), services.zone)
    page = services.store.log_search.page(query, limit, before=after)
    return DecisionPage(
        items=[DecisionModel.of(number, record, clients) for number, record in page.records],
        next=page.before,
        searched_to=page.searched_to,
        complete=not page.timed_out,
    )


@router.get("/stats", operation_id="get_log_stats")
def log_stats(
    services: Services,
    _: Viewer,
    conditions: Conditions,
    top: Annotated[int, Query(ge=1, le=200, description="Most names of each table.")] = 20,
) -> StatsModel:
    """Returns counts of a time span, of a client, a group or everybody. Other conditions do not apply."""
    query = conditions.query(services.clients(), services.clock(), services.zone)
    found = services.store.log_stats.summary(query.since, query.until, query.clients, top)
    tops = {
        dimension.name.lower(): [CountModel(**asdict(one)) for one in found.tops.get(dimension, ())] for dimension in LogDimension
    }
    return StatsModel(
        since=found.since,
        until=found.until,
        decisions=found.decisions,
        blocked=found.blocked,
        uncounted=found.uncounted,
        tops=tops,
    )


@router.get("/timeline", operation_id="get_log_timeline")
def log_timeline(
    services: Services,
    _: Viewer,
    conditions: Conditions,
    span: Annotated[Span, Query(description="24 hours, 7 days in quarters, or 30 days.")] = Span.DAY,
) -> TimelineModel:
    """Returns the timeline of the last day, week or month, of a client, a group or everybody. Other conditions do not apply."""
    now = services.clock()
    clients = conditions.query(services.clients(), now, services.zone).clients
    found = services.store.log_stats.timeline(span_edges(span, now, services.zone), clients)
    buckets = [
        BucketModel(start=one.start, allowed=one.allowed, blocked=one.blocked, unknown=one.unknown, learned=one.learned)
        for one in found.buckets
    ]
    return TimelineModel(buckets=buckets, until=found.until, uncounted=found.uncounted)


@router.get("/{decision_id}", operation_id="get_decision")
def get_decision(
    services: Services, _: Viewer, decision_id: Annotated[int, Path(ge=1, le=1 << 62, description="Number of the decision.")]
) -> DecisionModel:
    """Returns a decision."""
    found = services.store.log_search.page(LogQuery(), 1, before=decision_id + 1).records
    if not found or found[0][0] != decision_id:
        raise HTTPException(404, f"there is no decision {decision_id} in the log")
    return DecisionModel.of(*found[0], services.clients())
