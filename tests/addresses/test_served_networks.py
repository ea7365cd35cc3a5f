"""Which clients a server without a log-in serves."""

from ipaddress import ip_network

import pytest

from gatewayfilter.addresses.served_networks import ServedNetworks


@pytest.mark.parametrize(
    ("address", "served"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.9", True),
        ("::ffff:192.0.2.9", True),
        ("192.0.2.17", False),
        ("fe80::1%eth0", True),
        ("2001:db8::1", False),
        ("", False),
        ("name", False),
    ],
)
def test_loopback_and_named_networks_are_served(address: str, served: bool) -> None:  # noqa: FBT001  a column of the table
    networks = [ip_network("192.0.2.0/28"), ip_network("fe80::/10")]
    assert ServedNetworks(networks).admits(address) is served
    assert not ServedNetworks().admits("192.0.2.9")
