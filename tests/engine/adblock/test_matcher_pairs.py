"""The rules between two hosts, put together for many requests: `pair` and what takes it, of `…adblock.matcher`."""

from itertools import product

import numpy as np

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url

LINES = [
    *("||a.test^", "||b.test^$script", "/ad.$image,script", "||c.test/x$1p", "||d.test^$domain=p.test", "/y$domain=~q.test"),
    *("*$font,domain=p.test|q.test", "||e.test^$document", "||f.test^$document,domain=p.test", "/page^$document"),
    *("@@||a.test/ok^$script", "@@/fine.$image", "@@||b.test^$domain=q.test", "@@*$font,domain=q.test", "@@/ok^$document"),
]


def matcher_of(*lists: list[str]) -> AdblockMatcher:
    builder = AdblockBuilder(judge=False)
    for source, lines in enumerate(lists):
        assert builder.add_list(source, lines).rejected == 0
    return AdblockMatcher(builder.build())


def test_a_pair_decides_as_each_request_alone() -> None:
    matcher = matcher_of(LINES)
    hosts = ("a.test", "w.b.test", "c.test", "d.test", "e.test", "f.test")
    paths = ("/", "/ad.js", "/x/fine.png", "/ok/y", "/page/ok/", "/page/")
    kinds = (ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.FONT, ResourceType.DOCUMENT)
    decided = set()
    for host, page, kind, path in product(hosts, ("p.test", "q.test", "c.test", ""), kinds, paths):
        page_url = parse_url(f"https://{page}/") if page else None
        request = Request(parse_url(f"https://{host}{path}"), page_url, kind)
        pair = matcher.pair(host, page, kind)
        if kind is ResourceType.DOCUMENT and page not in {"", host}:
            assert pair is None
            continue
        assert pair is not None
        lowered = request.url.text.lower()
        begins, ends = np.array([0]), np.array([len(lowered)])
        text = f"{lowered}\n".encode()
        block = matcher.first_block(pair, request, lowered, None)
        assert matcher.first_block(pair, request, lowered, matcher.literals_in(text, begins, ends).get(0, [])) == block
        hits = matcher.literals_in(text, begins, ends, exceptions=True).get(0, [])
        exception = matcher.exceptions.first_of(pair.exceptions, request, lowered, pair.source, hits)
        assert matcher.exceptions.first_of(pair.exceptions, request, lowered, pair.source) == exception
        match = matcher.match(request)
        decided.add((block >= 0, exception >= 0))
        if block < 0:
            assert match is None
        else:
            assert match is not None
            assert match == (matcher.describe(block) if exception < 0 else matcher.match_all(request)[0])
            assert match.exception is (exception >= 0)
        if pair.blocking >= 0:
            assert block == pair.blocking
        if pair.blocks.is_empty:
            assert block == -1
    assert len(decided) == 4


def test_what_is_certain_of_a_pair() -> None:
    matcher = matcher_of(LINES)
    for host, page, kind, blocking, empty in (
        ("a.test", "p.test", ResourceType.FONT, True, False), ("a.test", "q.test", ResourceType.FONT, False, False),
        ("a.test", "p.test", ResourceType.SCRIPT, False, False), ("a.test", "p.test", ResourceType.IMAGE, True, False),
        ("d.test", "p.test", ResourceType.MEDIA, True, False), ("z.test", "q.test", ResourceType.MEDIA, False, True),
        ("z.test", "q.test", ResourceType.IMAGE, False, False), ("e.test", "", ResourceType.DOCUMENT, True, False),
        ("f.test", "", ResourceType.DOCUMENT, False, False),
    ):  # fmt: skip
        pair = matcher.pair(host, page, kind)
        assert pair is not None
        assert (pair.blocking >= 0) is blocking, (host, page, kind)
        assert pair.blocks.is_empty is empty, (host, page, kind)


def test_pairs_hold_while_no_list_with_rules_is_off_and_no_rule_names_clients() -> None:
    rule = "||a.test^"
    for lists, off, taken in (
        (([rule], ["||b.test^"]), (), True), (([rule], ["||b.test^"]), (0,), False), (([rule], ["||b.test^"]), (1,), False),
        (([rule], ["||b.test^"]), (7,), True), (([rule], ["! none"]), (1,), True),
        (([rule], [f"{rule}$badfilter"]), (), True), (([rule], [f"{rule}$badfilter"]), (1,), False),
        (([rule], ["||b.test^$client=mary"]), (), False), (([rule], ["||b.test^$client=mary"]), (7,), False),
    ):  # fmt: skip
        assert matcher_of(*lists).takes_pairs(frozenset(off)) is taken, (lists, off)
