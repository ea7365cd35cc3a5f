"""What rules make of responses: policies, conditions on headers and addresses, replacements, through the engine."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.effects import MAX_POLICIES
from gatewayfilter.engine.adblock.syntax.response_conditions import address_test, header_test
from gatewayfilter.engine.adblock.syntax.script_removal import ScriptRemoval
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import RuleError
from gatewayfilter.model import Reason, Request, ResourceType, ResponseChange, Source
from gatewayfilter.safe_regex.re2 import Substitution, compile_linear, split_substitution
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = "https://www.example.com/a"


def engine_of(rules: list[str], *more: list[str], off: tuple[str, ...] = ()) -> FilterEngine:
    builder = SnapshotBuilder()
    for number, lines in enumerate((rules, *more)):
        source = builder.add_source(Source(f"list{number}", category=f"category{number}"))
        report = builder.add_adblock_list(source, lines)
        assert report.rejected == 0, report.samples
    return FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off)


def asked(url: str, source: str | None = None, kind: str = "document") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind))


def answer(
    rules: list[str], url: str = PAGE, kind: str = "document", headers: dict[str, str] | None = None, address: str = ""
) -> ResponseChange | None:
    source = None if kind == "document" else PAGE
    return engine_of(rules).change_response(asked(url, source, kind), 200, HTML if headers is None else headers, address)


@all_cases(
    ("rules", "kind", "csp"),
    [
        (["||example.com^$csp=script-src 'none'"], "document", ("script-src 'none'",)),
        (["||example.com^$csp=script-src 'none'"], "subdocument", ("script-src 'none'",)),
        (["||example.com^$csp=script-src 'none'"], "script", ()),
        (["||example.com^$csp=a,subdocument"], "document", ()),
        (["||example.com^$csp=a,~subdocument"], "document", ("a",)),
        (["||example.com^$csp=a", "||example.com^$csp=b"], "document", ("a", "b")),
        (["||example.com^$csp=a", "|https://www.example.com/$csp=a"], "document", ("a",)),
        (["||other.org^$csp=a"], "document", ()),
        (["$csp=a,domain=example.com"], "document", ("a",)),
        (["|https://www.example.com/$csp=a,domain=~www.example.com"], "document", ()),
        (["||example.com^$csp=a", "@@||example.com^$csp"], "document", ()),
        (["||example.com^$csp=a", "@@||example.com^$csp=a"], "document", ()),
        (["||example.com^$csp=a", "@@||example.com^$csp=b"], "document", ("a",)),
        (["||example.com^$csp=a", "@@||example.com^$permissions"], "document", ("a",)),
        (["||example.com^$csp=a,important", "@@||example.com^$csp"], "document", ("a",)),
        (["||example.com^$csp=a", "||example.com^$csp=a,badfilter"], "document", ()),
        (["||example.com^$csp=a,header=x-powered-by"], "document", ()),
        (["||example.com^$inline-script"], "document", ("script-src 'unsafe-eval' * blob: data:",)),
        (["||example.com^$inline-script,script"], "subdocument", ("script-src 'unsafe-eval' * blob: data:",)),
        (["||example.com^$inline-script"], "image", ()),
        (["||example.com^$~inline-script,script"], "document", ()),
        (["*$inline-font,1p,domain=example.com"], "document", ("font-src *",)),
        (["||example.com^$inline-font,inline-script", "@@||example.com^$inline-script"], "document", ("font-src *",)),
    ],
)
def test_csp(rules: list[str], kind: str, csp: tuple[str, ...]) -> None:
    change = answer(rules, kind=kind)
    assert (() if change is None else change.csp) == csp


def test_permissions() -> None:
    change = answer(["||example.com^$permissions=geolocation=()|camera=()", "||example.com^$permissions=fullscreen=()"])
    assert change is not None
    assert change.permissions == ("geolocation=(), camera=()", "fullscreen=()")
    assert change.csp == ()
    assert [rule.modifier for rule in change.rules] == ["permissions", "permissions"]


def test_the_policies_of_a_response_are_bounded() -> None:
    rules = [f"||example.com^$csp=a{number}" for number in range(MAX_POLICIES - 2)]
    rules += [f"||example.com^$permissions=b{number}=()" for number in range(2)]
    refused = ["||example.com^$csp=z", "||example.com^$permissions=z=()", "||example.com^$removeheader=refresh"]
    change = answer([*rules, *refused])
    assert change is not None
    assert (len(change.csp), len(change.permissions), change.remove_headers) == (MAX_POLICIES - 2, 2, ("refresh",))
    assert [rule.rule for rule in change.rules] == [*rules, refused[2]]


@all_cases(
    ("value", "headers", "holds"),
    [
        ("via", {"via": "1.1 x"}, True),
        ("Via", {"via": ""}, True),
        ("via", {"server": "x"}, False),
        ("via:1.1 google", {"via": "1.1 google"}, True),
        ("via:1.1 google", {"via": "1.1 google "}, False),
        ("via:~1.1 google", {"via": "1.1 other"}, True),
        ("via:~1.1 google", {"via": "1.1 google"}, False),
        ("via:~1.1 google", {}, False),
        (r"etag:/^W\/\"[0-9a-f]{4}\"$/", {"etag": 'W/"12ab"'}, True),
        (r"etag:/^W\/\"[0-9a-f]{4}\"$/", {"etag": 'W/"12AB"'}, False),
        (r"etag:/^W\/\"[0-9a-f]{4}\"$/i", {"etag": 'w/"12AB"'}, True),
        ("etag:/^(W+)+$/", {"etag": "WW"}, True),
        ("etag:/^(W+)+$/", {"etag": "W\udc80"}, False),
        ("etag:~/^W/", {"etag": "x"}, True),
        ("etag:~/^W/", {"etag": "W"}, False),
        ("etag:/^W/", {}, False),
    ],
)
def test_header_conditions(value: str, headers: dict[str, str], *, holds: bool) -> None:
    assert header_test(value)(headers) is holds


@all_cases(
    ("value", "address", "holds"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.10", False),
        ("192.0.2.1", "", False),
        ("192.0.2.1|198.51.100.7", "198.51.100.7", True),
        ("~192.0.2.1", "192.0.2.1", False),
        ("~192.0.2.1", "192.0.2.2", True),
        ("192.0.2.0/24", "192.0.2.77", True),
        ("192.0.2.0/24", "192.0.3.77", False),
        ("192.0.2.*", "192.0.2.77", True),
        ("192.0.2.*", "192.0.20.77", False),
        ("2001:db8::1", "2001:0db8:0::1", True),
        ("2001:db8::/32", "2001:db8:1::5", True),
        ("2001:db8::/32", "192.0.2.1", False),
        (r"/^192\.0\.(2|3)\.\d+$/", "192.0.3.9", True),
        (r"/^192\.0\.(2|3)\.\d+$/", "192.0.4.9", False),
        ("lan", "192.168.1.1", True),
        ("lan", "127.0.0.1", False),
        ("lan", "8.8.8.8", False),
        ("loopback", "::1", True),
        ("lan", "nonsense", False),
    ],
)
def test_address_conditions(value: str, address: str, *, holds: bool) -> None:
    assert address_test(value)(address) is holds


@all_cases(
    ("rules", "blocked"),
    [
        (["*$document,ipaddress=192.0.2.1"], True),
        (["*$document,ipaddress=192.0.2.2"], False),
        (["*$script,ipaddress=192.0.2.1"], False),
        (["||example.com^$document,header=server:evil"], True),
        (["||example.com^$document,header=server:good"], False),
        (["||example.com^$header=server:evil"], True),
        (["||example.com/$header=server:evil"], False),  # no page without a type
        (["||example.com^$header=server:evil,ipaddress=192.0.2.1"], True),
        (["||example.com^$header=server:evil,ipaddress=192.0.2.9"], False),
        (["*$document,ipaddress=192.0.2.1", "@@||example.com^$ipaddress=192.0.2.1"], False),
        (["*$document,ipaddress=192.0.2.1", "@@||example.com^$document,header=server:good"], True),
        (["*$document,ipaddress=192.0.2.1,important", "@@||example.com^$ipaddress=192.0.2.1"], True),
        (["*$document,ipaddress=192.0.2.1,important", "@@||example.com^$ipaddress=192.0.2.1,important"], False),
        (["*$document,ipaddress=192.0.2.1", "*$document,ipaddress=192.0.2.1,badfilter"], False),
        (["*$document,ipaddress=192.0.2.1", "@@||example.com^$document"], False),
        (["*$document,ipaddress=192.0.2.1,important", "@@||example.com^$document"], True),
    ],
)
def test_what_only_the_response_tells_blocks(rules: list[str], *, blocked: bool) -> None:
    headers = HTML | {"server": "evil"}
    change = answer(rules, headers=headers, address="192.0.2.1")
    verdict = None if change is None else change.verdict
    assert (verdict is not None and verdict.blocked) is blocked
    if verdict is not None:
        assert verdict.reason is Reason.ADBLOCK
        assert (verdict.source_list, verdict.rule, verdict.line) == ("list0", rules[0], 1)


def test_conditions_on_the_response_block_nothing_before_it() -> None:
    engine = engine_of(["*$document,ipaddress=192.0.2.1", "||example.com^$header=server"])
    assert not engine.decide(asked(PAGE)).blocked


def test_a_stub_for_what_the_response_tells() -> None:
    change = answer(["||example.com^$script,redirect=noopjs,header=server"], kind="script", headers={"server": "x"})
    assert change is not None
    assert change.verdict is not None
    assert change.verdict.stub == "noopjs"


@all_cases(
    ("value", "text", "expected"),
    [
        ("/a/b/", "aaa", "baa"),
        ("/a/b/g", "aaa", "bbb"),
        ("/A/b/gi", "aAa", "bbb"),
        ("/A/b/g", "aaa", "aaa"),
        (r'/"ads":\[[^\]]*\]/"ads":[]/', '{"ads":[1,2],"x":1}', '{"ads":[],"x":1}'),
        (r"/(\w+) (\w+)/$2 $1/", "one two", "two one"),
        ("/(?<x>a)/[$<x>$&$$]/", "a", "[aa$]"),
        ("/a/$1/", "a", "$1"),
        ("/(a)|(b)/<$1|$2>/".replace("<", "(").replace(">", ")"), "b", "(|b)"),
        (r"/\//\//g", "a/b", "a/b"),
        ("/^x/y/gm", "x\nx", "y\ny"),
        ("/^x/y/g", "x\nx", "y\nx"),
        ("/a.b/x/s", "a\nb", "x"),
        ("/a.b/x/", "a\nb", "a\nb"),
        (r"/\u00e9/e/", "é", "e"),
        ("/[^]+/x/", "a\nb", "x"),
        ("/x*/-/g", "ab", "-a-b-"),
        ("'/a/b/'", "a", "b"),
    ],
)
def test_replacements(value: str, text: str, expected: str) -> None:
    assert Substitution(*split_substitution(value)).apply(text) == expected


def test_replace_rules_of_a_response() -> None:
    rules = [r"||example.com^$xhr,replace=/a\,b/c/", "||example.com^$replace=/x/y/", "@@||example.com^$replace=/x/y/"]
    change = answer(rules, kind="xmlhttprequest", headers={"content-type": "application/json"})
    assert change is not None
    assert [edit.apply("a,b x") for edit in change.edits] == ["c x"]
    assert answer(rules, kind="image") is None


def test_costly_expressions_end() -> None:
    """No stopwatch: with backtracking this would not end within the test's time limit."""
    text = "a" * 100_000
    assert Substitution(*split_substitution("/(a+)+$x/b/")).apply(text) == text
    assert Substitution(*split_substitution("/(a|a)*b/c/g")).apply(text) == text
    assert Substitution(*split_substitution("/.*.*.*=/b/g")).apply(text) == text
    assert Substitution(*split_substitution("/a(.*z)?/b/g")).apply(text).startswith("b")


@given(st.text(max_size=40), st.text(max_size=60))
def test_no_expression_and_no_text_raises_anything_else(expression: str, text: str) -> None:
    try:
        regex = compile_linear(expression)
    except RuleError:
        return
    regex.search(text)


@settings(max_examples=30)
@given(st.text(alphabet="/ab\\$<>&1'g,", max_size=20), st.text(max_size=20))
def test_no_replacement_raises_anything_else(value: str, text: str) -> None:
    try:
        edit = Substitution(*split_substitution(value))
    except RuleError:
        return
    edit.apply(text)


@all_cases(
    ("asks", "html", "expected"),
    [
        ("ads", "<p>a<script>var ads;</script>b", "<p>ab"),
        ("ads", "<p>a<script>var x;</script>b", "<p>a<script>var x;</script>b"),
        ("ads", "<SCRIPT type='a'>ads</SCRIPT ><script>x</script><script>ads</script>", "<script>x</script>"),
        ("ads", "ads<scripts>ads</scripts>", "ads<scripts>ads</scripts>"),
        ("ads", "<script>ads", "<script>ads"),
        ("/ad[sx]/", "<script>adx</script>", ""),
        ("/AD[sx]/i", "<script>adx</script>", ""),
        ("/ad[sx]/", "<script>adx\ud800</script>", "<script>adx\ud800</script>"),
        ("/b/\nad", "<script>ad</script><script>bad</script>", "<script>ad</script>"),
        ("a\nb", "<script>ab</script><script>a</script>", "<script>a</script>"),
    ],
)
def test_scripts_are_taken_out_by_their_text(asks: str, html: str, expected: str) -> None:
    assert ScriptRemoval(asks).apply(html) == expected


def test_lists_that_are_off_change_nothing() -> None:
    rules = ["$removeparam=a", "||example.com^$csp=x", "*$document,ipaddress=192.0.2.1", "##.ad", "www.example.com##.b"]
    on, off = engine_of(rules), engine_of(rules, off=("category0",))
    request = asked(f"{PAGE}?a=1")
    assert on.change_request(request) is not None
    assert off.change_request(request) is None
    assert on.change_response(request, 200, HTML, "192.0.2.9") is not None
    assert off.change_response(request, 200, HTML, "192.0.2.1") is None


def test_a_badfilter_counts_only_while_its_list_is_on() -> None:
    lists = ["||example.com^$csp=x"], ["||example.com^$csp=x,badfilter"]
    assert engine_of(*lists).change_response(asked(PAGE), 200, HTML) is None
    assert engine_of(*lists, off=("category1",)).change_response(asked(PAGE), 200, HTML) is not None
    for rule in ("||example.com^$removeheader=request:dnt", "$removeparam=a", "||example.com^$urlskip=?u"):
        request = asked(f"{PAGE}?a=1&u=https://x.example/")
        lists = [rule], [f"{rule},badfilter"]
        assert engine_of(*lists).change_request(request) is None
        assert engine_of(*lists, off=("category1",)).change_request(request) is not None


def test_the_engine_names_the_stub_of_what_it_blocks() -> None:
    engine = engine_of(["||ads.example^$script,redirect=noopjs"], ["||ads.example^$redirect-rule=nooptext:9"])
    assert engine.decide(asked("https://ads.example/a.js", PAGE, "script")).stub == "nooptext"
    assert engine.decide(asked("https://ads.example/a.gif", PAGE, "image")).stub == ""


@all_cases(
    ("rules", "source", "blocked"),
    [
        (["||ads.example^", "@@||www.example.com^$genericblock"], PAGE, False),
        (["||ads.example^", "@@||www.example.com^$genericblock"], "https://other.org/", True),
        (["||ads.example^$domain=example.com", "@@||www.example.com^$genericblock"], PAGE, True),
        (["||ads.example^", "||ads.example/a$domain=example.com", "@@||www.example.com^$genericblock"], PAGE, True),
        (["||ads.example^$domain=~other.org", "@@||www.example.com^$genericblock"], PAGE, False),
    ],
)
def test_genericblock_suspends_rules_that_name_no_page(rules: list[str], source: str, *, blocked: bool) -> None:
    verdict = engine_of(rules).decide(asked("https://ads.example/a.js", source, "script"))
    assert verdict.blocked is blocked
    if not blocked:
        assert verdict.reason is Reason.ADBLOCK_EXCEPTION
        assert "genericblock" in verdict.rule


def test_explain_names_every_rule_and_every_change() -> None:
    engine = engine_of(
        ["||ads.example^", "||ads.example/a.js$important", "$removeparam=x"],
        ["||ads.example^$script,redirect=noopjs", "||example.com^$csp=a", "www.example.com##.ad"],
    )
    said = {part.decider: part.explanation for part in engine.explain(asked("https://ads.example/a.js", PAGE, "script")).answers}
    for expected in (
        "||ads.example/a.js$important (list0, line 2, important)",
        "||ads.example^ of list0, line 1",
        "noopjs",
        "list1, line 1",
    ):
        assert expected in said["adblock"]
    said = {part.decider: part.explanation for part in engine.explain(asked(f"{PAGE}?x=1")).answers}
    for expected in ("$removeparam=x (removeparam, list0, line 3)", "(csp, list1, line 2)", "(cosmetic, list1, line 3)"):
        assert expected in said["adblock"]


@all_cases(
    ("url", "kind", "expected"),
    [
        ("https://example.com/x.js", "script", "response's headers or its server's address: ||example.com^$script,header=x"),
        ("https://example.com/y.css", "stylesheet", "||example.com^$css,ipaddress=192.0.2.1 (response, list0, line 2)"),
        ("https://example.com/", "document", "generichide on this page: @@||example.com^$ghide (list0, line 3)"),
        ("https://example.com/", "document", "it leaves out dnt: ||example.com^$doc,removeheader=request:dnt (removeheader"),
        ("https://example.com/?a=1", "document", "it asks for https://example.com/ instead and leaves out dnt: "),
        (
            "https://ads.example/b.gif",
            "image",
            "the stub is named by *$image,redirect-rule=1x1.gif (redirect-rule, list0, line 7)",
        ),
    ],
)
def test_an_explanation_says_what_hangs_on_what(url: str, kind: str, expected: str) -> None:
    rules = [
        "||example.com^$script,header=x",
        "||example.com^$css,ipaddress=192.0.2.1",
        "@@||example.com^$ghide",
        "||example.com^$doc,removeheader=request:dnt",
        "||example.com^$removeparam=a",
        "||ads.example^",
        "*$image,redirect-rule=1x1.gif",
    ]
    said = {part.decider: part.explanation for part in engine_of(rules).explain(asked(url, None, kind)).answers}
    assert expected in said["adblock"]
