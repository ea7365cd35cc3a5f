"""The network interfaces of this machine, as one immutable value: its own addresses, and the prefixes on its links."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Link:
    """A prefix that is reached without a router.

    Attributes:
        network: the prefix.
        interface: index of its interface.
        shared: its devices reach each other without this machine; not so on point-to-point interfaces, such as tunnels.
    """

    network: Network
    interface: int
    shared: bool = True


@dataclass(frozen=True, slots=True)
class Links:
    """What the kernel's tables say.

    Attributes:
        own: addresses at which this machine answers.
        own_networks: whole prefixes at which it answers.
        on_link: the prefixes of its interfaces, loopback aside.
    """

    own: frozenset[Address] = frozenset()
    own_networks: tuple[Network, ...] = ()
    on_link: tuple[Link, ...] = ()

    def is_own(self, address: Address) -> bool:
        """Tells whether a packet to this address stays on this machine."""
        return address in self.own or any(address in network for network in self.own_networks)

    def is_near(self, address: Address) -> bool:
        """Tells whether an address belongs to this machine or to one of its links."""
        return self.is_own(address) or any(address in link.network for link in self.on_link)

    def share_a_link(self, one: Address, other: Address) -> bool:
        """Tells whether two devices reach each other without this machine: both have an address on one of its links."""
        shared = [link for link in self.on_link if link.shared]
        interfaces = {link.interface for link in shared if one in link.network}
        return any(link.interface in interfaces and other in link.network for link in shared)


def lan_address(links: Links) -> str:
    """Returns the IPv4 address by which devices of the LAN reach this machine, `""` where none is private."""
    own = sorted(address for address in links.own if isinstance(address, IPv4Address))
    return next((str(address) for address in own if address.is_private and not address.is_loopback), "")


NO_LINKS: Final = Links()
