"""The guard at the socket: the crawler never reaches an address that is not public, by whatever way it got there.

A check of names or of the resolver's answers is passed by IP literals, by redirects and by names that change between look-up
and connection. This one stands where the socket for one resolved address is made, so that it sees all of them.
"""

import errno
import socket
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import AddrInfoType

from gatewayfilter.config import CrawlSettings
from gatewayfilter.errors import ForbiddenAddressError

_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


class ForbiddenSocketError(ForbiddenAddressError, OSError):
    """`ForbiddenAddressError` in the only form in which a connector passes it on: as a failed connection."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EACCES, message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class AddressGuard:
    """Says which addresses may be connected to, and makes sockets for those alone."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._networks = tuple(ip_network(item) for item in settings.allow_networks)
        self._ports = frozenset(settings.allow_ports)
        self.refusal = lru_cache(maxsize=4096)(self._refusal)

    def socket_factory(self, info: AddrInfoType) -> socket.socket:
        """Makes the socket for one resolved address, for `aiohttp.TCPConnector`.

        Raises:
            ForbiddenSocketError: this address must not be reached.
        """
        family, kind, protocol, _, address = info
        reason = self.refusal(str(address[0]), int(address[1]))
        if reason:
            raise ForbiddenSocketError(reason)
        return socket.socket(family, kind, protocol)

    def _refusal(self, host: str, port: int) -> str:
        """Returns why this numeric address and port must not be reached, `""` when they may."""
        try:
            address = _plain(ip_address(host))
        except ValueError:
            return f"{host[:100]!r} is not an address"
        if self.is_allowed_network(address):
            return ""
        if not is_public(address):
            return f"{address} is not a public address"
        return "" if port in self._ports else f"port {port} may not be crawled"

    def is_allowed_network(self, address: IPv4Address | IPv6Address) -> bool:
        """Tells whether the operator lets this address be crawled (`crawl.allow_networks`)."""
        return any(address in network for network in self._networks)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Tells whether an address is globally reachable unicast, and every IPv4 address inside it too."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    translated = address in _NAT64  # outside the unicast range, and as public as the IPv4 address inside it
    return (translated or (address.is_global and address in _UNICAST)) and all(map(is_public, _embedded(address)))


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yields the IPv4 addresses that transition mechanisms may take the packet to."""
    low = int(address) & 0xFFFF_FFFF
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _NAT64 or (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(low)
