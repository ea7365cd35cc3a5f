"""Client policies: the clients of a network by what they are recognized by, each with a timeline of what is in force for it."""

from bisect import bisect_right
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from types import MappingProxyType
from typing import Final

from gatewayfilter.engine.policies.effective_policy import EffectivePolicy, ListSelection
from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.model import Client, MatcherKind, canonical_address

_MOST_REMEMBERED: Final = 65_536
"""Addresses: clients of IPv6 change theirs, and may take any of their network."""


class Timeline:
    """What is in force from one instant to the next. Immutable.

    Attributes:
        instants: Unix seconds, ascending, at which something changes.
        effective: what is in force before the first instant and from each on: one more than instants.
    """

    __slots__ = ("effective", "instants")

    def __init__(self, instants: tuple[float, ...], effective: tuple[EffectivePolicy, ...]) -> None:
        self.instants = instants
        self.effective = effective

    def at(self, now: float) -> EffectivePolicy:
        """Returns what is in force at an instant."""
        return self.effective[bisect_right(self.instants, now)]


class ClientPolicy:
    """A client with its timeline. Immutable.

    Attributes:
        client: `None` for clients that are not recognized.
        scopes: of the manual rules for it alone and for its group, in the order in which they count.
        timeline: of what is in force.
    """

    __slots__ = ("client", "group", "scopes", "timeline")

    def __init__(self, client: Client | None, group: str, timeline: Timeline) -> None:
        self.client = client
        self.group = group
        self.timeline = timeline
        self.scopes = (f"client:{client.name}", f"group:{group}") if client is not None else (f"group:{group}",)


_NO_STRANGERS: Final[Mapping[str, ClientPolicy]] = MappingProxyType({})


class ClientPolicies:
    """Finds the policy of a client: by proxy user, MAC, exact address, longest prefix, in this order.

    Any number of threads may use it: it is immutable but for a cache of addresses.

    Args:
        clients: with their policies.
        default: of clients that are not recognized.
        neighbours: address → MAC, of the devices on this machine's links.
        selections: all list selections in the timelines, by number.
        services: the catalogue of services; `NO_SERVICES` when no policy concerns any.
        has_quotas: whether there is any quota.
        strangers: address → the policy of a client that is not recognized and has used up a quota.

    Attributes:
        macs: by which any client is recognized.
        varies_log: whether the log keeps more or less of any client than of the others.
        instants: all instants at which anything changes for any client, ascending.
        known: the policies of addresses that were looked up. `known.get` finds most addresses; `find` finds all, at the cost of a
            call.
    """

    def __init__(
        self,
        clients: tuple[ClientPolicy, ...],
        default: ClientPolicy,
        neighbours: Mapping[str, str],
        selections: tuple[ListSelection, ...] = (),
        *,
        services: ServiceIndex = NO_SERVICES,
        has_quotas: bool = False,
        strangers: Mapping[str, ClientPolicy] = _NO_STRANGERS,
    ) -> None:
        self.default = default
        self.services = services
        self.has_quotas = has_quotas
        self.clients = clients
        self.selections = selections
        timelines = {found.timeline for found in (*clients, default, *strangers.values())}
        self.varies_log = any(
            effective.requests is not None and effective.requests.log_detail is not None
            for timeline in timelines
            for effective in timeline.effective
        )
        self.instants = tuple(sorted({instant for timeline in timelines for instant in timeline.instants}))
        self._users: dict[str, ClientPolicy] = {}
        self._exact: dict[str, ClientPolicy] = {}
        macs: dict[str, ClientPolicy] = {}
        prefixes: dict[tuple[int, int], dict[int, ClientPolicy]] = {}
        for found in clients:
            for matcher in found.client.matchers if found.client is not None else ():
                match matcher.kind:
                    case MatcherKind.USER:
                        self._users[matcher.value] = found
                    case MatcherKind.MAC:
                        macs[matcher.value] = found
                    case MatcherKind.ADDRESS:
                        self._exact[matcher.value] = found
                    case MatcherKind.NETWORK:
                        network = ip_network(matcher.value)
                        key = (network.version, network.max_prefixlen - network.prefixlen)
                        prefixes.setdefault(key, {})[int(network.network_address) >> key[1]] = found
        self.macs = frozenset(macs)
        if macs:
            self._exact |= {address: macs[mac] for address, mac in neighbours.items() if mac in macs}
        self._prefixes = sorted(prefixes.items(), key=lambda item: item[0])
        self._exact |= {address: found for address, found in strangers.items() if self._look_up(address) is default}
        self.known: dict[str, ClientPolicy] = {"": default, **self._exact}

    def find(self, address: str, user: str = "") -> ClientPolicy:
        """Returns the policy of a client.

        Args:
            address: as the kernel writes it, perhaps with a zone; `""` and what is no address get the default.
            user: name of the proxy user, `""` for none.
        """
        if user and (found := self._users.get(user)) is not None:
            return found
        return self.known.get(address) or self._search(address)

    def _search(self, address: str) -> ClientPolicy:
        found = self._look_up(address)
        known = self.known
        if len(known) >= _MOST_REMEMBERED:
            self.known = known = {"": self.default, **self._exact}
        known[address] = found
        return found

    def _look_up(self, address: str) -> ClientPolicy:
        try:
            plain = canonical_address(address)
        except ValueError:
            return self.default
        exact = self._exact.get(plain)
        return exact if exact is not None else self._of_network(ip_address(plain))

    def _of_network(self, address: IPv4Address | IPv6Address) -> ClientPolicy:
        number = int(address)
        for (version, shift), networks in self._prefixes:  # the longest prefixes first
            if version == address.version and (found := networks.get(number >> shift)) is not None:
                return found
        return self.default
