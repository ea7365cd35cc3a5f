"""`/clients`: devices and persons with what each may now, and devices that have no name yet."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import Query, Request, Response

from gatewayfilter.model import DEFAULT, ICONS, Client, Group, parse_matcher
from gatewayfilter.use_cases.devices import seen_devices
from gatewayfilter.use_cases.people.client_list import ClientRow, client_list
from gatewayfilter.use_cases.people.client_states import StateKind
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import PolicyEditor, checked_icon
from gatewayfilter.web.access.changes import check_version
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Form
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.pages.people.answers import Said, answered, attempt, show_early, show_page
from gatewayfilter.web.rendering.pages import gettext
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

PAGE: Final = 50
"""Clients of a page."""
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """What of the clients a page shows, as in its address.

    Attributes:
        q: part of a name, address or note.
        after: the name behind which the page begins.
    """

    q: str = ""
    group: str = ""
    after: str = ""

    def url(self, **other: str) -> str:
        """Returns the address of the page, with other values."""
        values = {"q": self.q, "group": self.group, "after": ""} | other
        text = urlencode({key: value for key, value in values.items() if value})
        return f"/clients?{text}" if text else "/clients"

    def matches(self, row: ClientRow) -> bool:
        """Returns whether the page shows a client."""
        if self.group and row.client.group != self.group:
            return False
        wanted = self.q.casefold()
        texts = (row.client.name, row.client.note, *map(str, row.client.matchers))
        return not wanted or any(wanted in text.casefold() for text in texts)


@router.get("/clients")
def clients(
    request: Request,
    services: Services,
    _: Viewer,
    q: Annotated[str, Query(max_length=200)] = "",
    group: Annotated[str, Query(max_length=_LONGEST)] = "",
    after: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> Response:
    """Shows the clients."""
    content = partial(_content, services, Asked(q.strip(), group, after))
    return show_early(request, "people/clients.html", content, Said())


def show_clients(request: Request, services: WebServices, asked: Asked, said: Said) -> Response:
    """Returns the page of all clients.

    Args:
        request: for the language.
        services: the parts of the filter.
        asked: which clients.
        said: of the form that was just sent.
    """
    return show_page(request, "people/clients.html", said, **_content(services, asked))


def _content(services: WebServices, asked: Asked) -> dict[str, Any]:
    now = services.clock()
    found = client_list(services.settings, services.store, services.service_index, services.makers, now)
    policies = services.store.policies.read()
    rows = [row for row in found.clients if asked.matches(row)]
    key = name_order(asked.after)
    behind = [row for row in rows if not asked.after or name_order(row.client.name) > key]
    page = behind[:PAGE]
    sizes: dict[str, int] = {}
    for row in found.clients:
        sizes[row.client.group] = sizes.get(row.client.group, 0) + 1
    names = [DEFAULT, *sorted({*policies.groups} - {DEFAULT}, key=name_order)]
    chosen = policies.group(asked.group)
    return {
        "asked": asked,
        "rows": page,
        "total": len(found.clients),
        "older": asked.url(after=page[-1].client.name) if len(behind) > PAGE else "",
        "devices": found.devices if not (asked.q or asked.group or asked.after) else (),
        "groups": [group for group in map(policies.group, names) if group is not None],
        "group_of": {group.name: group for group in map(policies.group, names) if group is not None},
        "group_version": version_of(chosen) if chosen is not None else "",
        "sizes": sizes,
        "policy_names": [DEFAULT, *sorted(policies.policies.keys() - {DEFAULT}, key=name_order)],
        "pauses": policies.pauses_at(now),
        "counts_of": {kind: sum(row.state.kind is kind for row in found.clients) for kind in StateKind},
        "present": sum(row.present for row in found.clients),
        "services_by_id": services.services,
        "icons": ICONS,
        "now": now,
    }


@router.post("/clients")
def add_client(request: Request, services: Services, identity: Admin, form: Form) -> Response:
    """Names a device."""
    name, said = form.text("name"), Said()
    group = form.text("group") or DEFAULT
    with attempt(services, identity, "client.added", name, said, gettext(request, "Added %(name)s.", name=name)):
        matchers = tuple(dict.fromkeys(parse_matcher(text) for text in form.text("addresses").replace(",", " ").split()))
        client = Client(name, matchers, group, note=form.text("note"), icon=checked_icon(form.text("icon")))
        PolicyEditor(services.store.policies, services.clock).add_client(client)
    return answered(request, f"/clients/{quote(name)}", said, lambda said: show_clients(request, services, Asked(), said))


@router.post("/devices/look-up")
def look_up(request: Request, services: Services, _: Admin) -> Response:
    """Looks up the host names of devices in the network, for three seconds at most."""
    seen_devices(services.store, services.clock())
    said = Said(gettext(request, "Looked for the names of devices."))
    return answered(request, "/clients", said, lambda said: show_clients(request, services, Asked(), said))


@router.post("/groups")
def add_group(request: Request, services: Services, identity: Admin, form: Form) -> Response:
    """Adds a group."""
    name, said = form.text("name"), Said()
    with attempt(services, identity, "group.added", name, said, gettext(request, "Added %(name)s.", name=name)):
        group = Group(name, form.text("policy"), form.text("note"))
        PolicyEditor(services.store.policies, services.clock).add_group(group)
    asked = Asked() if said.is_error else Asked(group=name)
    return answered(request, asked.url(), said, lambda said: show_clients(request, services, asked, said))


@router.post("/groups/{name}")
def change_group(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Changes name, policy and note of a group."""
    said, renamed = Said(), form.text("name", name)
    with attempt(services, identity, "group.changed", name, said, gettext(request, "Saved.")):
        before = services.store.policies.read().group(name)
        check_version(form.text("version"), lambda: "" if before is None else version_of(before))
        editor = PolicyEditor(services.store.policies, services.clock)
        editor.set_group(name, policy=form.text("policy"), note=form.text("note"))
        if renamed != name:
            editor.rename_group(name, renamed)
    asked = Asked(group=name if said.is_error else renamed)
    return answered(request, asked.url(), said, lambda said: show_clients(request, services, asked, said))


@router.post("/groups/{name}/remove")
def remove_group(request: Request, services: Services, identity: Admin, name: str) -> Response:
    """Removes a group."""
    said = Said()
    with attempt(services, identity, "group.removed", name, said, gettext(request, "Removed %(name)s.", name=name)):
        PolicyEditor(services.store.policies, services.clock).remove_group(name)
    asked = Asked(group=name) if said.is_error else Asked()
    return answered(request, asked.url(), said, lambda said: show_clients(request, services, asked, said))
