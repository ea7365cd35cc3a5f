"""The API of groups. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class GroupPage(TypedDict):
    """A page of groups, by name."""

    items: list[GroupModel]
    next: str | None


class GroupModel(TypedDict):
    """A group of clients."""

    name: str
    policy: str
    note: str
    clients: list[str]


class NewGroup(TypedDict):
    """A group to add."""

    name: str
    policy: NotRequired[str]
    note: NotRequired[str]


class GroupChange(TypedDict):
    """A change of a group; what is left out stays."""

    name: NotRequired[str | None]
    policy: NotRequired[str | None]
    note: NotRequired[str | None]


class GroupsApi:
    """Operations of groups."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_groups(self, *, after: str | None = None, limit: int | None = None) -> Answer[GroupPage]:
        """Returns the groups by name, with their clients."""
        return self._transport.send(Call("GET", "/api/v1/groups", query={"after": after, "limit": limit}))

    def add_group(self, body: NewGroup) -> Answer[GroupModel]:
        """Adds a group. 409 when the name is taken."""
        return self._transport.send(Call("POST", "/api/v1/groups", body=body))

    def get_group(self, name: str) -> Answer[GroupModel]:
        """Returns a group with its clients."""
        return self._transport.send(Call("GET", "/api/v1/groups/{name}", parameters={"name": name}))

    def change_group(self, name: str, body: GroupChange, *, if_match: str = "") -> Answer[GroupModel]:
        """Changes a group: name, policy, note."""
        return self._transport.send(
            Call("PATCH", "/api/v1/groups/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_group(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Removes a group without clients, its pause and its own rules."""
        return self._transport.send(
            Call("DELETE", "/api/v1/groups/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )
