"""The parts of the index: literal scanners, the cache of facts, and what is settled for host and page."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index import bounded_cache, literal_scan
from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.index.literal_scan import SCANNERS, VARIABLE, available_scanners, make_scan
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.rule_index import FEW, RuleIndex
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
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
