"""`/api/v1/groups`: groups of clients."""

from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, Field

from gatewayfilter.model import DEFAULT, Group, PolicySet
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.web.access.changes import IfMatch, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.people.models import After, Body, ItemName, Limit, Name, Note, check_free, editing, existing, page_of
from gatewayfilter.web.routers import ApiRouter

router = ApiRouter("/groups", tags=["groups"])

OfPolicy = Annotated[str, Field(description='Its policy, "" for none.', max_length=100)]


class GroupModel(BaseModel):
    """A group of clients."""

    name: Name
    policy: OfPolicy
    note: Note
    clients: Annotated[list[str], Field(description="Names of its clients.")]


class GroupPage(BaseModel):
    """A page of groups, by name."""

    items: Annotated[list[GroupModel], Field(description="The groups.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class NewGroup(Body):
    """A group to add."""

    name: Name
    policy: OfPolicy = ""
    note: Note = ""


class GroupChange(Body):
    """A change of a group; what is left out stays."""

    name: Annotated[Name | None, Field(description="Another name; its clients, its pause and its own rules go with it.")] = None
    policy: Annotated[OfPolicy | None, Field(description='Another policy, "" for none.')] = None
    note: Annotated[Note | None, Field(description="For later readers.")] = None


@router.get("", operation_id="list_groups")
def list_groups(services: Services, _: Viewer, after: After = "", limit: Limit = 100) -> GroupPage:
    """Returns the groups by name, with their clients."""
    policies = services.store.policies.read()
    page, following = page_of(((name, name) for name in {DEFAULT, *policies.groups}), after, limit)
    found = [group for group in map(policies.group, page) if group is not None]
    return GroupPage(items=[_model(policies, group) for group in found], next=following)


@router.post("", operation_id="add_group", status_code=201)
def add_group(services: Services, identity: Admin, body: NewGroup, response: Response) -> GroupModel:
    """Adds a group. 409 when the name is taken."""
    with editing(services, identity, "group.added", body.name):
        check_free(services.store.policies.read().group(body.name) is not None, "group", body.name)
        editor = PolicyEditor(services.store.policies, services.clock)
        return _answer(editor.add_group(Group(body.name, body.policy, body.note)), body.name, response)


@router.get("/{name}", operation_id="get_group")
def get_group(services: Services, _: Viewer, name: ItemName, response: Response) -> GroupModel:
    """Returns a group with its clients."""
    return _answer(services.store.policies.read(), name, response)


@router.patch("/{name}", operation_id="change_group")
def change_group(
    services: Services, identity: Admin, name: ItemName, body: GroupChange, response: Response, if_match: IfMatch = ""
) -> GroupModel:
    """Changes a group: name, policy, note."""
    renamed = body.name if body.name is not None and body.name != name else None
    with editing(services, identity, "group.renamed" if renamed else "group.changed", name, renamed or ""):
        group = existing(services.store.policies.read().group(name), "group", name)
        check_version(if_match, lambda: version_of(group))
        editor = PolicyEditor(services.store.policies, services.clock)
        policies = services.store.policies.read()
        if body.policy is not None or body.note is not None:
            policies = editor.set_group(name, policy=body.policy, note=body.note)
        if renamed is not None:
            check_free(policies.group(renamed) is not None, "group", renamed)
            policies = editor.rename_group(name, renamed)
        return _answer(policies, renamed or name, response)


@router.delete("/{name}", operation_id="remove_group", status_code=204, response_class=Response)
def remove_group(services: Services, identity: Admin, name: ItemName, if_match: IfMatch = "") -> None:
    """Removes a group without clients, its pause and its own rules."""
    with editing(services, identity, "group.removed", name):
        group = existing(services.store.policies.read().group(name), "group", name)
        check_version(if_match, lambda: version_of(group))
        PolicyEditor(services.store.policies, services.clock).remove_group(name)


def _answer(policies: PolicySet, name: str, response: Response) -> GroupModel:
    group = existing(policies.group(name), "group", name)
    response.headers.update(etag(version_of(group)))
    return _model(policies, group)


def _model(policies: PolicySet, group: Group) -> GroupModel:
    members = sorted(client.name for client in policies.clients.values() if client.group == group.name)
    return GroupModel(name=group.name, policy=group.policy, note=group.note, clients=members)
