"""Who reaches what through the proxy: the table of addresses/reach.py, cell by cell."""

from ipaddress import ip_address, ip_network

import pytest

from gatewayfilter.addresses.kinds import Kind, kind_of
from gatewayfilter.addresses.links import Link, Links
from gatewayfilter.addresses.reach import Reach, Target, target_of

LINKS = Links(
    own=frozenset(map(ip_address, ("192.168.1.1", "fd00:1::1", "10.8.0.1", "8.8.4.4"))),
    on_link=(
        Link(ip_network("192.168.1.0/24"), 2),
        Link(ip_network("fd00:1::/64"), 2),
        Link(ip_network("2a00:1450:4001::/64"), 2),
        Link(ip_network("172.17.0.0/16"), 3),
        Link(ip_network("10.8.0.0/24"), 4, shared=False),
    ),
)
PUBLIC = ("8.8.8.8", "2606:4700::1111")
OWN = ("127.0.0.1", "::1", "0.0.0.0", "192.168.1.1", "fd00:1::1", "10.8.0.1", "8.8.4.4", "64:ff9b::808:404")
RESERVED = ("169.254.169.254", "fe80::2", "224.0.0.1", "fd00:ec2::254")
ON_THE_LINK = ("192.168.1.7", "fd00:1::7")
ELSEWHERE = ("172.17.0.2", "10.8.0.2", "10.9.9.9", "fd99::1", "100.64.0.1")
EVERYTHING = PUBLIC + OWN + RESERVED + ON_THE_LINK + ELSEWHERE
LAN = "192.168.1.50"

TABLE = [
    ("127.0.0.1", Target.ADDRESS, EVERYTHING),
    ("::1", Target.ADDRESS, EVERYTHING),
    ("127.0.0.1", Target.NAME, PUBLIC),
    (LAN, Target.ADDRESS, PUBLIC + ON_THE_LINK),
    ("2a00:1450:4001::50", Target.ADDRESS, PUBLIC + ON_THE_LINK),
    ("192.168.1.1", Target.ADDRESS, PUBLIC + ON_THE_LINK),  # this machine by another address than loopback
    (LAN, Target.NAME, PUBLIC),
    (LAN, Target.DESTINATION, PUBLIC + ON_THE_LINK + ELSEWHERE),
    ("10.8.0.5", Target.ADDRESS, PUBLIC),  # whom the other devices of a tunnel may reach is for this machine's firewall to say
    ("203.0.113.5", Target.ADDRESS, PUBLIC),
    ("", Target.ADDRESS, PUBLIC),
    ("fe80::5%lan0", Target.ADDRESS, PUBLIC),
]


def admits(reach: Reach, client: str, target: Target, address: str) -> bool:
    return reach.admits(client, target, address, kind_of(ip_address(address), LINKS), LINKS)


@pytest.mark.parametrize(("client", "target", "reached"), TABLE)
@pytest.mark.parametrize("address", EVERYTHING)
def test_the_table(client: str, target: Target, reached: tuple[str, ...], address: str) -> None:
    assert admits(Reach(), client, target, address) is (address in reached)


@pytest.mark.parametrize(
    ("network", "address", "opens"),
    [
        ("10.0.0.0/8", "10.9.9.9", True),
        ("10.0.0.0/8", "::ffff:10.9.9.9", True),
        ("10.0.0.0/8", "10.8.0.1", False),  # an address of this machine, in a network that is opened for others
        ("10.8.0.1/32", "10.8.0.1", True),
        ("10.8.0.1/32", "10.8.0.2", False),
        ("127.0.0.0/8", "127.0.0.1", True),
        ("::1/128", "::1", True),
        ("0.0.0.0/0", "127.0.0.1", False),
        ("0.0.0.0/0", "192.168.1.1", False),
        ("::/0", "::1", False),
        ("169.254.169.254/32", "169.254.169.254", True),
        ("fd99::/16", "fd99::1", True),
    ],
)
@pytest.mark.parametrize("target", Target)
def test_networks_that_the_operator_opens(network: str, address: str, target: Target, *, opens: bool) -> None:
    if target is not Target.DESTINATION or kind_of(ip_address(address), LINKS) is not Kind.PRIVATE:
        assert admits(Reach([network]), LAN, target, address) is opens


def test_what_is_no_address_is_reached_by_nobody() -> None:
    assert not Reach(["0.0.0.0/0"]).admits("127.0.0.1", Target.ADDRESS, "nonsense", Kind.OWN, LINKS)


@pytest.mark.parametrize(
    ("host", "target"),
    [
        ("127.0.0.1", Target.ADDRESS),
        ("[::1]", Target.ADDRESS),
        ("fe80::1%eth0", Target.ADDRESS),
        ("2130706433", Target.ADDRESS),
        ("0x7f000001", Target.ADDRESS),
        ("127.0x1", Target.ADDRESS),
        ("0177.0.0.1", Target.ADDRESS),
        ("127.1.", Target.ADDRESS),
        ("localhost", Target.ADDRESS),
        ("LOCALHOST.", Target.ADDRESS),
        ("app.localhost", Target.ADDRESS),
        ("nas", Target.ADDRESS),
        ("nas.local", Target.ADDRESS),
        ("nas.lan", Target.ADDRESS),
        ("a.b.home.arpa", Target.ADDRESS),
        ("site.test", Target.ADDRESS),
        ("fritz.box", Target.NAME),
        ("localhost.com", Target.NAME),
        ("127.0.0.1.nip.io", Target.NAME),
        ("xhome.arpa", Target.NAME),
        ("lan.example.com", Target.NAME),
        ("rebind\u3002com", Target.NAME),
        ("rebind\uff0ecom", Target.NAME),
        ("rebind\\.com", Target.NAME),
        ("", Target.NAME),
    ],
)
def test_how_a_host_is_named(host: str, target: Target) -> None:
    assert target_of(host) is target
