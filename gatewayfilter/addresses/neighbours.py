"""The neighbour table of the kernel: the MAC of each address on this machine's links, by ARP (RFC 826) and NDP (RFC 4861)."""

import socket
from collections.abc import Iterable
from ipaddress import ip_address
from struct import Struct
from typing import Final

from gatewayfilter.addresses.rtnetlink import Message, attributes_of, dump

_GET_NEIGHBOUR, _NEW_NEIGHBOUR = 30, 28
_NEIGHBOUR: Final = Struct("=BxxxiHBB")
_NDA_DESTINATION, _NDA_LINK_ADDRESS = 1, 2
_INCOMPLETE, _FAILED, _NO_ARP = 0x01, 0x20, 0x40
_WITHOUT_MAC: Final = _INCOMPLETE | _FAILED | _NO_ARP
_MAC_BYTES: Final = 6


def read_neighbours() -> dict[str, str]:
    """Returns the neighbours: address → MAC, both in canonical form. Takes some microseconds for each.

    Raises:
        OSError: the kernel refuses, or this system has no rtnetlink.
    """
    return neighbours_of(dump(_GET_NEIGHBOUR, _NEIGHBOUR.size))


def neighbours_of(messages: Iterable[Message]) -> dict[str, str]:
    """Returns what neighbour messages contain; entries that were never answered, or have failed, are left out."""
    found: dict[str, str] = {}
    for kind, body in messages:
        if kind != _NEW_NEIGHBOUR or len(body) < _NEIGHBOUR.size:
            continue
        family, _, state, _, _ = _NEIGHBOUR.unpack_from(body)
        if state & _WITHOUT_MAC or family not in {socket.AF_INET, socket.AF_INET6}:
            continue
        values = attributes_of(body, _NEIGHBOUR.size)
        address, mac = values.get(_NDA_DESTINATION, b""), values.get(_NDA_LINK_ADDRESS, b"")
        if len(address) in {4, 16} and len(mac) == _MAC_BYTES:
            found[str(ip_address(address))] = mac.hex(":")
    return found
