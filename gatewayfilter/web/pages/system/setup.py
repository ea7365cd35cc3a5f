"""`/setup/…`: the wizard after the first account: purpose, lists, devices. It can be repeated at any time."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from gatewayfilter.errors import ConflictError
from gatewayfilter.use_cases.network_facts import zone_name
from gatewayfilter.use_cases.setup import SetupChoices, begin_setup, config_file_of, plan_setup
from gatewayfilter.web.access.changes import record
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin
from gatewayfilter.web.access.redirects import done
from gatewayfilter.web.rendering.pages import render, render_early
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter("/setup")

_MOST_LISTS: Final = 200
_UPDATE: Final = "update"


@router.get("/purpose")
def choose_purpose(request: Request, services: Services, _: Admin) -> Response:
    """Asks what the filter is for."""
    content = partial(_bundles, services)
    return render_early(request, "system/setup_purpose.html", content, active="system")


def _bundles(services: WebServices) -> dict[str, Any]:
    return {"bundles": list(services.subscriptions.bundles.values())}


@router.get("/lists")
def choose_lists(
    request: Request, services: Services, _: Admin, purpose: Annotated[str, Query(alias="for", max_length=50)] = ""
) -> Response:
    """Shows what a purpose brings, to be confirmed; without a purpose it leads to the choice of one."""
    if not purpose:
        return RedirectResponse("/setup/purpose", 303)
    plan = plan_setup(services.loaded, services.store.policies.read(), SetupChoices(purpose), _config_file(services))
    zone = zone_name(services.settings)
    size = sum(item.size_mb for item in plan.lists)
    return render(request, "system/setup_lists.html", active="system", plan=plan, zone=zone, size=size)


@router.post("/lists")
def carry_out(
    request: Request,
    services: Services,
    identity: Admin,
    purpose: Annotated[str, Form(alias="for", max_length=50)],
    lists: Annotated[list[str], Form(max_length=_MOST_LISTS)] = [],  # noqa: B006  fastapi copies it
    timezone: Annotated[str, Form(max_length=100)] = "",
    safe_search: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Writes settings, policy and subscriptions, and begins to fetch the lists in the background."""
    policies, file = services.store.policies.read(), _config_file(services)
    every = plan_setup(services.loaded, policies, SetupChoices(purpose), file)
    without = tuple(item.name for item in every.lists if item.name not in lists)
    choices = SetupChoices(purpose, timezone=timezone, safe_search=bool(safe_search), without=without)
    plan = plan_setup(services.loaded, policies, choices, file)
    if services.source_worker.state.running:
        raise ConflictError("the lists are being worked on; try again when that is done")
    names = begin_setup(services.loaded, services.store, plan)
    record(services, identity, "setup.done", purpose, ", ".join(names))
    if names:
        services.source_worker.start(_UPDATE, ", ".join(names)[:200], names)
    return done(request, "/setup/devices")


@router.get("/devices")
def show_devices(request: Request, services: Services, _: Admin) -> Response:
    """Tells how devices come to use the filter, and how far the lists are."""
    state = services.source_worker.state
    failed = [result for result in state.results if result.get("error")]
    listen = services.settings.proxy.listen
    return render(request, "system/setup_devices.html", active="system", state=state, failed=failed, listen=listen)


def _config_file(services: WebServices) -> Path:
    return config_file_of(services.settings, None)
