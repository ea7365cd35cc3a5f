from ipaddress import ip_address, ip_network

import pytest

from gatewayfilter.addresses.client_network import network_of, turn_names
from gatewayfilter.addresses.links import Link, Links

LAN = Links(own=frozenset({ip_address("2001:db8:1::1")}), on_link=(Link(ip_network("2001:db8:1::/64"), 2),))


@pytest.mark.parametrize(
    ("address", "network", "turn"),
    [
        ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7"),
        ("2001:db8:2:3:4::5", "20010db800020003/64", "20010db800020003/64"),
        ("2001:db8:2:3:ffff::1", "20010db800020003/64", "20010db800020003/64"),
        ("2001:db8:1::7", "20010db800010000/64", "2001:db8:1::7"),
        ("fe80::7%eth0", "fe80000000000000/64", "fe80::7%eth0"),
        ("2001:db8:1::8", "20010db800010000/64", "2001:db8:1::8"),
    ],
)
def test_a_client_is_a_device_of_the_link_or_a_network_beyond_it(address: str, network: str, turn: str) -> None:
    assert (network_of(address), turn_names(lambda: LAN)(address)) == (network, turn)
