"""Kinds of addresses, and the same kinds in every spelling that leads to the same place."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.addresses.kinds import Kind, is_near, kind_of
from gatewayfilter.addresses.links import Link, Links

HOME = Links(
    own=frozenset(map(ip_address, ("192.168.1.1", "2a00:1450:4001::1", "93.184.216.2"))),
    own_networks=(ip_network("198.41.0.0/24"),),
    on_link=(
        Link(ip_network("192.168.1.0/24"), 2),
        Link(ip_network("2a00:1450:4001::/64"), 2),
        Link(ip_network("93.184.216.0/24"), 3),
        Link(ip_network("10.8.0.0/24"), 4, shared=False),
    ),
)

KINDS = {
    Kind.PUBLIC: ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "93.184.216.3", "2a00:1450:4001::5"],
    Kind.PRIVATE: ["10.1.2.3", "100.64.0.1", "172.16.0.1", "192.168.0.1", "192.0.2.1", "198.18.0.1", "fc00::1", "fd12::1",
                   "2001:db8::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"],
    Kind.RESERVED: ["169.254.0.1", "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "224.0.0.1", "240.0.0.1",
                    "255.255.255.255", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "64:ff9b:1::a00:1", "::808:808",
                    "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "2002:a9fe:a9fe::1"],
    Kind.OWN: ["127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "::", "::1", "::1%lo", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
               "2002:7f00:1::1", "2606:4700::5efe:7f00:1", "192.168.1.1", "::ffff:192.168.1.1", "64:ff9b::c0a8:101",
               "2002:c0a8:101::", "2606:4700::5efe:c0a8:101", "2a00:1450:4001::1", "93.184.216.2", "64:ff9b::5db8:d802",
               "198.41.0.77"],
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind, texts in KINDS.items() for text in texts])
def test_kinds(text: str, kind: Kind) -> None:
    assert kind_of(ip_address(text), HOME) is kind


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("93.184.216.2", True),
        ("93.184.216.9", True),
        ("::ffff:93.184.216.9", True),
        ("64:ff9b::5db8:d809", True),
        ("2a00:1450:4001::5", True),
        ("2a00:1450:4001:1::5", False),
        ("93.184.217.9", False),
        ("198.41.0.1", True),
    ],
)
def test_public_addresses_of_an_own_link_are_near(text: str, *, near: bool) -> None:
    assert is_near(ip_address(text), HOME) is near


@given(st.ip_addresses(v=4))
def test_an_ipv6_address_is_as_internal_as_the_ipv4_address_inside_it(address: object) -> None:
    kind = kind_of(ip_address(str(address)), HOME)
    assert kind_of(ip_address(f"::ffff:{address}"), HOME) is kind
    assert kind_of(ip_address(f"64:ff9b::{address}"), HOME) is kind
    assert kind_of(ip_address(f"2606:4700::5efe:{address}"), HOME) is kind


@given(st.ip_addresses())
def test_what_is_not_global_is_never_public(address: object) -> None:
    found = ip_address(str(address))
    if not found.is_global:
        assert kind_of(found) is not Kind.PUBLIC or str(found).startswith("::ffff:")
