"""Finds the rules that change a request or its response: the same indexes as for blocks, over tables of their own.

Rules stand in groups by when they are asked: a request pays for the group's union of types, one look-up of its host, and
a scan for the group's few literals. `$removeparam=name`, the most of all, are found by the names in the query.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from gatewayfilter.engine.adblock.compiled_rule import CompiledRule
from gatewayfilter.engine.adblock.modifiers import PAGE_SWITCHES, REDIRECTS, Prepared, prepare
from gatewayfilter.engine.adblock.query_params import ParamFilter
from gatewayfilter.engine.adblock.response_test import AddressTest, HeaderTest, address_test, header_test
from gatewayfilter.engine.adblock.rule import AdblockMatch, NetworkRule
from gatewayfilter.engine.adblock.rule_index import IndexPlan, RuleIndex, pack_index
from gatewayfilter.engine.adblock.rule_table import CANCELLED, RuleRecord, RuleTable, pack_rules
from gatewayfilter.engine.adblock.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.errors import RuleError, SnapshotError
from gatewayfilter.model import AppliedRule, Request


class Group(IntEnum):
    """When rules are asked; the order of the compiled form."""

    REQUEST = 0
    RESPONSE = 1
    REDIRECT = 2
    PAGE = 3


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A modifier rule that matches, made ready.

    Attributes:
        match: who wrote it.
        does: what its value says; "" for an exception without one, which lifts all rules of its modifier.
        test: whether pattern and conditions fit a request, as in `CompiledRule`.
        header, address: what must hold of the response besides.
    """

    match: AdblockMatch
    test: Callable[[Request, str, str], bool]
    modifier: str
    value: str
    does: Prepared
    header: HeaderTest | None = None
    address: AddressTest | None = None

    def lifts(self, other: "FoundRule") -> bool:
        """Tells whether this exception lifts another rule of the same modifier."""
        return (not self.value or self.value == other.value) and (self.match.important or not other.match.important)

    def applied(self, names: Sequence[str]) -> AppliedRule:
        """Returns it as it is reported.

        Args:
            names: of the lists, by source.
        """
        match = self.match
        return AppliedRule(names[match.source], match.rule, match.line, self.modifier)


def group_of(rule: NetworkRule) -> Group:
    """Returns when a modifier rule is asked."""
    if rule.modifier in PAGE_SWITCHES:
        return Group.PAGE
    if rule.modifier in REDIRECTS:
        return Group.REDIRECT
    if rule.modifier in {"csp", "permissions", "replace", "response"}:
        return Group.RESPONSE
    if rule.modifier == "removeheader" and not rule.value.lower().startswith("request:"):
        return Group.RESPONSE
    return Group.REQUEST


def param_of(rule: NetworkRule) -> str:
    """Returns the name of the one parameter that a rule takes out, "" when it is not found by a name."""
    if rule.modifier != "removeparam" or rule.exception or not rule.value:
        return ""
    does = prepare(rule.modifier, rule.value)
    name = does.name if isinstance(does, ParamFilter) else ""
    return "" if "\n" in name else name


def pack_modifiers(records: list[RuleRecord], params: Mapping[str, list[int]], plans: Iterable[IndexPlan]) -> list[bytes]:
    """Returns the sections that `ModifierIndex` reads.

    Args:
        records: all modifier rules.
        params: name of a parameter → rules that take it out.
        plans: of the other rules, one for each group.
    """
    sections = pack_rules(records)
    starts = [0]
    for numbers in params.values():
        starts.append(starts[-1] + len(numbers))
    sections += [pack_names(params), pack_numbers(starts), pack_numbers(rule for rules in params.values() for rule in rules)]
    for plan in plans:
        sections += pack_index(plan)
    return sections


class ModifierIndex:
    """Opens what `pack_modifiers` made.

    Attributes:
        table: of all modifier rules.
        has_cancelled: there are rules that the `$badfilter` of another list cancels.
        params: name of a parameter → (mask, rule) of those that take it out.

    Raises:
        SnapshotError: it is damaged.
    """

    def __init__(self, sections: SectionReader) -> None:
        self.table = RuleTable(sections)
        names, starts, rules = sections.names(), sections.numbers(), sections.numbers()
        if len(starts) != len(names) + 1 or starts[-1] != len(rules):
            raise SnapshotError("the compiled Adblock rules are damaged")
        masks = self.table.masks
        self.has_cancelled = any(mask & CANCELLED for mask in masks)
        self.params = {
            name: tuple((masks[rule], rule) for rule in rules[starts[number] : starts[number + 1]])
            for number, name in enumerate(names)
        }
        self._indexes = tuple(RuleIndex(sections, self.table) for _ in Group)
        self._ready: dict[int, FoundRule] = {}

    def find(self, group: Group, request: Request, lowered: str, bits: int, source: str, off: frozenset[int]) -> list[FoundRule]:
        """Returns every rule of a group that matches and whose source is on; arguments as in `RuleIndex.all`."""
        return [self.ready(rule) for rule in self._indexes[group].all(request, lowered, bits, source, off)]

    def finds_any(self, group: Group, request: Request, bits: int, source: str) -> bool:
        """Tells, at the least cost, whether a rule of a group may match."""
        return self._indexes[group].first(request, bits, source) >= 0

    def find_params(
        self, names: Iterable[str], request: Request, lowered: str, bits: int, source: str, off: frozenset[int]
    ) -> list[FoundRule]:
        """Returns the rules that take out one of these parameters."""
        table = self.table
        return [
            self.ready(rule)
            for name in dict.fromkeys(names)
            for mask, rule in self.params.get(name, ())
            if mask & bits and not table.is_off(rule, off) and self.ready(rule).test(request, lowered, source)
        ]

    def ready(self, number: int) -> FoundRule:
        """Returns a rule made ready; kept, as there are never more than rules."""
        found = self._ready.get(number)
        if found is None:
            rule = self.table.rule(number)
            conditions = rule.conditions
            try:
                found = FoundRule(
                    self.table.describe(number),
                    CompiledRule(rule).matches,
                    rule.modifier,
                    rule.value,
                    prepare(rule.modifier, rule.value) if rule.value or not rule.exception else "",
                    header_test(conditions.header) if conditions.header else None,
                    address_test(conditions.address) if conditions.address else None,
                )
            except RuleError as error:
                raise SnapshotError("the compiled Adblock rules are damaged") from error
            self._ready[number] = found
        return found
