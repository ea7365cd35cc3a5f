"""Directives of filter lists, at their edges: `gatewayfilter.engine.adblock.syntax.preprocessor`."""

import pytest

from gatewayfilter.engine.adblock.syntax.preprocessor import MAX_DEPTH, Preprocessor, evaluate
from gatewayfilter.errors import RuleError


def after(*lines: str) -> list[bool]:
    """Returns whether lines count behind each of these directives."""
    preprocessor = Preprocessor()
    assert preprocessor.active
    return [preprocessor.directive(line) == "" and preprocessor.active for line in lines]


def test_which_lines_count() -> None:
    for lines, counts in (
        (("!#if true", "!#endif"), (True, True)), (("!#if false", "!#endif"), (False, True)),
        (("!#if true", "!#else", "!#endif"), (True, False, True)), (("!#if false", "!#else", "!#endif"), (False, True, True)),
        (("!#if false", "!#if true", "!#else", "!#endif", "!#else"), (False, False, False, False, True)),
        (("!#if true", "!#if false", "!#endif", "!#else"), (True, False, True, False)),
        (("!#  if   true  ", "!# endif "), (True, True)), (("!#iffy false", "!#elsewhere", "!#safari_cb_affinity"), (True,) * 3),
    ):  # fmt: skip
        assert after(*lines) == list(counts), lines


def test_an_include_is_told_where_it_counts() -> None:
    preprocessor = Preprocessor()
    assert preprocessor.directive("!#include a.txt") == "!#include"
    preprocessor.directive("!#if false")
    assert preprocessor.directive("!#include a.txt") == ""
    preprocessor.directive("!#else")
    assert preprocessor.directive("!#include a.txt") == "!#include"


def test_a_condition_that_cannot_be_read_is_closed_like_any_other() -> None:
    preprocessor = Preprocessor()
    with pytest.raises(RuleError, match="cannot be read"):
        preprocessor.directive("!#if (")
    counts = [preprocessor.active]
    for line in ("!#else", "!#endif"):
        preprocessor.directive(line)
        counts.append(preprocessor.active)
    assert counts == [False, True, True]
    for line in ("!#else", "!#endif"):
        with pytest.raises(RuleError, match="without '!#if'"):
            preprocessor.directive(line)


def test_conditions_are_nested_so_deeply_and_no_deeper() -> None:
    preprocessor = Preprocessor()
    for _ in range(MAX_DEPTH):
        preprocessor.directive("!#if true")
    with pytest.raises(RuleError, match="nested too deeply"):
        preprocessor.directive("!#if false")
    counts = [preprocessor.active]
    for line in ("!#endif", "!#if false"):
        preprocessor.directive(line)
        counts.append(preprocessor.active)
    assert counts == [True, True, False]


def test_a_condition_has_at_most_a_hundred_words() -> None:
    assert evaluate("!" * 99 + "false") is True
    assert evaluate("false" + " || true" * 49) is True
    for condition in ("!" * 100 + "false", "false" + " || true" * 50):
        with pytest.raises(RuleError, match=f"^the condition '{condition[:100].replace('|', '[|]')}' cannot be read$"):
            evaluate(condition)


def test_how_conditions_are_joined() -> None:
    for condition, holds in (
        ("false || false || true", True), ("true && true && false", False), ("true || false && false", True),
        ("(true || false) && false", False), ("true && (false || true)", True), ("!true || true", True),
        ("!(true && false)", True), ("true&&!false", True), (" _true ", False),
    ):  # fmt: skip
        assert evaluate(condition) is holds, condition
