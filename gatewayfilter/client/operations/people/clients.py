"""The API of clients. Written by scripts/make_api_client.py; not to be edited."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gatewayfilter.client.transport import Answer, Call, Transport


class ClientPage(TypedDict):
    """A page of clients, by name."""

    items: list[ClientModel]
    next: str | None


class ClientModel(TypedDict):
    """A client: a device or person."""

    name: str
    addresses: list[str]
    group: str
    policy: str
    note: str
    icon: str
    state: NotRequired[StateModel | None]
    last_at: NotRequired[float]
    present: NotRequired[bool]
    requests_today: NotRequired[int]
    blocked_today: NotRequired[int]


class StateModel(TypedDict):
    """What a client may at an instant."""

    kind: str
    until: float | None
    cause: str
    schedules: list[str]
    services: list[str]
    categories: list[str]
    allowed: list[str]
    used_up: list[str]


class NewClient(TypedDict):
    """A client to add."""

    name: str
    addresses: list[str]
    group: NotRequired[str]
    note: NotRequired[str]
    icon: NotRequired[str]


class ClientChange(TypedDict):
    """A change of a client; what is left out stays."""

    name: NotRequired[str | None]
    addresses: NotRequired[list[str] | None]
    group: NotRequired[str | None]
    policy: NotRequired[str | None]
    note: NotRequired[str | None]
    icon: NotRequired[str | None]


class ClientPolicyModel(TypedDict):
    """What holds for a client at an instant."""

    client: str
    at: float
    group: str
    policies: list[str]
    state: StateModel
    values: list[ValueModel]
    schedules: list[str]
    quotas: list[QuotaLeftModel]


class ValueModel(TypedDict):
    """A value of a policy that is in force."""

    key: str
    value: str
    origin: str
    policy: str


class QuotaLeftModel(TypedDict):
    """What a client has left of a quota."""

    quota: str
    target: str
    used: int
    minutes: int
    until: float | None


class DevicePage(TypedDict):
    """Devices that are no client, those seen last first."""

    items: list[DeviceModel]


class DeviceModel(TypedDict):
    """A device that is no client."""

    address: str
    mac: str
    maker: str
    name: str
    last_at: float
    requests_today: int
    blocked_today: int


class ClientsApi:
    """Operations of clients."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_clients(self, *, after: str | None = None, limit: int | None = None, group: str | None = None) -> Answer[ClientPage]:
        """Returns the clients by name, with what each may now and today's requests."""
        return self._transport.send(Call("GET", "/api/v1/clients", query={"after": after, "limit": limit, "group": group}))

    def add_client(self, body: NewClient) -> Answer[ClientModel]:
        """Adds a client. 409 when the name is taken."""
        return self._transport.send(Call("POST", "/api/v1/clients", body=body))

    def get_client(self, name: str) -> Answer[ClientModel]:
        """Returns a client with what it may now."""
        return self._transport.send(Call("GET", "/api/v1/clients/{name}", parameters={"name": name}))

    def change_client(self, name: str, body: ClientChange, *, if_match: str = "") -> Answer[ClientModel]:
        """Changes a client: name, group, policy, note, icon, what it is recognized by."""
        return self._transport.send(
            Call("PATCH", "/api/v1/clients/{name}", parameters={"name": name}, headers={"if-match": if_match}, body=body)
        )

    def remove_client(self, name: str, *, if_match: str = "") -> Answer[bytes]:
        """Removes a client, its pause and its own rules; it belongs to the group default from then on."""
        return self._transport.send(
            Call("DELETE", "/api/v1/clients/{name}", parameters={"name": name}, headers={"if-match": if_match})
        )

    def get_client_policy(self, name: str, *, at: float | None = None) -> Answer[ClientPolicyModel]:
        """Returns what holds for a client at an instant, and where each value comes from."""
        return self._transport.send(Call("GET", "/api/v1/clients/{name}/policy", parameters={"name": name}, query={"at": at}))

    def list_devices(self) -> Answer[DevicePage]:
        """Returns the devices that were seen in the last 30 days and are no client."""
        return self._transport.send(Call("GET", "/api/v1/devices"))
