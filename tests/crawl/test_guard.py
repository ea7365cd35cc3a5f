import errno
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.guard import AddressGuard, ForbiddenSocketError
from gatewayfilter.errors import ForbiddenAddressError
from tests.crawl.crawl_origin import loopback_settings

PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    "2001:db8::1",
    "2002:7f00:1::1",  # 6to4
    "2606:4700::5efe:a00:1",  # ISATAP
    "64:ff9b::7f00:1",  # NAT64
    "64:ff9b:1::a00:1",
    "fc00::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "not an address",
    "",
]


@pytest.mark.parametrize("host", PUBLIC)
def test_public_addresses_on_allowed_ports(host: str) -> None:
    guard = AddressGuard(CrawlSettings())
    assert guard.refusal(host, 80) == guard.refusal(host, 443) == ""
    assert "port 8080" in guard.refusal(host, 8080)


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_other_addresses_are_refused(host: str) -> None:
    assert AddressGuard(CrawlSettings()).refusal(host, 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1"])
def test_allowed_networks_on_any_port(host: str) -> None:
    guard = AddressGuard(loopback_settings())
    assert guard.refusal(host, 8000) == ""
    assert guard.refusal("10.0.0.1", 80)
    assert guard.refusal("::1", 80)
    assert guard.refusal("64:ff9b::7f00:1", 80)


def test_no_socket_is_made_for_a_refused_address() -> None:
    guard = AddressGuard(loopback_settings())
    with pytest.raises(ForbiddenSocketError) as caught:
        guard.socket_factory((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 80)))
    assert isinstance(caught.value, ForbiddenAddressError)
    assert caught.value.errno == errno.EACCES
    assert str(caught.value) == "10.0.0.1 is not a public address"
    guard.socket_factory((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))).close()


@given(st.ip_addresses(v=4))
def test_mapped_addresses_are_as_public_as_their_own(address: object) -> None:
    guard = AddressGuard(CrawlSettings())
    assert bool(guard.refusal(str(address), 80)) == bool(guard.refusal(f"::ffff:{address}", 80))


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_private_addresses_stay_private_when_translated(address: object) -> None:
    assert AddressGuard(CrawlSettings()).refusal(f"64:ff9b::{address}", 80)
