"""Rules of lists that speak of the web as a whole are refused and named; rules that are bound to something are taken."""

import os
from pathlib import Path

import pytest

from gatewayfilter.engine.adblock.breadth.network_breadth import MAX_TRIED
from gatewayfilter.engine.adblock.breadth.probe_sites import SITES, Sites
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.rule import AdblockReport
from gatewayfilter.model import Request
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[5] / "shared" / "data")


def report_of(*lines: str) -> AdblockReport:
    return AdblockBuilder().add_list(0, lines)


@all_cases(
    "line",
    [
        "||com^",
        "||cn^",
        "||co.uk^",
        "||*.com^",
        "||c*m^",
        "/.*/",
        "/./",
        r"/\w/",
        "/^https?:/",
        "|http",
        "http",
        "://",
        "//",
        "/|",
        "|",
        "*",
        "^",
        ".",
        "www",
        ".com",
        "com",
        "html",
        "index",
        "/$document",
        "||com",
        "||com/",
        "||com^*",
        "||com^|",
        "||com/*",
        "||COM^",
        "||中国^",
        "||xn--fiqs8s^",
        "||公司.cn^",
        "||*.xn--fiqs8s^",
        "||ck^",
        "||foo.ck^",
        "||*.co.uk^",
        "||co.uk^$important",
        "||com^$all",
        "||com^$document",
        "||com^$third-party",
        "||com^$~third-party",
        "||com^$script",
        "||com^$domain=~x.com",
        "||com^$method=get",
        "||com^$denyallow=google.com",
        "||com^$redirect=noopjs",
        "||com^$important,script,3p",
        "*$script",
        "*$image",
        "*$stylesheet",
        "*$xmlhttprequest",
        "*$subdocument",
        "*$media",
        "*$websocket",
        "*$third-party",
        "*$third-party,script",
        "*$~third-party",
        "*$domain=com",
        "*$domain=com|org",
        "*$domain=~example.org",
        "*$domain=/.*/",
        "*$domain=/./",
        "*$to=com",
        "*$to=cn|org",
        "*$to=/./",
        "*$denyallow=a.com",
        "*$method=get",
        "*$method=post",
        "*$doc,method=post",
        r"*$to=/\.com$/",
        "||cn^$domain=cn",
        "*$strict1p",
        "*$strict3p",
        "*$all",
        "*$document",
        "*$csp=default-src 'none'",
        "*$removeparam",
        "*$removeparam=q",
        "*$removeparam=/./",
        "*$removeparam=~utm_source",
        "*$removeparam=/^.*$/i",
        "*$replace=/.*//",
        "*$replace=/a/b/g",
        "*$permissions=fullscreen=()",
        "*$removeheader=set-cookie",
        "*$removeheader=request:cookie",
        "*$urlskip=?url",
        "*$uritransform=/a/b/",
        "*$redirect=noopjs",
        "*$script,redirect=noopjs",
        "*$header=server",
        "*$header=content-type:/html/",
        "*$header=date",
        "*$ipaddress=/./",
        "*$ipaddress=0.0.0.0/0",
        "*$ipaddress=~1.2.3.4",
        "*$empty",
        "@@*",
        "@@||com^",
        "@@*$document",
        "@@||com^$document",
        "@@*$generichide",
        "@@*$elemhide",
        "@@*$genericblock",
        "@@http",
        "@@/./",
        "@@|https://",
        "@@*$script",
        "@@*$csp",
        "@@*$removeparam",
        "|https://",
        "|http://",
        "|https:",
        "||*",
        "||*.",
        "||*^",
        "://*.",
        "://www.",
        "https://www.",
        ".com/",
        ".com^",
        ".org/",
        ".de/",
        ".xyz/",
        "||xyz^",
        "||xyz/",
        ".html",
        ".htm",
        ".php",
        ".js",
        ".js|",
        ".css",
        ".png",
        ".jpg",
        "?",
        "=",
        "&",
        "-",
        "/api/",
        "/static/",
        "/images/",
        "a",
        "e",
        "o",
        "/[a-z]/",
        "/[^x]/",
        "/^/",
        "/$/",
        "/(?:)/",
        r"/\//",
        r"/^https:\/\/[^\/]+\//",
        r"/^https?:\/\/[^\/]*\.com\//",
        r"/^https?:\/\/\d/",
        r"/^https?:\/\/[a-z0-9.-]+\.(com|org|net|cn)\//",
        r"/\.com/",
        r"/\.js/",
        r"/\.(js|css|png)/",
        r"/^https?:\/\/(?!example)/",
        "/^(?!.*example)/",
        "||*.cn^",
        "||*.*^",
        "||*a^",
        "||www.",
        "||www.*",
        "*.com",
        "*.com/*",
        "*://*",
        "*://*/*",
        "*.*",
        "*/*",
        "/*",
        "*/",
        "0.0.0.0 com",
        "0.0.0.0 cn",
        "127.0.0.1 co.uk org.uk",
    ],
)
def test_network_rules_that_speak_of_the_web_are_refused(line: str) -> None:
    report = report_of("||ads.example.com^", line, "##.banner")
    assert (report.accepted, report.cosmetic, report.rejected) == (1, 1, 1)
    assert report.samples[0][:2] == (2, line)
    assert report.samples[0][2]


@all_cases(
    "line",
    [
        "##body",
        r"##\62 ody",
        "##:has(:not([data-x]))",
        "##:is([data-x], body)",
        '##a[href^="https://www."]',
        "##html",
        "##*",
        "##div",
        "##:root",
        "##body *",
        "##html > body",
        "##*:not(.x)",
        "##[class]",
        "##div:not(#x)",
        "##:is(body, .ad)",
        "##body:has(*)",
        "##div, span",
        "##.ad, body",
        "###content",
        "##.container",
        '##[class*="a"]',
        "##[href]",
        '##a[href^="http"]',
        "##img",
        "##[id]",
        "##:not(x)",
        "##:not(.foo)",
        "##a",
        "##p",
        "com##body",
        "com##div",
        "com,org##html",
        "/./##body",
        "/.*/##div",
        "~example.com##body",
        "com##^script:has-text(/./)",
        "com##^body",
        "com$$body",
        "com##body:style(display:none)",
        "com#$#body { display: none }",
        "com##^responseheader(set-cookie)",
        "com##^script:has-text(a)",
        "#?#body:has(div)",
    ],
)
def test_cosmetic_rules_that_speak_of_every_page_are_not_taken(line: str) -> None:
    report = report_of("||ads.example.com^", line, "##.banner")
    assert (report.accepted, report.cosmetic) == (1, 1)
    assert report.samples[0][:2] == (2, line)


@all_cases(
    "line",
    [
        "/.{80}/",
        r"/\d{6}/",
        "/[0-9a-f]{8}/",
        r"/\?.{30}/",
        "*/*/*/*/*/*/*",
        "*-*-*-*-*-",
        "=*&*=*&*=",
        "%20",
        "||w*",
        "?q=",
        "/search?q=$document",
        "/[A-Z]/$match-case",
        ".webp",
        ".svg",
        "/wp-content/",
        ".js?ver=",
        "||gov.*^",
        "*$method=options",
        "*$header=x-content-type-options",
        "*$header=last-modified",
        "*$header=location",
        "*$header=server:nginx",
        "*$header=server:cloudflare",
        "*$header=content-type:text/css",
        "*$header=content-type:/javascript/",
        "*$removeparam=signature",
        "*$removeparam=code_challenge",
        "*$removeheader=request:x-csrf-token",
        "@@/.{80}/",
        "##html:has(br)",
        "##html:has(noscript)",
        '##html:has(meta[charset="utf-8"])',
        '##html:has(link[rel="stylesheet"])',
        '##html:has([name="viewport"])',
        "##html:has([http-equiv])",
        "##body:has(.footer)",
        "##:has(#header)",
        "##html:is(:has(.footer))",
        "##div > :root:has(> .x)",
        '##html[lang="de"]',
        "##.no-js",
        "###__next",
        '##input[type="password"]',
        '##button[type="submit"]',
        '##[style*="display"]',
        "##code",
    ],
)
def test_shapes_that_very_many_pages_have_are_refused(line: str) -> None:
    report = report_of("||ads.example.com^", line)
    assert (report.accepted, report.cosmetic, report.refused) == (1, 0, 1)


@all_cases(
    "line",
    [
        "||com/ads/banner$domain=x.example",
        "*$domain=example.org",
        "*$script,domain=example.org|example.net",
        "||github.io^",
        "||blogspot.com^$third-party",
        "||1.",
        "$ping,third-party",
        "*$font,third-party",
        "*$removeparam=utm_source",
        "*$removeparam=/^utm_/",
        "*$permissions=browsing-topics=()",
        "||undefined^$script,redirect=noopjs",
        "*$redirect-rule=noopjs",
        "||com^$badfilter",
        "||com^$doc,ipaddress=206.82.7.123",
        "##.ad",
        "###banner",
        "##body.ads-on",
        "##body > .adbox",
        "com##.ads",
        "example.com##body",
        "||example.com^",
        "-ad-banner.",
        "/ads/*",
        "@@||example.com^$document",
        "@@*$ghide,domain=example.com",
        "@@/banner.js",
        "||google.*^",
        "||ads.*^$script",
        "||com:8080",
        "||w",
        "/banner/index.html",
        "||xyz/akbank/$doc",
        "*$frame,csp=sandbox,to=example.com|example.org",
        "##[data-ad-name]",
        '##img[width="728"][height="90"]',
        "##amp-ad",
        "gov.lv##body:style(overflow: auto !important)",
        "gov.uk##.cookie-banner",
        "*$script,header=x-ads",
        "||*.example.com^",
        "||com/p.js?uid=$script,3p",
        r"/^https:\/\/www\.telegram[a-z][a-z]\.com\//$doc,to=com|~telegram.org",
    ],
)
def test_rules_that_are_bound_are_taken(line: str) -> None:
    report = report_of(line)
    assert (report.refused, report.rejected) == (0, 0), report.samples


@all_cases(
    ("line", "why"),
    [
        ("||com^", "it would block most of the web"),
        ("||ck^", "it would block everything below 'ck'"),
        ("*$to=xyz", "it would block everything below 'xyz'"),
        ("@@||cn^", "it would switch off blocking on everything below 'cn'"),
        (r"/^https?:\/\/\d/", "it would block everything that is known by its address"),
        ("*$removeparam=q", "it would change, by 'removeparam', most of the web"),
    ],
)
def test_the_reason_says_what_would_happen(line: str, why: str) -> None:
    assert report_of(line).samples == ((1, line, why),)


def test_refused_rules_are_shown_before_other_bad_lines() -> None:
    report = report_of(*["||a.example^$nonsense"] * 40, "||com^")
    assert report.samples[0][:2] == (41, "||com^")
    assert (report.rejected, report.refused) == (41, 1)


def test_the_rest_of_a_list_stays_in_force() -> None:
    builder = AdblockBuilder()
    builder.add_list(0, ["||ads.example.com^", "||com^", "/./", "||bad.example.org^"])
    matcher = AdblockMatcher(builder.build())
    found = [
        matcher.match(Request(parse_url(f"https://{host}/"))) for host in ("ads.example.com", "www.bbc.com", "bad.example.org")
    ]
    assert [match and (match.rule, match.line) for match in found] == [("||ads.example.com^", 1), None, ("||bad.example.org^", 4)]


@pytest.mark.slow
def test_a_list_of_nothing_but_doubtful_rules_ends() -> None:
    report = report_of(*(f"/q/*{number // 64:x}*{number % 64:x}" for number in range(MAX_TRIED + 100)))
    assert report.refused >= 100
    assert any("more than" in why for _, _, why in report.samples)


def test_a_rule_cannot_leave_out_the_names_that_it_is_tried_with() -> None:
    assert len(list(Sites(1, ("com",)))) == SITES
    tried = {site[0].source for seed in range(5) for site in Sites(seed, ("com",))}
    assert report_of(f"*$domain=~{'|~'.join(sorted(tried))}").refused == 1


def test_repeated_rules_are_taken_once() -> None:
    report = report_of(*["||ads.example.com^"] * 1_000, "||ads.example.com^$script", "! comment", "! comment", "")
    assert (report.accepted, report.duplicates, report.comments) == (2, 999, 3)
    sizes = []
    for times in (1, 1_000):
        builder = AdblockBuilder()
        assert builder.add_list(0, ["example.com##.advert"] * times).cosmetic == times
        sizes.append(len(builder.build()))
    assert sizes[0] == sizes[1]


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "lists").is_dir(), reason="no real lists: set GATEWAYFILTER_TEST_DATA to the folder with lists/")
def test_no_rule_of_real_lists_is_lost() -> None:
    refused: list[tuple[str, int, str, str]] = []
    for path in sorted((DATA / "lists").rglob("*.txt")):
        with path.open(encoding="utf-8", errors="replace") as lines:
            report = AdblockBuilder().add_list(0, lines)
        refused += [(path.name, *sample) for sample in report.samples[: report.refused]]
    assert refused == []
