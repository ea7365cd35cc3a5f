"""Cosmetic rules: where they work, what lifts them, and what a page gets."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.index import cosmetic_index as index_module
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers, pack_sections
from gatewayfilter.engine.adblock.syntax.cosmetic_rule import MAX_BODY, Effect, read_cosmetic
from gatewayfilter.engine.adblock.syntax.parser import LineKind, parse_line
from gatewayfilter.errors import RuleError, SnapshotError, UnsupportedError
from gatewayfilter.model import Request, ResourceType, ResponseChange
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

HTML = {"content-type": "text/html"}


def effects_of(*lists: list[str]) -> AdblockEffects:
    builder = AdblockBuilder(judge=False)
    for source, rules in enumerate(lists):
        report = builder.add_list(source, rules)
        assert report.rejected == 0, report.samples
    return AdblockEffects(builder.build())


def dressed(
    rules: list[str], page: str = "https://www.example.com/", kind: str = "document", headers: dict[str, str] | None = None
) -> ResponseChange:
    request = Request(parse_url(page), None, ResourceType(kind))
    found = effects_of(rules).change_response(request, HTML if headers is None else headers, "", ["list"])
    return ResponseChange() if found is None else found[0]


def hidden(rules: list[str], page: str = "https://www.example.com/", kind: str = "document") -> set[str]:
    """Returns the selectors that a page hides."""
    style = dressed(rules, page, kind).style
    rest = re.sub(r"([^{}]+)\{display:none!important\}", "", style)
    assert rest == ""
    return {part for group in re.findall(r"([^{}]+)\{", style) for part in group.split(",")}


@all_cases(
    ("rules", "expected"),
    [
        (["##.ad"], {".ad"}),
        (["*##.ad"], {".ad"}),
        (["##.ad", "##.ad2", "###ad3"], {".ad", ".ad2", "#ad3"}),
        (["example.com##.ad"], {".ad"}),
        (["www.example.com##.ad"], {".ad"}),
        (["WWW.Example.COM##.ad"], {".ad"}),
        (["m.example.com##.ad"], set()),
        (["ample.com##.ad"], set()),
        (["com##.ad"], {".ad"}),
        (["other.org,example.com##.ad"], {".ad"}),
        (["example.*##.ad"], {".ad"}),
        (["other.*##.ad"], set()),
        (["example.com,~www.example.com##.ad"], set()),
        (["www.example.com,~example.com##.ad"], {".ad"}),
        (["~example.com##.ad"], set()),
        (["~www.example.com##.ad"], set()),
        (["~other.org##.ad"], {".ad"}),
        (["~example.*##.ad"], set()),
        ([r"/^www\.ex[a-z]+\.com$/##.ad"], {".ad"}),
        ([r"/^m\.ex[a-z]+\.com$/##.ad"], set()),
        (["##.ad", "#@#.ad"], set()),
        (["##.ad", "example.com#@#.ad"], set()),
        (["##.ad", "##.x", "example.com#@#.ad"], {".x"}),
        (["##.ad", "other.org#@#.ad"], {".ad"}),
        (["##.ad", "example.com#@#.ad2"], {".ad"}),
        (["example.com##.ad", "www.example.com#@#.ad"], set()),
        (["example.com##.ad", "#@#.ad"], set()),
        (["example.com##.ad", "~example.com#@#.ad"], {".ad"}),
        (["##.ad", "~other.org#@#.ad"], set()),
        (["##.a:has(.b)", "##.c"], {".a:has(.b)", ".c"}),
        (["##.a:has(.b)", "example.com#@#.a:has(.b)"], set()),
        (["example.com#?#.a:has(.b)"], {".a:has(.b)"}),
        (["example.com#?#.a:-abp-has(> .b)"], {".a:has(>.b)"}),
        (["@@||example.com^$generichide", "##.ad", "example.com##.x"], {".x"}),
        (["@@||example.com^$ghide", "##.ad", "~other.org##.y", "example.com##.x"], {".x"}),
        (["@@||example.com^$specifichide", "##.ad", "example.com##.x"], {".ad"}),
        (["@@||example.com^$elemhide", "##.ad", "example.com##.x"], set()),
        (["@@||example.com^$ehide", "##.ad"], set()),
        (["@@||example.com^$document", "##.ad", "example.com##.x"], set()),
        (["@@||other.org^$generichide", "##.ad"], {".ad"}),
        (["@@*$ghide,domain=example.com", "##.ad"], set()),
        (["@@*$ghide,domain=other.org", "##.ad"], {".ad"}),
        (["@@||example.com/deep^$ghide", "##.ad"], {".ad"}),
        (["@@||example.com^$ghide", "@@||example.com^$ghide,badfilter", "##.ad"], {".ad"}),
        (["@@||example.com^", "##.ad"], {".ad"}),
    ],
)
def test_what_is_hidden(rules: list[str], expected: set[str]) -> None:
    assert hidden(rules) == expected


@all_cases(
    ("kind", "headers", "expected"),
    [
        ("document", HTML, ".x{display:none!important}.ad{display:none!important}"),
        ("document", {"content-type": "application/xhtml+xml; a=b"}, ".x{display:none!important}.ad{display:none!important}"),
        ("document", {"content-type": "TEXT/HTML"}, ".x{display:none!important}.ad{display:none!important}"),
        ("document", {"content-type": "application/json"}, ""),
        ("document", {}, ""),
        ("subdocument", HTML, ".x{display:none!important}"),
        ("xmlhttprequest", HTML, ""),
        ("script", HTML, ""),
    ],
)
def test_only_pages_are_dressed(kind: str, headers: dict[str, str], expected: str) -> None:
    assert dressed(["##.ad", "example.com##.x"], kind=kind, headers=headers).style == expected


@all_cases(
    ("rule", "style"),
    [
        ("example.com##.a:style(height: 0 !important)", ".a{height:0!important}"),
        ("example.com##.a:matches-media((width > 9px))", ""),
        ("example.com##.a:matches-media((min-width: 9px))", "@media (min-width: 9px){.a{display:none!important}}"),
        (
            "example.com##.a:matches-media((min-width: 9px) and (orientation: landscape)):style(top: 0)",
            "@media (min-width: 9px) and (orientation: landscape){.a{top:0!important}}",
        ),
        ("example.com##.a:matches-media((a)) .b", ""),
        ("example.com##.a:matches-media((a)))", ""),
        ("example.com##.a:matches-media((a){}b{)", ""),
        ("example.com##.a:matches-media((min-width: 9px)):remove()", ""),
        ("##.a:matches-media((min-width: 9px))", ""),
        ("example.com#$#.a { height: 0; width: 1px }", ".a{height:0!important;width:1px!important}"),
        ("example.com##.a {top:0;}", ".a{top:0!important}"),
        ("example.com#$?#.a:has(.b) { top: 0 }", ".a:has(.b){top:0!important}"),
        ("other.org##.a {top:0;}", ""),
    ],
)
def test_styles(rule: str, style: str) -> None:
    assert dressed([rule]).style == style
    exception = rule.replace("#$?#", "#@$?#").replace("#$#", "#@$#").replace("##", "#@#", 1)
    assert dressed([rule, exception]).style == ""


@all_cases(
    ("rule", "path", "selector"),
    [
        ("##:matches-path(/shop) .a", "/shop/1?q=2", ".a"),
        ("##.a:matches-path(/shop)", "/", ""),
        ("##.a:matches-path(q=2) .b", "/shop/1?q=2", ".a .b"),
        ("##.a > :matches-path(/shop)", "/shop", ".a>*"),
        ("##:matches-path(/^\\/($|a\\/)/) .a", "/a/b", ".a"),
        ("##:matches-path(/^\\/($|a\\/)/) .a", "/b/a/", ""),
        ("##:matches-path(/SHOP/) .a", "/shop", ""),
        ("##:matches-path(/SHOP/i) .a", "/Shop", ".a"),
        ("##:matches-path(/^x/) .a", f"/{'x' * 3_000}", ""),
        ("##:not(:matches-path(/shop)) .a", "/shop", ""),
        ("##:not(:matches-path(/shop)) .a", "/", ".a"),
        ("##.a:is(.b, .c):matches-path(/shop)", "/shop", ".a:is(.b,.c)"),
        ("##.a,.b:matches-path(/shop)", "/shop", ""),
        ("##.a:is(.b:matches-path(/shop))", "/shop", ""),
        ("##:matches-path(/shop)", "/shop", ""),
        ("##.a:matches-path(/(a+)+$/)", "/shop", ""),
        ("##.a:matches-path(/shop):matches-path(/x)", "/shop/x", ""),
    ],
)
def test_rules_for_some_pages_of_a_site(rule: str, path: str, selector: str) -> None:
    expected = f"{selector}{{display:none!important}}" if selector else ""
    assert dressed([f"example.com{rule}"], f"http://example.com{path}").style == expected
    exception = f"example.com{rule.replace('##', '#@#', 1)}"
    assert dressed([f"example.com{rule}", exception], f"http://example.com{path}").style == ""
    assert dressed([rule], f"http://example.com{path}").style == ""  # for sites that are named only


def test_conditions_of_paths_are_bounded_and_apart() -> None:
    rules = [f"example.com##.a{n}:matches-path(/{n})" for n in range(40)]
    assert dressed(rules, "http://example.com/7").style.count(".a7{") == 1
    assert dressed(rules, "http://example.com/39").style.count(".a3{") == 1
    assert ".a39" not in dressed(rules, "http://example.com/39").style
    assert dressed(["example.com##.a:matches-path(/x):style(top: 0)"], "http://example.com/x").style == ".a{top:0!important}"
    assert dressed(["example.com##.a:matches-path(/x):remove()"], "http://example.com/x").remove_elements == (".a",)


@all_cases(
    ("rules", "selectors"),
    [
        (["example.com##^.ad"], (".ad",)),
        (["example.com##^script[src*='x']"], ("script[src*='x']",)),
        (["example.com##.ad:remove()"], (".ad",)),
        (["example.com#$#.ad { remove: true; }"], (".ad",)),
        (['example.com$$div[id="ad"]'], ('div[id="ad"]',)),
        (["example.com##^div:has-text(ad)"], ("div:has-text(ad)",)),
        (["example.com##^ div > p:first-child:contains(/a(d)/i)"], ("div>p:first-child:has-text(/a(d)/i)",)),
        (["other.org##^.ad"], ()),
        (["example.com##^.ad", "www.example.com#@#^.ad"], ()),
        (["example.com##^.ad", "www.example.com#@#.ad"], (".ad",)),
        (["example.com$$div", "example.com$@$div"], ()),
    ],
)
def test_elements_are_taken_out(rules: list[str], selectors: tuple[str, ...]) -> None:
    assert dressed(rules).remove_elements == selectors


@all_cases(
    ("rule", "html", "expected"),
    [
        ("example.com##^script:has-text(ads)", "<script>ads</script>x", "x"),
        ("example.com##^script:has-text(/AD[s]/i)", "<script>ads</script>x", "x"),
        ("example.com##^script:has-text(a):has-text(b)", "<script>a</script><script>ab</script>", "<script>a</script>"),
        ('example.com$$script[tag-content="ads"]', "<script>ads</script>x", "x"),
    ],
)
def test_scripts_are_taken_out(rule: str, html: str, expected: str) -> None:
    change = dressed([rule])
    assert [edit.apply(html) for edit in change.edits] == [expected]
    assert [(applied.modifier, applied.rule) for applied in change.rules] == [("html-filter", rule)]
    assert dressed([rule], headers={"content-type": "text/plain"}).edits == ()


def test_headers_are_left_out() -> None:
    assert dressed(["example.com##^responseheader(Refresh)"], headers={}).remove_headers == ("refresh",)
    assert dressed(["other.org##^responseheader(refresh)"]).remove_headers == ()
    assert dressed(["example.com##^responseheader(refresh)", "example.com#@#^responseheader(refresh)"]).remove_headers == ()


@all_cases(
    ("line", "name"),
    [
        ("example.com##+js(set, a, b)", "##+js"),
        ("example.com#@#+js()", "##+js"),
        ("example.com#%#window.x = 1", "#%#"),
        ("example.com##div:has-text(ad)", ":has-text()"),
        ("example.com#?#div:-abp-contains(ad)", ":-abp-contains()"),
        ("example.com##div:upward(2)", ":upward()"),
        ("example.com##:xpath(//div)", ":xpath()"),
        ("example.com##^div:has-text(x):upward(2)", "##^:has-text()"),
        ("example.com##^div:upward(2)", "##^:upward()"),
        ("example.com##^responseheader(content-security-policy)", "##^responseheader()"),
        ("example.com##.a:style(background: url(x))", "a style that loads something"),
        ("example.com##.a:style(content: 'x')", "a style that writes on the page"),
        ("##.a:style(top: 0)", "a style for every site"),
        ("##^.a", "a removal on every site"),
        ('example.com$$div[tag-content="x"]', "$$ with special attributes"),
        ('example.com$$script.a[tag-content="x"]', "$$ with special attributes"),
        ('example.com$$script[tag-content="x"].a', "$$ with special attributes"),
        ('example.com$$script[tag-content="x"][max-length="9"]', "$$ with special attributes"),
        ("[$path=/x]example.com##.a", "[$…]"),
    ],
)
def test_what_a_proxy_cannot_do_is_counted_by_name(line: str, name: str) -> None:
    parsed = parse_line(line)
    assert (parsed.kind, parsed.note) == (LineKind.UNSUPPORTED, name)
    with pytest.raises(UnsupportedError):
        read_cosmetic(line)


@all_cases(
    "line",
    [
        *(
            "example.com##",
            "##.a,",
            "a b##.x",
            "example.com##.a{",
            "exa mple.com##.a",
            "##.a}b{c",
            "example.com#$#.a",
            "##..x",
            "//##.a",
        ),
        *("example.com##^script:has-text()", "example.com##^script:has-text(/(/)", "example.com##^div:has-text(/(/)"),
    ],
)
def test_what_is_not_valid_is_rejected(line: str) -> None:
    assert parse_line(line).kind is LineKind.REJECTED


def test_one_css_rule_holds_so_many_selectors() -> None:
    rules = [f"##.ad{number}" for number in range(index_module.CHUNK * 2 + 5)] + ["##.z:has(.a)"]
    style = dressed(rules).style
    assert style.count("{") == 4
    assert style.count(",") == len(rules) - 4


def test_exceptions_touch_only_the_css_rule_of_their_selector() -> None:
    rules = [f"##.ad{number}" for number in range(200)] + ["example.com#@#.ad77", "~example.com##.spared"]
    effects = effects_of(rules)
    here = hidden(rules)
    assert ".ad77" not in here
    assert ".spared" not in here
    assert len(here) == 199
    assert len(hidden(rules, "https://other.org/")) == 201
    request = Request(parse_url("https://other.org/"))
    first, second = (effects.change_response(request, HTML, "", ["list"]) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first[0].style is second[0].style  # one text for all pages without exceptions


def test_lists_that_are_off() -> None:
    effects = effects_of(["##.a", "example.com##.b", "example.com#@#.c"], ["##.c", "example.com##.d", "#@#.a"])
    request = Request(parse_url("https://example.com/"))

    def style(*off: int) -> str:
        found = effects.change_response(request, HTML, "", ["one", "two"], frozenset(off))
        return "" if found is None else found[0].style

    assert style() == ".b,.d{display:none!important}"
    assert style(0) == ".d{display:none!important}.c{display:none!important}"
    assert style(1) == ".b{display:none!important}.a{display:none!important}"
    assert style(0, 1) == ""


def test_the_many_rules_for_every_site_of_a_big_list_stand_apart() -> None:
    many = [f"##.a-class-of-some-length-{number}" for number in range(index_module.FEW_BYTES // 20)]
    effects = effects_of(["##.few", "example.com##.own"], [*many, "example.com##.big", "example.com#@#.a-class-of-some-length-7"])

    def styles(page: str, *off: int) -> tuple[str, str]:
        found = effects.change_response(Request(parse_url(page)), HTML, "", ["small", "big"], frozenset(off))
        return ("", "") if found is None else (found[0].style, found[0].generic_style)

    few, generic = styles("https://other.org/")
    assert few == ".few{display:none!important}"
    assert generic.count(".a-class") == len(many)
    few, generic = styles("https://example.com/")
    assert few == ".own,.big{display:none!important}.few{display:none!important}"
    assert generic.count(".a-class") == len(many) - 1
    assert styles("https://other.org/", 1) == (".few{display:none!important}", "")
    assert styles("https://other.org/", 0)[0] == ""
    frame = Request(parse_url("https://example.com/"), None, ResourceType.SUBDOCUMENT)
    found = effects.change_response(frame, HTML, "", ["small", "big"])
    assert found is not None
    assert (found[0].style, found[0].generic_style) == (".own,.big{display:none!important}", "")


def test_rules_are_named() -> None:
    change = dressed(["! x", "example.com##.a", "##.b"])
    assert [(rule.rule, rule.line, rule.modifier, rule.source_list) for rule in change.rules] == [
        ("example.com##.a", 2, "cosmetic", "list")
    ]


@all_cases(
    ("exceptions", "headers", "named"),
    [
        ([], HTML, [0, 1, 2]),
        (["@@||example.com^$elemhide"], HTML, [1, 2]),
        (["@@||example.com^$specifichide"], HTML, [1, 2]),
        (["@@||example.com^$generichide"], HTML, [0, 1, 2]),
        ([], {}, [1]),
        (["@@||example.com^$elemhide"], {}, [1]),
    ],
)
def test_rules_without_effect_are_not_named(exceptions: list[str], headers: dict[str, str], named: list[int]) -> None:
    rules = ["example.com##.a", "example.com##^responseheader(refresh)", "example.com##^script:has-text(x)"]
    change = dressed([*rules, *exceptions], headers=headers)
    assert sorted(rule.rule for rule in change.rules) == sorted(rules[number] for number in named)


LINES = st.text(alphabet="ab.#@$?%^~*,|/:=[](){}\"' +\\-jsé!<>", max_size=40)


@settings(max_examples=30)
@given(st.lists(LINES, max_size=6), st.sampled_from(["https://a/", "https://b.a/", "https://a.b/x"]))
def test_no_line_raises_and_what_is_read_can_be_used(lines: list[str], page: str) -> None:
    builder = AdblockBuilder(judge=False)
    builder.add_list(0, [*lines, *(f"a##{line}" for line in lines), *(f"##{line}" for line in lines)])
    effects = AdblockEffects(builder.build())
    request = Request(parse_url(page))
    effects.change_request(request, ["list"])
    found = effects.change_response(request, HTML, "192.0.2.1", ["list"])
    if found is not None:
        assert "</" not in found[0].style
        assert "\n" not in found[0].style


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["a.com", "~a.com", "b.a.com", "~b.a.com", "a.*", "~b.a.*", "c.org"]), max_size=4))
def test_found_by_index_equals_tried_one_by_one(hosts: list[str]) -> None:
    rule = read_cosmetic(f"{','.join(hosts)}##.x")
    assert rule.effect is Effect.HIDE
    for host in ("a.com", "b.a.com", "x.b.a.com", "c.org", "d.net"):
        expected = {".x"} if index_module.works_on(rule, host) else set()
        assert hidden([f"{','.join(hosts)}##.x"], f"https://{host}/") == expected


def test_a_form_with_numbers_of_another_length_is_refused() -> None:
    lines = ["##.a", "example.com##.b", "#@#.c", "##.d:has(.e)"]
    records = [index_module.CosmeticRecord(read_cosmetic(line), line, 0, number) for number, line in enumerate(lines)]
    sections = index_module.pack_cosmetics(records)
    for place in range(len(sections)):
        changed = [*sections]
        changed[place] += pack_numbers([0])
        reader = SectionReader(memoryview(pack_sections(changed)))
        if place in {8, 9}:  # the rules without hosts, however many
            index_module.CosmeticIndex(reader)
            continue
        with pytest.raises(SnapshotError, match="damaged"):
            index_module.CosmeticIndex(reader)
    for place in (1, 13, 16):  # where texts and lists begin
        changed = [*sections]
        changed[place] = b""
        with pytest.raises(SnapshotError, match="damaged"):
            index_module.CosmeticIndex(SectionReader(memoryview(pack_sections(changed))))


def test_what_follows_the_mark_is_bounded() -> None:
    for begin, end in (("a.org##^script:has-text(", ")"), ('a.org$$script[tag-content="', '"]')):
        body_begins = begin.rindex("script") - begin.count("^")
        longest = "x" * (MAX_BODY - len(begin) + body_begins - len(end))
        assert read_cosmetic(f"{begin}{longest}{end}").text == longest
        with pytest.raises(RuleError, match=f"longer than {MAX_BODY} characters"):
            read_cosmetic(f"{begin}{longest}x{end}")


@all_cases(
    "line", ["no mark at all", "a.org##.a:matches-path()", "a.org##.a:matches-path(/b", "a.org##:not(:matches-path(/b) .a"]
)
def test_a_rule_error_is_one(line: str) -> None:
    with pytest.raises(RuleError):
        read_cosmetic(line)
