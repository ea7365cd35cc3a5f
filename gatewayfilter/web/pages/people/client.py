"""`/clients/NAME`: one client, what holds for it and why, its bedtime, its own rules."""

from functools import partial
from typing import Any, Final
from urllib.parse import quote

from fastapi import HTTPException, Request, Response

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import DEFAULT, ICONS, Client, PolicySet, Window, parse_matcher
from gatewayfilter.use_cases.network_facts import zone_name
from gatewayfilter.use_cases.people.bedtime import Bedtimes, bedtime_of
from gatewayfilter.use_cases.people.client_list import client_list
from gatewayfilter.use_cases.people.client_policy import client_policy
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.people.schedule_windows import FREE, FREE_NIGHT, SCHOOL_NIGHT, read_window
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import PolicyEditor, checked_icon
from gatewayfilter.web.access.changes import check_version
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Fields, Form
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.pages.people.answers import Said, answered, attempt, show_early
from gatewayfilter.web.pages.people.clients import Asked, show_clients
from gatewayfilter.web.rendering.pages import gettext
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

_MOST_RULES: Final = 50


@router.get("/clients/{name}")
def client(request: Request, services: Services, _: Viewer, name: str) -> Response:
    """Shows a client; with `?bedtime=1` the form of its bedtime is open."""
    return show_client(request, services, name, Said())


def show_client(request: Request, services: WebServices, name: str, said: Said) -> Response:
    """Returns the page of a client.

    Raises:
        HTTPException: 404, there is none.
    """
    policies, now = services.store.policies.read(), services.clock()
    found = policies.clients.get(name)
    if found is None:
        raise HTTPException(404, gettext(request, "There is no device or person of this name."))
    content = partial(_content, services, policies, found, now)
    is_open = "bedtime" in request.query_params
    return show_early(request, "people/client.html", content, said, client=found, is_bedtime_open=is_open, now=now)


def _content(services: WebServices, policies: PolicySet, client: Client, now: float) -> dict[str, Any]:
    every = client_list(services.settings, services.store, services.service_index, services.makers, now)
    bedtime = bedtime_of(policies, client.name)
    rules = [rule for rule in services.store.lists.rules() if rule.scope == f"client:{client.name}"]
    return {
        "version": version_of(client),
        "row": next(row for row in every.clients if row.client.name == client.name),
        "view": client_policy(services.settings, services.store, policies, services.service_index, client.name, now),
        "bedtime": bedtime,
        "nights": _nights(bedtime.windows if bedtime is not None else ()),
        "rules": rules[:_MOST_RULES],
        "more_rules": max(len(rules) - _MOST_RULES, 0),
        "group_names": [DEFAULT, *sorted({*policies.groups} - {DEFAULT}, key=name_order)],
        "policy_names": [DEFAULT, *sorted(policies.policies.keys() - {DEFAULT}, key=name_order)],
        "services_by_id": services.services,
        "icons": ICONS,
    }


@router.post("/clients/{name}")
def change_client(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Changes name, addresses, group, policy, icon and note of a client."""
    said, after = Said(), name
    with attempt(services, identity, "client.changed", name, said, gettext(request, "Saved.")):
        before = services.store.policies.read().clients.get(name)
        if before is None:
            raise PolicyError(gettext(request, "There is no device or person of this name."))
        check_version(form.text("version"), lambda: version_of(before))
        wanted = {parse_matcher(text) for text in form.text("addresses").replace(",", " ").split()}
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.set_client(
            name,
            add=[str(one) for one in sorted(wanted - set(before.matchers), key=str)],
            remove=[str(one) for one in before.matchers if one not in wanted],
            group=form.text("group") or None,
            note=form.text("note"),
            icon=checked_icon(form.text("icon")),
            policy=form.text("policy"),
        )
        renamed = form.text("name")
        if renamed != name:
            editor.rename_client(name, renamed)
            after = renamed
    shown = name if said.is_error else after
    return answered(request, f"/clients/{quote(shown)}", said, lambda said: show_client(request, services, shown, said))


@router.post("/clients/{name}/group")
def move_client(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Moves a client into another group."""
    said, group = Said(), form.text("group")
    done = gettext(request, "%(name)s is in the group %(group)s now.", name=name, group=group)
    with attempt(services, identity, "client.changed", name, said, done):
        PolicyEditor(services.store.policies, services.clock).set_client(name, group=group)
    return answered(request, "/clients", said, lambda said: show_clients(request, services, Asked(), said))


@router.post("/clients/{name}/remove")
def remove_client(request: Request, services: Services, identity: Admin, name: str) -> Response:
    """Removes a client."""
    said = Said()
    with attempt(services, identity, "client.removed", name, said, gettext(request, "Removed %(name)s.", name=name)):
        PolicyEditor(services.store.policies, services.clock).remove_client(name)
    return answered(request, "/clients", said, lambda said: show_clients(request, services, Asked(), said))


@router.post("/clients/{name}/bedtime")
def set_bedtime(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Sets the bedtime of a client."""
    said = Said()
    with attempt(services, identity, "bedtime.set", name, said, gettext(request, "Bedtime is set for %(name)s.", name=name)):
        zone = zone_name(services.settings)
        Bedtimes(services.store.policies, services.clock).put(name, _read_nights(form), zone)
    return answered(request, f"/clients/{quote(name)}", said, lambda said: show_client(request, services, name, said))


@router.post("/clients/{name}/bedtime/remove")
def remove_bedtime(request: Request, services: Services, identity: Admin, name: str) -> Response:
    """Removes the bedtime of a client."""
    said = Said()
    with attempt(services, identity, "bedtime.removed", name, said, gettext(request, "Bedtime is off for %(name)s.", name=name)):
        Bedtimes(services.store.policies, services.clock).remove(name)
    return answered(request, f"/clients/{quote(name)}", said, lambda said: show_client(request, services, name, said))


def _nights(windows: tuple[Window, ...]) -> dict[str, str]:
    """Returns the fields of the form of a bedtime."""
    found = {"from": SCHOOL_NIGHT[:5], "to": SCHOOL_NIGHT[6:], "free_from": FREE_NIGHT[:5], "free_to": FREE_NIGHT[6:]}
    for window in windows:
        times = _clock(window.begin), _clock(window.end)
        if window.days - FREE:
            found["from"], found["to"] = times
        if window.days & FREE:
            found["free_from"], found["free_to"] = times
    return found


def _read_nights(form: Fields) -> tuple[Window, ...]:
    usual = read_window(f"{form.text('from')}-{form.text('to')}", frozenset(range(7)) - FREE)
    free = read_window(f"{form.text('free_from')}-{form.text('free_to')}", FREE)
    return usual, free


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"
