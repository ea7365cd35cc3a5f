"""Bounds of expressions at their edges: how long they are, and on which URLs they are affordable."""

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex import cost_guard, re2
from gatewayfilter.safe_regex.cost_guard import CostlyError, _first, _guard_tree
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


def test_what_a_match_can_begin_with() -> None:
    def first(text: str) -> int:
        return _first(parse_regex(text, match_case=False))

    a, b = 1 << ord("a"), 1 << ord("b")
    assert first("ab") & (a | b) == a
    assert first("a?b") & (a | b) == a | b
    assert first("a|b") & (a | b) == a | b
    assert first("(?=b)a") & (a | b) == a, "a look-around without a long repetition takes no characters"
    assert first("(?=b*)a") == EVERY
    assert first("^a") & (a | b) == a


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
