"""Devices on the network: what is known of each, for whoever gives them names."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gatewayfilter.addresses.naming.host_names import names_of
from gatewayfilter.addresses.naming.mac_makers import makers_of
from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.compilation import compile_policies
from gatewayfilter.model import canonical_address
from gatewayfilter.store import Store
from gatewayfilter.use_cases.network_facts import neighbours_now

_MOST_RECORDS: Final = 10_000
"""Newest log records in which devices are searched."""

type FindNames = Callable[[list[str]], Mapping[str, str]]
"""Returns the host names of addresses."""


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """A device that was seen on this machine's links or in the log.

    Attributes:
        mac: `""` when it is not known.
        maker: of its network interface, `""` when it is not known.
        name: host name, as the device claims, `""` when none is known.
        first_at, last_at: Unix seconds.
        requests: number of its newest log records.
        client: name of the client that it is, `""` for none.
    """

    address: str
    mac: str
    maker: str
    name: str
    first_at: float
    last_at: float
    requests: int
    client: str


@dataclass(slots=True)
class _Traffic:
    first_at: float
    last_at: float
    requests: int = 0


def seen_devices(store: Store, now: float | None = None, find_names: FindNames | None = names_of) -> list[SeenDevice]:
    """Returns the devices of the neighbour table, of the last 90 days and of the newest log records, by address.

    Host names of devices that have none are looked up, once a day each, for three seconds at most.

    Args:
        store: with devices, log and clients.
        now: Unix seconds, `None` for the time of the clock.
        find_names: looks host names up, `None` for not at all.
    """
    now = time.time() if now is None else now
    neighbours = neighbours_now()
    store.devices.seen(neighbours, now)
    if find_names is not None and (asked := store.devices.unnamed(now)):
        store.devices.named(asked, find_names(asked), now)
    known = {device.address: device for device in store.devices.all()}
    traffic = _traffic(store)
    macs = {address: device.mac for address, device in known.items()} | neighbours
    makers = makers_of(set(macs.values()) - {""})
    clients = compile_policies(store.policies.read(), now, neighbours=neighbours)
    found: list[SeenDevice] = []
    for address in sorted(known.keys() | traffic.keys(), key=lambda address: (":" in address, address)):
        device, log = known.get(address), traffic.get(address)
        times = [(one.first_at, one.last_at) for one in (device, log) if one is not None]
        mac = macs.get(address, "")
        found.append(
            SeenDevice(
                address,
                mac,
                makers.get(mac, ""),
                device.name if device is not None else "",
                min(first for first, _ in times),
                max(last for _, last in times),
                log.requests if log is not None else 0,
                _name_of(clients, address),
            )
        )
    return found


def _traffic(store: Store) -> dict[str, _Traffic]:
    found: dict[str, _Traffic] = {}
    for _, record in store.log.tail(_MOST_RECORDS):
        if record.client in found or _is_address(record.client):
            traffic = found.setdefault(record.client, _Traffic(record.at, record.at))
            traffic.first_at, traffic.last_at = min(traffic.first_at, record.at), max(traffic.last_at, record.at)
            traffic.requests += 1
    return found


def _is_address(text: str) -> bool:
    try:
        canonical_address(text)
    except ValueError:
        return False
    return True


def _name_of(clients: ClientPolicies, address: str) -> str:
    found = clients.find(address).client
    return found.name if found is not None else ""
