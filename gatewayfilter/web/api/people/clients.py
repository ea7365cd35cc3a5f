"""`/api/v1/clients` and `/api/v1/devices`: clients, what holds for each, and devices that are none."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gatewayfilter.model import DEFAULT, Client, Matcher, parse_matcher
from gatewayfilter.use_cases.people.client_list import ClientList, ClientRow, NewDevice, client_list
from gatewayfilter.use_cases.people.client_policy import LATEST, ClientPolicyView, client_policy
from gatewayfilter.use_cases.people.versions import version_of
from gatewayfilter.use_cases.policies import PolicyEditor, checked_icon
from gatewayfilter.web.access.changes import IfMatch, check_version, etag
from gatewayfilter.web.access.dependencies import Services
from gatewayfilter.web.access.identity import Admin, Viewer
from gatewayfilter.web.api.people.models import (
    After,
    Body,
    ItemName,
    Limit,
    Name,
    Note,
    StateModel,
    check_free,
    editing,
    existing,
    page_of,
    state_model,
)
from gatewayfilter.web.api.shared_models import ValueModel
from gatewayfilter.web.routers import ApiRouter
from gatewayfilter.web.services import WebServices

router = ApiRouter(tags=["clients"])

Addresses = Annotated[
    list[Annotated[str, Field(max_length=300)]],
    Field(description="What it is recognized by: address, network, MAC or user:NAME.", min_length=1, max_length=200),
]
Group = Annotated[str, Field(description="Its group.", max_length=100)]
OwnPolicy = Annotated[str, Field(description='Its own policy, "" for none.', max_length=100)]
Icon = Annotated[str, Field(description='Kind of device: phone, tablet, laptop …; "" for none.', max_length=20)]


class ClientModel(BaseModel):
    """A client: a device or person."""

    name: Name
    addresses: Annotated[list[str], Field(description="What it is recognized by.")]
    group: Group
    policy: OwnPolicy
    note: Note
    icon: Icon
    state: Annotated[StateModel | None, Field(description="What it may now.")] = None
    last_at: Annotated[float, Field(description="Unix seconds of its newest request, to the hour; 0 for none.")] = 0.0
    present: Annotated[bool, Field(description="Whether a device of it is on the machine's links now.")] = False
    requests_today: Annotated[int, Field(description="Decisions since midnight.")] = 0
    blocked_today: Annotated[int, Field(description="Blocked among them.")] = 0


class ClientPage(BaseModel):
    """A page of clients, by name."""

    items: Annotated[list[ClientModel], Field(description="The clients.")]
    next: Annotated[str | None, Field(description="`after` of the next page, null at the end.")]


class NewClient(Body):
    """A client to add."""

    name: Name
    addresses: Addresses
    group: Group = DEFAULT
    note: Note = ""
    icon: Icon = ""


class ClientChange(Body):
    """A change of a client; what is left out stays."""

    name: Annotated[Name | None, Field(description="Another name; rules, pause and used quotas go with it.")] = None
    addresses: Annotated[Addresses | None, Field(description="All that it is recognized by.")] = None
    group: Annotated[Group | None, Field(description="Another group.")] = None
    policy: Annotated[OwnPolicy | None, Field(description='Another policy of its own, "" for none.')] = None
    note: Annotated[Note | None, Field(description="For later readers.")] = None
    icon: Annotated[Icon | None, Field(description="Kind of device.")] = None


class DeviceModel(BaseModel):
    """A device that is no client."""

    address: Annotated[str, Field(description="IP address.")]
    mac: Annotated[str, Field(description="Of its network interface, empty when unknown.")]
    maker: Annotated[str, Field(description="Of its network interface, empty when unknown.")]
    name: Annotated[str, Field(description="Host name, as the device claims; empty when unknown.")]
    last_at: Annotated[float, Field(description="Unix seconds at which it was seen last.")]
    requests_today: Annotated[int, Field(description="Decisions since midnight.")]
    blocked_today: Annotated[int, Field(description="Blocked among them.")]


class DevicePage(BaseModel):
    """Devices that are no client, those seen last first."""

    items: Annotated[list[DeviceModel], Field(description="The devices, at most 200.")]


class QuotaLeftModel(BaseModel):
    """What a client has left of a quota."""

    quota: Annotated[str, Field(description="Its name.")]
    target: Annotated[str, Field(description="The service or category.")]
    used: Annotated[int, Field(description="Minutes used on the current day.")]
    minutes: Annotated[int, Field(description="Minutes of that day.")]
    until: Annotated[float | None, Field(description="Unix seconds at which it begins again; null while minutes are left.")]


class ClientPolicyModel(BaseModel):
    """What holds for a client at an instant."""

    client: Annotated[str, Field(description="Its name.")]
    at: Annotated[float, Field(description="Unix seconds.")]
    group: Annotated[str, Field(description="Its group.")]
    policies: Annotated[list[str], Field(description="Its policies, the nearest first.")]
    state: Annotated[StateModel, Field(description="What it may then.")]
    values: Annotated[list[ValueModel], Field(description="All values in force, with their origins.")]
    schedules: Annotated[list[str], Field(description="All schedules of its policies.")]
    quotas: Annotated[list[QuotaLeftModel], Field(description="What it has left of its quotas.")]


@router.get("/clients", operation_id="list_clients")
def list_clients(
    services: Services,
    _: Viewer,
    after: After = "",
    limit: Limit = 100,
    group: Annotated[str, Query(description="Those of a group alone.", max_length=100)] = "",
) -> ClientPage:
    """Returns the clients by name, with what each may now and today's requests."""
    rows = ((row.client.name, row) for row in _list(services).clients if not group or row.client.group == group)
    page, following = page_of(rows, after, limit)
    return ClientPage(items=[_row_model(row) for row in page], next=following)


@router.post("/clients", operation_id="add_client", status_code=201)
def add_client(services: Services, identity: Admin, body: NewClient, response: Response) -> ClientModel:
    """Adds a client. 409 when the name is taken."""
    client = Client(body.name, _matchers(body.addresses), body.group, note=body.note, icon=checked_icon(body.icon))
    with editing(services, identity, "client.added", body.name):
        check_free(body.name in services.store.policies.read().clients, "client", body.name)
        PolicyEditor(services.store.policies, services.clock).add_client(client)
    return _answer(client, response)


@router.get("/clients/{name}", operation_id="get_client")
def get_client(services: Services, _: Viewer, name: ItemName, response: Response) -> ClientModel:
    """Returns a client with what it may now."""
    row = existing(next((row for row in _list(services).clients if row.client.name == name), None), "client", name)
    response.headers.update(etag(version_of(row.client)))
    return _row_model(row)


@router.patch("/clients/{name}", operation_id="change_client")
def change_client(
    services: Services, identity: Admin, name: ItemName, body: ClientChange, response: Response, if_match: IfMatch = ""
) -> ClientModel:
    """Changes a client: name, group, policy, note, icon, what it is recognized by."""
    editor = PolicyEditor(services.store.policies, services.clock)
    renamed = body.name if body.name is not None and body.name != name else None
    with editing(services, identity, "client.renamed" if renamed else "client.changed", name, renamed or ""):
        policies = services.store.policies.read()
        client = existing(policies.clients.get(name), "client", name)
        check_version(if_match, lambda: version_of(client))
        wanted = None if body.addresses is None else _matchers(body.addresses)
        add, remove = ((), ()) if wanted is None else (set(wanted) - set(client.matchers), set(client.matchers) - set(wanted))
        policies = editor.set_client(
            name,
            add=sorted(map(str, add)),
            remove=sorted(map(str, remove)),
            group=body.group,
            note=body.note,
            icon=None if body.icon is None else checked_icon(body.icon),
            policy=body.policy,
        )
        if renamed is not None:
            check_free(renamed in policies.clients, "client", renamed)
            policies = editor.rename_client(name, renamed)
    return _answer(policies.clients[renamed or name], response)


@router.delete("/clients/{name}", operation_id="remove_client", status_code=204, response_class=Response)
def remove_client(services: Services, identity: Admin, name: ItemName, if_match: IfMatch = "") -> None:
    """Removes a client, its pause and its own rules; it belongs to the group default from then on."""
    with editing(services, identity, "client.removed", name):
        client = existing(services.store.policies.read().clients.get(name), "client", name)
        check_version(if_match, lambda: version_of(client))
        PolicyEditor(services.store.policies, services.clock).remove_client(name)


@router.get("/clients/{name}/policy", operation_id="get_client_policy")
def get_client_policy(
    services: Services,
    _: Viewer,
    name: ItemName,
    at: Annotated[float | None, Query(description="Unix seconds, now by default.", ge=0, le=LATEST, allow_inf_nan=False)] = None,
) -> ClientPolicyModel:
    """Returns what holds for a client at an instant, and where each value comes from."""
    policies = services.store.policies.read()
    existing(policies.clients.get(name), "client", name)
    moment = services.clock() if at is None else at
    found = client_policy(services.settings, services.store, policies, services.service_index, name, moment)
    return _policy_model(name, found)


@router.get("/devices", operation_id="list_devices", tags=["devices"])
def list_devices(services: Services, _: Viewer) -> DevicePage:
    """Returns the devices that were seen in the last 30 days and are no client."""
    return DevicePage(items=[_device_model(device) for device in _list(services).devices])


def _list(services: WebServices) -> ClientList:
    return client_list(services.settings, services.store, services.service_index, services.makers, services.clock())


def _matchers(addresses: Sequence[str]) -> tuple[Matcher, ...]:
    return tuple(dict.fromkeys(map(parse_matcher, addresses)))


def _answer(client: Client, response: Response) -> ClientModel:
    response.headers.update(etag(version_of(client)))
    return _model(client)


def _model(client: Client) -> ClientModel:
    return ClientModel(
        name=client.name,
        addresses=list(map(str, client.matchers)),
        group=client.group,
        policy=client.policy,
        note=client.note,
        icon=client.icon,
    )


def _row_model(row: ClientRow) -> ClientModel:
    return _model(row.client).model_copy(
        update={
            "state": state_model(row.state),
            "last_at": row.last_at,
            "present": row.present,
            "requests_today": row.requests,
            "blocked_today": row.blocked,
        }
    )


def _device_model(device: NewDevice) -> DeviceModel:
    return DeviceModel(
        address=device.address,
        mac=device.mac,
        maker=device.maker,
        name=device.name,
        last_at=device.last_at,
        requests_today=device.requests,
        blocked_today=device.blocked,
    )


def _policy_model(name: str, found: ClientPolicyView) -> ClientPolicyModel:
    return ClientPolicyModel(
        client=name,
        at=found.at,
        group=found.group,
        policies=list(found.policies),
        state=state_model(found.state),
        values=[ValueModel(key=one.key, value=one.value, origin=one.origin, policy=one.policy) for one in found.values],
        schedules=[schedule.name for schedule in found.schedules],
        quotas=[
            QuotaLeftModel(quota=one.quota, target=one.target, used=one.used, minutes=one.minutes, until=one.until)
            for one in found.quotas
        ],
    )
