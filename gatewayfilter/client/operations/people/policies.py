"""The API of policies. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class PolicyPage(TypedDict):
    """A page of policies, by name."""

    items: list[PolicyModel]
    next: str | None


class PolicyModel(TypedDict):
    """A policy: the values that it sets."""

    name: str
    values: dict[str, str]
    groups: list[str]
    clients: list[str]
    schedules: list[str]
    quotas: list[str]


class NewPolicy(TypedDict):
    """A policy to add."""

    name: str
    values: NotRequired[dict[str, str]]
    groups: NotRequired[list[str]]
    clients: NotRequired[list[str]]


class PolicyChange(TypedDict):
    """A change of a policy; what is left out stays."""

    values: NotRequired[dict[str, str | None]]
    groups: NotRequired[list[str]]
    clients: NotRequired[list[str]]


class PoliciesApi:
    """Operations of policies."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_policies(self, *, after: str | None = None, limit: int | None = None) -> Answer[PolicyPage]:
        """Returns the policies by name, with who has them."""
        return self._transport.send(Call("GET", "/api/v1/policies", query={"after": after, "limit": limit}))

    def add_policy(self, body: NewPolicy) -> Answer[PolicyModel]:
        """Adds a policy. 409 when the name is taken."""
        return self._transport.send(Call("POST", "/api/v1/policies", body=body))

    def get_policy(self, name: str) -> Answer[PolicyModel]:
        """Returns a policy with its values and who has it."""
        return self._transport.send(Call("GET", "/api/v1/policies/{name}", parameters={"name": name}))

    def change_policy(self, name: str, body: PolicyChange, *, if_match: str = "") -> Answer[PolicyModel]:
        """Sets and unsets values of a policy, and gives it to groups and clients. In force within a second."""
        return self._transport.send(
            Call("PATCH", "/api/v1/policies/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_policy(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Removes a policy that no client, group or schedule uses, with its own schedules and quotas."""
        return self._transport.send(
            Call("DELETE", "/api/v1/policies/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )
