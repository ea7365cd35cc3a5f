"""The table of all rules in a compiled form: source, line, mask, and the test, compiled from the text at its first use."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest
from gatewayfilter.engine.adblock.index.pattern import PatternShape
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, NO_CONDITIONS, PARTY_SHIFT, AdblockMatch, NetworkRule
from gatewayfilter.errors import SnapshotError

CACHE_SIZE = 8_192
"""Size of the cache of rule descriptions."""

EXCEPTION = 1 << (2 * PARTY_SHIFT)
IMPORTANT = EXCEPTION << 1
NEEDS_TEST = EXCEPTION << 2
"""Flag in a mask: pattern or conditions must be tested after the index look-up. A mask below it needs no test."""
CANCELLED = EXCEPTION << 3
"""The highest flag in a mask: a `$badfilter` of another list cancels the rule while that list is on."""
_MOST_SETS = 256
"""Sets of lists that are off, of which `RulesOff` is kept: one for each different choice of a policy."""


@dataclass(frozen=True, slots=True)
class RulesOff:
    """What differs from all rules while some lists are off.

    Attributes:
        sources: the lists among them that have rules.
        restored: rules of other lists that are in force because every list with a `$badfilter` against them is off.
    """

    sources: frozenset[int]
    restored: frozenset[int]


PLAIN_RULE = NetworkRule("", types=ALL_TYPES)
"""Stands for each rule that blocks all requests to one host, as `||host^` or in a hosts file; its host is kept beside it."""

PLAIN_SHAPE = PatternShape(is_host=True)
"""Stands for the shape of a `PLAIN_RULE`."""

PLAIN_MASK = PLAIN_RULE.mask

type TakenRule = tuple[NetworkRule, PatternShape, str, str, int, int, int]
"""A rule, its shape, its host where that is the whole pattern (else ""), the line's text, source, number of the line, and
position among the rules of the line (one of a hosts file holds several)."""


def mask_of(rule: NetworkRule, *, needs_test: bool, is_cancelled: bool) -> int:
    """Returns types, party and flags of a rule.

    Args:
        rule: the rule.
        needs_test: see `NEEDS_TEST`.
        is_cancelled: a `$badfilter` of another list cancels it.
    """
    return (
        rule.mask | NEEDS_TEST * needs_test | EXCEPTION * rule.exception | IMPORTANT * rule.important | CANCELLED * is_cancelled
    )


class RuleColumns:
    """Rules as the builder passes them on: a list for each of their properties, as there are a hundred thousand of them.

    Attributes:
        rules, shapes: `PLAIN_RULE` and `PLAIN_SHAPE` for plain ones.
        hosts: the host where it is the whole pattern, else "".
        texts: the lines of the list.
        lines, origins: number of the line; source, and position among the line's rules.
        masks: types, party and flags.
        cancelled: (number of the rule, source of a `$badfilter` that cancels it) of each.
    """

    __slots__ = ("cancelled", "hosts", "lines", "masks", "origins", "rules", "shapes", "texts")

    def __init__(self, taken: Sequence[TakenRule], masks: Sequence[int], cancelled: Sequence[tuple[int, int]]) -> None:
        self.rules = [each[0] for each in taken]
        self.shapes = [each[1] for each in taken]
        self.hosts = [each[2] for each in taken]
        self.texts = [each[3] for each in taken]
        self.origins = [each[4] | each[6] << 16 for each in taken]
        self.lines = [each[5] for each in taken]
        self.masks = masks
        self.cancelled = cancelled


def pack_rules(columns: RuleColumns) -> list[bytes]:
    """Returns the sections that `RuleTable` reads."""
    text = "".join(columns.texts)
    encoded = text.encode(errors="replace")
    sizes = (
        map(len, columns.texts) if len(encoded) == len(text) else (len(each.encode(errors="replace")) for each in columns.texts)
    )
    names_clients = any(rule.conditions.names_clients for rule in columns.rules if rule.conditions is not NO_CONDITIONS)
    return [
        encoded,
        pack_numbers(accumulate(sizes, initial=0)),
        pack_numbers(columns.lines),
        pack_numbers(columns.origins),
        pack_numbers(columns.masks),
        pack_numbers(number for pair in columns.cancelled for number in pair),
        pack_numbers([names_clients]),
    ]


class RuleTests(dict[int, RuleTest]):
    """Full tests by rule number, each compiled at its first use."""

    __slots__ = ("_table",)

    def __init__(self, table: "RuleTable") -> None:
        super().__init__()
        self._table = table

    def __missing__(self, number: int) -> RuleTest:
        test = self[number] = self._table.compiled(number).matches
        return test


class RuleTable:
    """Access to rules by number. Tests are compiled once and kept; their number is bounded by that of the rules.

    Attributes:
        masks: types, party and flags of each rule.
        has_cancelled: some rules are cancelled by the `$badfilter` of another list.
        names_clients: some rules hold for some clients alone.
        tests: number → test of the rule's pattern and conditions (`CompiledRule.matches`).
    """

    def __init__(self, sections: SectionReader) -> None:
        self._texts = sections.raw()
        self._starts = sections.numbers()
        self._lines = sections.numbers()
        self._origins = sections.numbers()
        self.masks = sections.numbers()
        pairs = sections.numbers()
        if not len(self._starts) - 1 == len(self._lines) == len(self._origins) == len(self.masks):
            raise SnapshotError("the compiled Adblock rules are damaged")
        self._cancelled: dict[int, set[int]] = {}
        for number, source in zip(pairs[::2], pairs[1::2], strict=True):
            self._cancelled.setdefault(number, set()).add(source)
        self.has_cancelled = bool(pairs)
        self.names_clients = any(sections.numbers())
        self.tests = RuleTests(self)
        self._compiled: dict[int, CompiledRule] = {}
        self._matches: dict[int, AdblockMatch] = {}
        self._with_rules: frozenset[int] | None = None
        self._off: dict[frozenset[int], RulesOff] = {}

    def __len__(self) -> int:
        """Number of rules."""
        return len(self.masks)

    def text(self, number: int) -> str:
        """Returns the text of a rule as written in its list."""
        return str(self._texts[self._starts[number] : self._starts[number + 1]], "utf-8", "replace")

    def rule(self, number: int) -> NetworkRule:
        """Returns a rule, parsed from its text.

        Raises:
            SnapshotError: its text is no valid rule: the compiled form is damaged.
        """
        rules = parse_line(self.text(number)).rules
        ordinal = self._origins[number] >> 16
        if ordinal >= len(rules):
            raise SnapshotError("the compiled Adblock rules are damaged")
        return rules[ordinal]

    def source(self, number: int) -> int:
        """Returns the source of a rule."""
        return self._origins[number] & 0xFFFF

    def without(self, off_sources: frozenset[int]) -> RulesOff:
        """Returns what differs while these lists are off; kept, since policies leave few different sets off."""
        found = self._off.get(off_sources)
        if found is None:
            if self._with_rules is None:
                self._with_rules = frozenset(origin & 0xFFFF for origin in self._origins)
            restored = frozenset(number for number in self._cancelled if not self.is_off(number, off_sources))
            if len(self._off) >= _MOST_SETS:
                self._off = {}
            found = self._off[off_sources] = RulesOff(off_sources & self._with_rules, restored)
        return found

    def restores(self, off_sources: frozenset[int]) -> bool:
        """Returns whether rules that are cancelled while all lists are on are in force while these are off."""
        return self.has_cancelled and bool(self.without(off_sources).restored)

    def is_off(self, number: int, off_sources: frozenset[int]) -> bool:
        """Returns whether a rule is not in force: its source is off, or a list that is on cancels it."""
        if self.source(number) in off_sources:
            return True
        return bool(self.masks[number] & CANCELLED) and not off_sources.issuperset(self._cancelled[number])

    def compiled(self, number: int) -> CompiledRule:
        """Returns a rule in compiled form."""
        found = self._compiled.get(number)
        if found is None:
            found = self._compiled[number] = CompiledRule(self.rule(number))
        return found

    def describe(self, number: int) -> AdblockMatch:
        """Returns a rule as a match for verdicts."""
        found = self._matches.get(number)
        if found is None:
            if len(self._matches) >= CACHE_SIZE:
                self._matches.clear()
            mask = self.masks[number]
            found = self._matches[number] = AdblockMatch(
                self.text(number), self.source(number), self._lines[number], bool(mask & EXCEPTION), bool(mask & IMPORTANT)
            )
        return found
