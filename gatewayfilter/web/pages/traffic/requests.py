"""`/requests`: users' requests to unblock pages, waiting and answered, and bypass links."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Form, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from gatewayfilter.errors import ConflictError, PolicyError
from gatewayfilter.store.secret_key import REQUEST_KEY, load_key
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.requests import Whom, address_of, link_state, read_word
from gatewayfilter.use_cases.traffic.request_answers import RequestAnswers, Terms
from gatewayfilter.use_cases.traffic.request_facts import facts_of, find_request
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Approver, Viewer
from gatewayfilter.web.rendering.pages import is_partial, render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_A_PAGE = 20
_MOST_LINKS = 200
_HOUR, _DAY = 3600.0, 86_400.0
_LIFETIMES = {"1h": _HOUR, "1d": _DAY, "1w": 7 * _DAY, "ever": None}
_EVERYBODY = "everybody"
Number = Annotated[int, Path(ge=1, le=2**53)]


class AnswerForm(BaseModel):
    """The form of a request; its button is the answer."""

    answer: Literal["1h", "1d", "1w", "ever", "once", "no", "link"]
    whom: Annotated[str, Field(max_length=300)] = ""
    part: Literal["", "page", "site"] = ""
    word: Annotated[str, Field(max_length=1000)] = ""
    seen: Annotated[str, Field(max_length=80)] = ""


class LinkForm(BaseModel):
    """The form of a new bypass link."""

    url: Annotated[str, Field(max_length=4000)]
    whom: Annotated[str, Field(max_length=300)]
    lasts: Literal["1h", "1d", "1w"] = "1h"
    once: bool = False
    site: bool = False


@router.get("/requests")
def waiting(request: Request, services: Services, _: Viewer) -> Response:
    """Shows the requests that wait, the newest first, and what was answered last."""
    return render_early(request, "traffic/requests_waiting.html", partial(_waiting, services), active="requests", view="waiting")


def _waiting(services: WebServices) -> dict[str, Any]:
    found = services.store.unblock.open_requests()
    facts = facts_of(services.store, found[:_A_PAGE], services.clock())
    last = facts_of(services.store, services.store.unblock.decided(5), services.clock()) if not found else []
    return {"facts": facts, "more": max(0, len(found) - _A_PAGE), "last": last}


@router.get("/requests/answered")
def answered(request: Request, services: Services, _: Viewer, after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> Response:
    """Shows answered requests."""
    found = services.store.unblock.decided(_A_PAGE + 1, after)
    older = f"/requests/answered?after={found[_A_PAGE - 1].request_id}" if len(found) > _A_PAGE else ""
    facts = facts_of(services.store, found[:_A_PAGE], services.clock())
    return _page(request, "answered", facts=facts, older=older, newer="/requests/answered" if after else "")


@router.get("/requests/links")
def links(request: Request, services: Services, _: Viewer) -> Response:
    """Shows bypass links."""
    return _links(request, services)


@router.post("/requests/links")
def add_link(request: Request, services: Services, who: Admin, form: Annotated[LinkForm, Form()]) -> Response:
    """Makes a bypass link, and shows its address."""
    whom = _whom(form.whom)
    if whom == Whom():
        raise PolicyError("choose whom the link is for")
    terms = Terms(_LIFETIMES[form.lasts], form.once, form.site, whom)
    made = RequestAnswers(services.store, who.actor, services.clock).add_link(parse_loose_url(form.url.strip()), terms)
    return _links(request, services, address_of(load_key(services.settings.data_dir, REQUEST_KEY), made))


@router.post("/requests/links/{number}/revoke")
def revoke_link(services: Services, who: Approver, number: Number) -> Response:
    """Revokes a bypass link."""
    RequestAnswers(services.store, who.actor, services.clock).revoke_link(number)
    return RedirectResponse("/requests/links", 303)


@router.get("/requests/{number}")
def one(request: Request, services: Services, _: Viewer, number: Number) -> Response:
    """Shows a request alone, as a notification's link opens it."""
    (facts,) = facts_of(services.store, [find_request(services.store, number)], services.clock())
    waiting = sum(1 for other in services.store.unblock.open_requests() if other.request_id != number)
    return render(request, "traffic/request.html", active="requests", item=facts, waiting=waiting)


@router.post("/requests/{number}/answer")
def answer(request: Request, services: Services, who: Approver, number: Number, form: Annotated[AnswerForm, Form()]) -> Response:
    """Answers a request."""
    answers = RequestAnswers(services.store, who.actor, services.clock)
    site = {"site": True, "page": False}.get(form.part)
    address, told = "", "done"
    try:
        if form.answer == "no":
            answers.deny(number, read_word(form.word), seen=form.seen)
        elif form.answer == "link":
            made = answers.link(number, Terms(_HOUR, False, site, _whom(form.whom), seen=form.seen))
            address = address_of(load_key(services.settings.data_dir, REQUEST_KEY), made)
        else:
            lifetime, once = _LIFETIMES.get(form.answer), form.answer == "once"
            answers.approve(number, Terms(lifetime, once, site, _whom(form.whom), read_word(form.word), form.seen))
    except ConflictError:
        if not is_partial(request):
            raise
        told = "conflict"
    if not is_partial(request) and not address:
        return RedirectResponse(f"/requests/{number}", 303)
    return _card(request, services, number, told, address)


@router.post("/requests/{number}/reopen")
def reopen(
    request: Request, services: Services, who: Approver, number: Number, seen: Annotated[str, Form(max_length=80)] = ""
) -> Response:
    """Takes an answer back."""
    RequestAnswers(services.store, who.actor, services.clock).reopen(number, seen=seen)
    if not is_partial(request):
        return RedirectResponse(f"/requests/{number}", 303)
    return _card(request, services, number, "reopened", "")


def _card(request: Request, services: WebServices, number: int, told: str, address: str) -> Response:
    """Returns the card of a request as it is now; a page with it where the browser has no scripts."""
    (facts,) = facts_of(services.store, [find_request(services.store, number)], services.clock())
    template = "traffic/_request_answered.html" if is_partial(request) else "traffic/request.html"
    return render(request, template, active="requests", item=facts, told=told, address=address, waiting=0)


def _page(request: Request, view: str, **context: Any) -> Response:
    return render(request, f"traffic/requests_{view}.html", active="requests", view=view, **context)


def _links(request: Request, services: WebServices, address: str = "") -> Response:
    now = services.clock()
    shown = [(link, link_state(link, now)) for link in services.store.bypass.links(_MOST_LINKS)]
    policies = services.store.policies.read()
    return _page(request, "links", links=shown, address=address, clients=sorted(policies.clients), groups=sorted(policies.groups))


def _whom(text: str) -> Whom:
    kind, _, name = text.partition(":")
    return Whom(client=name if kind == "client" else "", group=name if kind == "group" else "", everybody=text == _EVERYBODY)
