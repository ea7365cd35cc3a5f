"""The table of rules in a compiled form: rules that lists cancel, what is kept of them, and forms that are damaged."""

import pytest

from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.rule_table import RuleColumns, RulesOff, RuleTable, TakenRule, mask_of, pack_rules
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers, pack_sections
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.adblock.syntax.rule import AdblockMatch
from gatewayfilter.errors import SnapshotError

LINES = ["||a.test/x", "@@||b.test/\u00fc$important", "0.0.0.0 c.test d.test", "||e.test/\u00fc"]


def sections_of(*cancelled: tuple[int, int]) -> list[bytes]:
    taken: list[TakenRule] = []
    for number, line in enumerate(LINES):
        for ordinal, rule in enumerate(parse_line(line).rules):
            taken.append((rule, shape_of(rule), "", line, number * 7, number + 100, ordinal))
    by_rule = {rule for rule, _ in cancelled}
    masks = [mask_of(each[0], needs_test=True, is_cancelled=place in by_rule) for place, each in enumerate(taken)]
    return pack_rules(RuleColumns(taken, masks, cancelled))


def table_of(sections: list[bytes]) -> RuleTable:
    return RuleTable(SectionReader(memoryview(pack_sections(sections))))


def test_each_rule_has_its_text_list_and_line() -> None:
    table = table_of(sections_of())
    assert len(table) == 5
    assert [table.text(number) for number in range(5)] == [LINES[0], LINES[1], LINES[2], LINES[2], LINES[3]]
    assert [table.source(number) for number in range(5)] == [0, 7, 14, 14, 21]
    assert [table.rule(number).pattern for number in (0, 2, 3)] == ["||a.test/x", "||c.test^", "||d.test^"]
    assert table.describe(1) == AdblockMatch(LINES[1], 7, 101, exception=True, important=True)
    assert table.describe(3) == AdblockMatch(LINES[2], 14, 102, exception=False, important=False)
    assert not table.has_cancelled
    assert not table.restores(frozenset({0, 7, 14, 21}))


def test_a_rule_is_in_force_while_none_of_the_lists_that_cancel_it_is_on() -> None:
    table = table_of(sections_of((0, 7), (0, 21), (2, 21), (4, 3)))
    assert table.has_cancelled
    for off, restored in (
        ((), ()), ((7,), ()), ((21,), (2,)), ((7, 21), (0, 2)), ((0, 7, 21), (2,)), ((3,), (4,)), ((3, 7, 21), (0, 2)),
        ((3, 7), (4,)), ((99,), ()),
    ):  # fmt: skip
        lists = frozenset(off)
        assert table.without(lists) == RulesOff(lists & {0, 7, 14, 21}, frozenset(restored)), off
        assert table.restores(lists) is bool(restored)
        in_force = {number for number in range(5) if not table.is_off(number, lists)}
        assert in_force == {number for number in {1, 3, *restored} if table.source(number) not in lists}


def test_what_differs_is_kept_for_several_sets_of_lists() -> None:
    table = table_of(sections_of((0, 7)))
    one, other = (table.without(frozenset(off)) for off in ({7}, {21}))
    assert table.without(frozenset({7})) is one
    assert table.without(frozenset({21})) is other


def test_numbers_of_another_length_are_refused() -> None:
    for section in (1, 2, 3, 4, 5):
        sections = sections_of((0, 7), (2, 7))
        sections[section] += pack_numbers([1])
        with pytest.raises((SnapshotError, ValueError)):
            table_of(sections)


def test_a_rule_that_its_text_does_not_hold_is_refused() -> None:
    sections = sections_of()
    sections[3] = pack_numbers([1 << 16, 0, 0, 2 << 16, 0])
    table = table_of(sections)
    assert table.rule(2).pattern == "||c.test^"
    for number in (0, 3):
        with pytest.raises(SnapshotError, match="damaged"):
            table.rule(number)
