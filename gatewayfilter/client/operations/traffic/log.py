"""The API of log. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class Purge(TypedDict):
    """Which decisions are removed; at least one of the two."""

    before: NotRequired[str]
    client: NotRequired[str]


class RemovedModel(TypedDict):
    """A number of items that were removed."""

    removed: int


class Erasure(TypedDict):
    """How a client is erased."""

    keep: NotRequired[bool]


class ErasedModel(TypedDict):
    """What was erased."""

    counts: dict[str, int]
    backups: list[str]


class DecisionPage(TypedDict):
    """A page of decisions, the newest first."""

    items: list[DecisionModel]
    next: int | None
    searched_to: float | None
    complete: bool


class DecisionModel(TypedDict):
    """A decision of the log."""

    id: int
    at: float
    client: str
    client_name: str
    user: str
    method: str
    url: str
    type: str
    action: str
    reason: str
    list: str
    rule: str
    category: str
    elapsed_us: int


class StatsModel(TypedDict):
    """Counts of a time span, widened to whole hours."""

    since: float | None
    until: float | None
    decisions: int
    blocked: int
    uncounted: int
    tops: dict[str, list[CountModel]]


class CountModel(TypedDict):
    """Decisions that have a name in common."""

    name: str
    decisions: int
    blocked: int


class TimelineModel(TypedDict):
    """Decisions over time."""

    buckets: list[BucketModel]
    until: float
    uncounted: int


class BucketModel(TypedDict):
    """A part of a timeline."""

    start: float
    allowed: int
    blocked: int
    unknown: int
    learned: int


class OverviewModel(TypedDict):
    """What happened in a time span."""

    since: float
    until: float
    decisions: int
    blocked: int
    uncounted: int
    timeline: list[BucketModel]
    clients: list[CountModel]
    categories: list[CountModel]
    sites: list[CountModel]
    lists: list[CountModel]


class ReportModel(TypedDict):
    """The report of a time span."""

    since: float
    until: float
    decisions: int
    blocked: int
    clients: list[CountModel]
    blocked_by: dict[str, list[CountModel]]
    new_devices: list[NewDeviceModel]
    requests: list[AskedModel]
    learned: list[LearnedModel]
    learned_count: int
    lists: int
    failing: list[str]


class NewDeviceModel(TypedDict):
    """A client whose first decision lies in the span."""

    client: str
    name: str
    first_at: float


class AskedModel(TypedDict):
    """A request to unblock a page."""

    number: int
    url: str
    who: str
    comment: str
    state: str
    word: str
    at: float


class LearnedModel(TypedDict):
    """A page that was learned to be blocked."""

    url: str
    category: str
    at: float


class LogApi:
    """Operations of log."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def watch_events(
        self,
        *,
        q: str | None = None,
        outcome: str | None = None,
        client: str | None = None,
        group: str | None = None,
        category: str | None = None,
        reason: str | None = None,
        site: str | None = None,
        list: str | None = None,
        since: str | None = None,
        until: str | None = None,
        last_event_id: str = "",
    ) -> Answer[bytes]:
        """Sends `decisions` (`items` and the number of `skipped` ones) and `state` (waiting `requests` and `reviews`)."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/events",
                query={
                    "q": q,
                    "outcome": outcome,
                    "client": client,
                    "group": group,
                    "category": category,
                    "reason": reason,
                    "site": site,
                    "list": list,
                    "since": since,
                    "until": until,
                },
                headers={"last-event-id": last_event_id},
            )
        )

    def export_log(
        self,
        *,
        format: Literal["csv", "jsonl"] | None = None,
        separator: Literal["comma", "semicolon", "tab"] | None = None,
        q: str | None = None,
        outcome: str | None = None,
        client: str | None = None,
        group: str | None = None,
        category: str | None = None,
        reason: str | None = None,
        site: str | None = None,
        list: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Answer[bytes]:
        """Returns the decisions that fulfil all conditions as a file, newest first."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/log/export",
                query={
                    "format": format,
                    "separator": separator,
                    "q": q,
                    "outcome": outcome,
                    "client": client,
                    "group": group,
                    "category": category,
                    "reason": reason,
                    "site": site,
                    "list": list,
                    "since": since,
                    "until": until,
                },
            )
        )

    def purge_log(self, body: Purge) -> Answer[RemovedModel]:
        """Removes decisions for good, with all that is counted and indexed of them."""
        return self._transport.send(Call("POST", "/api/v1/log/purge", body=body))

    def erase_client(self, name: str, body: Erasure) -> Answer[ErasedModel]:
        """Erases everything that is stored of a client: log, counts, requests, links, quotas, and the client itself."""
        return self._transport.send(Call("POST", "/api/v1/clients/{name}/erase", parameters={"name": name}, body=body))

    def list_decisions(
        self,
        *,
        after: int | None = None,
        limit: int | None = None,
        q: str | None = None,
        outcome: str | None = None,
        client: str | None = None,
        group: str | None = None,
        category: str | None = None,
        reason: str | None = None,
        site: str | None = None,
        list: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Answer[DecisionPage]:
        """Returns the newest decisions that fulfil all conditions."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/log",
                query={
                    "after": after,
                    "limit": limit,
                    "q": q,
                    "outcome": outcome,
                    "client": client,
                    "group": group,
                    "category": category,
                    "reason": reason,
                    "site": site,
                    "list": list,
                    "since": since,
                    "until": until,
                },
            )
        )

    def get_log_stats(
        self,
        *,
        top: int | None = None,
        q: str | None = None,
        outcome: str | None = None,
        client: str | None = None,
        group: str | None = None,
        category: str | None = None,
        reason: str | None = None,
        site: str | None = None,
        list: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Answer[StatsModel]:
        """Returns counts of a time span, of a client, a group or everybody. Other conditions do not apply."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/log/stats",
                query={
                    "top": top,
                    "q": q,
                    "outcome": outcome,
                    "client": client,
                    "group": group,
                    "category": category,
                    "reason": reason,
                    "site": site,
                    "list": list,
                    "since": since,
                    "until": until,
                },
            )
        )

    def get_log_timeline(
        self,
        *,
        span: Literal["day", "week", "month"] | None = None,
        q: str | None = None,
        outcome: str | None = None,
        client: str | None = None,
        group: str | None = None,
        category: str | None = None,
        reason: str | None = None,
        site: str | None = None,
        list: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Answer[TimelineModel]:
        """Returns the timeline of the last day, week or month, of a client, a group or everybody. Other conditions do not apply."""
        return self._transport.send(
            Call(
                "GET",
                "/api/v1/log/timeline",
                query={
                    "span": span,
                    "q": q,
                    "outcome": outcome,
                    "client": client,
                    "group": group,
                    "category": category,
                    "reason": reason,
                    "site": site,
                    "list": list,
                    "since": since,
                    "until": until,
                },
            )
        )

    def get_decision(self, decision_id: int) -> Answer[DecisionModel]:
        """Returns a decision."""
        return self._transport.send(Call("GET", "/api/v1/log/{decision_id}", parameters={"decision_id": decision_id}))

    def get_overview(self, *, span: Literal["day", "week", "month"] | None = None) -> Answer[OverviewModel]:
        """Returns the overview."""
        return self._transport.send(Call("GET", "/api/v1/overview", query={"span": span}))

    def get_report(self, *, since: str | None = None, until: str | None = None) -> Answer[ReportModel]:
        """Returns what was blocked, for whom and why, new devices, requests, learned pages, and the lists' state."""
        return self._transport.send(Call("GET", "/api/v1/reports", query={"since": since, "until": until}))
