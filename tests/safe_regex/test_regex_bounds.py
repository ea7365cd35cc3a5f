"""Bounds of expressions at their edges: how long they are, and on which URLs they are affordable."""

from contextlib import suppress

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex import cost_guard, re2
from gatewayfilter.safe_regex.cost_guard import CostlyError, _Cost, _first, _guard_tree, _is_anchored, _loops, _nullable
from gatewayfilter.safe_regex.re2 import compile_linear
from gatewayfilter.safe_regex.syntax import EVERY, parse_regex


def test_an_expression_may_be_as_long_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(re2, "MAX_LENGTH", 10)
    assert compile_linear("a" * 10, "").search("a" * 10) is not None
    with pytest.raises(RuleError):
        compile_linear("a" * 11, "")


def test_an_expression_has_to_be_affordable_on_urls_of_some_length(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = parse_regex("x[a-z]*!y", match_case=False)
    monkeypatch.setattr(cost_guard, "STEP_BUDGET", 100_000)
    most = _guard_tree(tree, match_case=False).max_length
    assert 1 < most < 1_000
    monkeypatch.setattr(cost_guard, "MIN_URL_LENGTH", most)
    assert _guard_tree(tree, match_case=False).max_length == most
    monkeypatch.setattr(cost_guard, "MIN_URL_LENGTH", most + 1)
    with pytest.raises(CostlyError):
        _guard_tree(tree, match_case=False)


A, B = 1 << ord("a"), 1 << ord("b")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ab", A), ("a?b", A | B), ("a|b", A | B), ("a*", A), ("(?:ab)*", A), ("(?:a?b?)c?", A | B | 1 << ord("c")), ("", 0),
        ("(?=b)a", A), ("(?=b*)a", EVERY), ("^a", A), ("(?=(?=b)a)a", A), ("(?=(?=b*)a)a", EVERY), ("(?=^)a", A),
        ("(?=a|b*)a", EVERY), ("(?=(?:b*c)?)a", EVERY), ("(?=b{49})a", A),
    ],
)  # fmt: skip
def test_what_a_match_can_begin_with(text: str, first: int) -> None:
    """A look-around without a long repetition takes no characters."""
    assert _first(parse_regex(text, match_case=True)) == first


@pytest.mark.parametrize(
    ("text", "nullable", "anchored", "loops"),
    [
        ("a", False, False, False), ("", True, False, False), ("^", True, True, False), ("^a", False, True, False),
        ("a?", True, False, False), ("a*", True, False, True), ("a+", False, False, True), ("(?:a?)+", True, False, True),
        ("a?b", False, False, False), ("a?b*", True, False, True), ("a|b", False, False, False), ("a|", True, False, False),
        ("^a|^b*", True, True, True), ("^a|b", False, False, False), ("a^", False, False, False), ("$", True, False, False),
        ("(?=a*)", True, False, True), ("(?=a)", True, False, False), ("(?:b*c)?", True, False, True),
        ("a{50}", False, False, False),
        ("a{0,50}", True, False, True), ("a{250}", False, False, True), ("(?:a{10}){25}", False, False, True),
    ],
)  # fmt: skip
def test_what_there_is_to_a_part(text: str, *, nullable: bool, anchored: bool, loops: bool) -> None:
    node = parse_regex(text, match_case=True)
    assert _nullable(node) is nullable
    assert _is_anchored(node) is anchored
    assert _loops(node) is loops


@pytest.mark.parametrize(
    ("text", "run_over"),
    [("xa*", A), ("x(?:ab)*", A | B), ("x(?:a\\b|b?)+", A | B), ("x(?:a{3}){99}y", A), ("xab", 0), ("x(?=a*)b", A)],
)
def test_what_long_repetitions_run_over(text: str, run_over: int) -> None:
    cost = _Cost()
    with suppress(CostlyError):
        cost.visit(parse_regex(text, match_case=True), 0, in_loop=False)
    assert cost.loop_characters == run_over


def test_references_of_a_replacement() -> None:
    compiled = compile_linear("(a)(?P<second>b)?", "")
    for replacement, text in (
        ("[$&]", "[ab]"), ("$1-$2", "a-b"), ("$<second>", "b"), ("$$1", "$1"), ("$0", "$0"), ("$3", "$3"), ("plain", "plain"),
    ):  # fmt: skip
        expand = re2._template(replacement, compiled.groups, compiled.groupindex)
        match = compiled.search("xab")
        assert match is not None
        assert expand(match) == text, replacement
    unmatched = compiled.search("xa")
    assert unmatched is not None
    assert re2._template("<$2>", compiled.groups, compiled.groupindex)(unmatched) == "<>"
    with pytest.raises(RuleError, match="no group <third>"):
        re2._template("$<third>", compiled.groups, compiled.groupindex)
