"""`/api/v1/policies`: what is blocked for the clients and groups that have them."""

from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, Field

from gatewayfilter.model import DEFAULT, PolicySet, policy_values
from gatewayfilter.use_cases.network_facts import known_categories, known_sources
from gatewayfilter.use_cases.people.policy_users import users_of
from gatewayfilter.use_cases.people.versions import policy_version
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.changes import IfMatch, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.people.models import (
    MOST_ITEMS,
    After,
    Body,
    ItemName,
    Limit,
    Name,
    check_free,
    editing,
    existing,
    page_of,
)
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter("/policies", tags=["policies"])

Key = Annotated[str, Field(max_length=200)]
Value = Annotated[str, Field(max_length=200_000)]
Users = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=MOST_ITEMS)]


class PolicyModel(BaseModel):
    """A policy: the values that it sets."""

    name: Name
    values: Annotated[
        dict[str, str], Field(description="Key and value, as `policy set` takes them: category.social, safesearch …")
    ]
    groups: Annotated[list[str], Field(description="Groups that have it.")]
    clients: Annotated[list[str], Field(description="Clients that have it as their own.")]
    schedules: Annotated[list[str], Field(description="Its schedules.")]
    quotas: Annotated[list[str], Field(description="Its quotas.")]


class PolicyPage(BaseModel):
    """A page of policies, by name."""

    items: Annotated[list[PolicyModel], Field(description="The policies.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class NewPolicy(Body):
    """A policy to add."""

    name: Name
    values: Annotated[dict[Key, Value], Field(description="What it sets.", max_length=MOST_ITEMS)] = Field(default_factory=dict)
    groups: Annotated[Users, Field(description="Groups that get it.")] = Field(default_factory=list)
    clients: Annotated[Users, Field(description="Clients that get it as their own.")] = Field(default_factory=list)


class PolicyChange(Body):
    """A change of a policy; what is left out stays."""

    values: Annotated[
        dict[Key, Value | None], Field(description="Values to set; null or an empty text unsets.", max_length=MOST_ITEMS)
    ] = Field(default_factory=dict)
    groups: Annotated[Users, Field(description="Groups that get it.")] = Field(default_factory=list)
    clients: Annotated[Users, Field(description="Clients that get it as their own.")] = Field(default_factory=list)


@router.get("", operation_id="list_policies")
def list_policies(services: Services, _: Viewer, after: After = "", limit: Limit = 100) -> PolicyPage:
    """Returns the policies by name, with who has them."""
    policies = services.store.policies.read()
    page, following = page_of(((name, name) for name in {DEFAULT, *policies.policies}), after, limit)
    return PolicyPage(items=[_model(policies, name) for name in page], next=following)


@router.post("", operation_id="add_policy", status_code=201)
def add_policy(services: Services, identity: Admin, body: NewPolicy, response: Response) -> PolicyModel:
    """Adds a policy. 409 when the name is taken."""
    with editing(services, identity, "policy.added", body.name):
        check_free(services.store.policies.read().policy(body.name) is not None, "policy", body.name)
        editor = PolicyEditor(services.store.policies, services.clock)
        policies = editor.add_policy(body.name, groups=body.groups, clients=body.clients)
        if body.values:
            policies = _set(services, editor, body.name, dict(body.values), body)
    return _answer(policies, body.name, response)


@router.get("/{name}", operation_id="get_policy")
def get_policy(services: Services, _: Viewer, name: ItemName, response: Response) -> PolicyModel:
    """Returns a policy with its values and who has it."""
    return _answer(services.store.policies.read(), name, response)


@router.patch("/{name}", operation_id="change_policy")
def change_policy(
    services: Services, identity: Admin, name: ItemName, body: PolicyChange, response: Response, if_match: IfMatch = ""
) -> PolicyModel:
    """Sets and unsets values of a policy, and gives it to groups and clients. In force within a second."""
    with editing(services, identity, "policy.changed", name, ", ".join(body.values)[:200]):
        policies = services.store.policies.read()
        existing(policies.policy(name), "policy", name)
        check_version(if_match, lambda: policy_version(policies, name))
        editor = PolicyEditor(services.store.policies, services.clock)
        policies = _set(services, editor, name, {key: value or "" for key, value in body.values.items()}, body)
    return _answer(policies, name, response)


@router.delete("/{name}", operation_id="remove_policy", status_code=204, response_class=Response)
def remove_policy(services: Services, identity: Admin, name: ItemName, if_match: IfMatch = "") -> None:
    """Removes a policy that no client, group or schedule uses, with its own schedules and quotas."""
    with editing(services, identity, "policy.removed", name):
        policies = services.store.policies.read()
        existing(policies.policy(name), "policy", name)
        check_version(if_match, lambda: policy_version(policies, name))
        PolicyEditor(services.store.policies, services.clock).remove_policy(name)


def _set(
    services: WebServices, editor: PolicyEditor, name: str, values: dict[str, str], body: NewPolicy | PolicyChange
) -> PolicySet:
    return editor.set_policy(
        name,
        list(values.items()),
        groups=body.groups,
        clients=body.clients,
        known_categories=known_categories(services.settings),
        known_sources=known_sources(services.settings),
        known_services=services.services,
    )


def _answer(policies: PolicySet, name: str, response: Response) -> PolicyModel:
    response.headers.update(etag(policy_version(policies, name)))
    return _model(policies, name)


def _model(policies: PolicySet, name: str) -> PolicyModel:
    policy, users = existing(policies.policy(name), "policy", name), users_of(policies, name)
    return PolicyModel(
        name=name,
        values=policy_values(policy),
        groups=list(users.groups),
        clients=list(users.clients),
        schedules=sorted(one.name for one in policies.schedules.values() if one.policy == name),
        quotas=sorted(one.name for one in policies.quotas.values() if one.policy == name),
    )
