"""The table of all rules in a compiled form: source, line, mask, and the test, compiled from the text at its first use."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.engine.adblock.syntax.rule import PARTY_SHIFT, AdblockMatch, NetworkRule
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


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes four times as long to make; nothing assigns to it
class RuleRecord:
    """A rule as the builder passes it on.

    Attributes:
        text: the line of the list.
        ordinal: position among the line's rules (a hosts line holds several).
        needs_test: see `NEEDS_TEST`.
        cancelled_by: sources with a `$badfilter` that cancels it.
    """

    rule: NetworkRule
    text: str
    source: int
    line: int
    ordinal: int
    needs_test: bool
    cancelled_by: frozenset[int] = frozenset()

    @property
    def mask(self) -> int:
        """Types, party and flags."""
        rule = self.rule
        return (
            rule.mask
            | NEEDS_TEST * self.needs_test
            | EXCEPTION * rule.exception
            | IMPORTANT * rule.important
            | CANCELLED * bool(self.cancelled_by)
        )


def pack_rules(records: Sequence[RuleRecord]) -> list[bytes]:
    """Returns the sections that `RuleTable` reads."""
    texts: list[bytes] = []
    starts = [0]
    for record in records:
        text = record.text.encode(errors="replace")
        texts.append(text)
        starts.append(starts[-1] + len(text))
    cancelled = [(number, source) for number, record in enumerate(records) for source in sorted(record.cancelled_by)]
    return [
        b"".join(texts),
        pack_numbers(starts),
        pack_numbers(record.line for record in records),
        pack_numbers(record.source | record.ordinal << 16 for record in records),
        pack_numbers(record.mask for record in records),
        pack_numbers(number for pair in cancelled for number in pair),
        pack_numbers([any(record.rule.conditions.names_clients for record in records if record.needs_test)]),
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
