"""Every option, with requests that it covers and requests that it does not."""

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

EXAMPLE = "https://ads.example.com/banner.js"
OWN = "https://www.example.com/"
OTHER = "https://other.org/page"


def decide(rules: list[str], url: str, source: str | None, kind: str, method: str = "GET") -> str:
    """Returns `block`, `exception` or `none`."""
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, rules)
    page = parse_url(source) if source else None
    match = AdblockMatcher(builder.build()).match(Request(parse_url(url), page, ResourceType(kind), method))
    if match is None:
        return "none"
    return "exception" if match.exception else "block"


SPELLINGS = [
    ("document", "document"),
    ("doc", "document"),
    ("subdocument", "subdocument"),
    ("frame", "subdocument"),
    ("stylesheet", "stylesheet"),
    ("css", "stylesheet"),
    ("script", "script"),
    ("image", "image"),
    ("background", "image"),
    ("font", "font"),
    ("media", "media"),
    ("object", "object"),
    ("object-subrequest", "object"),
    ("xmlhttprequest", "xmlhttprequest"),
    ("xhr", "xmlhttprequest"),
    ("ping", "ping"),
    ("beacon", "ping"),
    ("websocket", "websocket"),
    ("other", "other"),
]


@all_cases("kind", list(ResourceType))
@all_cases(("option", "named"), SPELLINGS)
def test_a_type_option_covers_its_type_alone(option: str, named: str, kind: ResourceType) -> None:
    assert decide([f"||example.com^${option}"], EXAMPLE, OTHER, kind) == ("block" if kind == named else "none")


@all_cases("kind", list(ResourceType))
@all_cases(("option", "named"), SPELLINGS)
def test_a_negated_type_covers_all_others_but_pages(option: str, named: str, kind: ResourceType) -> None:
    expected = "none" if kind in {named, ResourceType.DOCUMENT} else "block"
    assert decide([f"||example.com^$~{option}"], EXAMPLE, OTHER, kind) == expected


@all_cases(
    ("rule", "kind", "expected"),
    [
        ("||example.com^$all", "document", "block"),
        ("||example.com^$all", "websocket", "block"),
        ("||example.com^$all", "other", "block"),
        ("||example.com^$script,image", "script", "block"),
        ("||example.com^$script,image", "image", "block"),
        ("||example.com^$script,image", "font", "none"),
        ("||example.com^$~script,~image", "font", "block"),
        ("||example.com^$~script,~image", "image", "none"),
        ("||example.com^$script,popup", "script", "block"),
        ("||example.com^$script,popup", "document", "none"),
        ("||example.com^$popup", "document", "none"),
        ("||example.com^$~popup", "script", "block"),
        ("||example.com^$SCRIPT", "script", "block"),
        ("||example.com^$ script , image ", "image", "block"),
        ("||example.com^$_,script,____", "script", "block"),
        ("||example.com^$_,script,____", "image", "none"),
        ("||example.com^$script,~collapse", "script", "block"),
        ("||example.com^$script,reason=malware, they say", "script", "block"),
        ("||example.com^$script,reason=malware", "image", "none"),
    ],
)
def test_types_together(rule: str, kind: str, expected: str) -> None:
    assert decide([rule], EXAMPLE, OTHER, kind) == expected


@all_cases(
    ("rule", "source", "expected"),
    [
        ("||example.com^", None, "block"),
        ("||example.com^", OTHER, "block"),
        ("||ads.example.com^", OTHER, "block"),
        ("||example.com^*", OTHER, "block"),
        ("||example.com", OTHER, "none"),
        ("||example.com/", OTHER, "none"),
        ("||ads.", OTHER, "none"),
        ("/banner.js", OTHER, "none"),
        ("|https://ads.", OTHER, "none"),
        (r"/ads\.example/", OTHER, "none"),
        ("||example.com^$third-party", OTHER, "none"),
        ("||example.com^$document,third-party", OTHER, "block"),
        ("||example.com^$document,third-party", OWN, "none"),
        ("||example.com^$document,third-party", None, "none"),
        ("||example.com^$document,domain=example.com", None, "block"),
        ("||example.com^$document,domain=other.org", None, "none"),
        ("||example.com^$important", OTHER, "block"),
        ("||example.com^$domain=other.org", OTHER, "block"),
        ("||example.com^$~script", OTHER, "none"),
        ("||example.com^$redirect=noop.html", OTHER, "block"),
        ("0.0.0.0 ads.example.com", OTHER, "block"),
        ("/banner.js$document", OTHER, "block"),
    ],
)
def test_a_page_itself_is_blocked_by_what_speaks_of_its_host(rule: str, source: str | None, expected: str) -> None:
    assert decide([rule], EXAMPLE, source, "document") == expected


@all_cases(
    ("option", "source", "expected"),
    [
        *[(name, OTHER, "block") for name in ("third-party", "3p", "~first-party", "~1p", "thirdparty")],
        *[(name, OWN, "none") for name in ("third-party", "3p", "~first-party", "~1p", "thirdparty")],
        *[(name, OTHER, "none") for name in ("first-party", "1p", "~third-party", "~3p", "firstparty")],
        *[(name, OWN, "block") for name in ("first-party", "1p", "~third-party", "~3p", "firstparty")],
        *[(name, None, "block") for name in ("third-party", "first-party", "~third-party", "~first-party")],
        ("strict3p", OTHER, "block"),
        ("strict3p", OWN, "block"),
        ("strict3p", "https://ads.example.com/x", "none"),
        ("strict-third-party", OWN, "block"),
        ("strict1p", OWN, "none"),
        ("strict1p", "https://ads.example.com/x", "block"),
        ("strict1p", OTHER, "none"),
        ("strict-first-party", "https://ads.example.com/x", "block"),
        ("1p,strict3p", OWN, "block"),
        ("1p,strict3p", OTHER, "none"),
    ],
)
def test_party(option: str, source: str | None, expected: str) -> None:
    assert decide([f"||example.com^${option}"], EXAMPLE, source, "script") == expected


@all_cases(
    ("url", "source", "expected"),
    [
        ("https://cdn.example.co.uk/x", "https://www.example.co.uk/", "none"),
        ("https://cdn.example.co.uk/x", "https://other.co.uk/", "block"),
        ("https://a.github.io/x", "https://b.github.io/", "block"),
        ("https://a.github.io/x", "https://a.github.io/y", "none"),
        ("https://192.0.2.1/x", "https://192.0.2.1/", "none"),
        ("https://192.0.2.1/x", "https://192.0.2.2/", "block"),
        ("https://[2001:db8::1]/x", "https://[2001:db8::1]/", "none"),
        ("https://localhost/x", "https://localhost:8443/", "none"),
        ("wss://live.example.com/x", "https://example.com/", "none"),
    ],
)
def test_party_is_told_by_the_registrable_domain(url: str, source: str, expected: str) -> None:
    assert decide(["/x$third-party"], url, source, "script") == expected


@all_cases(
    ("value", "source", "expected"),
    [
        ("other.org", OTHER, "block"),
        ("other.org", "https://sub.other.org/", "block"),
        ("other.org", "https://another.org/", "none"),
        ("other.org", OWN, "none"),
        ("other.org", None, "none"),
        ("OTHER.ORG", OTHER, "block"),
        ("a.net|other.org", OTHER, "block"),
        ("a.net|b.net", OTHER, "none"),
        ("~other.org", OTHER, "none"),
        ("~other.org", "https://sub.other.org/", "none"),
        ("~other.org", OWN, "block"),
        ("~other.org", None, "block"),
        ("other.org|~sub.other.org", OTHER, "block"),
        ("other.org|~sub.other.org", "https://sub.other.org/", "none"),
        ("other.org|~sub.other.org", "https://a.sub.other.org/", "none"),
        ("~other.org|sub.other.org", "https://sub.other.org/", "none"),
        ("other.*", OTHER, "block"),
        ("other.*", "https://other.co.uk/", "block"),
        ("other.*", "https://www.other.de/", "block"),
        ("other.*", "https://other.example.de/", "none"),
        ("other.*", "https://another.de/", "none"),
        ("~other.*", "https://other.de/", "none"),
        ("~other.*", OWN, "block"),
        ("www.other.*", "https://www.other.de/", "block"),
        ("www.other.*", OTHER, "none"),
        (r"/^oth[a-z]r\.org$/", OTHER, "block"),
        (r"/^oth[a-z]r\.org$/", "https://sub.other.org/", "none"),
        (r"/^(a|b)\.net$/|other.org", "https://b.net/", "block"),
        (r"/^(a|b)\.net$/|other.org", OTHER, "block"),
        (r"~/^oth[a-z]r\.org$/", OTHER, "none"),
        (r"~/^oth[a-z]r\.org$/", OWN, "block"),
        (r"/^x{1,3}\.net$/", "https://xx.net/", "block"),
        (r"/\/|^oth/", OTHER, "block"),
        ("münchen.example", "https://xn--mnchen-3ya.example/", "block"),
        ("münchen.*", "https://xn--mnchen-3ya.de/", "block"),
        ("192.0.2.7", "https://192.0.2.7/", "block"),
        ("[2001:db8::7]", "https://[2001:db8::7]/", "block"),
    ],
)
@all_cases("option", ["domain", "from"])
def test_source_domains(option: str, value: str, source: str | None, expected: str) -> None:
    assert decide([f"||example.com^$script,{option}={value}"], EXAMPLE, source, "script") == expected
    assert decide([f"*$script,{option}={value}"], EXAMPLE, source, "script") == expected


@all_cases(
    ("rule", "url", "expected"),
    [
        ("*$script,to=example.com", EXAMPLE, "block"),
        ("*$script,to=example.com", "https://notexample.com/x", "none"),
        ("*$script,to=a.net|example.com", EXAMPLE, "block"),
        ("*$script,to=~example.com", EXAMPLE, "none"),
        ("*$script,to=~example.com", "https://a.net/", "block"),
        ("*$script,to=example.com|~ads.example.com", EXAMPLE, "none"),
        ("*$script,to=example.com|~ads.example.com", "https://www.example.com/", "block"),
        ("*$script,to=example.*", "https://example.de/", "block"),
        ("*$script,to=example.*", "https://a.example.net/", "block"),
        ("*$script,to=example.*", "https://sample.net/", "none"),
        (r"*$script,to=/^ads\d?\./", EXAMPLE, "block"),
        (r"*$script,to=/^ads\d?\./", "https://www.example.com/", "none"),
        ("/banner$to=com|net", EXAMPLE, "block"),
        ("/banner$to=org|net", EXAMPLE, "none"),
        ("*$script,denyallow=example.com,domain=other.org", EXAMPLE, "none"),
        ("*$script,denyallow=example.com,domain=other.org", "https://a.net/", "block"),
        ("*$script,denyallow=a.net|b.net,domain=other.org", EXAMPLE, "block"),
        ("*$script,3p,denyallow=a.net,from=other.*", EXAMPLE, "block"),
        ("*$script,3p,denyallow=a.net,from=other.*", "https://x.a.net/", "none"),
        ("*$script,to=net,denyallow=a.net", "https://a.net/", "none"),
        ("*$script,to=net,denyallow=a.net", "https://b.net/", "block"),
        ("*$script,denyallow=a.net,to=net|~b.net", "https://b.net/", "none"),
    ],
)
def test_target_domains(rule: str, url: str, expected: str) -> None:
    assert decide([rule], url, OTHER, "script") == expected


@all_cases(
    ("value", "method", "expected"),
    [
        ("get", "GET", "block"),
        ("get", "POST", "none"),
        ("GET", "get", "block"),
        ("get|post", "POST", "block"),
        ("get|post", "PUT", "none"),
        ("~get", "GET", "none"),
        ("~get", "POST", "block"),
        ("~get|~head", "HEAD", "none"),
        ("~get|~head", "OPTIONS", "block"),
    ],
)
def test_method(value: str, method: str, expected: str) -> None:
    assert decide([f"||example.com^$method={value}"], EXAMPLE, OTHER, "xmlhttprequest", method) == expected


@all_cases(
    ("rule", "url", "expected"),
    [
        ("/Banner", "https://a.net/banner", "block"),
        ("/banner", "https://a.net/BANNER", "block"),
        ("/Banner$match-case", "https://a.net/banner", "none"),
        ("/Banner$match-case", "https://a.net/Banner", "block"),
        ("/banner$~match-case", "https://a.net/Banner", "block"),
        ("||Example.com/Ad$match-case", "https://example.com/Ad", "block"),
        ("||Example.com/Ad$match-case", "https://example.com/ad", "none"),
        ("/Ba[nm]ner/", "https://a.net/bAMner", "block"),
        ("/Ba[nm]ner/$match-case", "https://a.net/Bamner", "block"),
        ("/Ba[nm]ner/$match-case", "https://a.net/bamner", "none"),
        ("/ba[A-Z]ner/", "https://a.net/banner", "block"),
        ("/ba[^a-m]ner/", "https://a.net/baAner", "none"),
        ("/ba[^a-m]ner/$match-case", "https://a.net/baAner", "block"),
    ],
)
def test_match_case(rule: str, url: str, expected: str) -> None:
    assert decide([rule], url, OTHER, "script") == expected


@all_cases(
    ("rules", "expected"),
    [
        (["||example.com^", "@@||example.com^"], "exception"),
        (["||example.com^", "@@/banner.js"], "exception"),
        (["||example.com^", "@@||example.com^$image"], "block"),
        (["@@||example.com^"], "none"),
        (["||example.com^$important", "@@||example.com^"], "block"),
        (["||example.com^", "||ads.example.com^$important", "@@||example.com^"], "block"),
        (["||example.com^", "||other.com^$important", "@@||example.com^"], "exception"),
        (["||example.com^$important", "@@||example.com^$important"], "exception"),
        (["||example.com^", "@@||example.com^$important"], "exception"),
        (["||example.com^$redirect=noop.js", "@@||example.com^"], "exception"),
        (["||example.com^", "@@||example.com^$redirect=noop.js"], "block"),
        (["||example.com^$redirect=unheard-of.js"], "block"),
        (["||example.com^$empty"], "block"),
        (["||example.com^$mp4"], "none"),
        (["||example.com^$mp4,script"], "block"),
        (["||example.com^$rewrite=abp-resource:blank-js"], "block"),
        (["||example.com^$redirect-rule=noop.js"], "none"),
        (["||example.com^", "@@||other.org^$document"], "block"),
        (["||example.com^", "@@||example.com^$document"], "block"),
        (["||example.com^", "@@||other.org^$generichide"], "block"),
        (["||example.com^", "@@||other.org^$genericblock"], "block"),
        (["||example.com^", "@@||example.com^$generichide,script"], "exception"),
    ],
)
def test_exceptions_and_importance(rules: list[str], expected: str) -> None:
    assert decide(rules, EXAMPLE, OTHER, "script") == expected
    assert decide(rules[::-1], EXAMPLE, OTHER, "script") == expected


@all_cases(
    ("exception", "expected"),
    [
        ("@@||example.com^", "exception"),
        ("@@||example.com^$document", "exception"),
        ("@@||ads.example.com/banner", "exception"),
        ("@@||example.com^$script", "block"),
        ("@@||example.com^$~document", "block"),
    ],
)
def test_exceptions_for_a_page_itself(exception: str, expected: str) -> None:
    assert decide(["||example.com^", exception], EXAMPLE, OTHER, "document") == expected


@all_cases(
    ("rules", "expected"),
    [
        (["||example.com^", "||example.com^$badfilter"], "none"),
        (["||example.com^$badfilter"], "none"),
        (["||example.com^$script", "||example.com^$badfilter"], "block"),
        (["||example.com^", "||example.com^$script,badfilter"], "block"),
        (["||example.com^$script,third-party", "||example.com^$3p,badfilter,script"], "none"),
        (["||example.com^$domain=other.org|a.net", "||example.com^$badfilter,from=a.net|other.org"], "none"),
        (["||example.com^$domain=other.org", "||example.com^$badfilter,from=a.net"], "block"),
        (["||example.com^", "@@||example.com^", "@@||example.com^$badfilter"], "block"),
        (["||example.com^$important", "||example.com^$badfilter"], "block"),
        (["||example.com^$important", "||example.com^$important,badfilter"], "none"),
    ],
)
def test_badfilter(rules: list[str], expected: str) -> None:
    assert decide(rules, EXAMPLE, OTHER, "script") == expected
    assert decide(rules[::-1], EXAMPLE, OTHER, "script") == expected
