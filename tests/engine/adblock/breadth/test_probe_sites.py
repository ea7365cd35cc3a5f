"""The synthetic sites that rules are tried on: `gatewayfilter.engine.adblock.breadth.probe_sites`."""

from hashlib import blake2b
from ipaddress import IPv4Address

from gatewayfilter.engine.adblock.breadth.probe_sites import SITES, SUFFIXES, Site, Sites, address_sites, common_text, fixed_sites


def digest(sites: tuple[Site, ...]) -> str:
    told = [
        f"{probe.request.method} {probe.request.url.text} {probe.request.source} {probe.bits} {probe.lowered} {probe.source}"
        for site in sites
        for probe in site
    ]
    return blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def test_the_sites_are_the_same_on_each_machine_and_in_each_release() -> None:
    """Else a rule that one gateway takes would be refused by another one."""
    named = Sites(7, SUFFIXES, ("org", "net"))
    first = tuple(named)
    assert (len(first), tuple(named)) == (SITES, first), "a second look finds the same sites"
    assert [digest(first), digest(tuple(fixed_sites("com"))), digest(address_sites())] == [
        "e3fe171fd4c9e22d",
        "343637256a474d1c",
        "c90ba5269580a140",
    ]
    assert blake2b(common_text().encode(), digest_size=8).hexdigest() == "eff57d21a5c52cbf"
    assert fixed_sites("com") is fixed_sites("com")


def test_a_site_has_names_below_the_suffixes() -> None:
    for number, site in enumerate(Sites(7, ("com", "co.uk"), ("org",))):
        page = site[0].request.url.host
        other = next(probe.request.url.host for probe in site if probe.request.url.host != page)
        assert page.endswith(".org")
        assert other.endswith((".com", ".co.uk")[number % 2])
        assert other.startswith("cdn.")
    for site in address_sites():
        hosts = {probe.request.url.host for probe in site}
        assert len(hosts) == 1
        assert str(IPv4Address(hosts.copy().pop())) in hosts
