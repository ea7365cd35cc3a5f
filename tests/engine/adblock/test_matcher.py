"""The compiled form and the search: equal to trying every rule, for any lists and requests."""

from mmap import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index import bounded_cache
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, is_in
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.rule_index import RuleIndex
from gatewayfilter.engine.adblock.index.rule_table import RulesOff
from gatewayfilter.engine.adblock.matcher import AdblockMatcher, sources_of
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.adblock.syntax.rule import TYPE_BITS, AdblockMatch
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.engine.adblock.paper_scheme import PaperScheme


def compiled(*lists: list[str]) -> bytes:
    builder = AdblockBuilder(judge=False)
    for source, lines in enumerate(lists):
        builder.add_list(source, lines)
    return builder.build()


def request(url: str, source: str | None = "https://page.org/", kind: str = "script") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind))


ADS = request("https://ads.example.com/banner.js")


def test_a_match_names_rule_source_and_line() -> None:
    matcher = AdblockMatcher(compiled(["! header", "  ||example.com^$third-party  \n"], ["@@/banner.js$important"]))
    assert matcher.match(ADS) == AdblockMatch("@@/banner.js$important", 1, 1, exception=True, important=True)
    assert matcher.match(ADS, frozenset({1})) == AdblockMatch(
        "||example.com^$third-party", 0, 2, exception=False, important=False
    )
    assert matcher.match(request("https://example.net/")) is None


def test_a_hosts_line_stands_for_each_of_its_hosts() -> None:
    matcher = AdblockMatcher(compiled(["0.0.0.0 a.net b.net # ads"]))
    for host in ("a.net", "b.net", "www.b.net"):
        assert matcher.match(request(f"https://{host}/")) == AdblockMatch("0.0.0.0 a.net b.net # ads", 0, 1, False, False)
    assert matcher.rule_count == 2
    assert PaperScheme(compiled(["0.0.0.0 a.net b.net # ads"])).match(request("https://b.net/")) is not None


def test_lists_that_are_off_do_not_count() -> None:
    matcher = AdblockMatcher(
        compiled(["||example.com^"], ["@@||example.com^"], ["||example.com^$important"], ["@@||example.com^$important"])
    )

    def winner(*off: int) -> int | None:
        match = matcher.match(ADS, frozenset(off))
        return None if match is None else match.source

    assert winner() == 3
    assert winner(3) == 2
    assert winner(2, 3) == 1
    assert winner(1, 2, 3) == 0
    assert winner(0, 2) is None
    assert winner(0, 1, 3) == 2
    assert winner(0, 1, 2, 3) is None
    assert winner(99) == 3


def test_an_exception_counts_wherever_its_list_stands() -> None:
    lists = (["@@||example.com^"], ["||example.com^"], ["||other.test^"])
    for place in range(3):
        matcher = AdblockMatcher(compiled(*lists[place:], *lists[:place]))
        exception, block, other = ((number - place) % 3 for number in range(3))
        for off, source in ((set(), exception), ({other}, exception), ({exception}, block), ({block}, None)):
            match = matcher.match(ADS, frozenset(off))
            assert (match and match.source) == source


def test_a_badfilter_counts_only_while_its_list_is_on() -> None:
    matcher = AdblockMatcher(compiled(["||example.com^"], ["||example.com^$badfilter"]))
    assert matcher.match(ADS) is None
    assert matcher.match_all(ADS) == []
    assert matcher.match(ADS, frozenset({1})) is not None
    assert matcher.match(ADS, frozenset({0})) is None
    assert PaperScheme(compiled(["||example.com^"], ["||example.com^$badfilter"])).match(ADS) is None


def test_match_all_begins_with_the_winner() -> None:
    rules = [
        "||example.com^",
        "/banner.js",
        "||ads.example.com^$important",
        "@@||example.com^",
        "@@/banner$important",
        "||example.com^$image",
    ]
    found = AdblockMatcher(compiled(rules)).match_all(ADS)
    assert [match.rule for match in found] == [rules[4], rules[2], rules[3], rules[0], rules[1]]
    found = AdblockMatcher(compiled(rules[:4])).match_all(ADS)
    assert [match.rule for match in found] == [rules[2], rules[3], rules[0], rules[1]]
    found = AdblockMatcher(compiled([rules[0], rules[2]])).match_all(ADS)
    assert found[0] == AdblockMatcher(compiled([rules[0], rules[2]])).match(ADS)


def test_the_same_rule_in_two_lists_is_found_twice() -> None:
    found = AdblockMatcher(compiled(["||example.com^"], ["||example.com^"])).match_all(ADS)
    assert sorted(match.source for match in found) == [0, 1]


@pytest.mark.parametrize("wrap", [bytes, memoryview])
def test_any_buffer_will_do(wrap: type[bytes | memoryview]) -> None:
    assert AdblockMatcher(wrap(compiled(["||example.com^"]))).match(ADS) is not None


def test_a_mapped_file_will_do() -> None:
    blob = compiled(["||example.com^"])
    mapped = mmap(-1, len(blob))
    mapped[:] = blob
    assert AdblockMatcher(mapped).match(ADS) is not None


def test_no_rules_at_all() -> None:
    for blob in (AdblockBuilder(judge=False).build(), compiled(["! nothing"], ["||a.com^$badfilter"])):
        matcher = AdblockMatcher(blob)
        assert matcher.rule_count == 0
        assert matcher.match(ADS) is None
        assert matcher.match(ADS, frozenset({1})) is None
        assert matcher.match_all(ADS) == []


RULES = [
    "||example.com^",
    "||a.com/ads",
    "/banner.$image,domain=b.com",
    "@@||x.com^",
    "||y.com^$important",
    "*$font,domain=c.com",
]


def test_building_twice_gives_the_same_bytes() -> None:
    assert compiled(RULES) == compiled(RULES)


def test_every_cut_is_refused() -> None:
    blob = compiled(RULES)
    for length in range(len(blob) - 4):
        with pytest.raises(SnapshotError):
            AdblockMatcher(blob[:length])


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_form_is_refused_or_opens(data: st.DataObject) -> None:
    blob = bytearray(compiled(RULES))
    for _ in range(3):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        AdblockMatcher(bytes(blob))
    except SnapshotError:
        return


def test_another_version_is_refused() -> None:
    with pytest.raises(SnapshotError, match="another version"):
        AdblockMatcher(b"GFADB\x00\x00\x7f" + compiled([])[8:])
    with pytest.raises(SnapshotError, match="another version"):
        AdblockMatcher(b"")


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_cache, "GENERATION", 10)
    matcher = AdblockMatcher(compiled(["||example.com^", "*$font,domain=page3.org"]))
    for number in range(100):
        assert matcher.match(request(f"https://h{number}.net/", f"https://page{number}.org/")) is None
        assert matcher.match(request(f"https://h{number}.example.com/")) is not None
        assert matcher.match(request(f"https://h{number}.example.com/", kind="document")) is not None
    blocks = matcher._blocks
    assert isinstance(blocks, RuleIndex)
    for cache in (blocks._near, blocks._near_pages):
        assert len(cache) <= 10
        assert len(cache._old) <= 10
    assert matcher.match(request("https://a.net/x", "https://page3.org/", "font")) is not None


@all_cases(
    ("source", "kind", "expected"),
    [
        ("https://page3.org/", "font", True),
        ("https://www.page7.org/", "font", True),
        ("https://page3.net/", "font", False),
        ("https://sub.page9.org/", "script", False),
        ("https://page9.org/", "document", False),
        ("https://doc.org/", "document", True),
    ],
)
def test_many_rules_of_one_host_are_found_by_their_pages(source: str, kind: str, *, expected: bool) -> None:
    lines = [f"||example.com^$font,domain=page{number}.org|x{number}.test" for number in range(40)]
    matcher = AdblockMatcher(compiled([*lines, "||example.com^$document,domain=doc.org", "||example.com/a$image,domain=~a.b"]))
    for host in ("example.com", "www.example.com"):
        assert (matcher.match(request(f"https://{host}/", source, kind)) is not None) is expected


@all_cases(
    ("host", "names"),
    [
        ("www.google.co.uk", {"www.google.co.uk", "google.co.uk", "co.uk", "uk", "www.google.*", "google.*"}),
        ("google.com", {"google.com", "com", "google.*"}),
        ("com", {"com"}),
        ("192.0.2.1", {"192.0.2.1"}),
        ("[2001:db8::1]", {"[2001:db8::1]"}),
        ("localhost", {"localhost"}),
    ],
)
def test_names_of_a_host(host: str, names: set[str]) -> None:
    assert set(host_names(host)) == names


def test_very_long_urls() -> None:
    matcher = AdblockMatcher(compiled(["/banner.js", "||example.com^$image", r"/x(a|b)*y\.js/", "*a*b*c*d^$script"]))
    assert matcher.match(request("https://a.net/" + "a" * 60_000 + "/banner.js")) is not None
    assert matcher.match(request("https://a.net/x" + "ab" * 30_000)) is None


HOSTS = st.sampled_from(
    ["example.com", "ads.example.com", "a.net", "b.net", "cdn.b.net", "example.co.uk", "192.0.2.1", "google.de"]
)
PATTERNS = st.sampled_from(
    [
        "||example.com^",
        "||ads.example.com^",
        "||b.net/ad",
        "||b.net^*/x",
        "||example.co.uk/",
        "||ad",
        "||a*.net^",
        "||net^",
        "||192.0.2.1^",
        "/ad",
        "/banner/",
        "-ad.",
        "?ad=",
        "ad.js|",
        "|https://a",
        "://b.",
        "^ad^",
        "ad*x",
        "*",
        "/Ad",
        "x",
        "||example.com",
        ".js",
        "||b.net/x",
        r"/ad\d/",
        r"/^https:\/\/[a-z.]+\/x/",
        r"/\.(js|gif)$/",
        "||b.net/1",
        "||b.net/2",
        "||b.net/3",
        "||b.net/4",
        "||b.net/5",
        "||google.*/ad",
    ]
)
OPTIONS = st.sampled_from(
    [
        "script",
        "image",
        "~script",
        "third-party",
        "~third-party",
        "document",
        "all",
        "important",
        "match-case",
        "strict1p",
        "strict3p",
        "domain=a.net",
        "domain=~b.net",
        "domain=example.com|b.net",
        "domain=google.*",
        "domain=~ads.example.com|example.com",
        "method=get",
        "domain=/^[ab]/",
        "to=b.net",
        "to=~a.net",
        "denyallow=example.com",
        "domain=a.net|b.net|example.com|google.de",
        "redirect=x",
        "xhr",
    ]
)
LINES = st.builds(
    lambda exception, pattern, options: exception + pattern + ("$" + ",".join(options) if options else ""),
    st.sampled_from(["", "", "@@"]),
    PATTERNS,
    st.lists(OPTIONS, max_size=3, unique=True),
)


def _badfilter(line: str) -> str:
    return line + (",badfilter" if "$" in line else "$badfilter")


REQUESTS = st.builds(
    lambda host, path, source, kind, method: Request(
        parse_url(f"https://{host}/{path}"), parse_url(f"https://{source}/") if source else None, kind, method
    ),
    HOSTS,
    st.sampled_from(["", "ad", "ad.js", "banner/x.gif", "x?ad=1", "ad1x", "Ad", "1/x", "3", "-ad.js", "x", "ad/x", "ad.js?x"]),
    st.one_of(st.none(), HOSTS),
    st.sampled_from([ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.DOCUMENT, ResourceType.XMLHTTPREQUEST]),
    st.sampled_from(["GET", "POST"]),
)


def naive(lines: list[str], asked: Request) -> tuple[str, set[str]]:
    """Tries every rule, one by one; returns the verdict and all that match."""
    lowered = asked.url.text.lower()
    host = asked.url.host
    kind = TYPE_BITS[asked.resource_type]
    found = [
        (line, rule)
        for line in lines
        for rule in parse_line(line).rules
        for place, source in enumerate(sources_of(asked))
        if rule.mask & kind * party_of(host, source)
        and CompiledRule(rule).matches(asked, lowered, source)
        and not (place and is_in(rule.conditions.not_sources, host))
    ]
    blocks = [rule for _, rule in found if not rule.exception]
    exceptions = [rule for _, rule in found if rule.exception]
    if not blocks:
        verdict = "none"
    elif any(rule.important for rule in exceptions):
        verdict = "exception"
    elif any(rule.important for rule in blocks):
        verdict = "block"
    else:
        verdict = "exception" if exceptions else "block"
    return verdict, {line for line, _ in found}


def verdict_of(match: AdblockMatch | None) -> str:
    if match is None:
        return "none"
    return "exception" if match.exception else "block"


@given(st.lists(LINES, max_size=25), st.lists(REQUESTS, min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_the_index_equals_trying_every_rule(lines: list[str], requests: list[Request]) -> None:
    blob = compiled(lines)
    matcher = AdblockMatcher(blob)
    schemes = [PaperScheme(blob, k, use_automaton=use) for k, use in ((8, True), (4, False), (12, True))]
    for asked in requests * 2:  # the second time from the caches
        verdict, matching = naive(lines, asked)
        assert verdict_of(matcher.match(asked)) == verdict
        found = matcher.match_all(asked)
        assert {match.rule for match in found} == matching
        if verdict != "none":
            assert found[0] == matcher.match(asked)
        for scheme in schemes:
            assert verdict_of(scheme.match(asked)) == verdict
            assert {match.rule for match in scheme.match_all(asked)} == matching


@given(st.lists(LINES, max_size=12), st.lists(LINES, max_size=12), REQUESTS)
@settings(max_examples=30, deadline=None)
def test_a_list_that_is_off_is_as_if_it_were_not_there(first: list[str], second: list[str], asked: Request) -> None:
    both = AdblockMatcher(compiled(first, second))
    assert verdict_of(both.match(asked, frozenset({1}))) == naive(first, asked)[0]
    assert verdict_of(both.match(asked, frozenset({0}))) == naive(second, asked)[0]
    assert verdict_of(both.match(asked, frozenset({7}))) == naive(first + second, asked)[0]


@given(
    st.lists(st.lists(st.one_of(LINES, LINES.map(_badfilter)), max_size=10), min_size=4, max_size=4),
    st.lists(st.frozensets(st.integers(0, 4)), min_size=1, max_size=4),
    st.lists(REQUESTS, min_size=1, max_size=6),
)
@settings(max_examples=30, deadline=None)
def test_lists_that_are_off_leave_the_rules_that_the_others_alone_would_have(
    lists: list[list[str]], choices: list[frozenset[int]], requests: list[Request]
) -> None:
    every = AdblockMatcher(compiled(*lists))
    for off in choices:
        alone = AdblockMatcher(compiled(*([] if number in off else lines for number, lines in enumerate(lists))))
        for asked in requests * 2:  # the second time from the caches
            found, expected = every.match(asked, off), alone.match(asked)
            slow = every._match_partly(asked, sources_of(asked), off)
            assert verdict_of(found) == verdict_of(expected) == verdict_of(slow)
            if found is not None:  # which of several rules is named depends on the index that the others put it in
                assert found in alone.match_all(asked)
                assert found == slow or not found.exception


def test_what_differs_with_lists_off_is_computed_once_for_each_set() -> None:
    table = AdblockMatcher(compiled(["||a.net^"], ["||a.net^$badfilter"], []))._table
    assert table.without(frozenset({1, 2, 9})) is table.without(frozenset({9, 2, 1}))
    assert table.without(frozenset({2})) == RulesOff(frozenset(), frozenset())
    assert table.without(frozenset({1})) == RulesOff(frozenset(), frozenset({0}))
    assert not table.restores(frozenset({0, 1}))
    for number in range(1000):
        table.without(frozenset({number + 3}))
    assert len(table._off) <= 256
