"""Reads interfaces, addresses and routes of this network namespace from the kernel (rtnetlink(7)).

Addresses alone are not enough: a prefix that a router announces (RFC 4861 §4.6.2) is on a link although no address of ours is in
it, and local routes make this machine answer for prefixes that no interface has.
"""

import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from gatewayfilter.addresses.links import Address, Link, Links, Network, lan_address

_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_LINK: Final = struct.Struct("=BxHiII")
_ADDRESS: Final = struct.Struct("=BBBBI")
_ROUTE: Final = struct.Struct("=BBBBBBBBI")
_GET_LINK, _GET_ADDRESS, _GET_ROUTE = 18, 22, 26
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE = 16, 20, 24
_ERROR, _DONE = 2, 3
_DUMP: Final = 0x301
"""NLM_F_REQUEST | NLM_F_DUMP."""
_LOOPBACK, _POINT_TO_POINT, _NO_ARP = 0x8, 0x10, 0x80
_UNICAST, _LOCAL, _ANYCAST = 1, 2, 4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DESTINATION, _RTA_INTERFACE = 1, 4
_BEHIND_ROUTERS: Final = frozenset({5, 9, 18, 30})
"""RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA, RTA_NH_ID."""
_WIDEST: Final = {4: 8, 6: 16}
"""Shorter prefixes are no links: routes of the whole internet into a tunnel are written as `0.0.0.0/1` and `2000::/3`."""
_MOST_BYTES: Final = 16_777_216
"""Of one answer. A router with every route of the internet has more; what was read until then counts."""
_MOST_AT_ONCE: Final = 262_144
_PATIENCE_S: Final = 5.0
_GROUPS: Final = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
"""RTMGRP_LINK, and addresses and routes of both families."""

type Message = tuple[int, bytes]
"""Type and body of a netlink message."""


def read_links() -> Links:
    """Returns what the kernel says of this machine's interfaces.

    Raises:
        OSError: it does not say; or this system has no rtnetlink.
    """
    with _connect() as line:
        asked = ((_GET_LINK, _LINK), (_GET_ADDRESS, _ADDRESS), (_GET_ROUTE, _ROUTE))
        return links_of([message for kind, body in asked for message in _dump(line, kind, body.size)])


def dump(kind: int, size: int) -> Sequence[Message]:
    """Returns all messages of a table of the kernel.

    Args:
        kind: of the request (`RTM_GET…`).
        size: of its body, in bytes.

    Raises:
        OSError: the kernel refuses, or this system has no rtnetlink.
    """
    with _connect() as line:
        return _dump(line, kind, size)


@contextmanager
def _connect() -> Iterator[socket.socket]:
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError("this system has no rtnetlink")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as line:
        line.settimeout(_PATIENCE_S)
        line.bind((0, 0))
        yield line


def changes() -> socket.socket | None:
    """Returns a non-blocking socket that is readable when interfaces, addresses or routes change; `None` where there is none."""
    try:
        line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    except (OSError, AttributeError):  # no Linux, or no such family in this sandbox
        return None
    try:
        line.bind((0, _GROUPS))
    except OSError:
        line.close()
        return None
    line.setblocking(False)
    return line


def links_of(messages: Iterable[Message]) -> Links:
    """Returns what link, address and route messages say, in any order."""
    own: set[Address] = set()
    own_networks: set[Network] = set()
    flags: dict[int, int] = {}
    prefixes: dict[tuple[Network, int], None] = {}
    for kind, body in messages:
        if kind == _NEW_LINK and len(body) >= _LINK.size:
            _, _, index, bits, _ = _LINK.unpack_from(body)
            flags[index] = bits
        elif kind == _NEW_ADDRESS and len(body) >= _ADDRESS.size:
            _read_address(body, own, prefixes)
        elif kind == _NEW_ROUTE and len(body) >= _ROUTE.size:
            _read_route(body, own, own_networks, prefixes)
    on_link = tuple(
        Link(network, index, shared=not flags.get(index, 0) & (_POINT_TO_POINT | _NO_ARP))
        for network, index in prefixes
        if not flags.get(index, 0) & _LOOPBACK and not network.is_link_local
    )
    return Links(frozenset(own), tuple(own_networks), on_link)


def _read_address(body: bytes, own: set[Address], prefixes: dict[tuple[Network, int], None]) -> None:
    _, length, _, _, index = _ADDRESS.unpack_from(body)
    found = attributes_of(body, _ADDRESS.size)
    far = found.get(_IFA_ADDRESS) or found.get(_IFA_LOCAL)  # on a point-to-point interface the other end
    near = found.get(_IFA_LOCAL) or far
    if near is None or far is None or len(near) not in {4, 16} or len(far) != len(near):
        return
    own.add(ip_address(near))
    network = _network(far, length)
    if (network is not None and network.num_addresses > 1) or far != near:
        _add(prefixes, network, index)


def _read_route(body: bytes, own: set[Address], own_networks: set[Network], prefixes: dict[tuple[Network, int], None]) -> None:
    family, length, _, _, _, _, _, kind, _ = _ROUTE.unpack_from(body)
    found = attributes_of(body, _ROUTE.size)
    size = 4 if family == socket.AF_INET else 16
    target = found.get(_RTA_DESTINATION, bytes(size))
    network = _network(target, length) if len(target) == size else None
    if network is None or not length:
        return
    if kind in {_LOCAL, _ANYCAST}:
        if network.num_addresses == 1:
            own.add(network.network_address)
        else:
            own_networks.add(network)
    elif kind == _UNICAST and not _BEHIND_ROUTERS & found.keys() and len(found.get(_RTA_INTERFACE, b"")) == 4:
        _add(prefixes, network, int.from_bytes(found[_RTA_INTERFACE], sys.byteorder))


def _add(prefixes: dict[tuple[Network, int], None], network: Network | None, index: int) -> None:
    if network is not None and network.prefixlen >= _WIDEST[network.version]:
        prefixes[network, index] = None


def _network(packed: bytes, length: int) -> Network | None:
    if length > 8 * len(packed):
        return None
    made: type[IPv4Network | IPv6Network] = IPv4Network if len(packed) == 4 else IPv6Network
    return made((packed, length), strict=False)


def _dump(line: socket.socket, kind: int, size: int) -> Sequence[Message]:
    line.send(_HEADER.pack(_HEADER.size + size, kind, _DUMP, kind, 0) + bytes(size))
    got: list[Message] = []
    total = 0
    while total < _MOST_BYTES:
        datagram = line.recv(_MOST_AT_ONCE)
        total += len(datagram)
        for found, number, body in messages_of(datagram):
            if number != kind:  # of an earlier answer that was too long
                continue
            if found == _DONE:
                return got
            if found == _ERROR:
                raise OSError(-int.from_bytes(body[:4], sys.byteorder, signed=True), "rtnetlink refuses")
            got.append((found, body))
    return got


def messages_of(datagram: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yields type, sequence number and body of each message in a netlink datagram; what is cut off is passed over."""
    at = 0
    while at + _HEADER.size <= len(datagram):
        size, kind, _, number, _ = _HEADER.unpack_from(datagram, at)
        if size < _HEADER.size or at + size > len(datagram):
            return
        yield kind, number, datagram[at + _HEADER.size : at + size]
        at += (size + 3) & ~3


def attributes_of(body: bytes, at: int) -> dict[int, bytes]:
    """Returns the attributes of a message from an offset on: type → value."""
    found: dict[int, bytes] = {}
    while at + _ATTRIBUTE.size <= len(body):
        size, kind = _ATTRIBUTE.unpack_from(body, at)
        if size < _ATTRIBUTE.size or at + size > len(body):
            break
        found[kind & 0x3FFF] = body[at + _ATTRIBUTE.size : at + size]
        at += (size + 3) & ~3
    return found


def read_lan_address() -> str:
    """Returns the IPv4 address by which devices of the LAN reach this machine, `""` where there is none, or it cannot be read."""
    try:
        return lan_address(read_links())
    except OSError:
        return ""
