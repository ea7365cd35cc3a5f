"""The compiler of Adblock lists: writes the compiled form, which workers open without parsing rules."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gatewayfilter.engine.adblock.breadth import BreadthGuard, cosmetic_refusal
from gatewayfilter.engine.adblock.collection_pause import collection_paused
from gatewayfilter.engine.adblock.index.cosmetic_index import CosmeticRecord, pack_cosmetics
from gatewayfilter.engine.adblock.index.modifier_index import Group, ParamPlan, addresses_of, group_of, pack_modifiers, param_of
from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.rule_index import pack_index
from gatewayfilter.engine.adblock.index.rule_table import (
    EXCEPTION,
    IMPORTANT,
    PLAIN_MASK,
    PLAIN_RULE,
    PLAIN_SHAPE,
    RuleColumns,
    TakenRule,
    mask_of,
    pack_rules,
)
from gatewayfilter.engine.adblock.index.sections import pack_sections
from gatewayfilter.engine.adblock.named_sites import sites_of
from gatewayfilter.engine.adblock.regex_budget import RegexBudget
from gatewayfilter.engine.adblock.rule_planner import EXCEPTIONS_PER_HOST, LITERAL_LENGTH, RULES_PER_HOST, Planner, list_under
from gatewayfilter.engine.adblock.syntax.modifier_values import PAGE_SWITCHES, REDIRECTS
from gatewayfilter.engine.adblock.syntax.parser import BLANKS, LineKind, ParsedLine, parse_line, plain_host
from gatewayfilter.engine.adblock.syntax.preprocessor import Preprocessor
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, NO_CONDITIONS, SAMPLE_LIMIT, AdblockReport, NetworkRule
from gatewayfilter.errors import RuleError
from gatewayfilter.urls import registry_suffixes

MAX_SOURCES = 65_535
_SAMPLE_LENGTH = 200
_NOBODY: frozenset[int] = frozenset()

_COMPANIONS = REDIRECTS | PAGE_SWITCHES
"""Modifiers whose rules may accompany another rule of the same line; the line counts once."""

_NO_RULE = ParsedLine(LineKind.COMMENT)


class _Tally:
    """Counts the lines of one list for its report."""

    def __init__(self) -> None:
        self.accepted = 0
        self.duplicates = 0
        self.comments = 0
        self.cosmetic = 0
        self._rejected = 0
        self._unsupported: Counter[str] = Counter()
        self._samples: list[tuple[int, str, str]] = []
        self._refused: list[tuple[int, str, str]] = []
        self._refusals = 0

    def refuse(self, number: int, line: str, why: str) -> None:
        """Records a valid rule that is refused; such lines come first in the report."""
        self._refusals += 1
        if len(self._refused) < SAMPLE_LIMIT:
            self._refused.append((number, line.strip()[:_SAMPLE_LENGTH], why))

    def take_back(self, rules: tuple[NetworkRule, ...]) -> None:
        """Records that the rules of a line that was already counted are refused."""
        self.accepted -= _counted(rules)

    def count(self, number: int, line: str, parsed: ParsedLine) -> None:
        """Records the outcome of a line."""
        kind = parsed.kind
        if kind is LineKind.NETWORK:
            self.accepted += _counted(parsed.rules)
        elif kind is LineKind.COSMETIC:
            self.cosmetic += 1
        elif kind is LineKind.COMMENT:
            self.comments += 1
        elif kind is LineKind.REJECTED:
            self._rejected += 1
            self._show(number, line, parsed.note)
        else:
            if parsed.note not in self._unsupported:
                self._show(number, line, f"not supported: {parsed.note}")
            self._unsupported[parsed.note] += 1

    def _show(self, number: int, line: str, why: str) -> None:
        if len(self._samples) < SAMPLE_LIMIT:
            self._samples.append((number, line.strip()[:_SAMPLE_LENGTH], why))

    def report(self) -> AdblockReport:
        """Returns the counts."""
        return AdblockReport(
            accepted=self.accepted,
            duplicates=self.duplicates,
            cosmetic=self.cosmetic,
            comments=self.comments,
            unsupported=dict(self._unsupported),
            rejected=self._rejected + self._refusals,
            refused=self._refusals,
            samples=(*self._refused, *self._samples)[:SAMPLE_LIMIT],
        )


def _counted(rules: tuple[NetworkRule, ...]) -> int:
    """Returns as how many entries the rules of one line count."""
    if len(rules) <= 1:
        return len(rules)
    return sum(rule.modifier not in _COMPANIONS for rule in rules) or 1


def _follow_directive(preprocessor: Preprocessor, line: str) -> ParsedLine:
    try:
        name = preprocessor.directive(line)
    except RuleError as error:
        return ParsedLine(LineKind.REJECTED, note=str(error))
    return ParsedLine(LineKind.UNSUPPORTED, note=name) if name else _NO_RULE


@dataclass(slots=True)
class _ListState:
    """What is kept while a list is added: its counts and directives, the lines with rules, and the cosmetic rules."""

    source: int
    tally: _Tally = field(default_factory=_Tally)
    preprocessor: Preprocessor = field(default_factory=Preprocessor)
    seen: set[str] = field(default_factory=set)
    styled: dict[str, CosmeticRecord] = field(default_factory=dict)


class _Kept:
    """The rules that no `$badfilter` of their own list cancels."""

    def __init__(self) -> None:
        self.rules: list[TakenRule] = []
        self.masks: list[int] = []
        self._cancelled: list[tuple[int, int]] = []

    def add(self, taken: TakenRule, mask: int, cancelled_by: frozenset[int]) -> None:
        """Adds a rule with its mask and the sources with a `$badfilter` that cancels it."""
        self._cancelled += [(len(self.rules), source) for source in sorted(cancelled_by)]
        self.rules.append(taken)
        self.masks.append(mask)

    def columns(self) -> RuleColumns:
        """Returns them for packing."""
        return RuleColumns(self.rules, self.masks, self._cancelled)


class AdblockBuilder:
    """Compiles the rules of several lists together; each list is added line by line.

    Args:
        judge: refuse rules that match most of the web (breadth/), and regular expressions whose total cost is too high
            (regex_budget.py). Without it everything valid is taken.
    """

    def __init__(self, *, judge: bool = True) -> None:
        self._judge = judge
        self._budget = RegexBudget()
        self._records: list[TakenRule] = []
        self._cosmetics: list[CosmeticRecord] = []
        self._badfilters: dict[tuple[object, ...], set[int]] = {}

    @collection_paused()
    def add_list(self, source: int, lines: Iterable[str]) -> AdblockReport:
        """Adds a list; no line of it raises.

        Args:
            source: the list's number in matches, below 65,536.
            lines: its lines, with or without line ends.

        Raises:
            ValueError: there is no such source.
        """
        if not 0 <= source <= MAX_SOURCES:
            raise ValueError(f"a source is a number from 0 to {MAX_SOURCES}")
        state = _ListState(source)
        tally, preprocessor, seen = state.tally, state.preprocessor, state.seen
        taken = len(self._records)
        self._budget.begin_list()
        suffixes, wildcards, _ = registry_suffixes()
        for number, line in enumerate(lines, 1):
            host = plain_host(line)
            # Those of a registry's suffix go the long way, to be judged.
            if host and preprocessor.active and host not in suffixes and host.partition(".")[2] not in wildcards:
                if line in seen:
                    tally.duplicates += 1
                else:
                    seen.add(line)
                    tally.accepted += 1
                    self._records.append((PLAIN_RULE, PLAIN_SHAPE, host, line.strip(BLANKS), source, number, 0))
            else:
                self._add_line(state, number, line)
        self._cosmetics.extend(state.styled.values())
        if self._judge:
            self._judge_rules(taken, tally)
        return tally.report()

    def _add_line(self, state: _ListState, number: int, given: str) -> None:
        # A rule is stored as UTF-8 and parsed again from it: it must survive the round trip.
        line = given if given.isascii() else given.encode(errors="replace").decode()
        tally = state.tally
        if line.startswith("!#"):
            parsed = _follow_directive(state.preprocessor, line)
        elif not state.preprocessor.active:
            parsed = _NO_RULE
        elif line in state.seen:
            tally.duplicates += 1
            return
        else:
            parsed = parse_line(line)
            if parsed.rules:
                state.seen.add(line)
                self._add_rules(state.source, number, line, parsed.rules)
            elif parsed.cosmetic is not None:
                if self._judge and (why := cosmetic_refusal(parsed.cosmetic)):
                    tally.refuse(number, line, why)
                    return
                state.styled.setdefault(line, CosmeticRecord(parsed.cosmetic, line.strip(BLANKS), state.source, number))
        tally.count(number, line, parsed)

    def _add_rules(self, source: int, number: int, line: str, rules: tuple[NetworkRule, ...]) -> None:
        text = line.strip(BLANKS)
        for ordinal, rule in enumerate(rules):
            if rule.badfilter:
                self._badfilters.setdefault(rule.identity, set()).add(source)
            else:
                shape = shape_of(rule)
                self._records.append((rule, shape, shape.host if shape.is_host else "", text, source, number, ordinal))

    def _judge_rules(self, taken: int, tally: _Tally) -> None:
        """Drops the lines with a refused rule, among the rules from `taken` on."""
        mine = [record for record in self._records[taken:] if record[0] is not PLAIN_RULE]
        refusals = BreadthGuard().refusals((record[0], record[1]) for record in mine)
        costly = {}
        for rule, _, _, _, _, number, _ in mine:
            if (rule.is_regex or rule.conditions is not NO_CONDITIONS or rule.value) and (why := self._budget.refusal(rule)):
                costly[number] = why
        if not refusals and not costly:
            return
        lines = {mine[position][5]: why for position, why in refusals.items()} | costly
        self._records[taken:] = [record for record in self._records[taken:] if record[5] not in lines]
        dropped: dict[int, tuple[str, list[NetworkRule]]] = {}
        for rule, _, _, text, _, number, _ in mine:
            if number in lines:
                dropped.setdefault(number, (text, []))[1].append(rule)
        for number, (text, rules) in dropped.items():
            tally.take_back(tuple(rules))
            tally.refuse(number, text, lines[number])

    def named_sites(self) -> dict[int, set[str]]:
        """Returns for each source the sites that its blocking rules name (named_sites.py)."""
        named: dict[int, set[str]] = {}
        for rule, _, _, _, source, _, _ in self._records:
            if rule is not PLAIN_RULE and (sites := sites_of(rule)):  # a probe finds plain ones
                named.setdefault(source, set()).update(sites)
        return named

    @collection_paused()
    def build(self) -> bytes:
        """Returns the compiled form of everything added so far."""
        network, modifiers = _Kept(), _Kept()
        badfilters = self._badfilters
        filtered = {identity[0] for identity in badfilters}
        for taken in self._records:
            rule, shape, host, _, source, _, _ = taken
            if rule is PLAIN_RULE and not (filtered and f"||{host}^" in filtered):
                network.rules.append(taken)
                network.masks.append(PLAIN_MASK)
                continue
            whole = NetworkRule(f"||{host}^", types=ALL_TYPES) if rule is PLAIN_RULE else rule
            cancelled_by = frozenset(badfilters.get(whole.identity, ())) if whole.pattern in filtered else _NOBODY
            if source in cancelled_by:
                continue
            is_found = shape.is_host or (shape.is_literal and not rule.match_case and len(rule.pattern) <= LITERAL_LENGTH)
            needs_test = not is_found or rule.conditions is not NO_CONDITIONS
            mask = mask_of(rule, needs_test=needs_test, is_cancelled=bool(cancelled_by))
            (modifiers if rule.modifier else network).add(taken, mask, cancelled_by)
        sections = _pack_network(network.columns())
        effects = _pack_effects(modifiers.columns())
        return pack_sections([*sections, pack_sections([*effects, *pack_cosmetics(self._cosmetics)])])


def _pack_network(columns: RuleColumns) -> list[bytes]:
    planner = Planner(columns)
    masks = columns.masks
    blocks = [number for number, mask in enumerate(masks) if not mask & EXCEPTION]
    exceptions = [number for number, mask in enumerate(masks) if mask & EXCEPTION]
    important = [number for number in blocks if masks[number] & IMPORTANT]
    return [
        *pack_rules(columns),
        *pack_index(planner.plan(blocks, RULES_PER_HOST)),
        *pack_index(planner.plan(exceptions, EXCEPTIONS_PER_HOST)),
        *pack_index(planner.plan(important, RULES_PER_HOST)),
    ]


def _pack_effects(columns: RuleColumns) -> list[bytes]:
    planner = Planner(columns)
    params = ParamPlan()
    addresses: dict[str, list[int]] = {}
    groups: dict[Group, list[int]] = {group: [] for group in Group}
    for number, rule in enumerate(columns.rules):
        name = param_of(rule)
        if name:
            params.add(name, rule, number)
        elif servers := addresses_of(rule):
            list_under(addresses, servers, number)
        else:
            groups[group_of(rule)].append(number)
    return pack_modifiers(columns, params, addresses, [planner.plan(groups[group]) for group in Group])
