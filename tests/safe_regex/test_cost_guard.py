"""The cost that is found for an expression, in figures, and the expression that is searched for in its place."""

from contextlib import nullcontext

import pytest

from gatewayfilter.safe_regex import cost_guard
from gatewayfilter.safe_regex.cost_guard import CostlyError, GuardedRegex, _guard_tree, _without_free_ends, guard_regex
from gatewayfilter.safe_regex.re2 import compile_linear
from gatewayfilter.safe_regex.syntax import parse_regex
from gatewayfilter.urls import MAX_URL_LENGTH

LINEAR = (
    # every character is compared from every place where a match may begin
    ("abc", 4, 0), ("", 1, 0), ("a{60}", 61, 0), ("xa{3}ay", 7, 0), ("x(?:ab){3}y", 9, 0), ("x(?:ab|cde)y", 6, 0),
    ("x(?=abc)y", 6, 0), ("x\\by", 3, 0), ("x(?:ab)*y", 5, 0), ("x\\ba*y", 4, 0), ("a+b+", 3, 0), ("b" * 99, 100, 0),
    # once, where it can begin at the start alone
    ("^abc", 1, 3), ("^a|^b", 2, 2), ("^a|b", 4, 0), ("^x|^", 2, 2), ("^a(?:b|bc)d", 2, 8), ("^a.*b", 2, 6), ("^a*b", 1, 2),
    ("^(?:a*b|a*c)d", 2, 6), ("\\ba", 2, 0), ("(?:^a|^b)c", 2, 4), ("a^", 2, 0),
    # times the ways in which branches and repetitions can match the same
    ("a(?:b|bc)d", 10, 0), ("x(?:a|b|c)y", 4, 0), ("x(?:a|b|ab)y", 10, 0), ("x(?:ab|ac)y", 5, 0), ("x(?:ab|ab|ab)y", 15, 0),
    ("xa?ay", 10, 0), ("xa*ay", 10, 0), ("xa+ay", 10, 0), ("xa{2,4}ay", 24, 0), ("x(?:b+b|c)y", 20, 0), ("x(?:ab)+ay", 12, 0),
    ("x(?:a(?:b+c)?)ay", 7, 0), ("x(?:ab*|ac*)y", 10, 0), ("xa?b?ay", 12, 0), ("xa*b{0,2}ay", 14, 0), ("x(?:a?)by", 5, 0),
    # a wide repetition counts as a long one, its body once
    ("xa{1,50}by", 54, 0), ("xa{1,51}by", 5, 0), ("xa{249}by", 253, 0), ("xa{250}by", 5, 0), ("x(?:[a-z]{10}){24}y", 243, 0),
)  # fmt: skip
"""Expression → steps for each place of a text, and steps once, of an expression whose cost is linear."""

LONGER = (
    ("a.*b", 2, 2, 1414), ("^.*x.*y", 2, 4, 1000), ("x[a-z]*az!", 2, 2, 1414), ("x(?=[a-z]*!)y", 2, 1, 2000),
    ("x(?:a(?=b*c))+y", 2, 1, 2000), ("x(?:a(?=bc))+y", 1, 6, MAX_URL_LENGTH), ("x(?:[a-z]{10}){25}y", 2, 1, 2000),
    ("x(?:y[^a]*)", 2, 1, 2000), ("x(?:y[^a]*z?)", 2, 2, 1414), ("x(?:[a-z]+,)*y", 2, 2, 1414), ("(?!a*b)a*", 2, 1, 2000),
    ("x(?=a*b)(?=c*d)[a-z]*y", 2, 2, 1414), ("[a-z]*b[a-z]*1", 2, 1, 2000), ("^(?:a*b|[a-z]*[a-y]*)d", 2, 8, 707),
    ("x[a-z]*(?:1?2?)a!", 2, 2, 1414), ("x[a-z]*(?:1|)a!", 2, 4, 1000), ("x[a-z]*(?:1|2)a!", 2, 1, 2000),
    ("x(?:(?=ab*c)a)*y", 2, 2, 1414),
    ("x[a-z]*!" + "1" * 46, 2, 1, 2000), ("x[a-z]*!" + "1" * 47, 2, 2, 1414), ("x[a-z]*!" + "1" * 97, 2, 3, 1154),
)  # fmt: skip
"""Expression → power of the length, factor, and the longest URL for it."""


def guarded(text: str) -> GuardedRegex:
    return _guard_tree(_without_free_ends(parse_regex(text, match_case=False)), match_case=False)


def test_what_linear_expressions_cost() -> None:
    for text, factor, once in LINEAR:
        found = guarded(text)
        assert (found.degree, found.max_length, found.factor, found.once) == (1, MAX_URL_LENGTH, factor, once), text


def test_what_other_expressions_cost() -> None:
    for text, degree, factor, longest in LONGER:
        found = guarded(text)
        assert (found.degree, found.factor, found.once, found.max_length) == (degree, factor, 0, longest), text


def test_steps_of_a_search() -> None:
    found = GuardedRegex("a", 20, match_case=False, literals=(), degree=2, factor=3, once=5)
    assert [found.steps(length) for length in (0, 10, 20, 21)] == [5, 305, 1205, 1205]
    assert GuardedRegex("a", MAX_URL_LENGTH, match_case=False, literals=()).steps() == MAX_URL_LENGTH


@pytest.mark.parametrize("match_case", [False, True])
def test_what_is_left_to_re2_costs_what_its_program_does(monkeypatch: pytest.MonkeyPatch, *, match_case: bool) -> None:
    text = "x.*[Aé].*.*x|B"
    monkeypatch.setattr(cost_guard, "_INSTRUCTIONS", 2)
    guard_regex.cache_clear()
    found = guard_regex(text, match_case=match_case)
    guard_regex.cache_clear()
    size = compile_linear(text, "" if match_case else "i").programsize
    assert size != compile_linear(text, "i" if match_case else "").programsize
    assert (found.linear, found.text, found.max_length, found.match_case) == (True, text, MAX_URL_LENGTH, match_case)
    assert (found.degree, found.factor, found.once) == (1, cost_guard._LINEAR_STEPS + size // 2, 0)
    assert (found.compile().search("b") is None) is match_case


def test_an_expression_that_re2_lacks_is_tried_on_short_urls_or_refused() -> None:
    assert guard_regex("(?=a)x.*a").max_length < MAX_URL_LENGTH
    with pytest.raises(CostlyError):
        guard_regex("(?=a)x.*a.*b.*c")


@pytest.mark.parametrize(
    ("text", "most"), [("x" + "(?:a|a)" * 21 + "y", 2**21), ("x" + "(?:a|a)" * 22 + "y", 0), ("x(?:(?:a|a)b)?y", 2)]
)
def test_ways_are_counted_up_to_the_budget(text: str, most: int) -> None:
    """One more alternative in each branch doubles them."""
    if most:
        cost = cost_guard._Cost()
        cost.visit(parse_regex(text, match_case=False), 0, in_loop=False)
        assert cost.factor == most
    else:
        with pytest.raises(CostlyError, match="costly"):
            guarded(text)


TRANSLATED = (
    ("a", "a", "a"), ("A", "a", "A"), ("[ab]", r"[\x61-\x62]", r"[\x61-\x62]"), ("[^a]", r"[^\x41\x61]", r"[^\x61]"),
    ("[a-cx-z]", r"[\x61-\x63\x78-\x7a]", r"[\x61-\x63\x78-\x7a]"), ("é", r"[^\x00-\x7f]", r"[^\x00-\x7f]"),
    ("[^é]", r"[\x00-\x7f]", r"[\x00-\x7f]"), (".", r"[^\x0a\x0d]", r"[^\x0a\x0d]"), (r"\d", r"[\x30-\x39]", r"[\x30-\x39]"),
    (r"\W", r"[^\x30-\x39\x41-\x5a\x5f\x61-\x7a]", r"[^\x30-\x39\x41-\x5a\x5f\x61-\x7a]"),
    ("[-a]", r"[\x2d\x61]", r"[\x2d\x61]"),
    ("[Aa]", "a", r"[\x41\x61]"), (r"[\0-?]", r"[\x00-\x3f]", r"[\x00-\x3f]"), (r"[\0-@]", r"[^\x41-\x7f]", r"[^\x41-\x7f]"),
    ("a{2}", "a{2,2}", "a{2,2}"), ("a{2,}", "a{2,}", "a{2,}"), ("a{0,1}", "a?", "a?"), ("a{1,1}", "a{1,1}", "a{1,1}"),
    ("a{0,2}", "a{0,2}", "a{0,2}"), ("a*", "a*", "a*"), ("a+?", "a+?", "a+?"), ("a{2,3}?", "a{2,3}?", "a{2,3}?"),
    ("(?:ab)*", "(?:ab)*", "(?:ab)*"), ("(?:a|b)+", "(?:a|b)+", "(?:a|b)+"), ("(?=ab)", "(?=ab)", "(?=ab)"),
    ("(?!a|b)", "(?!a|b)", "(?!a|b)"), ("(?<=A)", "(?<=a)", "(?<=A)"), ("(?:a|b)", "(?:a|b)", "(?:a|b)"), ("$", r"\Z", r"\Z"),
    (r"\b", r"\b", r"\b"), ("^", "^", "^"), ("(a)", "a", "a"),
)  # fmt: skip
"""Expression → what is searched for in its place, in URLs of lower case and as they are written."""


def test_what_is_searched_for() -> None:
    for text, lower, exact in TRANSLATED:
        assert guard_regex(f"x{text}y").text == f"x{lower}y", text
        assert guard_regex(f"x{text}y", match_case=True).text == f"x{exact}y", text
    for text, searched in (
        ("a|b", "a|b"),
        ("a*|b{2,}|x?c{3}y?", "|b{2,2}|c{3,3}"),
        ("a{1,}", "a{1,1}"),
        ("(?:ab){2,4}", "(?:ab){2,2}"),
    ):
        assert guard_regex(text).text == searched


@pytest.mark.parametrize(
    ("text", "costly"),
    [
        ("x(?:a?)*y", True), ("x(?:a*){2}y", True), ("x(?:a?){2,3}y", True), ("x(?:a?)?y", False), ("x(?:a?){1}y", False),
        ("x(?:|a)+y", True), ("x(?:a(?:b|))+y", True), ("x(?:a|ab)*y", True), ("x(?:a|b)*y", False),
        ("x(?:ab|ac)*y", False), ("x(?:ab?a)*y", False), ("x(?:ab?b)*y", True), ("x(?:ab?)*b", True), ("x(?:ab?)*ay", False),
        ("x(?:ab?)*cy", False), ("x(?:b?a)?by", False), ("x(?:ab*(?=c))*y", False), ("x(?:(?=ab*c)a)*y", False),
    ],
)  # fmt: skip
def test_ambiguity_inside_a_repetition(text: str, *, costly: bool) -> None:
    with pytest.raises(CostlyError, match="exponential") if costly else nullcontext():
        guarded(f"{text}(?=!)!")
