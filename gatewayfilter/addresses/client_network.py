"""The network of a client's address: limits per client count it, since a client may take as many IPv6 addresses as it likes."""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from gatewayfilter.addresses.kinds import is_near
from gatewayfilter.addresses.link_watch import PerLinks, current_links
from gatewayfilter.addresses.links import Links

_NETWORK_BITS: Final = 64
_LONGEST: Final = 64


def network_of(address: str) -> str:
    """Returns the /64 network of an IPv6 address, and any other address as it is."""
    return _network(address) if ":" in address and len(address) <= _LONGEST else address


def turn_names(links: Callable[[], Links] = current_links) -> Callable[[str], str]:
    """Returns what tells clients apart that wait in turn: an address, or the network of an IPv6 address beyond the links.

    The devices of a link share its network; a client behind a router has one to itself, with as many addresses as it likes.
    """
    return PerLinks(_turn_name, links)


def _turn_name(address: str, links: Links) -> str:
    if ":" not in address:
        return address
    found = ip_address(address)
    return address if found.is_link_local or is_near(found, links) else network_of(address)


@lru_cache(maxsize=1024)
def _network(address: str) -> str:
    found = IPv6Address(address.partition("%")[0])
    return str(found.ipv4_mapped) if found.ipv4_mapped else f"{int(found) >> _NETWORK_BITS:x}/64"
