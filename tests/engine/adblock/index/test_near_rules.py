"""Candidate rules between two hosts: the compiled twin gives those of the Python, in their order."""

import pytest

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index import near_rules, rule_index
from gatewayfilter.engine.adblock.index.near_rules import Proximity
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES
from gatewayfilter.urls import host_suffixes

LINES = [
    "||a.test^",
    "||a.test^$domain=p.test|q.*",
    "||a.test^$domain=q.co.uk|www.q.co.uk,important",
    "||b.a.test/x$script,strict1p",
    "||b.a.test/y$method=post,domain=~p.test",
    "||cdn.*/x$to=test|~b.a.test,domain=p.test",
    "/ad.js$to=a.test,match-case",
    "/q/$to=com|a.test,domain=p.test|www.p.test",
    "/^https:..a/$domain=p.test",
    "*$script,third-party,to=~a.test,domain=/^p/",
    "@@||a.test^$domain=p.test",
    "@@||a.test/x$~script,denyallow=b.a.test",
    "*$popup,image,domain=p.test",
]
HOSTS = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "p.test",
    "www.p.test",
    "q.co.uk",
    "www.q.co.uk",
    "cdn.test",
    "a.com",
    "1.2.3.4",
    "test",
]


@pytest.mark.parametrize("reach", [ALL_TYPES, ALL_TYPES << 12, 1, 0])
def test_the_compiled_twin_finds_the_same(reach: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = load("gatewayfilter.engine.adblock.index._near_rules")
    if compiled is None:
        pytest.skip("the module is not built")
    builder = AdblockBuilder()
    builder.add_list(0, LINES)
    builder.add_list(1, ["||a.test^$badfilter", "@@||a.test^$domain=p.test,badfilter", "||b.a.test^$strict3p"])
    matcher = AdblockMatcher(builder.build())
    found = 0
    ways = (near_rules.find_proximity, compiled.proximity)
    for index in (matcher._pair_blocks, matcher._pair_exceptions):
        for host in HOSTS:
            for source in ["", *HOSTS]:
                results = []
                for way in (near_rules.find_near_rules, compiled.near_rules):
                    monkeypatch.setattr(rule_index, "near_rules", way)
                    results.append([(near[0], near[1], near[2] is None) for near in index._find_rules_near(host, source, reach)])
                assert results[0] == results[1], (host, source)
                found += len(results[0])
                near = [way(index._tables(), host, source, reach & ALL_TYPES) for way in ways]
                assert [_told(each) for each in near[:1]] == [_told(each) for each in near[1:]], (host, source)
    assert bool(found) == bool(reach)


def _told(proximity: Proximity) -> tuple[object, ...]:
    """Returns facts that can be compared: of each test only whether there is one."""
    party, in_url, union, near = proximity
    return party, in_url, union, [(mask, number, test is None) for mask, number, test in near]


def test_names_of_hosts_are_not_kept_for_pairs() -> None:
    assert host_suffixes.__wrapped__("a.b.test") == host_suffixes("a.b.test")
