"""Regular expressions of lists: translated faithfully, refused when they could run away."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.regex_guard import MIN_URL_LENGTH, guard_regex
from gatewayfilter.errors import RuleError


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+",
        "(a*)*b",
        "(a|a)*b",
        "(a|b|ab)*c",
        "(?:.*)+x",
        "(a?){3}b",
        "([a-z]+)*@",
        "(x+x+)+y",
        "(.*a){20}",
        "(a?b?)*c",
    ],
)
def test_exponential_expressions_are_refused(text: str) -> None:
    with pytest.raises(RuleError, match="exponential"):
        guard_regex(text)


@pytest.mark.parametrize("text", [".*.*.*x", "[a-z]+[a-z]+[a-z]+", "a?" * 900, "(?:a|a)" * 60, "x*" * 600])
def test_costly_expressions_are_refused(text: str) -> None:
    with pytest.raises(RuleError, match="costly"):
        guard_regex(text)


@pytest.mark.parametrize(
    "text",
    [
        "(",
        ")",
        "a)",
        "[",
        "[^",
        "a**",
        "*",
        "+a",
        "a{2,1}",
        "\\",
        "(?<x",
        "(?<a b>c)",
        "(?P<a>b)",
        "(?i)a",
        r"(a)\1",
        r"\k<a>",
        r"\p{L}",
        r"\cA",
        r"\u12",
        r"\xg1",
        "[z-a]",
        "^*",
        "a{1,9999}",
        "a{99999999999}",
        "(" * 50 + ")" * 50,
        "a" * 3000,
        r"(?<=a+)b",
        "a{2}{3}",
    ],
)
def test_expressions_that_are_not_supported_are_refused(text: str) -> None:
    with pytest.raises(RuleError):
        guard_regex(text)


@pytest.mark.parametrize(
    ("text", "matches", "misses"),
    [
        (r"^https?:\/\/ads\d{2,}\.", ["https://ads12.x/", "http://ads123.x/"], ["https://ads1.x/"]),
        (r"[^/]+\.com", ["a.com"], ["/.com"]),
        (r"[\w-]+=", ["a-b="], ["/="]),
        (r"[a-c-e]x", ["ax", "-x", "ex"], ["dx"]),
        (r"[]a]", [], ["a", "]"]),
        (r"a{,3}", ["a{,3}"], ["aa"]),
        (r"a{2}", ["aa"], ["a{2}"]),
        (r"a{x", ["a{x"], ["aa"]),
        (r"(?:ab|ac)+d", ["abacd"], ["d"]),
        (r"(?<year>\d{4})", ["2026"], ["206"]),
        (r"(?!b)[a-c]x", ["ax"], ["bx"]),
        (r"(?<=a)x", ["ax"], ["bx"]),
        (r"(?<!a)x", ["bx"], ["ax"]),
        (r"\x61\u0062", ["ab"], ["x61"]),
        (r"a\/b\-c", ["a/b-c"], ["abc"]),
        (r"[\s\S]x", ["/x"], ["x"]),
        (r"[\]\-]x", ["]x", "-x"], ["ax"]),
        (r"\.js$", ["a.js"], ["a.jsx"]),
        (r"a.c", ["abc", "a/c"], ["ac"]),
        (r"x+?y", ["xxy"], ["y"]),
        (r"", ["", "a"], []),
        (r"a||b", ["", "a"], []),
        (r"é", [], ["e", "%c3%a9"]),
    ],
)
def test_translation(text: str, matches: list[str], misses: list[str]) -> None:
    if text == "[]a]":  # in JavaScript an empty class, which nothing matches, and then `a]`
        assert guard_regex(text).compile().search("a]") is None
        return
    search = guard_regex(text).compile().search
    assert [url for url in matches if search(url) is None] == []
    assert [url for url in misses if search(url) is not None] == []


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        (r"^https?:\/\/ads\.", ("http", "://ads.")),
        (r"AD[sS]x", ("adsx",)),
        (r"a(bc)d", ("abcd",)),
        (r"a(?:b|c)d", ("a", "d")),
        (r"a(bc)?d", ("a", "d")),
        (r"a(bc)+d", ("a", "bc", "d")),
        (r"ab{2}c", ("a", "b", "c")),
        (r"a\bb", ("ab",)),
        (r"[ab]c", ("c",)),
        (r"(?=x)y", ("y",)),
        (r".*", ()),
    ],
)
def test_literals(text: str, literals: tuple[str, ...]) -> None:
    assert guard_regex(text).literals == literals


@pytest.mark.parametrize(
    ("text", "shortest", "longest"),
    [(r"^https:\/\/[a-z]+\.net\/x", 65_536, 65_536), (r".*\/ad", 1_000, 4_000), (r"^a.*b.*c", 500, 2_000)],
)
def test_the_costlier_the_shorter_the_urls(text: str, shortest: int, longest: int) -> None:
    assert MIN_URL_LENGTH <= shortest <= guard_regex(text).max_length <= longest


ATOMS = st.sampled_from(
    ["a", "b", "ab", ".", "[ab]", "[^a]", r"\d", r"\w", "1", r"\.", "(?:a|b)", "(?:ab|c)", "^", "$", "(?=a)", "(?!b)"]
)
QUANTIFIERS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?"])


@given(st.lists(st.tuples(ATOMS, QUANTIFIERS), max_size=5), st.text(alphabet="ab1.c/", max_size=12))
def test_translation_means_the_same(parts: list[tuple[str, str]], text: str) -> None:
    expression = "".join(atom + quantifier for atom, quantifier in parts)
    try:
        guarded = guard_regex(expression, match_case=True)
    except RuleError:
        return
    found = guarded.compile().search(text)
    assert (found is None) is (re.search(expression, text) is None)
    if found is not None:
        assert all(literal in text for literal in guarded.literals)


@given(text=st.text(alphabet="ab(|)*+?{}[]^$\\.,-12:=!<>dwsux/é", max_size=30), match_case=st.booleans())
def test_no_expression_raises_anything_else(text: str, *, match_case: bool) -> None:
    try:
        guarded = guard_regex(text, match_case=match_case)
    except RuleError:
        return
    guarded.compile().search("https://abab12.example.com/abba?a=b"[: guarded.max_length])
