from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl.frontier.hash_ring import HashRing

SITES = [f"site-{number}.example" for number in range(20_000)]
NAMES = st.sets(st.text(min_size=1, max_size=8), min_size=2, max_size=6)


def test_an_empty_ring_owns_nothing() -> None:
    assert HashRing().owner("a.example") is None
    assert HashRing(["one"]).owner("a.example") == "one"


def test_shares_are_even() -> None:
    ring = HashRing(f"crawler-{number}" for number in range(5))
    shares = Counter(map(ring.owner, SITES))
    assert len(shares) == 5
    assert max(shares.values()) < 1.5 * len(SITES) / 5
    assert min(shares.values()) > 0.6 * len(SITES) / 5


@settings(max_examples=30)
@given(members=NAMES, keys=st.lists(st.text(max_size=20), max_size=50))
def test_a_member_that_leaves_moves_its_own_keys_only_and_coming_back_restores_them(members: set[str], keys: list[str]) -> None:
    ring = HashRing(members)
    leaving = min(members)
    rest = ring.without_member(leaving)
    for key in keys:
        if ring.owner(key) != leaving:
            assert rest.owner(key) == ring.owner(key)
        else:
            assert rest.owner(key) in members - {leaving}
        assert rest.with_member(leaving).owner(key) == ring.owner(key)


def test_the_arcs_of_one_that_fails_are_shared_by_all_others() -> None:
    ring = HashRing(f"crawler-{number}" for number in range(5))
    orphans = [site for site in SITES if ring.owner(site) == "crawler-0"]
    heirs = Counter(map(ring.without_member("crawler-0").owner, orphans))
    assert len(heirs) == 4
    assert max(heirs.values()) < 0.5 * len(orphans)


@pytest.mark.parametrize(
    "hosts", [("www.shop.example", "img.shop.example", "shop.example"), ("203.0.113.7",), ("a.b.co.uk", "c.b.co.uk")]
)
def test_all_hosts_of_a_site_are_one_crawlers(hosts: tuple[str, ...]) -> None:
    ring = HashRing(f"crawler-{number}" for number in range(50))
    (owner,) = {ring.owner_of_host(host) for host in hosts}
    assert owner == ring.owner(hosts[-1] if len(hosts) != 2 else "b.co.uk")
    assert owner in ring.members


def test_every_process_has_the_same_ring() -> None:
    assert HashRing(["b", "a"]).owner("site.example") == HashRing(["a", "b"]).owner("site.example")
