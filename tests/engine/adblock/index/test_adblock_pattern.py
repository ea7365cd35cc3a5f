"""Patterns against URLs: a table, and a plain regular expression as the second opinion."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.index.pattern import compile_pattern, shape_of
from gatewayfilter.engine.adblock.syntax.parser import read_pattern
from gatewayfilter.engine.adblock.syntax.rule import NetworkRule
from gatewayfilter.errors import RuleError
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases


def fits(pattern: str, url: Url) -> bool:
    start = len(url.scheme) + 3
    rule = NetworkRule(read_pattern(pattern, match_case=False))
    return compile_pattern(rule)(url.text.lower(), start, start + len(url.host))


@all_cases(
    ("pattern", "url", "expected"),
    [
        ("||example.com^", "https://example.com/", True),
        ("||example.com^", "https://a.b.example.com/x", True),
        ("||example.com^", "wss://example.com/x", True),
        ("||example.com^", "https://example.com:8443/", True),
        ("||example.com^", "https://badexample.com/", False),
        ("||example.com^", "https://example.com.net/", False),
        ("||example.com^", "https://a.net/example.com/", False),
        ("||example.com^", "https://a.net/?u=https://example.com/", False),
        ("||example.com/", "https://example.com/x", True),
        ("||example.com/", "https://example.com:8443/x", False),
        ("||example.com:8443/", "https://example.com:8443/x", True),
        ("||example.com/ads", "https://www.example.com/ads/1", True),
        ("||example.com/ads", "https://www.example.com/x/ads", False),
        ("||example.com", "https://example.com.net/", True),
        ("||example.com", "https://notexample.com/", False),
        ("||ads.", "https://ads.example.com/", True),
        ("||ads.", "https://x.ads.example.com/", True),
        ("||ads.", "https://heads.example.com/", False),
        ("||ads.", "https://a.net/ads.", False),
        ("||a.b", "https://xa.b.a.b.com/", True),
        ("||ad*.example.com^", "https://ads1.example.com/", True),
        ("||ad*.example.com^", "https://ads1.example.com.net/", False),
        ("||ad*.example.com^", "https://ad.net/?x.example.com/", True),
        ("||*example", "https://a.net/example", True),
        ("||example.com^*/ads", "https://example.com/x/ads", True),
        ("||example.com^*/ads", "https://example.com/ads", False),
        ("||example.com*ads", "https://example.com/ads", True),
        ("||example.com^ads|", "https://example.com/ads", True),
        ("||example.com^ads|", "https://example.com/ads1", False),
        ("||example.com^|", "https://example.com/", True),
        ("||example.com^|", "https://example.com/x", False),
        ("||example.com|", "https://example.com/", True),
        ("||example.com|", "https://example.com/a", True),
        ("||example.com|", "https://www.example.com/a", True),
        ("||example.com|", "https://example.com.test/", False),
        ("||example.com/a|", "https://example.com/ab", False),
        ("example.com|", "https://example.com/", False),
        ("||[2001:db8::1]/a|", "https://[2001:db8::1]/a", True),
        ("||[2001:db8::1]/a|", "https://[2001:db8::1]/ab", False),
        ("||[2001:db8::1]/|", "https://[2001:db8::1]/", True),
        ("||.example.com^", "https://www.example.com/x", True),
        ("||.example.com^", "https://example.com/x", False),
        ("||.example.com^", "https://test/.example.com/x", False),
        ("||.example.com/*x|", "https://a.b.example.com/ax", True),
        ("||example.com.^", "https://example.com./", True),
        ("||example.com./a", "https://www.example.com/a", True),
        ("||ads*", "https://ads2.example.com/", True),
        ("||ads*", "https://x.ads2.com/", True),
        ("||ads*", "https://loads.com/", False),
        ("||example*", "https://example-shop.com/", True),
        ("||example.com/_log?", "https://example.com/_log?", True),
        ("/collect?|", "https://example.com/collect?", True),
        ("||example.com/_log?", "https://example.com/_log", False),
        ("|https://example.com|", "https://example.com/", True),
        ("||example", "https://example-shop.com/", False),
        ("||example", "https://example.com/", True),
        ("||example-", "https://example-shop.com/", True),
        ("||example.", "https://example.com/", True),
        ("||com^", "https://example.com/", True),
        ("||192.0.2.1^", "https://192.0.2.1/x", True),
        ("||2.0.2.1^", "https://192.0.2.1/x", False),
        ("|https://", "https://a.net/", True),
        ("|http://", "https://a.net/?http://", False),
        ("|https://a*b|", "https://a.net/b", True),
        ("|https://a*b|", "https://a.net/bc", False),
        ("|wss://", "wss://a.net/", True),
        (".swf|", "https://a.net/x.swf", True),
        (".swf|", "https://a.net/x.swf?y", False),
        (".swf^", "https://a.net/x.swf?y", True),
        (".swf^", "https://a.net/x.swf", True),
        (".swf^|", "https://a.net/x.swf", True),
        (".swf^|", "https://a.net/x.swf?", True),
        (".swf^|", "https://a.net/x.swf?y", False),
        ("^ad^", "https://a.net/ad/", True),
        ("^ad^", "https://a.net/ad", True),
        ("^ad^", "https://a.net/?ad=1", True),
        ("^ad^", "https://a.net/ad.js", False),
        ("^ad^", "https://a.net/ad-1", False),
        ("^ad^", "https://a.net/ad_1", False),
        ("^ad^", "https://a.net/%ad%", False),
        ("^ad^", "https://a.net/bad/", False),
        ("^^ad", "https://a.net//ad", True),
        ("^^", "https://anet", True),
        ("ad^^", "https://a.net/ad", True),
        ("ad^*x", "https://a.net/ad/?x", True),
        ("ad^*x", "https://a.net/ad", False),
        ("/ad/", "https://a.net/ad/x", True),
        ("/AD/x", "https://a.net/ad/X", True),
        ("/ad", "https://ad.net/", True),
        ("//ad", "https://ad.net/", True),
        ("a*b*c", "https://x.net/a-b-c", True),
        ("a*b*c", "https://x.net/c-b-a", False),
        ("https:*x", "https://a.net/x", True),
        ("https:*x", "wss://a.net/x", False),
        ("https^*x", "https://a.net/x", True),
        ("https^", "https://a.net/", True),
        ("ttps^", "https://a.net/", True),
        ("https:*a.net|", "https://a.net/?a.net", True),
        ("https:*a.net|", "https://a.net/?a.net1", False),
        ("|https^", "https://a.net/", True),
        ("|ttps^", "https://a.net/", False),
        ("||long.example.com/x", "https://example.com/x", False),
        ("||long.example.com/x", "https://a-long.example.com/x", False),
        ("||long.example.com/x", "https://a.long.example.com/x", True),
        ("||net^x|", "https://a.net/x", True),
        ("||net^x|", "https://a.net/x/", False),
        ("||a.net/*x^|", "https://a.net/ax", True),
        ("||a.net/*x^|", "https://a.net/ax/", True),
        ("||a.net/*x^|", "https://a.net/ax/a", False),
        ("a*a*a*a", "https://x.net/aaaa", True),
        ("a*a*a*a", "https://x.net/aaa", False),
        ("*ad", "https://x.net/ad", True),
        ("ad*", "https://x.net/ad", True),
        ("ad*|", "https://x.net/ad1", True),
        ("?ad=1&", "https://x.net/?ad=1&b", True),
        ("%3Cscript", "https://x.net/?%3cscript", True),
        ("/wërb", "https://x.net/w%C3%ABrb", True),
        ("||münchen.example^", "https://xn--mnchen-3ya.example/", True),
        (r"/ads\d+/", "https://x.net/ads12", True),
        (r"/ads\d+/", "https://x.net/ads", False),
        (r"/^https?:\/\/[a-z]{3}\.net\//", "http://abc.net/x", True),
        (r"/^https?:\/\/[a-z]{3}\.net\//", "http://abcd.net/x", False),
        (r"/\/x$/", "https://a.net/x", True),
        (r"/\/x$/", "https://a.net/xy", False),
        (r"/(a|b)(?=c)/", "https://x.net/bc", True),
        (r"/\bad\b/", "https://x.net/-ad-", True),
    ],
)
def test_patterns(pattern: str, url: str, *, expected: bool) -> None:
    assert fits(pattern, parse_url(url)) is expected


def reference(pattern: str, url: Url) -> bool:
    """The pattern as one backtracking regular expression."""
    text = read_pattern(pattern, match_case=False)
    expression = ""
    body = text
    if body.startswith("||"):
        body = body[2:]
        before = {"*": "", ".": "[^/:]*"}.get(body[:1], r"(?:[^/:]+\.)?")  # `||.` at every dot of the host
        expression = rf"\A[a-z]+://{before}"
    elif body.startswith("|"):
        body = body[1:]
        expression = r"\A"
    end = body.endswith("|")
    body = body[: len(body) - end]
    for character in body:
        expression += {"*": ".*", "^": r"(?:[^\w%.-]|\Z)"}.get(character) or re.escape(character)
    if re.fullmatch(r"\|\|[a-z0-9_-]+(\.[a-z0-9_-]+)*", text) and text[-1].isalnum():
        expression += "(?=[./:])"  # whole labels
    if end:
        is_root = url.path == "/" and not url.query and text[0] == "|" and body[-1:] not in {"", "/", "*", "^", "|"}
        expression += r"/?\Z" if is_root else r"\Z"
    return re.search(expression, url.text.lower(), re.ASCII) is not None


WORDS = st.sampled_from(["ad", "a", "b", ".", "/", "a.b", "-", "net", "example.com", "?x=", "*", "^", ":"])
PATTERNS = st.builds(
    lambda anchor, words, end: anchor + "".join(words) + end,
    st.sampled_from(["", "|", "||", "|https://"]),
    st.lists(WORDS, min_size=1, max_size=6),
    st.sampled_from(["", "", "|", "^", "*"]),
)
URLS = st.builds(
    lambda host, path: parse_url("https://" + ".".join(host) + "/" + "".join(path)),
    st.lists(st.sampled_from(["a", "b", "ad", "net", "example.com", "bad"]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["a", "b", "ad", ".", "/", "-", "?x=", "net", "_", "%20"]), max_size=6),
)


@settings(max_examples=30)
@given(PATTERNS, URLS)
def test_patterns_against_a_regular_expression(pattern: str, url: Url) -> None:
    if pattern[0] == "/" and pattern.rstrip("*")[-1] == "/":  # that would be a regular expression
        return
    assert fits(pattern, url) is reference(pattern, url)


@settings(max_examples=30)
@given(PATTERNS, URLS)
def test_literals_are_in_every_url_that_matches(pattern: str, url: Url) -> None:
    try:
        shape = shape_of(NetworkRule(read_pattern(pattern, match_case=False)))
    except RuleError:  # between slashes it is a regular expression, and may be no valid one
        return
    if fits(pattern, url):
        assert all(literal in url.text.lower() for literal in shape.literals)
        assert not shape.host or url.host == shape.host or url.host.endswith("." + shape.host)


def test_patterns_take_linear_time() -> None:
    url = parse_url("https://a.net/" + "a" * 60_000)
    for pattern in ("a*" * 200 + "b", "^*" * 200 + "b", "||" + "a*" * 100 + "b", "a^" * 50 + "b|", "^" * 50 + "b"):
        assert not fits(pattern, url)
