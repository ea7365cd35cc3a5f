"""The paper's scheme and the default one: the same verdicts for every k, on ordinary and hostile URLs."""

import pytest

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import MAX_URL_LENGTH, parse_url
from tests.case_tables import all_cases
from tests.engine.adblock.paper_scheme import PAPER_K, PaperScheme
from tests.fuzz.adblock_checks import LINES, URLS

HOSTILE = [
    "https://ads.example.com/" + "a" * (MAX_URL_LENGTH - 30),
    "https://fine.example/" + "/adserver/" * 6_000,
    "https://fine.example/" + "banner.js" * 7_000,
    "https://fine.example/?" + "%61ds=" * 10_000,
    "https://fine.example/" + "%FF%00%C3" * 7_000,
    "https://fine.example/" + "/ADS1.js" * 8_000,
    "https://fine.example/" + "-Ad-300X600px" * 5_000,
    "https://fine.example/" + "^*|" * 10_000,
]


@pytest.fixture(scope="module")
def blob() -> bytes:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, [*LINES, "a", "/x^", "*tiny*", "||ads.example.com^*a$match-case"])
    return builder.build()


@pytest.fixture(scope="module")
def matcher(blob: bytes) -> AdblockMatcher:
    return AdblockMatcher(blob)


def requests_of(url: str) -> list[Request]:
    return [
        Request(parse_url(url), source, kind)
        for source in (None, parse_url("https://a.net/"), parse_url("https://www.ads.example/"))
        for kind in (ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.DOCUMENT)
    ]


@pytest.mark.parametrize("use_automaton", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4, 5, 6, 7, PAPER_K, 9, 10, 11, 12, 40])
def test_every_k_gives_the_same_verdicts(blob: bytes, matcher: AdblockMatcher, k: int, use_automaton: bool) -> None:  # noqa: FBT001
    scheme = PaperScheme(blob, k, use_automaton=use_automaton)
    asked = [request for url in URLS for request in requests_of(url)]
    verdicts = [(match is None, match is not None and match.exception) for match in map(matcher.match, asked)]
    assert len(set(verdicts)) == 3
    assert [(match is None, match is not None and match.exception) for match in map(scheme.match, asked)] == verdicts
    for request in asked:
        assert {match.rule for match in scheme.match_all(request)} == {match.rule for match in matcher.match_all(request)}


@pytest.mark.slow
@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: url[:40])
def test_hostile_urls_are_judged_alike(blob: bytes, matcher: AdblockMatcher, url: str) -> None:
    scheme = PaperScheme(blob)
    for request in requests_of(url):
        found = [match.match(request) for match in (matcher, scheme)]
        assert (found[0] is None) == (found[1] is None)
        assert {match.rule for match in scheme.match_all(request)} == {match.rule for match in matcher.match_all(request)}


@all_cases(
    ("url", "blocked"),
    [
        ("https://A.NET/%61dserver/x", False),
        ("https://a.net/ADSERVER/x", True),
        ("https://ads.example:8443/", True),
        ("https://ads.example./", True),
        ("https://xn--ads-.example/", False),
        ("https://ads.example%2e/", True),
        ("https://ads.examplé/", False),
        ("https://user@ads.example/", True),
        ("https://fine.example/#/adserver/", False),
        ("https://fine.example/\t/ads\nerver/", True),
    ],
)
def test_spelling_tricks(url: str, blocked: bool) -> None:  # noqa: FBT001  # a table
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, ["||ads.example^", "/adserver/"])
    asked = Request(parse_url(url), parse_url("https://page.org/"), ResourceType.SCRIPT)
    for scheme in (AdblockMatcher(builder.build()), PaperScheme(builder.build())):
        assert (scheme.match(asked) is not None) is blocked
