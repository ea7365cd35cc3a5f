"""Host names of devices on the links: by reverse look-up, multicast DNS (RFC 6762) and LLMNR (RFC 4795), within a time limit.

Only addresses of private and link-local networks are looked up: the names of others are not the network's to tell. A name is
whatever its device claims. It is cleaned and cut, and shown to people; nothing is decided by it.
"""

import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from gatewayfilter.addresses.kinds import Kind, kind_of

LONGEST_NAME: Final = 63
"""Characters of a name that are kept: one label of DNS (RFC 1035 §2.3.4)."""
_MOST: Final = 64
"""Addresses that are looked up at once."""
_THREADS: Final = 8
_EACH_S: Final = 1.0
_PTR: Final = 12
_IN: Final = 1
_MOST_RECORDS: Final = 20
_MOST_JUMPS: Final = 10
_MOST_LABELS: Final = 127
_POINTER: Final = 0xC0
_GROUPS: Final = (("224.0.0.251", 5353), ("224.0.0.252", 5355))
_HEADER: Final = struct.Struct("!HHHHHH")
_PACKET_BYTES: Final = 1500
_NAME_MARKS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ")

type LookUp = Callable[[str], str]
"""Returns the host name of an address, `""` for none; may raise `OSError`."""


def names_of(addresses: Iterable[str], *, limit_s: float = 3.0, look_ups: Sequence[LookUp] | None = None) -> dict[str, str]:
    """Returns the host names of addresses in internal networks: address → name; those without one are left out.

    Args:
        addresses: in canonical form; at most 64 are looked up.
        limit_s: time for all of them. What takes longer is left out.
        look_ups: asked in this order until one has a name; by default DNS, mDNS and LLMNR.
    """
    asked = [address for address in addresses if _is_internal(address)][:_MOST]
    if not asked:
        return {}
    chosen = tuple(look_ups) if look_ups is not None else (by_dns, by_multicast)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="host-names")
    try:
        futures = {pool.submit(_name_of, address, chosen): address for address in asked}
        done, _ = wait(futures, timeout=limit_s)
        return {futures[future]: future.result() for future in done if future.result()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def clean_name(text: str) -> str:
    """Returns what of a name is kept: its first label, of letters, digits, hyphens, underscores and spaces, cut to 63."""
    label = text.strip().rstrip(".").partition(".")[0]
    return "".join(mark for mark in label if mark in _NAME_MARKS).strip()[:LONGEST_NAME]


def by_dns(address: str) -> str:
    """Returns the name that the resolver of the system has for an address."""
    name = socket.getnameinfo((address, 0), socket.NI_NAMEREQD)[0]
    return "" if name == address else name


def by_multicast(address: str) -> str:
    """Returns the name that the device itself gives, by mDNS or LLMNR, within a second; `""` for an IPv6 address."""
    if ":" in address:
        return ""
    number = secrets.randbelow(1 << 16)
    question = _question(ip_address(address), number)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        for group in _GROUPS:
            asking.sendto(question, group)
        until = time.monotonic() + _EACH_S
        while (left := until - time.monotonic()) > 0:
            asking.settimeout(left)
            try:
                packet, (sender, _) = asking.recvfrom(_PACKET_BYTES)
            except TimeoutError:
                break
            # A device may name itself alone.
            if sender == address and (name := name_in(packet, number, ip_address(address).reverse_pointer)):
                return name
    return ""


def name_in(packet: bytes, number: int, pointer: str) -> str:
    """Returns the name in an answer about a pointer such as `4.3.2.1.in-addr.arpa`, `""` where there is none.

    Args:
        packet: as it was received.
        number: the message's, or 0 as in mDNS.
        pointer: what was asked.
    """
    try:
        found, flags, questions, answers, _, _ = _HEADER.unpack_from(packet)
        if found not in {number, 0} or not flags & 0x8000 or questions > 1 or answers > _MOST_RECORDS:
            return ""
        place = _HEADER.size
        for _ in range(questions):
            place = _read_name(packet, place)[1] + 4
        for _ in range(answers):
            owner, place = _read_name(packet, place)
            kind, _, _, length = struct.unpack_from("!HHIH", packet, place)
            place += 10
            if kind == _PTR and owner.lower() == pointer.lower():
                return clean_name(_read_name(packet, place)[0])
            place += length
    except (struct.error, IndexError, ValueError):
        return ""
    return ""


def _name_of(address: str, look_ups: Sequence[LookUp]) -> str:
    for look_up in look_ups:
        try:
            if name := clean_name(look_up(address)):
                return name
        except (OSError, UnicodeError):
            continue
    return ""


def _is_internal(address: str) -> bool:
    try:
        return kind_of(ip_address(address)) is Kind.PRIVATE
    except ValueError:
        return False


def _question(address: IPv4Address | IPv6Address, number: int) -> bytes:
    labels = address.reverse_pointer.split(".")
    name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"
    return _HEADER.pack(number, 0, 1, 0, 0, 0) + name + struct.pack("!HH", _PTR, _IN)


def _read_name(packet: bytes, place: int) -> tuple[str, int]:
    """Returns a name of a DNS message and the place behind it. Compression (RFC 1035 §4.1.4) is followed ten times at most."""
    labels: list[str] = []
    behind = -1
    jumps = 0
    while length := packet[place]:
        if length >= _POINTER:
            behind = place + 2 if behind < 0 else behind
            place = (length & ~_POINTER) << 8 | packet[place + 1]
            jumps += 1
        else:
            label = packet[place + 1 : place + 1 + length]
            labels.append(label.decode("utf-8", "replace"))
            place += 1 + length
            if length > LONGEST_NAME or len(label) < length:
                raise ValueError("a label that is cut off")
        if jumps > _MOST_JUMPS or len(labels) > _MOST_LABELS:
            raise ValueError("a name without an end")
    return ".".join(labels), behind if behind >= 0 else place + 1
