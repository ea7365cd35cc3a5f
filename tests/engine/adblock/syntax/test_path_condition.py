"""The condition `:matches-path()`, at its edges: `gatewayfilter.engine.adblock.syntax.path_condition`."""

import pytest

from gatewayfilter.engine.adblock.syntax.path_condition import MAX_PATH, PathCondition, split_path
from gatewayfilter.errors import RuleError, UnsupportedError


def test_the_condition_is_taken_out() -> None:
    for body, selector, argument, negated in (
        (".a:matches-path( /b ) .c", ".a .c", "/b", False), (":matches-path(/b).c", ".c", "/b", False),
        (".a > :matches-path(/b)", ".a > *", "/b", False), (".a +:matches-path(/b)", ".a +*", "/b", False),
        (".a~:matches-path(/b)", ".a~*", "/b", False), (".a:matches-path(/b)", ".a", "/b", False),
        (":not(:matches-path(/b)) .c", ".c", "/b", True),
        (":not(:matches-path(/b)).c", ".c", "/b", True), (".a:not(:matches-path(/b))", ".a", "/b", True),
        (r".a:matches-path(/b\(c)", ".a", r"/b\(c", False), (".a:matches-path(/(b(c))d)", ".a", "/(b(c))d", False),
        (r".a:matches-path(\\)", ".a", r"\\", False), (".a[b=',']:matches-path(/b)", ".a[b=',']", "/b", False),
        (".a:is(.b,.c):matches-path(/b)", ".a:is(.b,.c)", "/b", False), (r".a\,b:matches-path(/b)", r".a\,b", "/b", False),
        (".a:matches-path(/b):is(.c,.d)", ".a:is(.c,.d)", "/b", False),
        (""".a[b="'"]:matches-path(/b)""", """.a[b="'"]""", "/b", False),
        (".a[b=')']:matches-path(/b)", ".a[b=')']", "/b", False),
    ):  # fmt: skip
        assert split_path(body) == (selector, PathCondition(argument, negated))


def test_a_selector_without_one_stays_as_it_is() -> None:
    assert split_path(" .a:matches-pat(/b) ") == (" .a:matches-pat(/b) ", None)


def test_a_condition_of_a_part_is_not_supported() -> None:
    for body in (
        r".a\,b,.c:matches-path(/b)",
        ".a,.b:matches-path(/b)", ".a:matches-path(/b),.c", ":is(.a:matches-path(/b))", ".a:matches-path(/b):matches-path(/c)",
        ":matches-path(/b)", " :matches-path(/b) ", ":not(:matches-path(/b) .c)", ".a[b='c:matches-path(/b)",
        ".a:matches-path(/b))", ".a[b:matches-path(/b)", ".a:matches-path(/b)]", ".a:matches-path(/b)'",
    ):  # fmt: skip
        with pytest.raises(UnsupportedError):
            split_path(body)


def test_a_wrong_condition_is_refused() -> None:
    for body, why in (
        (".a:matches-path()", "has no argument"), (".a:matches-path( )", "has no argument"),
        (".a:matches-path(/b", "is not closed"), (r".a:matches-path(/b\)", "is not closed"),
        (".a:matches-path((b)", "is not closed"), (".a:matches-path(/[/)", "regular expression"),
    ):  # fmt: skip
        with pytest.raises(RuleError, match=why):
            split_path(body)


def test_where_a_condition_holds() -> None:
    for argument, path, holds in (
        ("/b", "/a/b", True), ("/b", "/a", False), ("/B", "/b", False), ("/^.b/", "/b", True), ("/^.b/", "/ab", False),
        ("/B/", "/B", True), ("/B/", "/b", False), ("/B/i", "/xb", True), ("/b/i", "/B", True), ("/b", "/b" + "x" * 9_999, True),
        ("/^.b/", "/b" + "x" * (MAX_PATH - 2), True), ("//", "//", True), ("//", "/", False),
    ):  # fmt: skip
        assert PathCondition(argument, negated=False).holds(path) is holds
        assert PathCondition(argument, negated=True).holds(path) is not holds


def test_on_a_long_path_neither_an_expression_nor_its_opposite_holds() -> None:
    for negated in (False, True):
        assert PathCondition("/^.b/", negated).holds("/b" + "x" * (MAX_PATH - 1)) is False
