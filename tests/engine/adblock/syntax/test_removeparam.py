"""Values of `removeparam=`, and what is left of a query: `gatewayfilter.engine.adblock.syntax.removeparam`."""

import pytest

from gatewayfilter.engine.adblock.syntax.removeparam import may_name, read_param, spellings, split_flags, text_test, without
from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex.cost_guard import guard_regex


def test_expressions_stand_between_slashes() -> None:
    for value, found in (
        ("/a/", ("a", "")), ("/a/i", ("a", "i")), ("/a/gi", ("a", "gi")), ("/a/b/", ("a/b", "")), ("/a/1", None), ("/a", None),
        ("//", None), ("//i", None), ("/", None), ("", None), ("a/b/", None), ("/a/b c", None),
    ):  # fmt: skip
        assert split_flags(value) == found, value


def test_texts_that_an_expression_finds() -> None:
    for expression, flags, text, found in (
        ("b", "", "abc", True), ("B", "", "abc", False), ("B", "i", "abc", True), ("b", "i", "ABC", True), ("B", "", "ABC", True),
        ("(b+)+$", "", "ab", True), ("(b+)+$", "", "a\ud800b", False),
    ):  # fmt: skip
        assert text_test(expression, flags)(text) is found, (expression, flags, text)
    longest = guard_regex("b").max_length
    assert text_test("b", "")("b" * longest) is True
    assert text_test("b", "")("b" * (longest + 1)) is False
    for flags in ("g", "ii", "I"):
        with pytest.raises(RuleError, match=f"unknown flags '{flags}'"):
            text_test("a", flags)
    with pytest.raises(RuleError, match=f"unknown flags '{'g' * 20}' of"):
        text_test("a", "g" * 21)


def test_which_parameters_go() -> None:
    query = "?a=1&ab=2&b=x+y&c=%41&&d"
    for value, name, left in (
        ("", "", ""), ("a", "a", "?ab=2&b=x+y&c=%41&&d"), ("A", "A", query), ("d", "d", "?a=1&ab=2&b=x+y&c=%41&"),
        ("~a", "", "?a=1&"), ("/^a/", "", "?b=x+y&c=%41&&d"), ("~/^a/", "", "?a=1&ab=2&"), ("/=x y$/", "", "?a=1&ab=2&c=%41&&d"),
        ("/^c=A$/", "", "?a=1&ab=2&b=x+y&&d"), ("/^C=a$/i", "", "?a=1&ab=2&b=x+y&&d"), ("|a", "", "?b=x+y&c=%41&&d"),
        ("~|a", "", "?a=1&ab=2&"), ("|b=x+", "", "?a=1&ab=2&c=%41&&d"), ("x", "x", query),
    ):  # fmt: skip
        found = read_param(value)
        assert found.name == name, value
        assert without(query, found.removes) == left, value
    with pytest.raises(RuleError, match="names no parameter"):
        read_param("~")


def test_names_are_compared_as_they_are_meant() -> None:
    for query, left in (("?a+b=1", ""), ("?a%20b=1&c", "?c"), ("?a b", ""), ("?ab=1", "?ab=1"), ("?&a+b&", "")):
        assert without(query, read_param("a b").removes) == left, query


def test_a_quick_look_at_a_query() -> None:
    for name, query, may in (
        ("a", "?a=1", True), ("a", "?b=1&a", True), ("a", "?b=a", True), ("a", "?ab=1", False), ("a", "?b=1&c=2", False),
        ("a", "?%61=1", True), ("a", "?b=%2F", False), ("a/b", "?a%2fb=1", True), ("a/b", "?a%2Fb=1", True),
        ("a b", "?a+b", True),
        ("a b", "?a%20b", True), ("a b", "?ab", False),
    ):  # fmt: skip
        assert may_name(query, spellings(name)) is may, (name, query)
