"""The guard at the socket: the crawler never reaches an address that is not public, or is on the local network.

A check of names or of the resolver's answers is passed by IP literals, by redirects and by names that change between lookup
and connection. This one stands where the socket for one resolved address is made, so that it sees all of them.

A public address is no outsider's by itself: devices of an IPv6 network have such addresses, and so may this machine. They are
protected from the internet by a firewall, behind which the crawler is; so what is on a link of this machine is refused as well.
"""

import errno
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from aiohttp import AddrInfoType

from gatewayfilter.addresses.kinds import Kind, is_near, kind_of, plain
from gatewayfilter.addresses.link_watch import PerLinks, current_links
from gatewayfilter.addresses.links import Links
from gatewayfilter.config import CrawlSettings
from gatewayfilter.errors import ForbiddenAddressError


class ForbiddenSocketError(ForbiddenAddressError, OSError):
    """`ForbiddenAddressError` in the only form in which a connector passes it on: as a failed connection."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EACCES, message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class AddressGuard:
    """Decides which addresses may be connected to, and creates sockets for those alone.

    Args:
        settings: `allow_networks` and `allow_ports`.
        links: returns the interfaces of this machine.
    """

    def __init__(self, settings: CrawlSettings, links: Callable[[], Links] = current_links) -> None:
        self._networks = tuple(ip_network(item) for item in settings.allow_networks)
        self._ports = frozenset(settings.allow_ports)
        self._reason = PerLinks(self._refusal, links)

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

    def refusal(self, host: str, port: int) -> str:
        """Returns why this numeric address and port must not be reached, `""` when they may."""
        return self._reason((host, port))

    def _refusal(self, target: tuple[str, int], links: Links) -> str:
        host, port = target
        try:
            address = ip_address(host)
        except ValueError:
            return f"{host[:100]!r} is not an address"
        if self.is_allowed_network(plain(address)):
            return ""
        if kind_of(address) is not Kind.PUBLIC:
            return f"{plain(address)} is not a public address"
        if is_near(address, links):
            return f"{plain(address)} is an address of this machine or of its own network"
        return "" if port in self._ports else f"port {port} may not be crawled"

    def is_allowed_network(self, address: IPv4Address | IPv6Address) -> bool:
        """Returns whether the operator allows this address to be crawled (`crawl.allow_networks`)."""
        return any(address in network for network in self._networks)
