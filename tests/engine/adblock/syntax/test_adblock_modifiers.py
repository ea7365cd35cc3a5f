"""Every modifier of a request or of its stub, with requests that it changes and requests that it does not."""

from collections.abc import Callable
from urllib.parse import quote, quote_plus

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.syntax.modifier_values import MAX_POLICY
from gatewayfilter.engine.adblock.syntax.parser import LineKind, parse_line
from gatewayfilter.engine.adblock.syntax.removeparam import may_name, param_names, spellings
from gatewayfilter.engine.adblock.syntax.stub_names import STUB_NAMES
from gatewayfilter.model import Request, RequestChange, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

PAGE = "https://www.example.com/"
OTHER = "https://other.org/page"


def effects_of(rules: list[str]) -> AdblockEffects:
    builder = AdblockBuilder(judge=False)
    report = builder.add_list(0, rules)
    assert report.rejected == 0, report.samples
    return AdblockEffects(builder.build())


def asked(url: str, source: str | None = None, kind: str = "document", method: str = "GET") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind), method)


def changed(rules: list[str], url: str, source: str | None = None, kind: str = "document") -> RequestChange | None:
    return effects_of(rules).change_request(asked(url, source, kind), ["list"])


def new_url(rules: list[str], url: str, source: str | None = None, kind: str = "document") -> str:
    change = changed(rules, url, source, kind)
    return "" if change is None else change.url


URL = "https://example.com/p?utm_source=a&id=1&utm_medium=b&Ref=c"


@all_cases(
    ("rules", "query"),
    [
        (["$removeparam=utm_source"], "?id=1&utm_medium=b&Ref=c"),
        (["*$removeparam=utm_source"], "?id=1&utm_medium=b&Ref=c"),
        (["||example.com^$removeparam=utm_source"], "?id=1&utm_medium=b&Ref=c"),
        (["||example.com^$queryprune=utm_source"], "?id=1&utm_medium=b&Ref=c"),
        (["||other.org^$removeparam=utm_source"], None),
        (["$removeparam=utm"], None),
        (["$removeparam=UTM_SOURCE"], None),
        (["$removeparam=ref"], None),
        (["$removeparam=Ref"], "?utm_source=a&id=1&utm_medium=b"),
        (["$removeparam=utm_source", "$removeparam=utm_medium"], "?id=1&Ref=c"),
        (["$removeparam=/^utm_/"], "?id=1&Ref=c"),
        (["$removeparam=/^UTM_/i"], "?id=1&Ref=c"),
        (["$removeparam=/^UTM_/"], None),
        (["$removeparam=/^ref=/i"], "?utm_source=a&id=1&utm_medium=b"),
        (["$removeparam=/=1$/"], "?utm_source=a&utm_medium=b&Ref=c"),
        (["$removeparam=|utm_"], "?id=1&Ref=c"),
        (["||example.com^$removeparam"], ""),
        (["||example.com^$removeparam=~id"], "?id=1"),
        (["||example.com^$removeparam=~/^(id|Ref)=/"], "?id=1&Ref=c"),
        (["$removeparam=utm_source,domain=example.com"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,domain=other.org"], None),
        (["$removeparam=utm_source,domain=~example.com"], None),
        (["$removeparam=utm_source,document"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,script"], None),
        (["$removeparam=utm_source,~document"], None),
        (["$removeparam=utm_source,to=example.com"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,to=example.*"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,to=other.org|example.*"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,to=/^ex/"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,to=other.org"], None),
        (["$removeparam=utm_source,domain=example.*"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,denyallow=example.com"], None),
        (["$removeparam=utm_source,method=post"], None),
        (["$removeparam=utm_source,1p"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,3p"], None),
        (["$removeparam=utm_source", "@@||example.com^$removeparam"], None),
        (["$removeparam=utm_source", "@@||example.com^$removeparam=utm_source"], None),
        (["$removeparam=utm_source", "@@||example.com^$removeparam=utm_medium"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source", "@@||other.org^$removeparam"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source", "@@||example.com^"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,important", "@@||example.com^$removeparam"], "?id=1&utm_medium=b&Ref=c"),
        (["$removeparam=utm_source,important", "@@||example.com^$removeparam,important"], None),
        (["$removeparam=utm_source", "$removeparam=utm_source,badfilter"], None),
        (["$removeparam=utm_source", "$removeparam=utm_medium,badfilter"], "?id=1&utm_medium=b&Ref=c"),
        (["||example.com^$removeparam=id", "@@||example.com^$script"], "?utm_source=a&utm_medium=b&Ref=c"),
    ],
)
def test_removeparam(rules: list[str], query: str | None) -> None:
    assert new_url(rules, URL) == ("" if query is None else f"https://example.com/p{query}")


@all_cases(
    ("rule", "url", "expected"),
    [
        ("$removeparam=a", "https://e.com/?a", "https://e.com/"),
        ("$removeparam=a", "https://e.com/?a=", "https://e.com/"),
        ("$removeparam=a", "https://e.com/?a=1&a=2&b=3", "https://e.com/?b=3"),
        ("$removeparam=a", "https://e.com/?b=a", ""),
        ("$removeparam=a", "https://e.com/a=1", ""),
        ("$removeparam=a", "https://e.com/?%61=1", "https://e.com/"),
        ("$removeparam=a b", "https://e.com/?a+b=1&c=2", "https://e.com/?c=2"),
        ("$removeparam=a", "https://e.com/?b=%2f&a=1&c=x+y", "https://e.com/?b=%2f&c=x+y"),
        ("$removeparam=a", "https://e.com/?&&a=1&&b=2", "https://e.com/?&&&b=2"),
        ("$removeparam=a", "https://e.com/?", ""),
        (r"$removeparam=/^p=[0-9]{1\,2}$/", "https://e.com/?p=12", "https://e.com/"),
        ("$removeparam=/^a=A$/", "https://e.com/?a=%41", "https://e.com/"),
        ("$removeparam=/^a=x y$/", "https://e.com/?a=x+y", "https://e.com/"),
    ],
)
def test_what_is_left_of_a_query_stays_as_it_is_written(rule: str, url: str, expected: str) -> None:
    assert new_url([rule], url) == expected


@all_cases("kind", list(ResourceType))
def test_removeparam_without_types_covers_pages_and_their_data(kind: ResourceType) -> None:
    change = changed(["$removeparam=a"], "https://example.com/?a=1&b=2", PAGE, kind)
    if kind not in {ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT, ResourceType.XMLHTTPREQUEST}:
        assert change is None
        return
    assert change is not None
    assert change.url == "https://example.com/?b=2"
    assert change.redirect == (kind is not ResourceType.XMLHTTPREQUEST)
    assert [(rule.rule, rule.line, rule.modifier) for rule in change.rules] == [("$removeparam=a", 1, "removeparam")]


def test_a_page_is_its_own_source_for_modifiers_and_so_is_who_led_there() -> None:
    rule = "$removeparam=a,document,script,domain=example.com"
    assert new_url([rule], "https://example.com/?a=1", OTHER) == "https://example.com/"
    assert new_url([rule], "https://other.org/?a=1", PAGE) == "https://other.org/"
    assert new_url([rule], "https://other.org/?a=1", OTHER) == ""
    assert new_url([rule], "https://other.org/?a=1", PAGE, "script") == "https://other.org/"
    assert new_url([rule], "https://example.com/?a=1", OTHER, "script") == ""


@all_cases(
    ("rule", "url", "expected"),
    [
        ("||go.com^$urlskip=?u", "https://go.com/?u=https%3A%2F%2Fx.org%2Fa%3Fb%3D1", "https://x.org/a?b=1"),
        ("||go.com^$urlskip=?u", "https://go.com/?u=http%3A%2F%2Fx.org%2F", "https://x.org/"),
        ("||go.com^$urlskip=?u", "https://go.com/?u=https%3A%2F%2Fx.org%2Fa%20b", "https://x.org/a%20b"),
        ("||go.com^$urlskip=?u", "https://go.com/?v=https%3A%2F%2Fx.org%2F", ""),
        ("||go.com^$urlskip=?u", "https://go.com/?u=x.org", ""),
        ("||go.com^$urlskip=?u", "https://go.com/?u=javascript:alert(1)", ""),
        ("||go.com^$urlskip=?u", "https://go.com/?u=data:text/html,x", ""),
        ("||go.com^$urlskip=?u +https", "https://go.com/?u=x.org/a", "https://x.org/a"),
        ("||go.com^$urlskip=?u +https", "https://go.com/?u=http%3A%2F%2Fx.org", "https://x.org/"),
        ("||go.com^$urlskip=?u +https", "https://go.com/?u=ftp%3A%2F%2Fx.org", ""),
        ("||go.com^$urlskip=?u ?v", "https://go.com/?u=https%3A%2F%2Fb.com%2F%3Fv%3Dhttps%253A%252F%252Fx.org", "https://x.org/"),
        ("||go.com^$urlskip=?u -base64", "https://go.com/?u=aHR0cHM6Ly94Lm9yZy8=", "https://x.org/"),
        ("||go.com^$urlskip=?u -base64", "https://go.com/?u=aHR0cHM6Ly94Lm9yZy8", "https://x.org/"),
        ("||go.com^$urlskip=?u -base64", "https://go.com/?u=%21%21", ""),
        ("||go.com^$urlskip=?u -safebase64", "https://go.com/?u=aHR0cHM6Ly94Lm9yZy8_YT1-", "https://x.org/?a=~"),
        ("||go.com^$urlskip=&1", "https://go.com/?https%3A%2F%2Fx.org%2Fy", "https://x.org/y"),
        ("||go.com^$urlskip=&2", "https://go.com/?a=1&https%3A%2F%2Fx.org%2Fy", "https://x.org/y"),
        ("||go.com^$urlskip=&2", "https://go.com/?https%3A%2F%2Fx.org%2Fy", ""),
        (r"||go.com^$urlskip=/\/out\/(.+)$/ -uricomponent", "https://go.com/out/https%3A%2F%2Fx.org%2F", "https://x.org/"),
        (r"||go.com^$urlskip=/\/r\/([^?]+)/ +https", "https://go.com/r/x.org/a.mp3?b", "https://x.org/a.mp3"),
        (r"||go.com^$urlskip=/nothing(.)/", "https://go.com/r/x.org", ""),
        ("||go.com^$urlskip=?u,doc", "https://go.com/?u=https%3A%2F%2Fx.org%2F", "https://x.org/"),
        ("||go.com^$urlskip=?u,script", "https://go.com/?u=https%3A%2F%2Fx.org%2F", ""),
        ("||go.com^$urlskip=?u", "https://gone.com/?u=https%3A%2F%2Fx.org%2F", ""),
    ],
)
def test_urlskip(rule: str, url: str, expected: str) -> None:
    change = changed([rule], url)
    assert ("" if change is None else change.url) == expected
    assert change is None or change.redirect


def test_urlskip_of_what_is_blocked_must_be_asked_for() -> None:
    request = asked("https://go.com/?u=https%3A%2F%2Fx.org%2F")
    plain, blocked = effects_of(["||go.com^$urlskip=?u"]), effects_of(["||go.com^$urlskip=?u -blocked"])
    assert plain.change_request(request, ["list"], blocked=True) is None
    assert plain.change_request(request, ["list"]) is not None
    assert blocked.change_request(request, ["list"], blocked=True) is not None


def test_exceptions_lift_urlskip() -> None:
    url = "https://go.com/?u=https%3A%2F%2Fx.org%2F"
    assert new_url(["||go.com^$urlskip=?u", "@@||go.com^$urlskip"], url) == ""
    assert new_url(["||go.com^$urlskip=?u", "@@||go.com^$urlskip=?u"], url) == ""
    assert new_url(["||go.com^$urlskip=?u", "@@||go.com^$urlskip=?v"], url) == "https://x.org/"


@all_cases(
    ("rule", "url", "expected"),
    [
        (r"||e.com^$uritransform=/\/affiliate:[^\/?]+//", "https://e.com/a/affiliate:9/b", "https://e.com/a/b"),
        ("||e.com^$urltransform=/foo/bar/", "https://e.com/foo/foo", "https://e.com/bar/foo"),
        ("||e.com^$uritransform=/foo/bar/g", "https://e.com/foo/foo", "https://e.com/bar/bar"),
        ("||e.com^$uritransform=/FOO/bar/i", "https://e.com/foo", "https://e.com/bar"),
        (r"||e.com^$uritransform=/^\/(\w+)\/(\w+)/\/$2\/$1/", "https://e.com/a/b", ""),  # would be turned for ever
        (r"||e.com^$uritransform=/size=\d+/size=1/", "https://e.com/?size=9&x=size=8", "https://e.com/?size=1&x=size=8"),
        ("||e.com^$uritransform=/foo/foofoo/", "https://e.com/foo", ""),
        ("||e.com^$uritransform=/none/bar/", "https://e.com/foo", ""),
        (r"||e.com^$uritransform=/.*/x/", "https://e.com/foo", ""),
        (
            r"/^https:\/\/cdn\.e\.com\/(\w+)\.js$/$script,uritransform=//https:\/\/e.com\/x\/$1.js/",
            "https://cdn.e.com/lib.js",
            "",
        ),
    ],
)
def test_uritransform(rule: str, url: str, expected: str) -> None:
    assert new_url([rule], url) == expected


def test_uritransform_without_an_expression_is_about_the_whole_url() -> None:
    rule = r"/^https:\/\/cdn\.e\.com\/(\w+)\.js$/$script,uritransform=//https:\/\/e.com\/x\/$1.js/"
    change = changed([rule], "https://cdn.e.com/lib.js", PAGE, "script")
    assert change is not None
    assert change.url == "https://e.com/x/lib.js"
    assert change.redirect


def test_removeheader_of_the_request() -> None:
    change = changed(["||e.com^$removeheader=request:X-Client-Data"], "https://e.com/")
    assert change is not None
    assert change.remove_headers == ("x-client-data",)
    assert change.url == ""
    assert not change.redirect
    assert changed(["||e.com^$removeheader=x-client-data"], "https://e.com/") is None


@all_cases(
    ("line", "kind"),
    [
        ("||e.com^$removeheader=content-security-policy", LineKind.REJECTED),
        ("||e.com^$removeheader=request:cookie", LineKind.NETWORK),
        ("||e.com^$removeheader=request:sec-fetch-mode", LineKind.REJECTED),
        ("||e.com^$removeheader=request:host", LineKind.REJECTED),
        ("||e.com^$removeheader=a b", LineKind.REJECTED),
        ("||e.com^$removeheader", LineKind.REJECTED),
        ("@@||e.com^$removeheader", LineKind.NETWORK),
        ("||e.com^$urlskip=", LineKind.REJECTED),
        ("||e.com^$urlskip=foo", LineKind.REJECTED),
        ("||e.com^$urlskip=/no-group/", LineKind.REJECTED),
        ("||e.com^$urlskip=/(/", LineKind.REJECTED),
        ("||e.com^$urlskip=" + "?a " * 30, LineKind.REJECTED),
        ("||e.com^$uritransform=/a/", LineKind.REJECTED),
        ("||e.com^$uritransform=//b/", LineKind.REJECTED),
        ("||e.com^$replace=//b/", LineKind.REJECTED),
        ("||e.com^$replace=/(?=a)b/c/", LineKind.UNSUPPORTED),
        (r"||e.com^$replace=/(a)\1/c/", LineKind.UNSUPPORTED),
        ("||e.com^$replace=/a{5000}/c/", LineKind.UNSUPPORTED),
        ("||e.com^$replace=/a/<script>x()</script>/", LineKind.UNSUPPORTED),
        ("||e.com^$replace=/a/<b>/", LineKind.UNSUPPORTED),
        ("||e.com^$replace=/(/b/", LineKind.REJECTED),
        ("||e.com^$replace=/a/b/z", LineKind.REJECTED),
        ("||e.com^$removeparam=/^(?=a)(a+)+$/", LineKind.REJECTED),
        ("||e.com^$removeparam=~", LineKind.REJECTED),
        ("||e.com^$~removeparam=a", LineKind.REJECTED),
        ("||e.com^$csp=script-src x; report-uri https://evil.example/", LineKind.REJECTED),
        ("||e.com^$csp=x\x01y", LineKind.REJECTED),
        ("||e.com^$csp", LineKind.REJECTED),
        ("||e.com^$csp=a,removeparam=b", LineKind.REJECTED),
        ("||e.com^$redirect=", LineKind.REJECTED),
        ("||e.com^$redirect-rule=unheard-of", LineKind.UNSUPPORTED),
        ("||e.com^$redirect-rule=unheard-of:5", LineKind.UNSUPPORTED),
        *((f"||e.com^$redirect-rule=noopjs:{number}", LineKind.NETWORK) for number in ("0", "-1", "999999999")),
        *((f"||e.com^$redirect-rule=noopjs:{number}", LineKind.UNSUPPORTED) for number in ("", "-", "1x", "1000000000", "٣")),
        ("||e.com^$removeheader=request", LineKind.NETWORK),
        ("||e.com^$removeheader=request:", LineKind.REJECTED),
        ("||e.com^$removeheader=x:y", LineKind.REJECTED),
        ("||e.com^$csp=" + "x" * MAX_POLICY, LineKind.NETWORK),
        ("||e.com^$csp=" + "x" * (MAX_POLICY + 1), LineKind.REJECTED),
        ("||e.com^$generichide", LineKind.UNSUPPORTED),
        ("||e.com^$header=", LineKind.REJECTED),
        ("||e.com^$header=:x", LineKind.REJECTED),
        ("||e.com^$ipaddress=example.com", LineKind.REJECTED),
        ("||e.com^$removeparam=a,ipaddress=192.0.2.1", LineKind.REJECTED),
    ],
)
def test_values_that_cannot_be_used(line: str, kind: LineKind) -> None:
    assert parse_line(line).kind is kind


SCRIPT = "https://ads.example/ad.js"


@all_cases(
    ("rules", "stub"),
    [
        (["||ads.example^$script,redirect=noopjs"], "noopjs"),
        (["||ads.example^$script,redirect=noop.js"], "noopjs"),
        (["||ads.example^$rewrite=abp-resource:blank-js,domain=other.org"], "noopjs"),
        (["||ads.example^$empty"], "nooptext"),
        (["||ads.example^$redirect-rule=googletagmanager.com/gtm.js"], "googletagmanager_gtm.js"),
        (["||ads.example^$image,redirect=1x1.gif"], ""),
        (["||ads.example^"], ""),
        (["||ads.example^$redirect=none"], ""),
        (["||ads.example^$redirect=noopjs", "||ads.example^$redirect-rule=nooptext:5"], "nooptext"),
        (["||ads.example^$redirect=noopjs:10", "||ads.example^$redirect-rule=nooptext:5"], "noopjs"),
        (["||ads.example^$redirect=noopjs", "||ads.example^$redirect-rule=nooptext:-1"], "noopjs"),
        (["||ads.example^$redirect=noopjs", "||ads.example^$redirect-rule=none:100"], ""),
        (["||ads.example^$redirect=noopjs", "*$script,redirect-rule=nooptext:999999999"], "nooptext"),
        (["*$script,redirect-rule=nooptext:999999999", "||ads.example^$redirect=noopjs:99999999"], "nooptext"),
        (["||ads.example^$redirect=noopjs:1", "*$script,redirect-rule=nooptext:1"], "noopjs"),
        (["||ads.example^$redirect=noopjs", "@@||ads.example^$redirect-rule"], ""),
        (["||ads.example^$redirect=noopjs", "@@||ads.example^$redirect=noopjs"], ""),
        (["||ads.example^$redirect=noopjs", "@@||ads.example^$redirect=nooptext"], "noopjs"),
        (["||ads.example^$redirect=noopjs", "@@||ads.example^$redirect-rule,domain=nobody.org"], "noopjs"),
        (["||ads.example^$redirect=noopjs,important", "@@||ads.example^$redirect-rule"], "noopjs"),
        (["||ads.example^$redirect=noopjs", "||ads.example^$redirect=noopjs,badfilter"], ""),
        (["*$script,redirect-rule=noopjs,domain=other.org"], "noopjs"),
        (["*$script,redirect-rule=noopjs,domain=else.org"], ""),
    ],
)
def test_stubs(rules: list[str], stub: str) -> None:
    assert effects_of(rules).stub(asked(SCRIPT, OTHER, "script")) == stub


def test_a_page_gets_no_stub() -> None:
    assert effects_of(["||ads.example^$all,redirect=noopframe"]).stub(asked("https://ads.example/", None, "document")) == ""
    assert (
        effects_of(["||ads.example^$all,redirect=noopframe"]).stub(asked("https://ads.example/", OTHER, "subdocument"))
        == "noopframe"
    )


def test_every_stub_is_found_by_its_own_name() -> None:
    assert {STUB_NAMES[name] for name in STUB_NAMES.values()} == set(STUB_NAMES.values())
    assert all(name == name.strip() and " " not in name for name in STUB_NAMES)


@settings(max_examples=30)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6),
    st.sampled_from([quote, quote_plus, lambda text: "".join(f"%{byte:02x}" for byte in text.encode())]),
    st.sampled_from(["?{}=1", "?{}", "?x=1&{}=", "?a+b=%41&{}&c"]),
)
@example("?/", quote, "?{}=1")  # `quote` leaves slashes as they are
def test_the_quick_look_misses_no_parameter(name: str, write: Callable[[str], str], query: str) -> None:
    written = query.format(write(name))
    if name in param_names(written):
        assert may_name(written, spellings(name))


@all_cases("query", ["?a=1", "?ab=1&c", "?x=%2F%3A", "?", "?A", "?a%20=1"])
def test_the_quick_look_passes_over_other_parameters(query: str) -> None:
    assert not may_name(query, spellings("b"))


@all_cases(("line", "expected"), [("//", False), ("/a/", True), ("/a", False), ("a/", False)])
def test_a_regular_expression_stands_between_slashes(line: str, expected: bool) -> None:  # noqa: FBT001
    [rule] = parse_line(line).rules
    assert rule.is_regex is expected
