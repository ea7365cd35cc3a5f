"""The clients and hosts that are left out of the decision log (`log.ignored_clients`, `log.ignored_hosts`)."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from gatewayfilter.model import MatcherKind, parse_matcher

_MOST_REMEMBERED: Final = 10_000


class LogExclusions:
    """Tells which decisions are not logged.

    Args:
        clients: addresses, networks, and proxy users as `user:NAME`, as `parse_matcher` reads them.
        hosts: canonical hosts; the hosts below them are left out, too.
    """

    def __init__(self, clients: Iterable[str], hosts: Iterable[str]) -> None:
        matchers = [parse_matcher(text) for text in clients]
        self._users = frozenset(matcher.value for matcher in matchers if matcher.kind is MatcherKind.USER)
        self._addresses = frozenset(matcher.value for matcher in matchers if matcher.kind is MatcherKind.ADDRESS)
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(
            ip_network(matcher.value) for matcher in matchers if matcher.kind is MatcherKind.NETWORK
        )
        self._hosts = frozenset(hosts)
        self._of_address: dict[str, bool] = {}

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self._users or self._addresses or self._networks or self._hosts)

    def has_client(self, address: str, user: str = "") -> bool:
        """Returns whether the decisions of a client are left out. A look-up for an address that was seen before."""
        if user in self._users:
            return True
        known = self._of_address.get(address)
        if known is None:
            if len(self._of_address) >= _MOST_REMEMBERED:
                self._of_address = {}
            known = self._of_address[address] = address in self._addresses or self._is_in_network(address)
        return known

    def has_host(self, host: str) -> bool:
        """Returns whether the decisions about a host are left out."""
        while host:
            if host in self._hosts:
                return True
            host = host.partition(".")[2]
        return False

    def _is_in_network(self, text: str) -> bool:
        if not self._networks:
            return False
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)
