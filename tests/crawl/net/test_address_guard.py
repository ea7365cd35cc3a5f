import errno
import socket
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.addresses.links import Link, Links
from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.net.address_guard import AddressGuard, ForbiddenSocketError
from gatewayfilter.errors import ForbiddenAddressError, UrlError
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import loopback_settings

PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "168.63.129.16",
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


@all_cases("host", PUBLIC)
def test_public_addresses_on_allowed_ports(host: str) -> None:
    guard = AddressGuard(CrawlSettings())
    assert guard.refusal(host, 80) == guard.refusal(host, 443) == ""
    assert "port 8080" in guard.refusal(host, 8080)


@all_cases("host", NOT_PUBLIC)
def test_other_addresses_are_refused(host: str) -> None:
    assert AddressGuard(CrawlSettings()).refusal(host, 80)


@all_cases("host", ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1"])
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


LINKS = Links(
    own=frozenset(map(ip_address, ("93.184.216.2", "2a00:1450:4001::1"))),
    on_link=(Link(ip_network("93.184.217.0/24"), 2), Link(ip_network("2a00:1450:4001::/64"), 2)),
)


@all_cases(
    "host",
    ["93.184.216.2", "93.184.217.9", "2a00:1450:4001::1", "2a00:1450:4001::5", "::ffff:93.184.217.9", "64:ff9b::5db8:d909"],
)
def test_public_addresses_of_this_machine_and_its_links_are_refused(host: str) -> None:
    guard = AddressGuard(CrawlSettings(), lambda: LINKS)
    assert guard.refusal(host, 80)
    with pytest.raises(ForbiddenSocketError):
        guard.socket_factory((socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)))
    assert guard.refusal("93.184.218.1", 80) == guard.refusal("2a00:1450:4001:1::5", 80) == ""
    opened = CrawlSettings(allow_networks=("93.184.216.0/23", "2a00:1450:4001::/64", "64:ff9b::/96"))
    assert AddressGuard(opened, lambda: LINKS).refusal(host, 80) == ""


def test_the_guard_hears_of_new_addresses() -> None:
    links = [Links()]
    guard = AddressGuard(CrawlSettings(), lambda: links[0])
    assert not guard.refusal("93.184.216.2", 80)
    links[0] = LINKS
    assert "of this machine or of its own network" in guard.refusal("93.184.216.2", 80)


@given(st.ip_addresses(v=4))
def test_mapped_addresses_are_as_public_as_their_own(address: object) -> None:
    guard = AddressGuard(CrawlSettings())
    assert bool(guard.refusal(str(address), 80)) == bool(guard.refusal(f"::ffff:{address}", 80))


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_private_addresses_stay_private_when_translated(address: object) -> None:
    assert AddressGuard(CrawlSettings()).refusal(f"64:ff9b::{address}", 80)


@all_cases(
    "url",
    [
        "http://0/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:c0a8:1::]/",
        "http://[fd00:ec2::254]/",
    ],
)
def test_path_spellings_of_inner_addresses_are_refused_before_any_connection(url: str) -> None:
    assert "not a public address" in may_crawl(parse_url(url), CrawlSettings())


@all_cases("url", ["http://[fe80::1%25eth0]/", "http://256.256.256.256/", "http://1.2.3.4.5/", "file:///etc/passwd"])
def test_what_is_no_web_address_is_no_url(url: str) -> None:
    with pytest.raises(UrlError):
        parse_url(url)


async def test_names_of_this_machine_and_names_that_change_are_stopped_at_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["8.8.8.8", "127.0.0.1", "::1", "169.254.169.254"])
    asked: list[str] = []

    def look_up(host: str, port: int, *_: object) -> list[object]:
        asked.append(host)
        address = next(answers)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert not AddressGuard(CrawlSettings()).refusal(str(look_up("rebind.test", 80)[0][4][0]), 80)  # type: ignore[index]
    async with Fetcher(CrawlSettings(), Politeness(CrawlSettings())) as fetcher:
        for url in ("http://rebind.test/", "http://localhost./", "http://cname-to-private.test/"):
            with pytest.raises(ForbiddenAddressError):
                await fetcher.fetch(parse_url(url))
    assert len(asked) == 4


def test_what_is_no_address_is_told_by_its_begin() -> None:
    assert AddressGuard(CrawlSettings()).refusal("x" * 200, 80) == f"{'x' * 100!r} is not an address"
