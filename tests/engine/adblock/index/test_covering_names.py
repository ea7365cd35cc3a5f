"""The names that cover a host, and hosts of one site: `gatewayfilter.engine.adblock.index.covering_names`."""

from gatewayfilter.engine.adblock.index.covering_names import host_names, is_same_site, names_by, same_site_by
from gatewayfilter.urls import suffix_rules

NAMES = (
    (
        "a.b.covered.co.uk",
        ("a.b.covered.co.uk", "b.covered.co.uk", "covered.co.uk", "co.uk", "uk", "a.b.covered.*", "b.covered.*", "covered.*"),
    ),
    ("covered.com", ("covered.com", "com", "covered.*")),
    ("a.covered.com", ("a.covered.com", "covered.com", "com", "a.covered.*", "covered.*")),
    ("x.com", ("x.com", "com", "x.*")),
    ("covered.zz", ("covered.zz", "zz", "covered.*")),
    ("covered", ("covered",)),
    ("é.covered.com", ("é.covered.com", "covered.com", "com", "é.covered.*", "covered.*")),
)


def test_a_host_is_covered_by_its_parents_and_by_their_entities() -> None:
    for host, names in NAMES:
        assert host_names(host) == names_by(host, *suffix_rules()) == names, host
    for address in ("192.0.2.77", "[2001:db8::77]"):
        assert host_names(address) == (address,)


def test_hosts_below_one_registrable_domain_are_of_one_site() -> None:
    for host, other, same in (
        ("a.covered.com", "covered.com", True), ("a.covered.com", "b.covered.com", True), ("covered.com", "covered.org", False),
        ("a.co.uk", "b.co.uk", False), ("x.a.co.uk", "y.a.co.uk", True), ("a.github.io", "b.github.io", False),
        ("b.é.test", "é.test", True), ("é.test", "e.test", False), ("a.test", "é.a.test", True),
    ):  # fmt: skip
        assert is_same_site(host, other) is same, (host, other)
        assert is_same_site(other, host) is same, (host, other)
        assert same_site_by(host, other, *suffix_rules()) is same, (host, other)


def test_an_address_is_a_site_of_its_own() -> None:
    for host, other in (
        ("192.0.2.1", "2.1"), ("192.0.2.1", "192.0.2.2"), ("192.0.2.1", "9.192.0.2.1"), ("[2001:db8::1]", "covered.com"),
    ):  # fmt: skip
        assert is_same_site(host, other) is False, (host, other)
        assert is_same_site(other, host) is False, (host, other)
    assert is_same_site("192.0.2.1", "192.0.2.1") is True
