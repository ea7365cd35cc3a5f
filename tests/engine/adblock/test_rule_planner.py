"""Where the planner has a rule looked for: under its host, its pages, a literal of its pattern, or everywhere."""

from collections.abc import Iterable

from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.rule_index import IndexPlan
from gatewayfilter.engine.adblock.index.rule_table import PLAIN_RULE, PLAIN_SHAPE, RuleColumns, TakenRule, mask_of
from gatewayfilter.engine.adblock.rule_planner import LITERAL_LENGTH, MAX_PAGES, Planner, list_under
from gatewayfilter.engine.adblock.syntax.parser import parse_line, plain_host
from gatewayfilter.engine.adblock.syntax.rule import NO_CONDITIONS
from tests.case_tables import all_cases


def planner_of(lines: Iterable[str]) -> Planner:
    taken: list[TakenRule] = []
    masks: list[int] = []
    for number, line in enumerate(lines):
        host = plain_host(line)
        rule = PLAIN_RULE if host else parse_line(line).rules[0]
        shape = PLAIN_SHAPE if host else shape_of(rule)
        taken.append((rule, shape, host, line, 0, number, 0))
        needs_test = rule.conditions is not NO_CONDITIONS or not (shape.is_host or shape.is_literal)
        masks.append(mask_of(rule, needs_test=needs_test, is_cancelled=False))
    return Planner(RuleColumns(taken, masks, []))


def plan_of(lines: list[str]) -> IndexPlan:
    return planner_of(lines).plan(list(range(len(lines))))


def place_of_first(lines: list[str]) -> str:
    """Returns where the first line is found: `|host`, `@page`, `everywhere`, or the literal."""
    plan = plan_of(lines)
    found = [f"|{key}" for key, numbers in plan.hosts.items() if 0 in numbers]
    found += [f"@{key}" for key, numbers in plan.sources.items() if 0 in numbers]
    found += [key for key, numbers in plan.literals.items() if 0 in numbers]
    found += ["everywhere"] * plan.everywhere.count(0)
    return " ".join(found)


FOUR_PATHS = [f"||a.test/{name}" for name in ("first", "second", "third", "fourth")]
FOUR_ON_PAGE = [f"-{name}-$domain=p.test" for name in ("first", "second", "third", "fourth")]
SHORT = [f"/{name}$domain=p.test" for name in ("a1", "b2", "c3", "d4", "e5")]
PAGES = "|".join(f"p{number}.test" for number in range(MAX_PAGES))


@all_cases(
    ("lines", "place"),
    [
        # By host: whole hosts always, paths where a host has few.
        (["||a.test^"], "|a.test"),
        (["||a.test^$script"], "|a.test"),
        (["||a.test^$script", *FOUR_PATHS, "||a.test/fifth"], "|a.test"),
        (["0.0.0.0 a.test"], "|a.test"),
        (FOUR_PATHS, "|a.test"),
        ([*FOUR_PATHS, "||a.test^$script", "||a.test^", "||b.test/x"], "|a.test"),
        ([*FOUR_PATHS, "||a.test/fifth"], "a.test/first"),
        # By page: where few rules name it, and all pages are names.
        (["-first-$domain=p.test"], "@p.test"),
        (["-first-$domain=q.test|p.test"], "@p.test @q.test"),
        (FOUR_ON_PAGE, "@p.test"),
        ([*FOUR_ON_PAGE, "-fifth-$domain=p.test"], "-first-"),
        (["-first-$domain=p.test|q.test", *FOUR_ON_PAGE[1:], "-fifth-$domain=p.test"], "-first-"),
        (["||a.test^$domain=p.test"], "@p.test"),
        ([*FOUR_ON_PAGE, "||a.test^", "-x-$domain=q.test"], "@p.test"),
        ([r"-first-$domain=p.test|/^q\./"], "-first-"),
        (["-first-$domain=~p.test"], "-first-"),
        ([f"-first-$domain={PAGES}"], " ".join(sorted(f"@{page}" for page in PAGES.split("|")))),
        ([f"-first-$domain={PAGES}|other.test"], "-first-"),
        # By page in spite of many rules, or by target, where the literal tells little.
        (SHORT, "@p.test"),
        (["/a12$domain=p.test", *SHORT[1:]], "/a12"),
        (["/a1$to=b.test|a.test"], "|a.test |b.test"),
        (["/a12$to=a.test"], "/a12"),
        (["/a1$to=a.*"], "/a1"),
        (["/a1$to=a.test|b.*"], "/a1"),
        (["/a1$to=a.test|/^b/"], "/a1"),
        (["/a1$to=~a.test"], "/a1"),
        ([*SHORT[:1], *(f"{line},to=a.test" for line in SHORT[1:])], "@p.test"),
        # Everywhere: a literal of every URL selects nothing.
        (["*$script"], "everywhere"),
        (["|https://$script,domain=~p.test"], "everywhere"),
        (["://*$script,domain=~p.test"], "everywhere"),
        (["//ad^"], "//ad"),
        (["://$script"], "://"),
        (["|http://$script"], "http://"),
    ],
)
def test_where_a_rule_is_looked_for(lines: list[str], place: str) -> None:
    assert place_of_first(lines) == place


@all_cases(
    ("lines", "literal"),
    [
        (["/banner/*-ad-"], "/banner/"),
        (["-ad-*/banner/"], "/banner/"),
        (["abc1*abc2"], "abc1"),
        (["long-name*xyzw", *(f"/long-name/{number}" for number in range(20))], "xyzw"),
        (["long-name*xyzw", *(f"||long-name{number}.test^" for number in range(50))], "xyzw"),
        (["long-name*xyzw", *(f"||a{number}.test^$script,domain=long-name.test" for number in range(50))], "long-name"),
        (["https://www.*-ad"], "-ad"),
        ([".html*ab"], "ab"),
        (["q*.html"], "q"),
        ([".php?*.js?"], ".php?"),
        (["x*y", "xx"], "y"),
        (["x*y", "yy", "xz"], "x"),
        (["x*y", "||yy.test^"], "x"),
        (["x" * (LITERAL_LENGTH + 1)], "x" * LITERAL_LENGTH),
        ([f"{'x' * LITERAL_LENGTH}1*{'y' * LITERAL_LENGTH}", f"{'x' * LITERAL_LENGTH}2"], "y" * LITERAL_LENGTH),
        (["/[ab]\u4e2d[cd]/"], "everywhere"),  # no literal, as no URL has such a character
        (["/[ab]\u4e2d[cd]ad/"], "ad"),
    ],
)
def test_the_literal_by_which_a_rule_is_found(lines: list[str], literal: str) -> None:
    assert place_of_first(lines) == literal


def test_the_caller_sets_how_many_paths_of_a_host_stay_there() -> None:
    planner = planner_of(FOUR_PATHS)
    assert planner.plan([0, 1, 2, 3], 3).hosts == {}
    assert planner.plan([0, 1, 2, 3], 4).hosts == {"a.test": [0, 1, 2, 3]}
    assert planner.plan([0, 1, 2], 3).hosts == {"a.test": [0, 1, 2]}


def test_a_plan_has_the_rules_asked_for_alone() -> None:
    plan = planner_of(["||a.test^", "||a.test^$script", "-first-", "*$script", "*$image"]).plan([1, 2, 4])
    assert (plan.hosts, plan.literals, plan.sources, plan.everywhere) == ({"a.test": [1]}, {"-first-": [2]}, {}, [4])


def test_rules_stand_under_sorted_keys_in_the_order_given() -> None:
    table: dict[str, list[int]] = {}
    list_under(table, {"b", "a", "c"}, 7)
    list_under(table, ["d", "a"], 3)
    assert list(table.items()) == [("a", [7, 3]), ("b", [7]), ("c", [7]), ("d", [3])]
