"""Selectors and declarations: what passes is valid CSS and nothing else; what does not is named."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.css.declarations import MAX_LENGTH as LONGEST_STYLE
from gatewayfilter.engine.adblock.css.declarations import read_declarations
from gatewayfilter.engine.adblock.css.selector import MAX_DEPTH, MAX_LENGTH, PROCEDURAL, ProceduralError, read_selector
from gatewayfilter.errors import RuleError, UnsupportedError
from tests.case_tables import all_cases


@all_cases(
    ("text", "read"),
    [
        (".ad", ".ad"),
        ("#ad", "#ad"),
        ("div", "div"),
        ("*", "*"),
        ("div.ad#x.y", "div.ad#x.y"),
        ("[href].ad#x", "[href].ad#x"),
        ("  .a  >  .b  ", ".a>.b"),
        (".a   .b", ".a .b"),
        (".a+.b~.c", ".a+.b~.c"),
        (".a , .b", ".a,.b"),
        ("[href]", "[href]"),
        ('[ href = "x" ]', '[href="x"]'),
        ("[href^='https://x.com/']", "[href^='https://x.com/']"),
        ('[href="a" i]', '[href="a" i]'),
        ("[a=b][c*=d]", "[a=b][c*=d]"),
        ('a[href="x,y{z}"]', 'a[href="x,y{z}"]'),
        ('[title="</style>"]', r'[title="\3c /style>"]'),
        (r"#\31 23", r"#\31 23"),
        (r".md\:w-1\/2", r".md\:w-1\/2"),
        (".été", ".été"),
        ("--x", "--x"),
        (":first-child", ":first-child"),
        ("::before", "::before"),
        (":before", ":before"),
        ("::placeholder", "::placeholder"),
        ("li:nth-child(2n+1)", "li:nth-child(2n+1)"),
        ("li:nth-child(2n-1)", "li:nth-child(2n-1)"),
        ("li:nth-of-type( odd )", "li:nth-of-type(odd)"),
        ("li:nth-last-child(-n+3)", "li:nth-last-child(-n+3)"),
        ("a:not(.b)", "a:not(.b)"),
        ("a:not(.b, #c)", "a:not(.b,#c)"),
        ("div:has(> .ad)", "div:has(>.ad)"),
        ("div:has(.ad, :is(a, b))", "div:has(.ad,:is(a,b))"),
        (":lang(en)", ":lang(en)"),
        (":LANG( en )", ":lang(en)"),
        ('[title="a"]:lang("<")', r'[title="a"]:lang("\3c ")'),
        ("li:NTH-CHILD(EVEN)", "li:nth-child(even)"),
        ("li:nth-child(2):hover", "li:nth-child(2):hover"),
        (".a\t\n>\f.b\r.c", ".a>.b .c"),
        ("::first-line", "::first-line"),
        (":FIRST-LINE", ":first-line"),
        ("::before:hover", "::before:hover"),
    ],
)
def test_valid_selectors(text: str, read: str) -> None:
    assert read_selector(text).text == read


def test_selectors_as_long_and_as_deep_as_they_may_be() -> None:
    longest = "." + "a" * (MAX_LENGTH - 1)
    assert read_selector(f" {longest} ").text == longest
    deepest = ":not(" * MAX_DEPTH + ".a" + ")" * MAX_DEPTH
    assert read_selector(deepest).text == deepest
    with pytest.raises(RuleError, match="1 to"):
        read_selector(f"{longest}a")
    with pytest.raises(RuleError, match="nested too deeply"):
        read_selector(f":not({deepest})")


@all_cases(
    "text",
    [
        "",
        " ",
        ".",
        "#",
        ".1a",
        "#1a",
        "..a",
        "[href]div",
        ".adiv*",
        ":not(.a)div",
        ".a,",
        ",.a",
        ".a,,.b",
        ".a >",
        "> .a",
        ".a > > .b",
        ".a {display:none}",
        ".a}body{display:none",
        ".a</style>",
        ".a<b",
        ".a;",
        "@import 'x'",
        "[a",
        "[a=]",
        "[a='x]",
        "[a=x y]",
        "[1a]",
        "a:unheard-of",
        "a:unheard-of(x)",
        "a::unheard-of",
        "a:not(",
        "a:not()",
        "a:nth-child()",
        "a:nth-child(x)",
        "a:has(> )",
        "::before.a",
        "a:first-child(2)",
        "::first-child",
        "::hover",
        ":placeholder",
        ":marker",
        "::not(.a)",
        "::lang(en)",
        ":lang()",
        ":lang(1)",
        "li:nth-child(2",
        "li:nth-child(2 .a)",
        "::before#a",
        "::before[a]",
        "a\\",
        "a\n{",
        "/* x */ a",
        "a" * (MAX_LENGTH + 1),
        ":not(" * 20 + "a" + ")" * 20,
    ],
)
def test_invalid_selectors(text: str) -> None:
    with pytest.raises(RuleError) as raised:
        read_selector(text)
    assert not isinstance(raised.value, ProceduralError)


def test_where_a_selector_goes_wrong_is_told() -> None:
    with pytest.raises(RuleError, match=f"^not a valid selector from '[+]{'b' * 39}' on$"):
        read_selector(f".a>+{'b' * 39}c")


@all_cases(
    ("text", "procedural"),
    [
        (".a:remove", True),
        (".a:others", True),
        (".a:remove()", True),
        (".a:upward", False),
        (".a:has-text", False),
        (".a:has-text()", True),
    ],
)
def test_few_procedures_stand_without_an_argument(text: str, *, procedural: bool) -> None:
    with pytest.raises(RuleError) as raised:
        read_selector(text)
    assert isinstance(raised.value, ProceduralError) is procedural


@all_cases("operator", sorted(PROCEDURAL))
def test_procedures_are_named(operator: str) -> None:
    with pytest.raises(ProceduralError) as raised:
        read_selector(f"div.a:{operator}(x) > b")
    assert raised.value.operator == operator
    with pytest.raises(ProceduralError):
        read_selector(f"div:not(:has(a:{operator}(x)))")


@all_cases(
    ("text", "shared"),
    [
        (".a > b:first-child", True),
        ("a:not(.b)", True),
        ("a:not(.b .c)", False),
        ("a:not(.b,.c)", False),
        ("a:has(.b)", False),
        ("a:has(.b):not(.c)", False),
        ("a:not(:has(.b))", False),
        ("a:not(.b>.c)", False),
        ("a:not(.b) .c", True),
        ("a:not(.b) > .c, .d", True),
        ("li:nth-child(2)", True),
        (":lang(en)", True),
        ("::placeholder", True),
        ("::-moz-x", False),
        ("::-ms-x .a", False),
        ("::backdrop", False),
        ("a:is(.b)", False),
        ("a:where(.b)", False),
        ("video::-webkit-media-controls", False),
        ("div:popover-open", False),
    ],
)
def test_what_not_every_browser_knows_stands_alone(text: str, *, shared: bool) -> None:
    assert read_selector(text).shared is shared


@example("\\<")
@example(".a\\<b")
@given(st.text(alphabet=".#[]=\"'\\:()>+~*, {}<>/;@abn1-\n\x00é", max_size=40))
def test_no_selector_breaks_out(text: str) -> None:
    try:
        read = read_selector(text).text
    except RuleError:
        return
    assert "<" not in read
    assert "\n" not in read
    assert read_selector(read).text == read  # what is handed on is what was read
    bare = _without_strings(read)
    assert not any(mark in bare for mark in "{};@")


def _without_strings(text: str) -> str:
    kept, quote, escaped = [], "", False
    for mark in text:
        if escaped:
            escaped = False
        elif mark == "\\":
            escaped = True
        elif quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        else:
            kept.append(mark)
    assert not quote
    return "".join(kept)


@all_cases(
    ("text", "read"),
    [
        ("display: block", "display:block!important"),
        ("display:block !important;", "display:block!important"),
        ("Height: 0; MARGIN : 1px 2px ;", "height:0!important;margin:1px 2px!important"),
        ("--myVar: 3px", "--myVar:3px!important"),
        ("width: calc(100% - (2px + 1px))", "width:calc(100% - (2px + 1px))!important"),
        ("font-family: 'A b', serif", "font-family:'A b', serif!important"),
        ("height: 1px; width 1px; top: 0", "height:1px!important;top:0!important"),
        ("content: none", "content:none!important"),
        ("color: var(--x)", "color:var(--x)!important"),
    ],
)
def test_declarations(text: str, read: str) -> None:
    assert read_declarations(text) == read


@all_cases(
    ("text", "error"),
    [
        ("", RuleError),
        (";", RuleError),
        ("x", RuleError),
        ("color:", RuleError),
        ("1color: red", RuleError),
        ("background: url(https://evil.example/x)", UnsupportedError),
        ("background: URL ( 'x' )", UnsupportedError),
        (r"background: u\72l(x)", UnsupportedError),
        ("background: image-set('x' 1x)", UnsupportedError),
        ("color: expression(alert(1))", UnsupportedError),
        ("behavior: x", UnsupportedError),
        ("-moz-binding: x", UnsupportedError),
        ("color: red}body{display:none", UnsupportedError),
        ("color: red</style>", UnsupportedError),
        ("color: red /* x", UnsupportedError),
        ("color: rgb(1", UnsupportedError),
        ("color: 'x", UnsupportedError),
        ("color: red !ie", UnsupportedError),
        ("content: 'Pay here'", UnsupportedError),
        ("--x: url(y)", UnsupportedError),
        ("x" * 2_000, RuleError),
    ],
)
def test_declarations_that_load_or_write_are_refused(text: str, error: type[RuleError]) -> None:
    with pytest.raises(error):
        read_declarations(text)


def test_empty_declarations_and_those_without_a_value_are_passed_over() -> None:
    expected = "top:0!important;left:0!important"
    for text in ("top:0;left:0", ";top:0;;left:0;", " ; top:0 ; ; left:0 ;", "color;top:0;left:0", "top:0;color;left:0"):
        assert read_declarations(text) == expected


def test_a_style_has_a_greatest_length() -> None:
    longest = "top:" + "0" * (LONGEST_STYLE - 4)
    assert read_declarations(longest) == f"{longest}!important"
    with pytest.raises(RuleError, match=f"longer than {LONGEST_STYLE} characters"):
        read_declarations(f"{longest}0")
    with pytest.raises(RuleError, match=f"^not a declaration: '{'x' * 99}:'$"):
        read_declarations("x" * 99 + ":" + " " * 20)


@given(st.text(alphabet="colrdisp:-; !{}<>/*'\"()\\@u1\n", max_size=40))
def test_no_declaration_breaks_out(text: str) -> None:
    try:
        read = read_declarations(text)
    except RuleError:
        return
    assert not any(mark in read for mark in "{}<>@\\\n")
    assert "/*" not in read
