"""The rules under one key, put together when it is first seen: `gatewayfilter.engine.adblock.index.posted_rules`."""

import pytest

from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.posted_rules import Near, PostedMasks, PostedRules, Postings
from gatewayfilter.engine.adblock.index.rule_table import RuleColumns, RuleTable, TakenRule, mask_of, pack_rules
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_sections
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.errors import SnapshotError

LINES = [
    "||a.test^$script",
    "||a.test/ad",
    "||a.test^$domain=p.test",
    "||a.test/ad$domain=~p.test",
    "||a.test^$font,domain=p.test|q.test",
]


def table_of(lines: list[str]) -> RuleTable:
    taken: list[TakenRule] = []
    for number, line in enumerate(lines):
        [rule] = parse_line(line).rules
        taken.append((rule, shape_of(rule), "", line, 0, number, 0))
    masks = [mask_of(each[0], needs_test=number > 0, is_cancelled=False) for number, each in enumerate(taken)]
    return RuleTable(SectionReader(memoryview(pack_sections(pack_rules(RuleColumns(taken, masks, []))))))


def told(near: Near) -> tuple[int, str]:
    return near[1], "tested" if near[2] is not None else "certain"


def test_rules_are_told_apart_by_what_remains_to_be_tested() -> None:
    table = table_of(LINES)
    posted = PostedRules(table, range(5), by_host=True)
    assert [(told(near), rule is None) for near, rule in posted.always] == [
        ((0, "certain"), True),
        ((1, "tested"), True),
        ((3, "certain"), False),  # that it applies there has to be tested first
    ]
    assert {page: [(told(near), rule is None) for near, rule in rules] for page, rules in posted.by_page.items()} == {
        "p.test": [((2, "certain"), True), ((4, "certain"), True)],
        "q.test": [((4, "certain"), True)],
    }
    assert posted.mask == table.masks[0] | table.masks[1] | table.masks[2] | table.masks[3] | table.masks[4]
    assert PostedRules(table, [0]).mask == table.masks[0]
    assert PostedRules(table, []).mask == 0
    by_other_key = PostedRules(table, [1, 2])
    assert [(near[1], rule is None) for near, rule in by_other_key.always] == [(1, False)]
    assert [(near[1], rule is None) for near, rule in by_other_key.by_page["p.test"]] == [(2, False)]


def test_each_key_has_its_rules() -> None:
    table = table_of(LINES)
    postings = Postings(table, [0, 2, 2, 3], [4, 0, 1], by_host=True)
    assert [list(postings.numbers(key)) for key in range(3)] == [[4, 0], [], [1]]
    assert [near[1] for near, _ in postings[0].always] == [0]
    assert postings[0] is postings[0]
    masks = PostedMasks(table, postings)
    assert masks.size == 3
    assert masks.mask == table.masks[4] | table.masks[0] | table.masks[1]
    assert [masks[key] for key in range(3)] == [((table.masks[4], 4), (table.masks[0], 0)), (), ((table.masks[1], 1),)]
    assert masks.candidates() == masks[0] + masks[2]
    for starts in ([0, 2], [0, 4]):
        with pytest.raises(SnapshotError, match="damaged"):
            Postings(table, starts, [4, 0, 1])
