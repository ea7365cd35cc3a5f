"""What the regular expressions of lists cost together has a bound, and no URL gets past a rule by being long."""

import pytest

from gatewayfilter.engine.adblock import regex_budget
from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index.pattern import LONG, compile_pattern
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.regex_budget import ALL_STEPS, LIST_STEPS, steps_of
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.adblock.syntax.removeparam import text_test
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.safe_regex.cost_guard import STEP_BUDGET, guard_regex
from gatewayfilter.urls import MAX_URL_LENGTH, parse_url
from tests.case_tables import all_cases

HOSTILE = (
    "(a+)+q{number}$",
    "(a{{1,50}}){{1,50}}b{number}",
    "(?=[^!]*!)[0-9]{number}",
    "x[a-z]*a[a-z]*!{number}",
    "(?:a|aa|aaa){{8}}!{number}",
    "(?:(?:a|b){{1,20}}){{20}}c{number}",
    ".{{30}}!{number}",
)


def hostile_list(size: int) -> list[str]:
    return [f"/{HOSTILE[number % len(HOSTILE)].format(number=number)}/" for number in range(size)]


@pytest.mark.slow
def test_the_expressions_of_one_list_have_a_bound_together() -> None:
    lines = hostile_list(2_000)
    report = AdblockBuilder().add_list(0, [*lines, "||ads.example.com^"])
    assert report.refused > 0
    assert report.samples[0][2] == "the regular expressions of the list cost too much together"
    assert report.accepted > 1  # the first of them, and what is no expression
    least = min(steps_of(parse_line(line).rules[0]) for line in lines)
    assert (report.accepted - 1) * least <= LIST_STEPS


def test_budgets_are_spent_to_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, plain = (parse_line(line).rules[0] for line in ("/a(b+)+c/", "||a.test^$domain=b.test"))
    monkeypatch.setattr(regex_budget, "LIST_STEPS", 2 * steps_of(rule))
    monkeypatch.setattr(regex_budget, "ALL_STEPS", 3 * steps_of(rule))
    budget = regex_budget.RegexBudget()
    too_much = "the regular expressions of {} cost too much together"
    assert [budget.refusal(rule) for _ in range(3)] == ["", "", too_much.format("the list")]
    budget.begin_list()
    assert [budget.refusal(rule) for _ in range(3)] == ["", *[too_much.format("all lists")] * 2]
    assert budget.refusal(plain) == ""


def test_the_expressions_of_a_rule_are_added_up() -> None:
    whole, host = guard_regex("(a+)+b"), guard_regex("^(a+)+$")
    for line, steps in (
        ("/(a+)+b/", whole.steps()), ("||e.test^$header=x:/(a+)+b/", whole.steps()), ("||e.test^$header=x", 0),
        ("||e.test^$header=x: ~/(a+)+b/", whole.steps()), ("||e.test^$removeparam=~/(a+)+b/", whole.steps()),
        ("||e.test^$domain=/^(a+)+$/", host.steps(253)), ("||e.test^$domain=/^(a+)+$/|~/^(a+)+$/", 2 * host.steps(253)),
        ("||e.test^$to=/^(a+)+$/,denyallow=/^(a+)+$/", 2 * host.steps(253)), ("||e.test^$removeparam=a", 0), ("||e.test^", 0),
        ("/(a+)+b/$header=x:/(a+)+b/,ipaddress=/(a+)+b/,domain=/^(a+)+$/", 3 * whole.steps() + host.steps(253)),
    ):  # fmt: skip
        assert steps_of(parse_line(line).rules[0]) == steps, line


@pytest.mark.slow
def test_all_lists_have_a_bound_together() -> None:
    builder = AdblockBuilder()
    expensive = [f"/(a{{1,50}}){{1,50}}b{number}c/" for number in range(2_000)]
    cost = steps_of(parse_line(expensive[0]).rules[0])
    reports = [builder.add_list(number, expensive) for number in range(6)]
    assert sum(report.accepted for report in reports) * cost <= ALL_STEPS
    assert reports[0].accepted * cost <= LIST_STEPS
    assert reports[-1].samples[0][2] == "the regular expressions of all lists cost too much together"


@all_cases(
    "line",
    [
        r"/a(b+)+c/",
        r"*$script,domain=/^(a+)+\.example$/|b.example",
        r"||example.com^$removeparam=/^(a+)+=/",
        r"||example.com^$script,header=x-ads:/(a+)+b/",
        r"||example.com^$script,ipaddress=/^10\.(1+)+$/",
    ],
)
def test_expressions_count_wherever_they_stand(line: str) -> None:
    assert sum(map(steps_of, parse_line(line).rules)) > 0


@all_cases("text", ["a", "^https?:\\/\\/", "(a+)+$", "x[a-z]*a[a-z]*!", "(?=[^!]*!)[0-9]", "(a{1,50}){1,50}b"])
def test_no_expression_costs_more_than_its_bound(text: str) -> None:
    guarded = guard_regex(text)
    assert 0 < guarded.steps() <= LIST_STEPS
    assert guarded.steps(100) < guarded.steps()
    if guarded.degree > 1:
        assert guarded.steps() <= STEP_BUDGET


def test_every_place_where_a_match_may_begin_counts() -> None:
    assert guard_regex("[a-z]{40}b").steps() >= 40 * MAX_URL_LENGTH
    assert guard_regex("^[a-z]{40}b").steps() < 2 * MAX_URL_LENGTH


@all_cases("text", ["casino.*bonus.*win", "(?:ca|sino)+.*x.*bonus", "x[a-z]*a[a-z]*!"])
def test_a_long_url_does_not_get_past_an_expression(text: str) -> None:
    assert guard_regex(text).max_length == MAX_URL_LENGTH


def test_padding_does_not_open_a_page_that_an_expression_blocks() -> None:
    builder = AdblockBuilder()
    builder.add_list(0, [r"/casino.*bonus.*win/"])
    matcher = AdblockMatcher(builder.build())
    for padding in (0, 2_000, 60_000):
        url = parse_url(f"https://site.example/casino/{'y' * padding}/bonus/win.js")
        found = matcher.match(Request(url, parse_url("https://page.example/"), ResourceType.SCRIPT))
        assert found is not None, padding


def test_what_looks_around_and_backtracks_is_tried_on_short_urls_alone() -> None:
    longest = guard_regex("^a.*b.*c(?!d)").max_length
    assert longest < LONG
    test = compile_pattern(parse_line("/^a.*b.*c(?!d)/").rules[0])
    for size, expected in ((longest, True), (longest + 1, False), (LONG, False), (LONG + 1, False)):
        assert test(f"a{'x' * (size - 3)}bc", 0, 1) is expected


def test_what_is_longer_than_any_url_matches_no_expression() -> None:
    test = compile_pattern(parse_line("/ads.*banner/").rules[0])
    for size, expected in ((LONG, True), (LONG + 1, True), (MAX_URL_LENGTH, True), (MAX_URL_LENGTH + 1, False)):
        assert test(f"ads{'x' * (size - 9)}banner", 0, 1) is expected


def test_of_a_long_url_an_expression_is_asked_once() -> None:
    rule = parse_line("/ads.*banner/").rules[0]
    test = compile_pattern(rule)
    yes = f"https://x.example/ads{'y' * 5_000}banner"
    no = f"https://x.example/ads{'y' * 5_000}"
    for text, expected in ((yes, True), (yes, True), (no, False), (no, False), (yes, True)):
        assert test(text, 8, 17) is expected


def test_headers_that_are_no_text_match_nothing() -> None:
    assert text_test("(a+)+$", "i")("x\udcff") is False
