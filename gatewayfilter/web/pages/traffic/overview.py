"""`/`: the overview: one sentence, what waits for a person, pauses, a timeline, and the tops of who, what, where and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import Response

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import LEARNED_PREFIX, LogBucket
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.traffic.log_overview import LogShare, Overview, Span, make_overview
from gatewayfilter.use_cases.traffic.request_facts import facts_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Identity, Role, Viewer
from gatewayfilter.web.pages.traffic.log_rows import log_url
from gatewayfilter.web.rendering.category_titles import CategoryTitles
from gatewayfilter.web.rendering.pages import gettext, language_of, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_MOST_REQUESTS: Final = 3
_NEW_S: Final = 86_400.0
"""How long a device counts as new."""
_MOST_NAMES: Final = 500
"""Clients to choose from for a pause."""
_SINCE: Final = {Span.DAY: "24h", Span.WEEK: "7d", Span.MONTH: "30d"}


@dataclass(frozen=True, slots=True)
class TopRow:
    """A row of a top list: the number of blocked requests, with the log that proves it."""

    name: str
    value: int
    href: str
    note: str = ""


@router.get("/")
def show_overview(request: Request, services: Services, identity: Viewer, span: Annotated[Span, Query()] = Span.DAY) -> Response:
    """Returns the overview."""
    waiting = services.store.unblock.open_requests()
    content = partial(_content, request, services, identity, span, waiting)
    return render_early(request, "traffic/overview.html", content, active="today")


def _content(
    request: Request, services: WebServices, identity: Identity, span: Span, waiting: Sequence[UnblockRequest]
) -> dict[str, Any]:
    now = services.clock()
    found = make_overview(services.store.log_stats, services.clients(), span, now, services.zone)
    policies = services.store.policies.read()
    titles, fmt = CategoryTitles(language_of(request)), request.app.state.pages.formats(request)
    since = _SINCE[span]
    return {
        "state": services.status(),
        "health": services.health(),
        "overview": found,
        "span": span.value,
        "spans": [(one.value, f"/?span={one.value}" if one is not Span.DAY else "/") for one in Span],
        "since": since,
        "blocked_log": log_url(outcome="blocked", since=since),
        "whole_log": log_url(since=since),
        **_devices(services, found.since, now),
        "waiting": facts_of(services.store, waiting[:_MOST_REQUESTS], now),
        "more_waiting": max(0, len(waiting) - _MOST_REQUESTS),
        "pauses": policies.pauses_at(now),
        "names": sorted(policies.clients, key=name_order)[:_MOST_NAMES],
        "groups": sorted(policies.groups),
        "may_pause": identity.may(Role.APPROVER),
        "chart": _chart(found, services),
        "who": _tops(found.clients, since, "client", lambda one: (one.name, fmt.percent(one.blocked_share))),
        "what": _tops(found.categories, since, "category", lambda one: (titles(one.name), "")),
        "where": _tops(found.sites, since, "site", lambda one: (one.name, "")),
        "why": _tops(found.lists, since, "list", lambda one: (list_words(request, one.name), "")),
    }


def list_words(request: Request, name: str) -> str:
    """Returns the name of a list, with a category's own title where pages of it were learned."""
    category = name.removeprefix(LEARNED_PREFIX)
    if category == name:
        return name
    return gettext(request, "learned: %(category)s", category=CategoryTitles(language_of(request))(category))


def _tops(shares: Sequence[LogShare], since: str, condition: str, told: Callable[[LogShare], tuple[str, str]]) -> list[TopRow]:
    """Returns the rows of a list.

    Args:
        shares: ranked.
        since: of the span, as a condition of the log.
        condition: of the log, for a name.
        told: returns the shown name and a note.
    """
    rows = []
    for one in shares:
        if one.blocked:
            name, note = told(one)
            rows.append(TopRow(name, one.blocked, log_url(**{condition: one.name}, outcome="blocked", since=since), note))
    return rows


def _devices(services: WebServices, since: float, now: float) -> dict[str, int]:
    """Returns how many devices and people were there, and how many addresses are new and have no name."""
    names = services.clients()
    seen = [one for one in services.store.log_stats.clients() if one.client]
    fresh = [
        one
        for one in seen
        if one.first_at > now - _NEW_S and not one.client.startswith(USER_PREFIX) and not names.name(one.client)
    ]
    return {"devices": len({names.shown(one.client) for one in seen if one.last_at >= since}), "new_devices": len(fresh)}


def _chart(overview: Overview, services: WebServices) -> dict[str, list[float] | list[int] | list[str]]:
    """Returns the columns of the chart: when each part begins, and its numbers; a part is one of `log_url`'s spans."""
    buckets = overview.timeline.buckets
    edges = [*(one.start for one in buckets), overview.timeline.until]
    return {
        "at": [one.start for one in buckets],
        "blocked": [one.blocked - _learned(one) for one in buckets],
        "learned": [_learned(one) for one in buckets],
        "allowed": [one.allowed + one.unknown for one in buckets],
        "edges": [datetime.fromtimestamp(at, services.zone).strftime("%Y-%m-%dT%H:%M") for at in edges],
    }


def _learned(bucket: LogBucket) -> int:
    return min(bucket.learned, bucket.blocked)
