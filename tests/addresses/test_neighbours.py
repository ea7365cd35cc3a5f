"""The neighbour table, from messages as the kernel sends them."""

import socket
from struct import pack

import pytest

from gatewayfilter.addresses.neighbours import neighbours_of, read_neighbours

REACHABLE, FAILED, INCOMPLETE, NO_ARP, PERMANENT = 0x02, 0x20, 0x01, 0x40, 0x80
MAC = bytes.fromhex("aabbccddeeff")


def message(address: bytes, mac: bytes | None = MAC, state: int = REACHABLE, family: int | None = None) -> tuple[int, bytes]:
    found = family if family is not None else socket.AF_INET if len(address) == 4 else socket.AF_INET6
    body = pack("=BxxxiHBB", found, 2, state, 0, 1) + pack("=HH", 4 + len(address), 1) + address
    if mac is not None:
        body += pack("=HH", 4 + len(mac), 2) + mac + bytes(-len(mac) % 4)
    return 28, body


def test_neighbours_of_both_families() -> None:
    six = socket.inet_pton(socket.AF_INET6, "fe80::1")
    found = neighbours_of([message(b"\x0a\0\0\x02"), message(six, state=PERMANENT)])
    assert found == {"10.0.0.2": "aa:bb:cc:dd:ee:ff", "fe80::1": "aa:bb:cc:dd:ee:ff"}


@pytest.mark.parametrize(
    "bad",
    [
        message(b"\x0a\0\0\x02", state=FAILED),
        message(b"\x0a\0\0\x02", state=INCOMPLETE),
        message(b"\x0a\0\0\x02", state=NO_ARP),
        message(b"\x0a\0\0\x02", mac=None),
        message(b"\x0a\0\0\x02", mac=b"short"),
        message(b"\x0a\0\0"),
        message(b"\x0a\0\0\x02", family=socket.AF_UNIX),
        (16, message(b"\x0a\0\0\x02")[1]),
        (28, b"short"),
    ],
)
def test_what_has_no_mac_is_left_out(bad: tuple[int, bytes]) -> None:
    assert neighbours_of([bad]) == {}


@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="no rtnetlink here")
def test_the_table_of_this_machine_can_be_read() -> None:
    assert all(len(mac) == 17 for mac in read_neighbours().values())
