"""The list of clients with what each may now and did today, and devices that are no client yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from gatewayfilter.addresses.naming.mac_makers import makers_of
from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.service_index import ServiceIndex
from gatewayfilter.model import Client, Device, LogCount, LogDimension, MatcherKind, SeenClient, canonical_address
from gatewayfilter.model.log_query import USER_PREFIX
from gatewayfilter.store import Store
from gatewayfilter.use_cases.moments import midnight
from gatewayfilter.use_cases.network_facts import filter_zone, neighbours_now
from gatewayfilter.use_cases.people.client_states import ClientState, compiled, state_at
from gatewayfilter.use_cases.people.name_order import name_order
from gatewayfilter.use_cases.traffic.log_clients import LogClients

_MOST_COUNTED: Final = 20_000
_MOST_NEW: Final = 200
"""Devices without a name that are listed, the newest first."""
_RECENT_S: Final = 30 * 86_400.0
_MOST_MAKERS: Final = 20_000


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client with what it may now and did today.

    Attributes:
        last_at: Unix seconds of its newest decision, to the hour; 0.0 for none.
        present: whether one of its devices is on this machine's links now.
        requests, blocked: decisions since midnight by this machine's clock, and the blocked ones among them.
    """

    client: Client
    state: ClientState
    last_at: float
    present: bool
    requests: int
    blocked: int

    @property
    def share(self) -> float:
        """The blocked share of today's requests, 0 to 1."""
        return self.blocked / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device that is no client.

    Attributes:
        mac, maker, name: `""` when unknown; the name is what the device claims.
        last_at: Unix seconds.
        requests, blocked: decisions since midnight.
        matcher: what to recognize it by: its MAC if that is its own, else its address.
    """

    address: str
    mac: str
    maker: str
    name: str
    last_at: float
    requests: int
    blocked: int

    @property
    def matcher(self) -> str:
        """What to recognize it by: its MAC, else its address."""
        return self.mac or self.address


@dataclass(frozen=True, slots=True)
class ClientList:
    """All clients by name, and devices that are none, those seen last first."""

    clients: tuple[ClientRow, ...]
    devices: tuple[NewDevice, ...]


class Makers:
    """Makers of network interfaces; each MAC is looked up once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, macs: set[str]) -> Mapping[str, str]:
        """Returns MAC → maker, `""` where it is unknown."""
        if missing := macs - self._known.keys():
            if len(self._known) > _MOST_MAKERS:
                self._known.clear()
            self._known |= dict.fromkeys(missing, "") | makers_of(missing)
        return self._known


class ClientNamer(Protocol):
    """Names the clients of the log."""

    def name(self, client: str) -> str:
        """Returns the name of a client, `""` for an unnamed one.

        Args:
            client: an address as logged, or `user:NAME`.
        """
        ...


class _Namer:
    """Names clients by compiled policies, where the log has addresses."""

    def __init__(self, policies: ClientPolicies) -> None:
        self._policies = policies

    def name(self, client: str) -> str:
        user = client.removeprefix(USER_PREFIX)
        found = self._policies.find("", user) if user != client else self._policies.find(client)
        return found.client.name if found.client is not None else ""


def client_list(settings: Settings, store: Store, services: ServiceIndex, makers: Makers, now: float) -> ClientList:
    """Returns clients and new devices. Reads counts, no log records; no name is looked up in the network.

    Args:
        settings: the settings.
        store: the database.
        services: the catalogue.
        makers: looks makers up.
        now: Unix seconds.

    Raises:
        StoreError: the database cannot be read.
    """
    policies = compiled(settings, store.policies.read(), services, now)
    names: ClientNamer = LogClients(store, settings) if settings.log.hash_clients else _Namer(policies)
    found = store.log_stats.summary(midnight(now, filter_zone(settings)), top=_MOST_COUNTED, dimensions=(LogDimension.CLIENT,))
    counts = {count.name: count for count in found.tops.get(LogDimension.CLIENT, ())}
    seen = {one.client: one for one in store.log_stats.clients()}
    neighbours = neighbours_now()
    return ClientList(
        tuple(_rows(policies, names, counts, seen, neighbours, now)),
        tuple(_devices(store.devices.all(), names, counts, seen, neighbours, makers, now)),
    )


def _rows(
    policies: ClientPolicies,
    names: ClientNamer,
    counts: Mapping[str, LogCount],
    seen: Mapping[str, SeenClient],
    neighbours: Mapping[str, str],
    now: float,
) -> list[ClientRow]:
    sums: dict[str, list[float]] = {}
    for logged in counts.keys() | seen.keys():
        if name := names.name(logged):
            total = sums.setdefault(name, [0, 0, 0.0])
            count, one = counts.get(logged), seen.get(logged)
            total[0] += count.decisions if count is not None else 0
            total[1] += count.blocked if count is not None else 0
            total[2] = max(total[2], min(one.last_at, now) if one is not None else 0.0)
    macs = set(neighbours.values())
    rows = []
    for found in policies.clients:
        client = found.client
        assert client is not None
        requests, blocked, last_at = sums.get(client.name, (0, 0, 0.0))
        present = any(
            matcher.value in (macs if matcher.kind is MatcherKind.MAC else neighbours)
            for matcher in client.matchers
            if matcher.kind in {MatcherKind.MAC, MatcherKind.ADDRESS}
        )
        rows.append(ClientRow(client, state_at(found.timeline, now), last_at, present, int(requests), int(blocked)))
    return sorted(rows, key=lambda row: name_order(row.client.name))


def _devices(
    known: list[Device],
    names: ClientNamer,
    counts: Mapping[str, LogCount],
    seen: Mapping[str, SeenClient],
    neighbours: Mapping[str, str],
    makers: Makers,
    now: float,
) -> list[NewDevice]:
    devices = {device.address: device for device in known}
    macs = {address: device.mac for address, device in devices.items()} | dict(neighbours)
    last = {address: device.last_at for address, device in devices.items()} | dict.fromkeys(neighbours, now)
    for logged, one in seen.items():
        if _is_address(logged):
            last[logged] = max(last.get(logged, 0.0), min(one.last_at, now))
    taken = {macs[address] for address in macs if names.name(address)} - {""}
    fresh: list[str] = []
    for address, at in sorted(last.items(), key=lambda item: (-item[1], item[0])):
        mac = macs.get(address, "")
        if at > now - _RECENT_S and len(fresh) < _MOST_NEW and mac not in taken and not names.name(address):
            fresh.append(address)
            taken |= {mac} - {""}
    known_makers = makers.of({macs[address] for address in fresh if macs.get(address)})
    found = []
    for address in fresh:
        count, mac, device = counts.get(address), macs.get(address, ""), devices.get(address)
        decisions, blocked = (count.decisions, count.blocked) if count is not None else (0, 0)
        name = device.name if device is not None else ""
        found.append(NewDevice(address, mac, known_makers.get(mac, ""), name, last[address], decisions, blocked))
    return found


def _is_address(text: str) -> bool:
    try:
        canonical_address(text)
    except ValueError:
        return False
    return True
