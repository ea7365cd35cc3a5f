"""Between which hosts rules by literals reach: `gatewayfilter.engine.adblock.index.literal_reach`."""

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.literal_reach import LiteralReach
from gatewayfilter.engine.adblock.syntax.parser import parse_line

LINES = {
    1: "/ad$domain=p.test",
    2: "/ad$domain=p.test|q.test|~x.q.test",
    4: "/ad$to=a.test",
    8: "||a.test/ad",
    16: "||ads.",
    32: "/ad$strict1p",
    64: "/ad$domain=~p.test",
    128: "/ad$domain=/^r/",
}


def reach_of(*masks: int) -> LiteralReach:
    return LiteralReach((mask, CompiledRule(parse_line(LINES[mask]).rules[0])) for mask in masks)


def test_rules_reach_the_hosts_that_they_name() -> None:
    reach = reach_of(*LINES)
    for host, source, masks in (
        ("z.test", "", 64), ("z.test", "z.test", 32 + 64), ("z.test", "p.test", 1 + 2), ("z.test", "www.p.test", 1 + 2),
        ("z.test", "q.test", 2 + 64), ("z.test", "x.q.test", 64), ("z.test", "r.test", 64 + 128), ("a.test", "", 4 + 8 + 64),
        ("www.a.test", "q.test", 2 + 4 + 8 + 64), ("aa.test", "", 64), ("ads.test", "", 16 + 64), ("www.ads.test", "", 16 + 64),
        ("ad.test", "", 64),
    ):  # fmt: skip
        assert reach.between(host, source, 255) == masks, (host, source)
        for bits in (0, 1, 2 + 4, 64, 128 + 32):
            assert reach.between(host, source, bits) == masks & bits


def test_rules_without_hosts_reach_everywhere() -> None:
    lines = {1: "/ad", 2: "-ad$method=post", 4: "/ad$domain=p.test", 6: "||a.test/ad"}
    reach = LiteralReach((mask, CompiledRule(parse_line(line).rules[0])) for mask, line in lines.items())
    assert reach.unbound == 3
    for host, source, masks in (
        ("z.test", "", 3), ("z.test", "p.test", 7), ("a.test", "", 7), ("z.test", "q.test", 3),
    ):  # fmt: skip
        assert reach.between(host, source, 255) == masks
        assert reach.between(host, source, 4) == masks & 4
    assert LiteralReach([]).between("a.test", "p.test", 255) == 0
