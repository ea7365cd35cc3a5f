"""What the kernel says of interfaces: made-up messages, hostile ones, and the real thing beside the command `ip`."""

import json
import shutil
import socket
import struct
import subprocess
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.addresses.links import Link, Links
from gatewayfilter.addresses.rtnetlink import Message, changes, links_of, messages_of, read_links

LO, LAN, TUNNEL = 1, 2, 7


def attributes(**values: bytes) -> bytes:
    out = b""
    for name, value in values.items():
        piece = struct.pack("=HH", len(value) + 4, int(name[1:])) + value
        out += piece + bytes(-len(piece) % 4)
    return out


def link(index: int, flags: int) -> Message:
    return 16, struct.pack("=BxHiII", 0, 1, index, flags, 0)


def address(index: int, prefix: str, peer: str = "") -> Message:
    near, _, length = prefix.partition("/")
    packed = ip_address(near).packed
    body = struct.pack("=BBBBI", 2 if len(packed) == 4 else 10, int(length), 0, 0, index)
    if len(packed) == 16 and not peer:  # the kernel gives no IFA_LOCAL then
        return 20, body + attributes(_1=packed)
    return 20, body + attributes(_1=ip_address(peer or near).packed, _2=packed)


def route(prefix: str, index: int, *, kind: int = 1, **more: bytes) -> Message:
    network = ip_network(prefix)
    body = struct.pack("=BBBBBBBBI", 2 if network.version == 4 else 10, network.prefixlen, 0, 0, 254, 2, 253, kind, 0)
    return 24, body + attributes(_1=network.network_address.packed, _4=struct.pack("=I", index), **more)


def test_messages_become_links() -> None:
    found = links_of([
        route("192.168.1.0/24", LAN),
        address(LO, "127.0.0.1/8"),
        address(LO, "203.0.113.7/24"),
        address(LAN, "192.168.1.1/24"),
        address(LAN, "fe80::1/64"),
        address(LAN, "2001:db8:5::1/128"),
        address(TUNNEL, "10.8.0.1/32", peer="10.8.0.2"),
        link(LO, 0x49),
        link(LAN, 0x1043),
        link(TUNNEL, 0x90D1),
        route("2001:db8:5::/64", LAN),
        route("198.51.100.0/24", LAN, _5=ip_address("192.168.1.254").packed),
        route("198.51.100.0/24", LAN, _9=bytes(8)),
        route("0.0.0.0/1", TUNNEL),
        route("2000::/3", TUNNEL),
        route("0.0.0.0/0", TUNNEL),
        route("127.0.0.0/8", LO, kind=2),
        route("192.0.2.80/32", LO, kind=2),
        route("2001:db8:5::/128", LAN, kind=4),
        route("192.168.1.255/32", LAN, kind=3),
        route("240.0.0.0/8", LAN, kind=7),
    ])  # fmt: skip
    assert found.own == frozenset(
        map(ip_address, ("127.0.0.1", "203.0.113.7", "192.168.1.1", "fe80::1", "2001:db8:5::1", "10.8.0.1", "192.0.2.80",
                         "2001:db8:5::"))
    )  # fmt: skip
    assert found.own_networks == (ip_network("127.0.0.0/8"),)
    assert set(found.on_link) == {
        Link(ip_network("192.168.1.0/24"), LAN),
        Link(ip_network("2001:db8:5::/64"), LAN),
        Link(ip_network("10.8.0.2/32"), TUNNEL, shared=False),
    }


@given(st.lists(st.tuples(st.sampled_from([2, 3, 16, 20, 24]), st.binary(max_size=80))))
def test_any_messages_are_read(messages: list[Message]) -> None:
    assert isinstance(links_of(messages), Links)


@given(st.binary(max_size=200))
def test_any_datagram_is_read(datagram: bytes) -> None:
    assert sum(len(body) + 16 for _, _, body in messages_of(datagram)) <= len(datagram)


def test_the_kernel_says_the_same_as_its_command() -> None:
    if shutil.which("ip") is None:
        pytest.skip("needs the command ip")
    shown = json.loads(subprocess.run(["ip", "-j", "address"], capture_output=True, check=True, timeout=10).stdout)
    told = {ip_address(entry["local"]) for interface in shown for entry in interface.get("addr_info", ())}
    assert told
    links = read_links()
    assert told <= links.own
    assert links.is_own(ip_address("127.8.8.8"))
    assert not any(link.network.is_loopback for link in links.on_link)


def test_changes_can_be_waited_for() -> None:
    line = changes()
    assert line is not None
    with line, pytest.raises(BlockingIOError):
        line.recv(1)


def test_a_system_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no netlink here")

    monkeypatch.setattr(socket, "socket", refuse)
    assert changes() is None
    with pytest.raises(OSError, match="no netlink"):
        read_links()
