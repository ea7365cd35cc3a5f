"""Kinds of IP addresses, by what a connection to them may lead to.

Source: the IANA special-purpose address registries (RFC 6890), as Python's `ipaddress` has them.
Deviation: multicast, reserved and deprecated ranges count as internal, and so does an IPv6 address that a transition mechanism
translates to an internal IPv4 address.
"""

from collections.abc import Iterator
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from gatewayfilter.addresses.links import NO_LINKS, Address, Links

_THIS_HOST: Final = IPv4Network("0.0.0.0/8")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")
_UNIQUE_LOCAL: Final = IPv6Network("fc00::/7")
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
_METADATA: Final = frozenset(
    ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42")
)
"""Where clouds answer their virtual machines, beside 169.254.169.254: Alibaba, Azure, AWS, Google, Scaleway."""


class Kind(IntEnum):
    """What an address leads to; the larger, the further inside."""

    PUBLIC = 0
    PRIVATE = 1
    """Another machine of a network that is not the internet: private, unique local, shared (CGNAT) and similar ranges."""
    RESERVED = 2
    """No ordinary host: link-local, multicast, broadcast, metadata services of clouds, unassigned ranges."""
    OWN = 3
    """This machine: loopback, unspecified, and each address of its interfaces."""


def kind_of(address: Address, links: Links = NO_LINKS) -> Kind:
    """Returns the kind of an address; of an IPv6 address with IPv4 ones inside, the innermost of them all."""
    address = plain(address)
    if isinstance(address, IPv4Address):
        return _kind_of_4(address, links)
    return max(_kind_of_6(address, links), *(_kind_of_4(inner, links) for inner in embedded(address)), Kind.PUBLIC)


def _kind_of_4(address: IPv4Address, links: Links) -> Kind:
    if address.is_loopback or address in _THIS_HOST or links.is_own(address):
        return Kind.OWN
    if address.is_link_local or address.is_multicast or address.is_reserved or address in _METADATA:
        return Kind.RESERVED
    return Kind.PUBLIC if address.is_global else Kind.PRIVATE


def _kind_of_6(address: IPv6Address, links: Links) -> Kind:
    if address.is_loopback or address.is_unspecified or links.is_own(address):
        return Kind.OWN
    if address in _METADATA:
        return Kind.RESERVED
    if address in _UNIQUE_LOCAL:
        return Kind.PRIVATE
    if address in _NAT64:  # outside the unicast range; the IPv4 address inside it counts
        return Kind.PUBLIC
    if address not in _UNICAST:
        return Kind.RESERVED
    return Kind.PUBLIC if address.is_global else Kind.PRIVATE


def is_near(address: Address, links: Links) -> bool:
    """Tells whether an address, or an IPv4 address inside it, belongs to this machine or to one of its links."""
    address = plain(address)
    inner = embedded(address) if isinstance(address, IPv6Address) else ()
    return links.is_near(address) or any(map(links.is_near, inner))


def plain(address: Address) -> Address:
    """Returns an IPv4-mapped address (`::ffff:192.0.2.1`) as IPv4, any other without its zone."""
    if not isinstance(address, IPv6Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    return IPv6Address(int(address)) if address.scope_id else address


def embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yields the IPv4 addresses that transition mechanisms may take a packet to."""
    low = int(address) & 0xFFFF_FFFF
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _NAT64 or (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(low)
