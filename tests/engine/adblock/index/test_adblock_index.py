"""The parts of the index: literal scanners, the cache of facts, and what is settled for host and page."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index import bounded_cache, literal_scan
from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.literal_scan import MANY_HITS, SCANNERS, VARIABLE, available_scanners, make_scan
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.rule_index import FEW, RuleIndex, RulesBetween
from gatewayfilter.engine.adblock.matcher import AdblockMatcher, PairRules
from gatewayfilter.engine.adblock.rule_planner import LITERAL_LENGTH
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.errors import ConfigError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

TEXTS = st.text(alphabet="ab/.", max_size=12)


def matcher_of(lines: list[str]) -> AdblockMatcher:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, lines)
    return AdblockMatcher(builder.build())


def request(url: str, source: str | None = "https://page.org/", kind: str = "script", method: str = "GET") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind), method)


@pytest.mark.parametrize("name", SCANNERS)
@settings(max_examples=30)
@given(literals=st.lists(TEXTS.filter(bool), unique=True, max_size=8), text=TEXTS)
def test_every_scanner_finds_what_is_there(name: str, literals: list[str], text: str) -> None:
    if name not in available_scanners():
        pytest.skip(f"{name} is not installed")
    scan = make_scan(literals, name)
    found = {literals[hit[scan.at]] for hit in scan.find(text.encode())}
    assert found == {literal for literal in literals if literal in text}
    texts = [line.encode() for line in text.split("\n")]
    if literals and not any("\n" in literal for literal in literals):
        each = {number: hits for number, one in enumerate(texts) if (hits := [hit[scan.at] for hit in scan.find(one)])}
        begins = np.cumsum([0, *(len(one) + 1 for one in texts)])
        some = np.array([number for number in range(len(texts)) if number % 3 != 1], np.int64)
        for wanted in (np.arange(len(texts)), some):
            in_each = scan.find_in_each(text.encode() + b"\n", begins[wanted], begins[wanted + 1] - 1)
            wished = {place: each[number] for place, number in enumerate(wanted.tolist()) if number in each}
            assert {number: [hit[scan.at] for hit in hits] for number, hits in in_each.items()} == wished


@all_cases("name", available_scanners())
def test_the_pieces_of_a_long_text_have_their_own_hits(name: str) -> None:
    scan = make_scan(["ad", "b/"], name)
    pieces = [b"." * 999 for _ in range(400)]
    wished = {0: [0], 130: [1], 131: [0], 132: [0, 1], 262: [1], 263: [0], 399: [1]}
    for number, literals in wished.items():
        pieces[number] = b"".join((b"ad", b"b/")[literal] for literal in literals).ljust(999, b".")
    begins = np.arange(400) * 1_000
    found = scan.find_in_each(b"\n".join([*pieces, b""]), begins, begins + 999)
    assert {number: [hit[scan.at] for hit in hits] for number, hits in found.items()} == wished


@all_cases("name", available_scanners())
def test_whichever_pieces_of_a_text_are_searched_have_their_own_hits(name: str) -> None:
    scan = make_scan(["ad", "b/", "x"], name)
    pieces = [b"ad", b"b/", b"", b"adb/", b"x", b"b"]
    hits = {0: [0], 1: [1], 3: [0, 1], 4: [2]}
    begins = np.cumsum([0, *(len(piece) + 1 for piece in pieces)])
    for count in range(len(pieces) + 1):
        for wanted in combinations(range(len(pieces)), count):
            numbers = np.array(wanted, np.int64)
            found = scan.find_in_each(b"\n".join([*pieces, b""]), begins[numbers], begins[numbers + 1] - 1)
            expected = {place: hits[number] for place, number in enumerate(wanted) if number in hits}
            assert {place: sorted(hit[scan.at] for hit in of) for place, of in found.items()} == expected


@all_cases("name", available_scanners())
def test_of_a_literal_with_many_hits_one_is_returned(name: str) -> None:
    scan = make_scan(["a", "b"], name)
    pieces = [b"a" * MANY_HITS, b"ab" * MANY_HITS, b"a", b"b" * (MANY_HITS + 1)]
    ends = np.cumsum([len(piece) + 1 for piece in pieces]) - 1
    begins = ends - [len(piece) for piece in pieces]
    found = scan.find_in_each(b"\n".join([*pieces, b""]), begins, ends)
    assert {number: sorted({hit[scan.at] for hit in hits}) for number, hits in found.items()} == {
        0: [0],
        1: [0, 1],
        2: [0],
        3: [1],
    }
    of_few = 1 if scan.begin < 0 else MANY_HITS  # without positions it finds a literal once
    assert [len(found[number]) for number in range(4)] == [of_few, 2, 1, 1]


@all_cases("name", available_scanners())
def test_scanners_take_any_bytes(name: str) -> None:
    literals = ["\x00a", "ü", "%c3%bc", "a" * 300, "\u4e2d"]
    find, at, _ = make_scan(literals, name)
    text = "x\x00a-ü-" + "a" * 301 + "\u4e2d"
    assert {hit[at] for hit in find(text.encode())} == {0, 1, 3, 4}


def test_the_environment_names_the_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "aho")
    assert make_scan(["ab"]).find(b"xab")[0][0] == 0
    assert make_scan(["x", "ab"]).at == 0
    monkeypatch.setenv(VARIABLE, "nobody")
    with pytest.raises(ConfigError, match="no scanner 'nobody'"):
        matcher_of(["ads/banner"])
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(literal_scan, "find_spec", lambda name: name == "ahocorasick_rs" or None)
    available_scanners.cache_clear()
    assert available_scanners() == ("aho",)
    assert matcher_of(["ads/banner"]).match(request("https://a.org/ads/banner")) is not None
    available_scanners.cache_clear()


def test_the_cache_keeps_what_is_in_use_through_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_cache, "GENERATION", 8)
    asked: list[str] = []

    def find(key: str) -> str:
        asked.append(key)
        return key.upper()

    cache = BoundedCache(find)
    for number in range(100):
        assert cache["mine"] == "MINE"
        assert cache[f"theirs{number}"] == f"THEIRS{number}"
        assert len(cache) <= 8
        assert len(cache._old) <= 8
    assert asked.count("mine") == 1
    assert len(asked) == 101


@all_cases(
    ("rule", "host", "source", "left"),
    [
        ("||example.com^", "example.com", "", True),
        ("||example.com^", "www.example.com", "page.org", True),
        ("||example.com^", "badexample.com", "page.org", False),
        ("||example.com^$domain=page.org", "example.com", "www.page.org", True),
        ("||example.com^$domain=page.org", "example.com", "", False),
        ("||example.com^$domain=page.org", "example.com", "other.org", False),
        ("||example.com^$domain=~page.org", "example.com", "page.org", False),
        ("||example.com^$to=www.example.com", "example.com", "", False),
        ("||example.com^$strict1p", "example.com", "www.example.com", False),
        ("||example.com^$strict1p", "example.com", "example.com", True),
        ("||ads.example.", "ads.example.net", "", None),
        ("||ads.example.", "ad.example.net", "", False),
        ("||example.com*/ads", "example.com", "", None),
        ("||example.com*/ads", "example.org", "", False),
        ("||example.com/ads", "example.com", "", None),
        ("||example.com^$method=post", "example.com", "", None),
        ("/ads/$domain=page.org", "any.net", "page.org", None),
        ("/ads/$domain=page.org", "any.net", "other.org", False),
        ("|https://ads.", "example.com", "", None),
        ("/^https:..ads/", "example.com", "", None),
    ],
)
def test_what_host_and_page_settle(rule: str, host: str, source: str, left: bool | None) -> None:  # noqa: FBT001  # a table
    found = CompiledRule(parse_line(rule).rules[0]).between(host, source)
    assert callable(found) if left is None else found is left, found


@all_cases(
    "rule",
    [
        "||example.com/ads",
        "||example.com/ads*x",
        "||example.com/ads^",
        "||example.com/*.js|",
        "||example.com:8080/ads",
        "||example.com^*ads",
        "||example.com/a$match-case",
        "||example.com/$method=post",
        "||example.com^$method=post",
        "||example.com^|",
        "||example.com/ads|",
    ],
)
@all_cases(
    "url",
    [
        "https://example.com/ads",
        "http://www.example.com/ADS/x",
        "https://example.com:8080/ads",
        "https://example.com/adsense?x",
        "https://example.com/b/ads.js",
        "wss://sub.example.com/A",
        "https://example.com/",
    ],
)
@all_cases("method", ["GET", "POST"])
def test_what_is_left_is_the_whole_rule(rule: str, url: str, method: str) -> None:
    compiled = CompiledRule(parse_line(rule).rules[0])
    asked = request(url, method=method)
    rest = compiled.between(asked.url.host, "page.org")
    assert rest is not False
    lowered = asked.url.text.lower()
    assert (rest is True or rest(asked, lowered, "page.org")) == compiled.matches(asked, lowered, "page.org")


def test_literals_of_blocks_and_of_exceptions_are_searched_apart() -> None:
    matcher = matcher_of(["-ad-", "@@-fine-"])
    text = b"https://a.net/-ad-\nhttps://a.net/-fine-\nhttps://a.net/\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    begins = np.array([0, *(ends[:-1] + 1)])
    assert [*matcher.literals_in(text, begins, ends)] == [0]
    assert [*matcher.literals_in(text, begins, ends, exceptions=True)] == [1]


def test_a_long_literal_is_compared_to_its_end() -> None:
    for size in range(LITERAL_LENGTH - 1, LITERAL_LENGTH + 3):
        pattern = f"/{'a' * (size - 2)}b"
        matcher = matcher_of([pattern])
        for url, expected in (
            (f"https://a.net{pattern}", True),
            (f"https://a.net{pattern[:-1]}c", False),
            (f"https://a.net{pattern.upper()}", True),
            (f"https://a.net{pattern[1:]}", False),
        ):
            assert (matcher.match(request(url)) is not None) is expected, url


@pytest.mark.parametrize("count", [FEW // 2, FEW * 2])
def test_exceptions_by_literals_however_many(count: int) -> None:
    lines = ["||ads.net^", "@@/good-*.js$script,domain=page.org", "@@||cdn.*/fine"]
    matcher = matcher_of(lines + [f"@@/other{number}-*/$domain=~x{number}.org" for number in range(count)])
    assert isinstance(matcher._exceptions, RuleIndex)
    assert bool(matcher._exceptions._few_in_url) is (count < FEW)
    cases = (
        ("https://ads.net/good-1.js", "https://page.org/", "script", True),
        ("https://ads.net/good-1.js", "https://other.org/", "script", False),
        ("https://ads.net/good-1.js", "https://page.org/", "image", False),
        ("https://ads.net/other7-a/", "https://page.org/", "image", True),
        ("https://ads.net/other7-a/", "https://x7.org/", "image", False),
        ("https://ads.net/cdn.x/fine", "https://page.org/", "image", False),
    )
    for url, source, kind, exception in (*cases, *cases):
        match = matcher.match(request(url, source, kind))
        assert match is not None
        assert match.exception is exception, url


@all_cases(
    ("host", "source", "bits"),
    [("a.org", "", 0b1000000000001), ("a.org", "a.org", 1), ("x.a.org", "a.org", 1), ("a.org", "b.org", 1 << 12)],
)
def test_party(host: str, source: str, bits: int) -> None:
    assert party_of(host, source) == bits


@all_cases(
    ("url", "line"),
    [
        ("https://a.net/AD/1", 1),
        ("https://a.net/x", 0),
        ("https://a.net/x?Banner=1", 2),
        ("https://b.net/Banner", 2),
        ("https://b.net/-Pop-up-", 3),
        ("https://b.net/-pop-", 0),
        ("https://c.net/", 4),
        ("https://d.net/", 0),
        ("https://d.net/banner", 2),
    ],
)
def test_rules_are_found_while_a_list_is_off(url: str, line: int) -> None:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, ["||a.net/ad", "banner", "-pop*-up-", "||c.net^"])
    builder.add_list(1, ["||d.net^", "/x", "-pop-", "||a.net/x", "||b.net/-p"])
    matcher = AdblockMatcher(builder.build())
    found = matcher.match(request(url), frozenset({1}))
    assert (found.line if found else 0) == line
    assert found is None or found.source == 0
    assert matcher.match(request(url), frozenset({0, 1})) is None


def test_lists_that_are_off_leave_what_a_badfilter_of_theirs_cancels() -> None:
    builder = AdblockBuilder(judge=False)
    for source, line in enumerate(["||ads.net^", "||ads.net^$badfilter", "||ads.net/x$image"]):
        builder.add_list(source, [line])
    matcher = AdblockMatcher(builder.build())
    asked = request("https://ads.net/")
    assert matcher.match(asked) is None
    assert matcher.match(asked, frozenset({2})) is None
    found = matcher.match(asked, frozenset({1}))
    assert found is not None
    assert found.source == 0
    for one, other in pairwise([frozenset({1}), frozenset({0, 1}), frozenset({1})]):
        assert (matcher.match(asked, one) is None) is not (matcher.match(asked, other) is None)


@all_cases(("block", "exception", "blocking"), [(0, -1, 0), (3, -1, 3), (-1, -1, -1), (3, 0, -1), (0, 3, -1), (-1, 0, -1)])
def test_a_pair_is_blocked_where_no_exception_is_certain(block: int, exception: int, blocking: int) -> None:
    blocks, exceptions = (RulesBetween(1, (), certain, scans=False) for certain in (block, exception))
    assert PairRules("page.org", blocks, exceptions).blocking == blocking
