"""What policies refer to: categories and sources, this machine's time zone, the address of a client, the devices on the links."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from gatewayfilter.addresses.neighbours import read_neighbours
from gatewayfilter.config import Settings
from gatewayfilter.engine.policies.time_windows import day_at, find_zone, zone_of
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Client, ListAction, MatcherKind, PolicySet, canonical_address, key_of_client
from gatewayfilter.sources import SourceFile
from gatewayfilter.store import Store
from gatewayfilter.wiring import categories, services, subscriptions

_LOCALTIME: Final = Path("/etc/localtime")
_ZONES: Final = "zoneinfo/"
_ADDRESS_OF_AWAY: Final = "192.0.2.255"
"""For documentation (RFC 5737); a MAC outranks whatever a policy says of an address."""


def known_categories(settings: Settings, *, allowing: bool = False) -> set[str]:
    """Returns the categories that lists can block: those of the registry and of subscriptions.

    Args:
        settings: the settings.
        allowing: also those of lists that allow, or that let connections pass unread.
    """
    found = {category.category_id for category in categories() if allowing or category.action is ListAction.BLOCK}
    files = (file.source for file in _files(settings))
    return found | {source.category for source in files if allowing or source.action is ListAction.BLOCK} - {""}


def known_sources(settings: Settings) -> set[str]:
    """Returns the names of the enabled subscriptions."""
    return {file.source.name for file in _files(settings)}


def known_services(settings: Settings, keys: Sequence[str]) -> set[str]:
    """Returns the ids of the catalogue's services where one of these keys of a policy needs them, else none.

    Raises:
        ListError: the operator's own catalogue is wrong.
    """
    return set(services(settings)) if any(key.startswith("service") for key in keys) else set()


def counted_categories(settings: Settings) -> set[str]:
    """Returns what a quota can count besides services: categories of lists, and groups of services.

    Raises:
        ListError: the operator's own catalogue of services is wrong.
    """
    return known_categories(settings) | {service.group for service in services(settings).values()}


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """What a client has left of a quota today.

    Attributes:
        quota: its name.
        target: the service or category.
        used, minutes: of the day, and what the quota gives on it.
        until: Unix seconds at which it begins again, `None` while minutes are left.
    """

    quota: str
    target: str
    used: int
    minutes: int
    until: float | None


def quotas_left(store: Store, policies: PolicySet, client: Client | None, address: str, now: float) -> list[QuotaLeft]:
    """Returns what a client has left of the quotas of its policies.

    Args:
        store: with the use.
        policies: with the quotas.
        client: `None` for one that is not recognized.
        address: of that one.
        now: Unix seconds.
    """
    names = {policy.name for _, policy in policies.chain(client)}
    quotas = [quota for quota in policies.quotas.values() if quota.policy in names]
    if not quotas:
        return []
    key = key_of_client(client.name if client is not None else "", address)
    used = {one.quota: one.used for one in store.usage.sums(now) if one.client == key}
    found: list[QuotaLeft] = []
    for quota in sorted(quotas, key=lambda quota: quota.name):
        spent = next((one for one in policies.spent_of(quota.name) if one.client == key and one.until > now), None)
        until = spent.until if spent is not None and spent.since <= now else None
        minutes = quota.minutes_of(day_at(now, zone_of(quota.timezone))[0])
        found.append(QuotaLeft(quota.name, quota.target, used.get(quota.name, 0), minutes, until))
    return found


def _files(settings: Settings) -> list[SourceFile]:
    return subscriptions(settings).files()


def zone_name(settings: Settings) -> str:
    """Returns the IANA name of the filter's time zone: `filter.timezone`, else this machine's."""
    return settings.filter.timezone or local_zone()


def filter_zone(settings: Settings) -> tzinfo:
    """Returns the filter's time zone, as `zone_name`: in it days begin, and times are shown."""
    return find_zone(zone_name(settings))


def local_zone() -> str:
    """Returns the IANA name of this machine's time zone, `UTC` when it cannot be found."""
    target = os.environ.get("TZ", "").removeprefix(":") or _LOCALTIME.resolve().as_posix()
    name = target.rpartition(_ZONES)[2]
    try:
        find_zone(name)
    except PolicyError:
        return "UTC"
    return name


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What a request of a client carries: its address, and the name of the proxy user (`""` for none)."""

    address: str
    user: str = ""


def identity_of(text: str, policies: PolicySet, neighbours: dict[str, str]) -> ClientIdentity:
    """Returns the identity of a client.

    Args:
        text: an address, `user:NAME`, or the name of a client.
        policies: with the clients.
        neighbours: address → MAC.

    Raises:
        PolicyError: it is none of these, or a client without an address that is not among the neighbours.
    """
    if text.startswith("user:"):
        return ClientIdentity("", text.removeprefix("user:"))
    client = policies.clients.get(text)
    if client is None:
        try:
            return ClientIdentity(canonical_address(text))
        except ValueError as error:
            raise PolicyError(f"{text!r} is neither an address nor the name of a client") from error
    for matcher in sorted(client.matchers, key=lambda matcher: list(MatcherKind).index(matcher.kind)):
        match matcher.kind:
            case MatcherKind.USER:
                return ClientIdentity("", matcher.value)
            case MatcherKind.ADDRESS:
                return ClientIdentity(matcher.value)
            case MatcherKind.NETWORK:
                return ClientIdentity(_free_address(matcher.value, policies))
            case MatcherKind.MAC:
                address = next((address for address, mac in neighbours.items() if mac == matcher.value), None)
                if address is not None:
                    return ClientIdentity(address)
    raise PolicyError(f"the client {text} has no address now: its device is not on this machine's links")


def _free_address(network: str, policies: PolicySet) -> str:
    """Returns an address of a network that no other client has."""
    taken = {matcher.value for client in policies.clients.values() for matcher in client.matchers}
    hosts = (str(address) for address in ip_network(network).hosts())
    return next((address for address, _ in zip(hosts, range(len(taken) + 1), strict=False) if address not in taken), "")


def neighbours_with(text: str, policies: PolicySet) -> dict[str, str]:
    """Returns the neighbour table (address → MAC) for a check: the device of a client that is away has an address of no network.

    Args:
        text: an address, `user:NAME`, or the name of a client.
        policies: with the clients.
    """
    found = neighbours_now()
    client = policies.clients.get(text)
    macs = [matcher.value for matcher in client.matchers if matcher.kind is MatcherKind.MAC] if client is not None else []
    if macs and not set(macs) & set(found.values()):
        found = {**found, _ADDRESS_OF_AWAY: macs[0]}
    return found


def neighbours_now() -> dict[str, str]:
    """Returns the neighbour table (address → MAC), empty where it cannot be read."""
    try:
        return read_neighbours()
    except OSError:
        return {}
