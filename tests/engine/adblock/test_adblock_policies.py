"""Questions that other engines' own tests ask, in cases of our own; the answers stand in docs/adblock.md, "Policies"."""

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.parser import LineKind, parse_line
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.engine.adblock.paper_scheme import PaperScheme


def verdict(lines: list[str], url: str, source: str, kind: str) -> str:
    """Returns `none`, `block` or `exception`, on which both ways of finding rules agree."""
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, lines)
    blob = builder.build()
    asked = Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind))
    found = {
        "none" if match is None else "exception" if match.exception else "block"
        for match in (AdblockMatcher(blob).match(asked), PaperScheme(blob).match(asked))
    }
    assert len(found) == 1
    return found.pop()


PAGE = "https://shop.example/offer"
LINK = "https://search.example/?q=offer"


@all_cases(
    ("lines", "source", "expected"),
    [
        # `domain=` on a page: the page itself, or who led there.
        (["*$document,domain=shop.example"], "", "block"),
        (["*$document,domain=shop.example"], PAGE, "block"),
        (["*$document,domain=shop.example"], LINK, "block"),
        (["*$document,domain=search.example"], LINK, "block"),
        (["*$document,domain=search.example"], "", "none"),
        (["*$document,domain=other.example"], LINK, "none"),
        (["/offer$document,domain=example"], "https://other.test/", "block"),
        # What a rule leaves alone is left alone, whoever led there.
        (["||shop.example^$domain=~shop.example"], "", "none"),
        (["||shop.example^$domain=~shop.example"], LINK, "none"),
        (["||shop.example^$domain=~other.example"], LINK, "block"),
        (["||shop.example^$document,domain=search.example|~shop.example"], LINK, "none"),
        # Party and exceptions likewise.
        (["||shop.example^$document,1p"], LINK, "block"),
        (["||shop.example^$document,3p"], LINK, "block"),
        (["||shop.example^$document,3p"], PAGE, "none"),
        (["||shop.example^$3p"], LINK, "none"),
        (["||shop.example^", "@@/offer$document,domain=shop.example"], LINK, "exception"),
        (["||shop.example^", "@@/offer$document,domain=search.example"], LINK, "exception"),
        (["||shop.example^", "@@/offer$document,domain=search.example"], "", "block"),
        (["||shop.example^$important", "@@/offer$document,domain=search.example"], LINK, "block"),
        (["||shop.example^", "||shop.example^$badfilter"], LINK, "none"),
    ],
)
def test_the_sources_of_a_page(lines: list[str], source: str, expected: str) -> None:
    assert verdict(lines, PAGE, source, "document") == expected


@all_cases(
    ("lines", "source", "expected"),
    [
        (["*$domain=shop.example"], LINK, "none"),
        (["*$domain=search.example"], LINK, "block"),
        (["*$domain=~shop.example"], LINK, "block"),
        (["*$domain=shop.example"], "", "none"),
    ],
)
def test_anything_else_has_one_source(lines: list[str], source: str, expected: str) -> None:
    assert verdict(lines, PAGE, source, "subdocument") == expected


@all_cases(
    ("rule", "url", "expected"),
    [
        ("|ws://", "wss://feed.example/", "block"),
        ("|ws://", "ws://feed.example/", "block"),
        ("|ws://feed.", "wss://feed.example/", "block"),
        ("|ws://$domain=shop.example", "wss://feed.example/", "block"),
        ("|ws://$domain=other.example", "wss://feed.example/", "none"),
        ("|wss://", "ws://feed.example/", "none"),
        ("|ws://other.", "wss://feed.example/", "none"),
        ("|http://", "wss://feed.example/", "none"),
        ("ws://feed", "wss://feed.example/", "none"),
        ("||feed.example^", "wss://feed.example/", "block"),
    ],
)
def test_rules_about_the_scheme_of_websockets(rule: str, url: str, expected: str) -> None:
    assert verdict([rule], url, PAGE, "websocket") == expected


def test_a_badfilter_cancels_both_schemes() -> None:
    assert verdict(["|ws://feed", "|ws://feed$badfilter"], "wss://feed.example/", PAGE, "websocket") == "none"


@all_cases(
    ("source", "expected"),
    [
        ("https://a.shop.example/", "block"),
        ("https://a.shop.test/", "block"),
        ("https://a.shop.org/", "none"),
        ("https://good.shop.example/", "none"),
    ],
)
@all_cases("bar", ["|", r"\|"])
def test_a_bar_in_an_expression_for_hosts(bar: str, source: str, expected: str) -> None:
    rule = rf"||ads.example^$domain=/shop\.(example{bar}test)/|~/^(good{bar}fine)\./"
    assert verdict([rule], "https://ads.example/x", source, "script") == expected


@all_cases(
    ("line", "kind"),
    [
        ("||e.com^$_unknown_,image", LineKind.REJECTED),
        ("||e.com^$_,image,__", LineKind.NETWORK),
        ("||e.com^$image,~image", LineKind.REJECTED),
        ("||e.com^$domain=a.com|", LineKind.NETWORK),
        ("@@||e.com^$stealth=referrer|webrtc", LineKind.UNSUPPORTED),
        ("@@||e.com^$stealth=referrer,script", LineKind.NETWORK),
        ("||e.com^$header=x,removeheader=refresh", LineKind.NETWORK),
        ("||e.com^$header=x,removeheader=request:dnt", LineKind.REJECTED),
        ("||e.com^$removeheader=request:dnt", LineKind.NETWORK),
        ("||e.com^$redirect", LineKind.REJECTED),
        ("@@||e.com^$redirect", LineKind.NETWORK),
        *((character, LineKind.REJECTED) for character in "/.:e+,~?"),
        ("@@e", LineKind.REJECTED),
        ("e$domain=e.com", LineKind.NETWORK),
        ("||e.com^$domain=a.com,domain=b.com", LineKind.REJECTED),
        ("||e.com^$domain=/a/,domain=b.com", LineKind.REJECTED),
        ("||e.com^$domain=/a/|b.com,domain=b.com", LineKind.REJECTED),
        ("||e.com^$domain=b.com,domain=/a/|b.com", LineKind.REJECTED),
        ("||e.com^$domain=/a/,domain=/a/", LineKind.NETWORK),
        ("e.com>>##.ad", LineKind.UNSUPPORTED),
        ("e.com,f.com>>##.ad:upward(1)", LineKind.UNSUPPORTED),
    ],
)
def test_lines_that_engines_read_differently(line: str, kind: LineKind) -> None:
    assert parse_line(line).kind is kind


@all_cases(
    ("options", "source", "expected"),
    [
        ("domain=a.test,domain=~b.a.test", "https://a.test/", "block"),
        ("domain=a.test,domain=~b.a.test", "https://b.a.test/", "none"),
        ("domain=a.test,domain=~b.a.test", "https://c.test/", "none"),
        ("domain=a.test|c.test,from=b.a.test|c.test", "https://b.a.test/", "block"),
        ("domain=a.test|c.test,from=b.a.test|c.test", "https://a.test/", "none"),
        ("domain=~a.test,domain=~c.test", "https://a.test/", "none"),
        ("to=ads.example|x.test,to=example", "https://a.test/", "block"),
    ],
)
def test_a_second_option_of_hosts_narrows_the_first(options: str, source: str, expected: str) -> None:
    assert verdict([f"-ad-${options}"], "https://ads.example/-ad-", source, "script") == expected
