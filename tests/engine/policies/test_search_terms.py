"""Search terms: found however they are written, in what a request searches for, and not beside it."""

import time

from gatewayfilter.engine.policies.request_rules import request_rules
from gatewayfilter.engine.policies.search_sites import SITES, host_rules
from gatewayfilter.engine.policies.search_terms import LONGEST_TEXT, MOST_TEXTS, SearchTerms, searched_json, searched_texts
from gatewayfilter.model import Request, SearchEngine, YouTubeMode
from gatewayfilter.urls import canonical_host, parse_url
from tests.case_tables import all_cases

TERMS = SearchTerms(["casino", "make a bomb", "赌博", "café", "казино", "パチンコ"])


@all_cases(
    ("text", "term"),
    [
        ("CASINO", "casino"),
        ("\uff43\uff41\uff53\uff49\uff4e\uff4f", "casino"),
        ("c\u200ba\u00ads\u2060ino", "casino"),
        ("\u0441\u0430sin\u043e", "casino"),
        ("c\u0301asi\u0308no", "casino"),
        ("cas1n0 bonus", "casino"),
        ("c a s i n o", "casino"),
        ("c.a.s.i.n.o s", "casino"),
        ("how to Make  a-bomb!", "make a bomb"),
        ("網上賭博網站", "赌博"),
        ("赌_博", "赌博"),
        ("cafe\u0301 CAFE", "café"),
        ("КАЗИНО", "казино"),
        ("ﾊﾟﾁﾝｺ店", "パチンコ"),
        ("casinos", ""),
        ("occasino", ""),
        ("make bomb", ""),
        ("", ""),
        ("\ud800", ""),
    ],
)
def test_terms(text: str, term: str) -> None:
    assert TERMS.find(text) == term


def test_numbers_are_no_letters_in_disguise() -> None:
    terms = SearchTerms(["is", "boss 7"])
    assert [terms.find(text) for text in ("15", "i5", "1s", "b055 7", "boss t")] == ["", "is", "is", "boss 7", ""]


def test_a_term_without_letters_matches_nothing() -> None:
    assert not SearchTerms(["!!!", "\u200b"]).find("!!! \u200b what")


def test_long_texts_and_many_terms_take_bounded_time() -> None:
    terms = SearchTerms([f"word{number} again" for number in range(1000)] + [f"a{'b' * number}" for number in range(90)])
    began = time.process_time()
    for text in ("a " * 100_000, "\u0301" * 1_000_000, "赌" * 1_000_000, "ab" * 500_000):
        terms.find(text)
    assert time.process_time() - began < 1


def test_texts_that_are_too_many_or_too_long_are_not_read() -> None:
    terms = SearchTerms(["casino"])
    assert terms.find_any(["a"] * MOST_TEXTS) == ""
    assert terms.find_any(["a"] * (MOST_TEXTS + 1)) is None
    assert terms.find_any(["a"] * (MOST_TEXTS - 1) + ["casino"]) == "casino"
    assert terms.find_any(["a" * (LONGEST_TEXT - 1)]) == ""
    assert terms.find_any(["a" * LONGEST_TEXT]) is None
    assert terms.find_any([]) == ""


@all_cases(
    ("text", "term"),
    [
        ("c a s i n o", "casino"),
        ("free c a s i n o", "casino"),
        ("c a s i n o free", "casino"),
        ("x c a s i n o s", "casino"),
        ("ca s i n o", ""),
        ("p l a y", "play"),
        ("p l a", ""),
        ("s e x", ""),  # too short: initials are no word
        ("a s e x b", ""),
        ("s e x play", "play"),
        ("big w i n s", ""),  # of several words
    ],
)
def test_words_that_are_spelled_out_are_found(text: str, term: str) -> None:
    assert SearchTerms(["casino", "play", "sex", "big win"]).find(text) == term


def test_the_first_term_of_a_text_is_found() -> None:
    terms = SearchTerms(["big win", "win", "big", "bigger win"])
    assert terms.find("a big win") == "big win"
    assert terms.find("a big loss") == "big"
    assert terms.find("bigger loss, win") == "win"
    assert terms.find("a bigger") == ""
    assert terms.find("b1g l0ss") == "big"


SITE_OF = {host: rules.searched for host, rules in host_rules(frozenset(), YouTubeMode.OFF, searched=True).items()}


@all_cases(
    ("url", "texts"),
    [
        ("https://www.google.com/search?q=a+b&x=c", ["a b"]),
        ("https://www.google.com/search?%51=a&Q=b&q[]=c&q=", ["a", "b", "c", ""]),
        ("https://www.google.com/search#q=a", []),
        ("https://www.google.com/search?x=1;q=a", ["a"]),
        ("https://duckduckgo.com/two_words/?q=b", ["b", "two words "]),
        ("https://en.wikipedia.org/wiki/Special:Search/free_casino", ["free casino"]),
        ("https://www.bing.com/search/foo?q=a", ["a", "foo"]),
        ("https://www.baidu.com/s?wd=%B6%C4%B2%A9", ["赌博"]),
        ("https://www.youtube.com/hashtag/casino", ["casino"]),
    ],
)
def test_what_is_searched(url: str, texts: list[str]) -> None:
    parsed = parse_url(url)
    site = SITE_OF[parsed.host]
    assert site is not None
    assert list(searched_texts(site, parsed)) == texts


@all_cases(
    ("query", "blocked"),
    [
        ("a=1&" * 500 + "q=casino", True),
        ("q=&" * 500 + "q=casino", True),
        ("q=" + "+" * 3_000 + "casino", True),
        ("q=" + "%E2%80%8B" * 3_000 + "casino", True),
        ("a=1&" * 500 + "q=cats", False),
    ],
)
def test_padding_does_not_hide_a_search(query: str, *, blocked: bool) -> None:
    rules = request_rules({"search-terms": ("casino", "kids")}, paused=False)
    assert rules is not None
    url = parse_url(f"https://www.google.com/search?{query}")
    assert (rules.judge_search(url) is not None) is blocked
    change = rules.change_of(Request(parse_url("https://www.google.com/search"), method="POST"))
    assert change is not None
    assert change.form is not None
    assert (change.form.judge(query.encode()) is not None) is blocked


def test_searches_as_json() -> None:
    site = SITE_OF["www.youtube.com"]
    assert site is not None
    assert searched_json(site, b'{"query": "a"}') == "a"
    assert searched_json(site, b'{"query": ["a"]}') == searched_json(site, b"[1]") == ""
    assert searched_json(site, b"{") is searched_json(site, b"[" * 100_000) is searched_json(site, b"\xff") is None


def test_hosts_are_canonical_and_of_one_site() -> None:
    hosts = [host for site in SITES for host in site.hosts]
    assert len(set(hosts)) == len(hosts)
    assert all(canonical_host(host) == host for host in hosts)


def test_without_a_value_no_host_has_rules() -> None:
    assert host_rules(frozenset(), YouTubeMode.OFF, searched=False) == {}
    only = host_rules(frozenset({SearchEngine.BING}), YouTubeMode.OFF, searched=False)
    assert "www.google.com" not in only
    assert "www.bing.com" in only
