"""Pauses from the pages: start one for everybody, a group or a client, and end it."""

from urllib.parse import unquote

from fastapi import Request, Response

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Pause, PauseScope
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Fields, Form
from gatewayfilter.web.access.identity import Approver
from gatewayfilter.web.access.redirects import own_path
from gatewayfilter.web.pages.people.answers import Said, answered, attempt
from gatewayfilter.web.pages.people.client import show_client
from gatewayfilter.web.pages.people.clients import Asked, show_clients
from gatewayfilter.web.rendering.pages import gettext, is_partial, render
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_CLIENTS = "/clients"
_OVERVIEW = "/"
_MOST_NAMES = 500
"""Clients to choose from, as on the overview."""


@router.post("/pauses")
def start_pause(request: Request, services: Services, identity: Approver, form: Form) -> Response:
    """Stops filtering for a while."""
    said = Said()
    scope, target = _scope(form)
    minutes = form.number("minutes") or 0.0
    done = gettext(request, "Filtering is paused for %(minutes)s minutes.", minutes=f"{minutes:g}")
    with attempt(services, identity, "pause.started", Pause(scope, target, 0.0).name, said, done):
        PolicyEditor(services.store.policies, services.clock).pause(scope, target, minutes * 60.0, harm_too=False)
    return _answer(request, services, form, said, target, paused=True)


@router.post("/pauses/end")
def end_pause(request: Request, services: Services, identity: Approver, form: Form) -> Response:
    """Ends a pause."""
    said = Said()
    scope, target = _scope(form)
    with attempt(services, identity, "pause.ended", Pause(scope, target, 0.0).name, said, gettext(request, "Filtering goes on.")):
        PolicyEditor(services.store.policies, services.clock).resume(scope, target)
    return _answer(request, services, form, said, target, paused=False)


def _scope(form: Fields) -> tuple[PauseScope, str]:
    """Returns whose pause it is, from two fields or from one (`whom`: `group:NAME`, `client:NAME`, empty for all)."""
    kind, _, name = form.text("whom").partition(":")
    try:
        return PauseScope(kind or form.text("scope", PauseScope.ALL)), name or form.text("target")
    except ValueError as error:
        raise PolicyError("a pause is for all, a group or a client") from error


def _answer(request: Request, services: WebServices, form: Fields, said: Said, target: str, *, paused: bool) -> Response:
    """Returns to the page on which the form was."""
    wanted = form.text("next")
    page = wanted if own_path(wanted) == wanted else _CLIENTS

    def show(said: Said) -> Response:
        if page.startswith(f"{_CLIENTS}/"):
            return show_client(request, services, unquote(page.removeprefix(f"{_CLIENTS}/")), said)
        return show_clients(request, services, Asked(), said)

    if said.is_error and not page.startswith(_CLIENTS):
        raise PolicyError(said.text)
    if is_partial(request) and page == _OVERVIEW:
        return _card(request, services, said, target, paused=paused)
    if is_partial(request) and not page.startswith(_CLIENTS):
        return Response(headers={"hx-refresh": "true"})
    return answered(request, page, said, show)


def _card(request: Request, services: WebServices, said: Said, target: str, *, paused: bool) -> Response:
    """Returns the pauses of the overview."""
    policies, now = services.store.policies.read(), services.clock()
    return render(
        request,
        "traffic/_pauses.html",
        pauses=policies.pauses_at(now),
        names=sorted(policies.clients, key=name_order)[:_MOST_NAMES],
        groups=sorted(policies.groups, key=name_order),
        may_pause=True,
        told=target,
        undo=said.undo,
        paused=paused,
        answered=True,
    )
