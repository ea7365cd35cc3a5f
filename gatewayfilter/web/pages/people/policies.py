"""`/policies` and `/policies/NAME`: what is blocked for those who have a policy, value by value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import HTTPException, Query, Request, Response

from gatewayfilter.errors import ConflictError
from gatewayfilter.model import DEFAULT, ListAction, Policy, PolicySet, Service, policy_values
from gatewayfilter.use_cases.network_facts import known_categories, known_sources
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.people.policy_users import PolicyUsers, users_of
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.forms import Fields, Form
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.pages.people.answers import Said, answered, attempt, show_early
from gatewayfilter.web.rendering.pages import gettext
from gatewayfilter.web.routers import PageRouter
from gatewayfilter.web.services import WebServices

router = PageRouter()

TABS: Final = ("services", "categories", "more")
_BEFORE: Final = "was:"
"""How the field begins that holds the value on which a form is based."""
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy in the list of all."""

    policy: Policy
    users: PolicyUsers
    services: tuple[str, ...]
    categories: tuple[str, ...]
    schedules: int
    quotas: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a policy to choose.

    Attributes:
        key: as in `policy set`.
        own: what the policy sets, `""` for nothing.
        inherited: what holds otherwise.
    """

    key: str
    own: str
    inherited: str


@router.get("/policies")
def policies(request: Request, services: Services, _: Viewer) -> Response:
    """Shows all policies."""
    return show_policies(request, services, Said())


def show_policies(request: Request, services: WebServices, said: Said) -> Response:
    """Returns the page of all policies."""
    return show_early(request, "people/policies.html", partial(_all, services), said, active="policies")


def _all(services: WebServices) -> dict[str, Any]:
    found = services.store.policies.read()
    names = [DEFAULT, *sorted(found.policies.keys() - {DEFAULT}, key=name_order)]
    return {
        "rows": [_row(found, policy) for policy in map(found.policy, names) if policy is not None],
        "services_by_id": services.services,
        "group_names": [DEFAULT, *sorted({*found.groups} - {DEFAULT}, key=name_order)],
    }


@router.post("/policies")
def add_policy(request: Request, services: Services, identity: Admin, form: Form) -> Response:
    """Adds a policy, and gives it to a group."""
    name, said = form.text("name"), Said()
    with attempt(services, identity, "policy.added", name, said, gettext(request, "Added %(name)s.", name=name)):
        groups = [group for group in form.all("group") if group]
        PolicyEditor(services.store.policies, services.clock).add_policy(name, groups=groups)
    if said.is_error:
        return answered(request, "/policies", said, lambda said: show_policies(request, services, said))
    return answered(request, url_of(name), said, lambda said: show_policy(request, services, name, View(), said))


@dataclass(frozen=True, slots=True)
class View:
    """What of a policy a page shows.

    Attributes:
        q: part of a service's name.
        edit: name of the schedule in the editor; `NEW` for a new one.
    """

    tab: str = "services"
    q: str = ""
    edit: str = ""


def url_of(name: str, **values: str) -> str:
    """Returns the address of a policy's page."""
    text = urlencode({key: value for key, value in values.items() if value})
    return f"/policies/{quote(name)}{'?' if text else ''}{text}"


@router.get("/policies/{name}")
def policy(
    request: Request,
    services: Services,
    _: Viewer,
    name: str,
    tab: Annotated[str, Query(max_length=20)] = "services",
    q: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Shows a policy."""
    return show_policy(request, services, name, View(tab if tab in TABS else TABS[0], q.strip()), Said())


def show_policy(request: Request, services: WebServices, name: str, view: View, said: Said, **more: object) -> Response:
    """Returns the page of a policy.

    Args:
        request: that it answers.
        services: the parts of the filter.
        name: of the policy.
        view: what of it.
        said: of the form that was just sent.
        more: variables of the template that only one tab has.

    Raises:
        HTTPException: 404, there is none.
    """
    found = services.store.policies.read()
    policy = found.policy(name)
    if policy is None:
        raise HTTPException(404, gettext(request, "There is no policy of this name."))
    content = partial(_content, services, found, policy, view.q)
    return show_early(request, "people/policy.html", content, said, active="policies", policy=policy, view=view, **more)


def _content(services: WebServices, found: PolicySet, policy: Policy, text: str) -> dict[str, Any]:
    name, everybody = policy.name, found.group(DEFAULT)
    above = found.policy(everybody.policy or DEFAULT) if everybody is not None and name != DEFAULT else None
    own, inherited = policy_values(policy), policy_values(above) if above is not None else {}
    return {
        "users": users_of(found, name),
        "own": own,
        "inherited": inherited,
        "service_groups": _service_groups(services.services, own, inherited, text),
        "categories": _categories(services, own, inherited),
        "services_by_id": services.services,
        "schedules": sorted((one for one in found.schedules.values() if one.policy == name), key=lambda one: one.name),
        "quotas": sorted((one for one in found.quotas.values() if one.policy == name), key=lambda one: one.name),
    }


@router.post("/policies/{name}")
def change_policy(request: Request, services: Services, identity: Admin, name: str, form: Form) -> Response:
    """Sets and unsets values. A value that somebody else has changed since the page was made is left as it is."""
    said, view = Said(), View(form.text("tab") if form.text("tab") in TABS else TABS[0], form.text("q"))
    with attempt(services, identity, "policy.changed", name, said, gettext(request, "Saved. It is in force.")):
        found = services.store.policies.read().policy(name)
        _set_values(services, name, _wanted(form, policy_values(found) if found is not None else {}))
    url = url_of(name, tab=view.tab, q=view.q)
    return answered(request, url, said, lambda said: show_policy(request, services, name, view, said))


@router.post("/policies/{name}/services")
def change_services(
    request: Request,
    services: Services,
    identity: Admin,
    name: str,
    group: Annotated[str, Query(max_length=_LONGEST)],
    action: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Blocks, allows or leaves all services of a kind."""
    said = Said()
    with attempt(services, identity, "policy.changed", name, said, gettext(request, "Saved. It is in force.")):
        members = [one.service_id for one in services.services.values() if one.group == group]
        _set_values(services, name, [(f"service.{member}", action) for member in members])
    show = View("services")
    return answered(request, url_of(name), said, lambda said: show_policy(request, services, name, show, said))


@router.post("/policies/{name}/remove")
def remove_policy(request: Request, services: Services, identity: Admin, name: str) -> Response:
    """Removes a policy that nothing uses."""
    said = Said()
    with attempt(services, identity, "policy.removed", name, said, gettext(request, "Removed %(name)s.", name=name)):
        PolicyEditor(services.store.policies, services.clock).remove_policy(name)
    if said.is_error:
        return answered(request, url_of(name), said, lambda said: show_policy(request, services, name, View(), said))
    return answered(request, "/policies", said, lambda said: show_policies(request, services, said))


def _set_values(services: WebServices, name: str, values: Sequence[tuple[str, str]]) -> None:
    if values:
        PolicyEditor(services.store.policies, services.clock).set_policy(
            name,
            values,
            known_categories=known_categories(services.settings),
            known_sources=known_sources(services.settings),
            known_services=services.services,
        )


def _wanted(form: Fields, now: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the values of a form that differ from those on which the form was based.

    Raises:
        ConflictError: one of them was changed since.
    """
    fields = dict(form.items())
    found: list[tuple[str, str]] = []
    for field, before in fields.items():
        key = field.removeprefix(_BEFORE)
        if key == field:
            continue
        texts = [text.strip() for text in form.all(key)]
        value = ",".join(part.strip() for text in texts for part in text.replace("\n", ",").split(",") if part.strip())
        if value == before:
            continue
        if now.get(key, "") not in (before, value):
            raise ConflictError(f"{key}: somebody has changed this since; the page shows what is in force")
        found.append((key, value))
    return found


def _row(found: PolicySet, policy: Policy) -> PolicyRow:
    return PolicyRow(
        policy,
        users_of(found, policy.name),
        tuple(name for name, blocked in policy.services.items() if blocked),
        tuple(name for name, action in sorted(policy.categories.items()) if action == "block"),
        sum(one.policy == policy.name for one in found.schedules.values()),
        sum(one.policy == policy.name for one in found.quotas.values()),
    )


def _service_groups(
    services: Mapping[str, Service], own: Mapping[str, str], inherited: Mapping[str, str], q: str
) -> dict[str, list[tuple[Service, Choice]]]:
    """Returns the services whose name contains a text, by their kind."""
    found: dict[str, list[tuple[Service, Choice]]] = {}
    wanted = q.casefold()
    for service in sorted(services.values(), key=lambda one: (one.group, one.name.casefold())):
        if wanted in f"{service.name} {service.name_zh} {service.service_id}".casefold():
            key = f"service.{service.service_id}"
            choice = Choice(key, own.get(key, ""), inherited.get(key, "allow"))
            found.setdefault(service.group, []).append((service, choice))
    return found


def _categories(services: WebServices, own: Mapping[str, str], inherited: Mapping[str, str]) -> list[Choice]:
    known = {one.category_id for one in services.categories if one.action is ListAction.BLOCK}
    names = sorted(known | known_categories(services.settings) | set(_of(own, "category.")))
    off = services.settings.filter.disabled_categories
    return [
        Choice(key, own.get(key, ""), inherited.get(key, "allow" if name in off else "block"))
        for name, key in ((name, f"category.{name}") for name in names)
    ]


def _of(values: Mapping[str, str], beginning: str) -> Iterator[str]:
    return (key.removeprefix(beginning) for key in values if key.startswith(beginning))
