"""`/log`: the history of decisions with filters that read as a sentence, and the live log."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import LogQuery
from gatewayfilter.use_cases.traffic.live_log import LiveBatch
from gatewayfilter.use_cases.traffic.log_filters import LogFilters
from gatewayfilter.use_cases.traffic.log_groups import MINUTE_S, grouped_page
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.event_stream import STREAM_HEADERS, event, first_number, stream
from gatewayfilter.web.access.identity import Role, Viewer
from gatewayfilter.web.access.log_conditions import Conditions
from gatewayfilter.web.pages.traffic.log_rows import LogRow, LogRows, log_url
from gatewayfilter.web.pages.traffic.log_sentence import SentenceMaker
from gatewayfilter.web.rendering.category_titles import CategoryTitles
from gatewayfilter.web.rendering.pages import language_of, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_PAGE = 50
_MOST_LIVE = 40
"""Rows of a batch of the live log; what is more is counted, and stands in the history."""


@router.get("/log")
def show_log(
    request: Request,
    services: Services,
    identity: Viewer,
    conditions: Conditions,
    view: Annotated[str, Query(max_length=10)] = "sites",
    before: Annotated[int | None, Query(ge=1)] = None,
    live: Annotated[str, Query(max_length=1)] = "",
) -> Response:
    """Returns a page of the log."""
    view = view if view == "all" else "sites"
    content = partial(_content, request, services, conditions, view, before, is_live=live == "1")
    return render_early(request, "traffic/log.html", content, active="log", may_act=identity.may(Role.ADMIN))


def _content(
    request: Request, services: WebServices, conditions: LogFilters, view: str, before: int | None, *, is_live: bool
) -> dict[str, Any]:
    pages = request.app.state.pages
    clients, policies = services.clients(), services.store.policies.read()
    rows_of = LogRows(clients, policies)
    problem, complete = "", True
    rows: list[LogRow] = []
    next_before: int | None = None
    try:
        query = conditions.query(clients, services.clock(), services.zone)
        rows, next_before, complete = _page(services, rows_of, conditions, query, view, before)
    except PolicyError as error:
        problem = str(error)
    titles = CategoryTitles(language_of(request))
    categories = sorted(((one.category_id, titles(one.category_id)) for one in services.categories), key=lambda pair: pair[1])
    maker = SentenceMaker(conditions, view, policies, categories, lambda text: pages.gettext(request, text))
    given = conditions.given | ({"view": view} if view == "all" else {})
    return {
        "rows": rows,
        "problem": problem,
        "filters": conditions,
        "sentence": maker.make(),
        "view": view,
        "complete": complete,
        "is_live": is_live,
        "live_url": f"/log/live?{log_url(**conditions.given).partition('?')[2]}",
        "live_page": log_url(**given, live="" if is_live else "1"),
        "sites_url": log_url(**conditions.given),
        "all_url": log_url(**conditions.given, view="all"),
        "newer": log_url(**given) if before is not None else "",
        "older": log_url(**given, before=str(next_before)) if next_before is not None else "",
    }


def _page(
    services: WebServices, rows: LogRows, filters: LogFilters, query: LogQuery, view: str, before: int | None
) -> tuple[list[LogRow], int | None, bool]:
    if view == "all":
        page = services.store.log_search.page(query, _PAGE, before=before)
        return rows.rows(page.records), page.before, not page.timed_out
    groups = grouped_page(services.store.log_search, query, _PAGE, before=before)
    found = [
        rows.group(one, filters.given, _local(one.minute, services), _local(one.minute + MINUTE_S, services))
        for one in groups.groups
    ]
    return found, groups.before, not groups.timed_out


def _local(at: float, services: WebServices) -> str:
    return datetime.fromtimestamp(at, services.zone).replace(tzinfo=None).isoformat(timespec="minutes")


@dataclass(frozen=True, slots=True)
class _Live:
    """The live log of a page, as rows of HTML."""

    request: Request
    services: WebServices
    may_act: bool

    @property
    def form(self) -> tuple[str, bool]:
        """Rows depend on the language, and on what their reader may do."""
        return language_of(self.request), self.may_act

    def write(self, batch: LiveBatch) -> str:
        """Returns the event `rows`."""
        rows = LogRows(self.services.clients(), self.services.store.policies.read())
        shown = rows.rows(batch.records[-_MOST_LIVE:][::-1])
        html = self.request.app.state.pages.fragment(self.request, "traffic/_log_rows.html", rows=shown, may_act=self.may_act)
        left_out = batch.skipped + len(batch.records) - len(shown)
        return event("rows", json.dumps({"html": html, "rows": len(shown), "skipped": left_out}), batch.reached)


@router.get("/log/live", response_class=StreamingResponse)
def live_log(request: Request, services: Services, identity: Viewer, conditions: Conditions) -> StreamingResponse:
    """Sends new rows as server-sent events."""
    query = conditions.query(services.clients(), services.clock(), services.zone)
    start = first_number(request.headers.get("last-event-id", ""))
    live = _Live(request, services, identity.may(Role.ADMIN))
    sent = stream(request, services.live_batches, query, live, start)
    return StreamingResponse(sent, media_type="text/event-stream", headers=STREAM_HEADERS)
