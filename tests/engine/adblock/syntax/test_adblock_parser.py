"""What each kind of line becomes; that no text raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.parser import LineKind, parse_line, split_options
from gatewayfilter.engine.adblock.syntax.preprocessor import evaluate
from gatewayfilter.engine.adblock.syntax.rule import SAMPLE_LIMIT
from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import canonical_host, parse_url
from tests.case_tables import all_cases


@all_cases(
    ("line", "kind"),
    [
        ("", LineKind.COMMENT),
        ("   ", LineKind.COMMENT),
        ("! a comment", LineKind.COMMENT),
        ("!||example.com^", LineKind.COMMENT),
        ("# a hosts comment", LineKind.COMMENT),
        ("#", LineKind.COMMENT),
        ("########", LineKind.COMMENT),
        ("#comment", LineKind.COMMENT),
        ("[Adblock Plus 2.0]", LineKind.COMMENT),
        ("\ufeff[Adblock Plus 2.0]", LineKind.COMMENT),
        ("127.0.0.1 localhost", LineKind.COMMENT),
        ("::1 ip6-localhost ip6-loopback", LineKind.COMMENT),
        ("##.ad", LineKind.COSMETIC),
        ("###ad", LineKind.COSMETIC),
        ("example.com##.ad", LineKind.COSMETIC),
        ("example.com,~a.example.com##div > .ad", LineKind.COSMETIC),
        ("example.com#@#.ad", LineKind.COSMETIC),
        ("#@#.ad", LineKind.COSMETIC),
        ("example.com#?#div:has(.ad)", LineKind.COSMETIC),
        ("example.com#@?#div:has(.ad)", LineKind.COSMETIC),
        ("example.com#$#body { color: red }", LineKind.COSMETIC),
        ("example.com#$?#body:has(.x) { color: red }", LineKind.COSMETIC),
        ("example.com#@$#body { color: red }", LineKind.COSMETIC),
        ("example.com#%#window.x = 1;", LineKind.UNSUPPORTED),
        ("example.com#@%#window.x = 1;", LineKind.UNSUPPORTED),
        ("example.com##+js(set, a.b, true)", LineKind.UNSUPPORTED),
        ("##+js(aopr, x)", LineKind.UNSUPPORTED),
        ("example.com##^script:has-text(ad)", LineKind.COSMETIC),
        ("example.com##^script:has-text(/(/)", LineKind.REJECTED),
        ("example.com##^div:has-text(/(/)", LineKind.REJECTED),
        ("example.com$$script[data-src]", LineKind.COSMETIC),
        ("$$div[id]", LineKind.UNSUPPORTED),
        ("example.com$@$script[data-src]", LineKind.COSMETIC),
        ("[$path=/page]example.com##.ad", LineKind.UNSUPPORTED),
        ("example.*##.ad", LineKind.COSMETIC),
        (r"/^ads\d+\.com$/##.ad", LineKind.COSMETIC),
        ("/a/", LineKind.NETWORK),
        ("/(/", LineKind.REJECTED),
        ("//", LineKind.NETWORK),
        ("/ads##banner/", LineKind.NETWORK),
        ("/ads##banner/$script", LineKind.NETWORK),
        ("a/ads##banner/", LineKind.REJECTED),
        ('example.com##a[href^="https://x.com/$script"]', LineKind.COSMETIC),
        ("||example.com^", LineKind.NETWORK),
        ("||example.com/path#fragment", LineKind.NETWORK),
        ("@@||example.com^$script", LineKind.NETWORK),
        ("/banner/ads.", LineKind.NETWORK),
        ("-ad-banner.", LineKind.NETWORK),
        ("example.com", LineKind.NETWORK),
        ("|https://ads.", LineKind.NETWORK),
        ("swf|", LineKind.NETWORK),
        ("&ad_$image", LineKind.NETWORK),
        ("*$ping", LineKind.NETWORK),
        ("$ping,third-party", LineKind.NETWORK),
        ("0.0.0.0 ads.example.com", LineKind.NETWORK),
        ("127.0.0.1\tads.example.com # why", LineKind.NETWORK),
        (":: ads.example.com", LineKind.NETWORK),
        ("0.0.0.0 a.example.com b.example.com", LineKind.NETWORK),
        (r"/ads\d+/", LineKind.NETWORK),
        (r"/ads(\d+|x$)/$script", LineKind.NETWORK),
        (r"/^https?:\/\/[a-z]{3,}\.com\/\$?ad/$script,domain=a.com", LineKind.NETWORK),
        ("/path/$script", LineKind.NETWORK),
        ("||example.com^$redirect=noop.js", LineKind.NETWORK),
        ("||example.com^$script,redirect=noop.js:5", LineKind.NETWORK),
        ("||example.com/jquery$1.js", LineKind.NETWORK),
        ("||example.com^$popup", LineKind.UNSUPPORTED),
        ("||example.com^$popunder", LineKind.UNSUPPORTED),
        ("@@||example.com^$generichide", LineKind.NETWORK),
        ("@@||example.com^$ghide", LineKind.NETWORK),
        ("@@||example.com^$elemhide", LineKind.NETWORK),
        ("@@||example.com^$specifichide", LineKind.NETWORK),
        ("@@||example.com^$genericblock", LineKind.NETWORK),
        ("||example.com^$inline-script", LineKind.NETWORK),
        ("||example.com^$csp=script-src 'none'; frame-src *, x", LineKind.NETWORK),
        ("@@||example.com^$csp", LineKind.NETWORK),
        ("||example.com^$permissions=geolocation=()", LineKind.NETWORK),
        ("||example.com^$redirect-rule=noop.js", LineKind.NETWORK),
        ("@@||example.com^$redirect=noop.js", LineKind.NETWORK),
        ("||example.com^$removeparam=utm_source", LineKind.NETWORK),
        ("||example.com^$removeparam=/^utm_[a-z]{1,5}$/,script", LineKind.NETWORK),
        ("$removeparam=gclid", LineKind.NETWORK),
        ("||example.com^$queryprune=x", LineKind.NETWORK),
        ("||example.com^$replace=/a$script/b,c$/gi", LineKind.NETWORK),
        ('||example.com^$xhr,replace=/"ad":\\{.*\\},//', LineKind.NETWORK),
        ("||example.com^$uritransform=/a/b/", LineKind.NETWORK),
        ("||example.com^$urlskip=?url", LineKind.NETWORK),
        ("||example.com^$script,header=via:1.1 google", LineKind.NETWORK),
        ("*$cname", LineKind.UNSUPPORTED),
        ("*$script,ipaddress=192.0.2.1", LineKind.NETWORK),
        ("||example.com^$app=org.example", LineKind.UNSUPPORTED),
        ("||example.com^$dnstype=A", LineKind.UNSUPPORTED),
        ("||example.com^$removeheader=location", LineKind.NETWORK),
        ("||example.com^$cookie=x", LineKind.UNSUPPORTED),
        ("@@||example.com^$sitekey=abc", LineKind.UNSUPPORTED),
        ("||example.com^$nonsense", LineKind.REJECTED),
        ("$nonsense", LineKind.REJECTED),
        ("||example.com^$script,nonsense", LineKind.REJECTED),
        ("||example.com^$script=x", LineKind.REJECTED),
        ("||example.com^$nonsense=1", LineKind.REJECTED),
        ("||example.com^$domain=", LineKind.REJECTED),
        ("||example.com^$domain", LineKind.REJECTED),
        ("||example.com^$domain=//", LineKind.REJECTED),
        ("||example.com^$domain=a b", LineKind.REJECTED),
        ("||example.com^$domain=a.com,b.com", LineKind.REJECTED),
        ("||example.com^$method=fetch", LineKind.REJECTED),
        ("||example.com^$method=get|~post", LineKind.REJECTED),
        ("||example.com^$denyallow=~a.com", LineKind.REJECTED),
        ("||example.com^$~important", LineKind.REJECTED),
        ("||example.com^$~domain=a.com", LineKind.REJECTED),
        ("||example.com^$third-party,first-party", LineKind.REJECTED),
        ("||example.com^$script,~script", LineKind.REJECTED),
        ("||example.com^$domain=/^(a+)+$/", LineKind.NETWORK),
        ("||example.com^$domain=/^(?=a)(a+)+$/", LineKind.REJECTED),
        ("*", LineKind.REJECTED),
        ("**", LineKind.REJECTED),
        ("a*", LineKind.REJECTED),
        ("*a", LineKind.REJECTED),
        ("ab*", LineKind.NETWORK),
        ("||", LineKind.REJECTED),
        ("|", LineKind.REJECTED),
        ("^", LineKind.REJECTED),
        ("@@", LineKind.REJECTED),
        ("@@*", LineKind.REJECTED),
        ("|||example.com", LineKind.REJECTED),
        ("some words of prose", LineKind.REJECTED),
        ("/^(a+)+$/", LineKind.NETWORK),
        ("/^(?=a)(a+)+$/", LineKind.REJECTED),
        ("/(ads/", LineKind.REJECTED),
        (r"/(a)\1/", LineKind.REJECTED),
        ("0.0.0.0 not_a host!", LineKind.REJECTED),
        ("||exa\x01mple.com^", LineKind.REJECTED),
        ("x" * 70_000, LineKind.REJECTED),
    ],
)
def test_kinds_of_lines(line: str, kind: LineKind) -> None:
    assert parse_line(line).kind is kind


@all_cases(
    ("line", "pattern", "options"),
    [
        ("||a.com^$script", "||a.com^", "script"),
        ("||a.com^", "||a.com^", ""),
        ("$script", "", "script"),
        ("||a.com/$1.js$script", "||a.com/$1.js", "script"),
        ("||a.com/?x=$y$~script,3p", "||a.com/?x=$y", "~script,3p"),
        ("||a.com^$replace=/x$/y$/,script", "||a.com^", "replace=/x$/y$/,script"),
        ("||a.com^$domain=/x$/|b.com", "||a.com^", "domain=/x$/|b.com"),
        (r"/a$script/", r"/a$script/", ""),
        (r"/a$/$script", "/a$/", "script"),
        (r"/(a|b$)\.js/$domain=x.com", r"/(a|b$)\.js/", "domain=x.com"),
        ("/a/b/$image", "/a/b/", "image"),
        ("/a.js?2.0|$script,1p,replace=/x/0/", "/a.js?2.0|", "script,1p,replace=/x/0/"),
        ("/a$", "/a$", ""),
        ("$", "$", ""),
        ("/path/x$image", "/path/x", "image"),
        (r"||a.com/\$script", r"||a.com/\$script", ""),
        ("||a.com^$unheard", "||a.com^", "unheard"),
        ("$unheard,x=y", "", "unheard,x=y"),
        ("/path$unheard", "/path", "unheard"),
        ("/path/$unheard", "/path/", "unheard"),
        (r"/path/\$unheard", r"/path/\$unheard", ""),
        ("/path$/", "/path$/", ""),
        ("path$a/b", "path$a/b", ""),
    ],
)
def test_where_options_begin(line: str, pattern: str, options: str) -> None:
    assert split_options(line) == (pattern, options)


@all_cases(
    ("line", "pattern"),
    [
        ("||EXAMPLE.com/Ad", "||example.com/ad"),
        ("*/ad*", "*/ad"),
        ("*-ad*", "-ad"),
        ("||Example.com/Ad$match-case", "||example.com/Ad"),
        ("||Exa*Ad$match-case", "||exa*Ad"),
        ("||*Ad$match-case", "||*Ad"),
        ("-Ad-$match-case", "-Ad-"),
        ("a*$script", "a"),
        ("/*$script", "/*"),
        ("*/$script", "*/"),
        ("/ad/*$script", "/ad/*"),
        ("|a*$script", "|a"),
        ("a***b", "a*b"),
        ("||münchen.example^", "||xn--mnchen-3ya.example^"),
        ("/wërbung/", "/w%C3%ABrbung/"),
        ("/pfad/ä$image", "/pfad/%c3%a4"),
        ("-ä!~-$image", "-%c3%a4!~-"),
        ("$image", "*"),
        ("*$image", "*"),
        ("**$image", "*"),
        ("*|$image", "*|"),
        ("*|a$image", "*|a"),
        ("a/*$image", "a/"),
        ("//*$image", "//*"),
        ("/a*$image", "/a"),
        ("||*$image", "||*"),
        ("||.*$image", "||."),
        ("||a*$image", "||a*"),
        ("||a.b*$image", "||a.b*"),
        ("||a.b/*$image", "||a.b/"),
        ("||a.b^*$image", "||a.b^"),
        ("||a.b.^$image", "||a.b^"),
        ("||a.b./x$image", "||a.b/x"),
        ("||a.b.|$image", "||a.b^"),
        ("||a.b|$image", "||a.b^"),
    ],
)
def test_canonical_patterns(line: str, pattern: str) -> None:
    parsed = parse_line(line)
    if line == "/wërbung/":  # between slashes it is a regular expression, which is kept as it is
        assert parsed.rules[0].pattern == line
    else:
        assert parsed.rules[0].pattern == pattern


@all_cases(
    ("condition", "expected"),
    [
        ("ext_ublock", True),
        ("!ext_ublock", False),
        ("env_firefox", False),
        ("!env_firefox", True),
        ("env_firefox || ext_ublock", True),
        ("env_firefox && ext_ublock", False),
        ("ext_ublock && !env_mobile", True),
        ("(env_firefox || ext_ublock) && !(env_mobile)", True),
        ("env_firefox || ext_ublock && env_mobile", False),
        ("!(env_firefox || ext_ublock)", False),
        ("!!ext_ublock", True),
        ("cap_html_filtering", True),
        ("cap_ipaddress", True),
        ("cap_user_stylesheet", False),
        ("unheard_of", False),
        ("adguard_app_windows", False),
    ],
)
def test_conditions(condition: str, *, expected: bool) -> None:
    assert evaluate(condition) is expected


@all_cases("condition", ["", "&&", "a &&", "(a", "a)", "a b", "!", "a | b", "a & b", "1x", "x " * 300])
def test_conditions_that_cannot_be_read(condition: str) -> None:
    with pytest.raises(RuleError):
        evaluate(condition)


def test_report_counts_every_line() -> None:
    builder = AdblockBuilder(judge=False)
    report = builder.add_list(
        3,
        [
            "[Adblock Plus 2.0]",
            "! comment",
            "||a.com^",
            "@@||b.com^$script",
            "||c.com^$badfilter",
            "0.0.0.0 d.com e.com",
            "##.ad",
            "||f.com^$popup",
            "||g.com^$popup,third-party",
            "||h.com^$cookie=x",
            "||i.com^$wrong",
            "!#include other.txt",
            "!#if env_firefox",
            "||never.com^",
            "!#include never.txt",
            "!#else",
            "||always.com^",
            "!#endif",
            "!#endif",
            "!#if (",
            "||unknown-condition.com^",
            "!#endif",
        ],
    )
    assert report.accepted == 6
    assert report.cosmetic == 1
    assert report.comments == 9
    assert report.unsupported == {"popup": 2, "cookie": 1, "!#include": 1}
    assert report.rejected == 3
    assert [(line, text) for line, text, _ in report.samples] == [
        (8, "||f.com^$popup"),
        (10, "||h.com^$cookie=x"),
        (11, "||i.com^$wrong"),
        (12, "!#include other.txt"),
        (19, "!#endif"),
        (20, "!#if ("),
    ]
    assert AdblockMatcher(builder.build()).rule_count == 5


@all_cases(
    ("line", "count"),
    [
        ("||a.com^", 1),
        ("0.0.0.0 a.com b.com c.com", 3),
        ("0.0.0.0 a.com localhost", 1),
        ("@@||a.com^", 1),
        ("@@||a.com^$ghide,shide", 1),
        ("@@||a.com^$script,ghide", 1),
        ("||a.com^$redirect=noopjs", 1),
        ("||a.com^$redirect-rule=noopjs", 1),
        ("|ws://a.com", 2),
        ("||a.com^$inline-script,inline-font", 2),
        ("||a.com^$badfilter", 1),
    ],
)
def test_as_how_many_rules_a_line_counts(line: str, count: int) -> None:
    assert AdblockBuilder(judge=False).add_list(0, [line]).accepted == count


def test_samples_are_bounded() -> None:
    report = AdblockBuilder(judge=False).add_list(0, [f"||a{number}.com^$wrong" + "x" * 1000 for number in range(100)])
    assert report.rejected == 100
    assert len(report.samples) == SAMPLE_LIMIT
    assert max(len(text) for _, text, _ in report.samples) <= 200


def test_nested_conditions() -> None:
    builder = AdblockBuilder(judge=False)
    builder.add_list(
        0,
        [
            "!#if ext_ublock",
            "!#if env_mobile",
            "||no.com^",
            "!#else",
            "||yes.com^",
            "!#endif",
            "||yes2.com^",
            "!#else",
            "||no2.com^",
            "!#endif",
            "||yes3.com^",
        ],
    )
    matcher = AdblockMatcher(builder.build())
    blocked = [
        host
        for host in ("no.com", "yes.com", "yes2.com", "no2.com", "yes3.com")
        if matcher.match(Request(parse_url(f"https://{host}/"), None, ResourceType.SCRIPT))
    ]
    assert blocked == ["yes.com", "yes2.com", "yes3.com"]


def test_a_source_is_a_small_number() -> None:
    for source in (-1, 65_536):
        with pytest.raises(ValueError, match="from 0 to 65535"):
            AdblockBuilder(judge=False).add_list(source, [])
    builder = AdblockBuilder(judge=False)
    for source in (0, 65_535):
        assert builder.add_list(source, [f"||s{source}.test^$script"]).accepted == 1
    matches = AdblockMatcher(builder.build()).match_all(Request(parse_url("https://s65535.test/"), None, ResourceType.SCRIPT))
    assert [match.source for match in matches] == [65_535]


PIECES = st.sampled_from(
    [
        "||",
        "|",
        "@@",
        "^",
        "*",
        "$",
        ",",
        "=",
        "~",
        "/",
        "\\",
        "example.com",
        "ads",
        "domain=",
        "script",
        "third-party",
        "important",
        "badfilter",
        "##",
        "#@#",
        "#?#",
        "0.0.0.0 ",
        "!#if ",
        "!#else",
        "(",
        ")",
        "[",
        "]",
        "{2,}",
        "+",
        "?",
        "|b.org",
        "to=",
        "ä",
        "\x00",
        "replace=",
        "removeparam=",
        "csp=",
        "/a+/",
        "denyallow=",
        "method=get",
        "match-case",
        " ",
        ".*",
        "google.*",
        "%41",
        "\ud800",
    ]
)


@pytest.mark.slow
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=9).map("".join)))
def test_no_text_raises(line: str) -> None:
    builder = AdblockBuilder(judge=False)
    report = builder.add_list(0, [line, "||always.com^", line])
    total = report.accepted + report.duplicates + report.cosmetic + report.comments + report.rejected
    assert total + sum(report.unsupported.values()) >= 3
    matcher = AdblockMatcher(builder.build())
    for kind in (ResourceType.SCRIPT, ResourceType.DOCUMENT):
        matcher.match(Request(parse_url("https://ads.example.com/ads/b.js?x=1"), parse_url("https://b.org/"), kind))
        matcher.match_all(Request(parse_url("https://ads.example.com/ads/b.js?x=1"), None, kind))


@all_cases(
    "piece",
    [
        *(
            "$",
            ",",
            "~",
            "|",
            "||",
            "*",
            "^",
            "/",
            "@@",
            "##",
            "#@#",
            "$$",
            ":style(",
            ":has-text(",
            ":not(",
            "[",
            "(",
            "{",
            "}",
            '"',
        ),
        *("a,", "a ", " {", "\\", "a|", "$removeparam=", "$replace=/", "/a", "(a+)+", "$domain=", "%41", "\ud800", "é", "\x00"),
        *(
            "^responseheader(",
            "script:has-text(",
            "[tag-content=",
            "!#if (",
            "!#if !",
            "0.0.0.0 ",
            "a.",
            "-",
            "$header=",
            "ipaddress=",
        ),
    ],
)
@pytest.mark.parametrize("begin", ["", "a.com##", "##^", "||a.com^$", "/", "a$$", "!#if ", "||", "@@||a^$csp=", "a##b:style("])
def test_hostile_lines_end_soon(begin: str, piece: str) -> None:
    """No stopwatch: what takes the square of 60,000 characters and more would not end within the test's time limit."""
    builder = AdblockBuilder(judge=False)
    for size in (8_000, 60_000, 400_000):
        builder.add_list(0, [begin + piece * (size // len(piece)), f"{begin}{piece * (size // len(piece))})"])
    AdblockMatcher(builder.build())


@all_cases(
    "name",
    ["a.test", "_x.a-b.test", "xn--a.test", "b-.test", "1.test", "a.1", "a..test", "A.test", "a.xn--p1ai", "a" * 64 + ".b"],
)
def test_a_hosts_line_is_read_as_its_canonical_host(name: str) -> None:
    try:
        expected = [f"||{canonical_host(name)}^"]
    except UrlError:
        expected = []
    assert [rule.pattern for rule in parse_line(f"0.0.0.0 {name}").rules] == expected
