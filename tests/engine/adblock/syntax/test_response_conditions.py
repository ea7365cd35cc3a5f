"""Conditions on the response, at their edges: `gatewayfilter.engine.adblock.syntax.response_conditions`."""

import pytest

from gatewayfilter.engine.adblock.syntax.response_conditions import address_test, canonical_address, header_test, plain_addresses
from gatewayfilter.errors import RuleError


def test_values_of_plain_addresses_alone() -> None:
    for value, found in (
        ("192.0.2.1", ("192.0.2.1",)), (" 192.0.2.1 | 2001:DB8:0:0::1 ", ("192.0.2.1", "2001:db8::1")), ("192.0.2.1|", ()),
        ("192.0.2.1|lan", ()), ("192.0.2.*", ()), ("~192.0.2.1", ()), ("192.0.2.0/24", ()), ("", ()), ("/192/", ()),
    ):  # fmt: skip
        assert plain_addresses(value) == found, value


def test_addresses_in_one_form() -> None:
    for address, found in (
        ("2001:DB8:0:0::1", "2001:db8::1"), ("192.0.2.1", "192.0.2.1"), ("192.0.2.01", "192.0.2.01"), ("", ""), ("a:b", "a:b"),
    ):  # fmt: skip
        assert canonical_address(address) == found, address


def test_which_addresses_are_of_the_own_network() -> None:
    for address, lan, loopback in (
        ("192.168.1.1", True, False), ("127.0.0.2", False, True), ("::1", False, True), ("fd00::1", True, False),
        ("8.8.8.8", False, False), ("", False, False), ("no address", False, False),
    ):  # fmt: skip
        assert address_test("lan")(address) is lan, address
        assert address_test("loopback")(address) is loopback, address
        assert address_test("~lan")(address) is (bool(address) and not lan), address


def test_unwanted_addresses_outrank_wanted_ones() -> None:
    test = address_test("10.0.0.0/8 | ~10.1.* | ~10.2.0.1|lan")
    for address, holds in (
        ("10.0.0.1", True), ("10.1.0.1", False), ("10.2.0.1", False),
        ("10.2.0.2", True), ("192.168.0.1", True), ("8.8.8.8", False), ("", False),
    ):  # fmt: skip
        assert test(address) is holds, address
    assert address_test("10.1.2.3/8")("10.200.0.1") is True


def test_what_cannot_be_read_is_named_in_part() -> None:
    for value, told in (
        ("*", "[*]"), ("", ""), ("192.0.2.1|", ""), ("192.0.2.0/33", "192.0.2.0/33"), ("x" * 101, "x" * 100),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=f"^not an address: '{told}'$"):
            address_test(value)
    for name in ("", " ", "é", "a b", "a/b", "a=b", "[a]"):
        with pytest.raises(RuleError, match="not a header name"):
            header_test(f"{name}:x")
    with pytest.raises(RuleError, match=f"^not a header name: '{'x' * 100}'$"):
        header_test("x" * 101 + "(:x")
