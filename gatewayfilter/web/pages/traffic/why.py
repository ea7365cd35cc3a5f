"""The drawer "Why?" of a decision: every decider's answer, the policy in force, "what if", and actions that can be undone."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.model import ListAction, LogQuery, LogRecord, ResourceType
from gatewayfilter.model import Request as FilteredRequest
from gatewayfilter.urls import parse_loose_url, registrable_domain
from gatewayfilter.use_cases.moments import read_moment
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.traffic.log_actions import Extent, Made, act_on_url
from gatewayfilter.use_cases.url_check import UrlCheck
from gatewayfilter.web.access.changes import changing, undo_url
from gatewayfilter.web.access.checks import checked, steps_of
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Identity, Role, Viewer
from gatewayfilter.web.pages.traffic.log_rows import LogRow, LogRows
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

LIFETIMES: Final = {"1h": 3600.0, "1d": 86_400.0, "ever": None}
_MOST_NAMES: Final = 500
_LONGEST_URL: Final = 8_000


@router.get("/log/{number}/why")
def show_why(
    request: Request,
    services: Services,
    identity: Viewer,
    number: int,
    client: Annotated[str, Query(max_length=200)] = "",
    at: Annotated[str, Query(max_length=50)] = "",
) -> Response:
    """Returns the explanation of a decision: as the filter decides now, or for another client and time."""
    record = _record(services, number)
    return _explained(request, services, identity, number, record, client=client, at=at)


@router.post("/log/{number}/act")
def act_on_decision(
    request: Request,
    services: Services,
    identity: Admin,
    number: int,
    action: Annotated[ListAction, Form()],
    extent: Annotated[Extent, Form()] = Extent.SITE,
    whom: Annotated[str, Form(max_length=300)] = "",
    lifetime: Annotated[str, Form(max_length=10)] = "ever",
) -> Response:
    """Allows or blocks what a decision was about; shows how it is decided now."""
    record = _record(services, number)
    made, undo = _act(services, identity, action, record.url, extent, whom, lifetime)
    if not is_partial(request):
        return RedirectResponse(f"/log/{number}/why", 303)
    return _explained(request, services, identity, number, record, made=made, undo=undo)


@router.post("/log/allow")
@router.post("/log/block")
def act_on_row(
    request: Request,
    services: Services,
    identity: Admin,
    url: Annotated[str, Form(max_length=_LONGEST_URL)],
    extent: Annotated[Extent, Form()] = Extent.SITE,
    whom: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    """Allows or blocks the site of a row for its device, for ever; the toast undoes it."""
    action = ListAction.ALLOW if request.url.path.endswith("allow") else ListAction.BLOCK
    made, undo = _act(services, identity, action, url, extent, whom, "ever")
    if not is_partial(request):
        return RedirectResponse("/log", 303)
    return render(request, "traffic/_acted.html", made=made, undo=undo)


def _act(
    services: WebServices, identity: Identity, action: ListAction, url: str, extent: Extent, whom: str, lifetime: str
) -> tuple[Made, str]:
    if action is ListAction.SPLICE or lifetime not in LIFETIMES:
        raise HTTPException(422, "allow or block it, for 1h, 1d or ever")
    host = parse_loose_url(url).host
    with changing(services, identity, f"rule.{action.value}ed", host, whom) as recorded:
        made = act_on_url(services.store, services.clock, action, url, extent=extent, whom=whom, lifetime_s=LIFETIMES[lifetime])
    return made, undo_url(recorded.entry_id)


def _record(services: WebServices, number: int) -> LogRecord:
    found = services.store.log_search.page(LogQuery(), 1, before=number + 1).records
    if not found or found[0][0] != number:
        raise HTTPException(404, "this decision is no longer in the log")
    return found[0][1]


def _explained(  # noqa: PLR0913  what if, or what was made
    request: Request,
    services: WebServices,
    identity: Identity,
    number: int,
    record: LogRecord,
    *,
    client: str = "",
    at: str = "",
    made: Made | None = None,
    undo: str = "",
) -> Response:
    told: dict[str, Any] = {"active": "log", "made": made, "undo": undo, "what_if_client": client, "what_if_at": at}
    content = partial(_content, services, identity, number, record, client, at)
    if is_partial(request):
        return render(request, "traffic/_why.html", **content(), **told)
    return render_early(request, "traffic/why.html", content, **told)  # the child process that explains may be starting


def _content(services: WebServices, identity: Identity, number: int, record: LogRecord, client: str, at: str) -> dict[str, Any]:
    policies = services.store.policies.read()
    row = LogRows(services.clients(), policies).row(number, record)
    found, problem = _check(services, row, record, client, at)
    steps = () if found is None else steps_of(found)
    return {
        "row": row,
        "record": record,
        "found": found,
        "steps": steps,
        "winner": next((step for step in steps if step.wins), None),
        "problem": problem,
        "site": _site(row),
        "may_act": identity.may(Role.ADMIN) and bool(row.host),
        "names": sorted(policies.clients, key=name_order)[:_MOST_NAMES],
        "services_by_id": services.services,
        "groups": sorted(policies.groups),
        "group": policies.clients[row.device].group if row.device in policies.clients else "",
    }


def _check(services: WebServices, row: LogRow, record: LogRecord, client: str, at: str) -> tuple[UrlCheck | None, str]:
    try:
        kind = ResourceType(record.resource_type)
    except ValueError:
        kind = ResourceType.OTHER
    try:
        moment = read_moment(at, services.clock(), zone=services.zone) if at else None
        asked = FilteredRequest(parse_loose_url(record.url), None, kind, record.method)
        return checked(services, asked, client or row.device, moment), ""
    except StoreError:
        raise
    except GatewayFilterError as error:
        return None, str(error)


def _site(row: LogRow) -> str:
    host = row.host.rpartition(":")[0] if row.host.rpartition(":")[2].isdecimal() else row.host
    return registrable_domain(host) or host
