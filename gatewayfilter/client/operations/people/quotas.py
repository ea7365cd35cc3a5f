"""The API of quotas. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class QuotaPage(TypedDict):
    """A page of quotas, by name."""

    items: list[QuotaModel]
    next: str | None


class QuotaModel(TypedDict):
    """A quota."""

    name: str
    policy: str
    kind: Literal["service", "category"]
    target: str
    minutes: int
    other_days: dict[str, Any]
    timezone: str
    used: dict[str, int]


class NewQuota(TypedDict):
    """A quota to add."""

    name: str
    policy: str
    kind: Literal["service", "category"]
    target: str
    minutes: int
    other_days: NotRequired[dict[str, Any]]
    timezone: NotRequired[str]


class QuotaChange(TypedDict):
    """Other minutes of a quota; what was used today counts."""

    minutes: int
    other_days: NotRequired[dict[str, Any]]


class QuotasApi:
    """Operations of quotas."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_quotas(self, *, after: str | None = None, limit: int | None = None) -> Answer[QuotaPage]:
        """Returns the quotas by name, with who used how much of them today."""
        return self._transport.send(Call("GET", "/api/v1/quotas", query={"after": after, "limit": limit}))

    def add_quota(self, body: NewQuota) -> Answer[QuotaModel]:
        """Adds a quota. 409 when the name is taken."""
        return self._transport.send(Call("POST", "/api/v1/quotas", body=body))

    def get_quota(self, name: str) -> Answer[QuotaModel]:
        """Returns a quota, with who used how much of it today."""
        return self._transport.send(Call("GET", "/api/v1/quotas/{name}", parameters={"name": name}))

    def change_quota(self, name: str, body: QuotaChange, *, if_match: str = "") -> Answer[QuotaModel]:
        """Changes the minutes of a quota."""
        return self._transport.send(
            Call("PATCH", "/api/v1/quotas/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_quota(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Removes a quota."""
        return self._transport.send(
            Call("DELETE", "/api/v1/quotas/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )
