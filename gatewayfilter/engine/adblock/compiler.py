"""The compiler of Adblock lists: writes the compiled form, which workers open without parsing rules."""

from collections import Counter
from collections.abc import Iterable
from math import log2
from operator import itemgetter

from ahocorasick_rs import BytesAhoCorasick, Implementation

from gatewayfilter.engine.adblock.breadth import BreadthGuard, cosmetic_refusal
from gatewayfilter.engine.adblock.collection_pause import collection_paused
from gatewayfilter.engine.adblock.index.cosmetic_index import CosmeticRecord, pack_cosmetics
from gatewayfilter.engine.adblock.index.modifier_index import Group, ParamPlan, addresses_of, group_of, pack_modifiers, param_of
from gatewayfilter.engine.adblock.index.pattern import PatternShape, shape_of
from gatewayfilter.engine.adblock.index.rule_index import IndexPlan, pack_index
from gatewayfilter.engine.adblock.index.rule_table import RuleRecord, pack_rules
from gatewayfilter.engine.adblock.index.sections import pack_sections
from gatewayfilter.engine.adblock.named_sites import sites_of
from gatewayfilter.engine.adblock.regex_budget import RegexBudget
from gatewayfilter.engine.adblock.syntax.modifier_values import PAGE_SWITCHES, REDIRECTS
from gatewayfilter.engine.adblock.syntax.parser import BLANKS, LineKind, ParsedLine, parse_line
from gatewayfilter.engine.adblock.syntax.preprocessor import Preprocessor
from gatewayfilter.engine.adblock.syntax.rule import NO_CONDITIONS, SAMPLE_LIMIT, AdblockReport, NetworkRule
from gatewayfilter.errors import RuleError

MAX_SOURCES = 65_535
RULES_PER_HOST = 4
"""With more path rules than this for one host, they go to the automaton: testing each would cost more."""

EXCEPTIONS_PER_HOST = 500
"""Exceptions are tested only after a block, and most name their pages, which is decided once per host and page."""

TELLING = 4.0
"""A literal below this score occurs in too many URLs to index a rule by it when the rule names its pages."""

RULES_PER_PAGE = 4
"""Rules that are indexed by page cost nothing on other pages; up to this many may be tried one by one."""

MAX_PAGES = 1_000
"""A rule that names more pages than this is not indexed under each of them."""

_UBIQUITOUS = (
    "https://www.",
    "http://www.",
    ".com/",
    ".js?",
    ".html",
    ".php?",
    ".css",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    "/js/",
    "/css/",
)
"""Literals that half of all URLs contain, although few rules do."""

_EVERY_URL = "https://"
"""A literal that is a substring of this matches in every URL; host and page select better."""

_UBIQUITOUS_COUNT = 10_000
_LITERAL_LENGTH = 32
_SAMPLE_LENGTH = 200
_NOBODY: frozenset[int] = frozenset()
_NO_PAGES: frozenset[str] = frozenset()


_COMPANIONS = REDIRECTS | PAGE_SWITCHES
"""Modifiers whose rules may accompany another rule of the same line; the line counts once."""

_NO_RULE = ParsedLine(LineKind.COMMENT)

type _Taken = tuple[NetworkRule, PatternShape, str, int, int, int]
"""A rule, its shape, the line's text, source, number of the line, number of the rule on it."""


class _Tally:
    """Counts the lines of one list for its report."""

    def __init__(self) -> None:
        self._accepted = 0
        self._kinds: Counter[LineKind] = Counter()
        self._unsupported: Counter[str] = Counter()
        self._samples: list[tuple[int, str, str]] = []
        self._refused: list[tuple[int, str, str]] = []
        self._refusals = 0
        self.duplicates = 0

    def refuse(self, number: int, line: str, why: str) -> None:
        """Records a valid rule that is refused; such lines come first in the report."""
        self._refusals += 1
        if len(self._refused) < SAMPLE_LIMIT:
            self._refused.append((number, line.strip()[:_SAMPLE_LENGTH], why))

    def take_back(self, rules: tuple[NetworkRule, ...]) -> None:
        """Records that the rules of a line that was already counted are refused."""
        self._accepted -= _counted(rules)

    def count(self, number: int, line: str, parsed: ParsedLine) -> None:
        """Records the outcome of a line."""
        if parsed.kind is LineKind.NETWORK:
            self._accepted += _counted(parsed.rules)
            return
        self._kinds[parsed.kind] += 1
        if parsed.kind is LineKind.REJECTED:
            self._show(number, line, parsed.note)
        elif parsed.kind is LineKind.UNSUPPORTED:
            if parsed.note not in self._unsupported:
                self._show(number, line, f"not supported: {parsed.note}")
            self._unsupported[parsed.note] += 1

    def _show(self, number: int, line: str, why: str) -> None:
        if len(self._samples) < SAMPLE_LIMIT:
            self._samples.append((number, line.strip()[:_SAMPLE_LENGTH], why))

    def report(self) -> AdblockReport:
        """Returns the counts."""
        return AdblockReport(
            accepted=self._accepted,
            duplicates=self.duplicates,
            cosmetic=self._kinds[LineKind.COSMETIC],
            comments=self._kinds[LineKind.COMMENT],
            unsupported=dict(self._unsupported),
            rejected=self._kinds[LineKind.REJECTED] + self._refusals,
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


class AdblockBuilder:
    """Compiles the rules of several lists together; each list is added line by line.

    Args:
        judge: refuse rules that match most of the web (breadth/), and regular expressions whose total cost is too high
            (regex_budget.py). Without it everything valid is taken.
    """

    def __init__(self, *, judge: bool = True) -> None:
        self._judge = judge
        self._budget = RegexBudget()
        self._records: list[_Taken] = []
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
        tally = _Tally()
        preprocessor = Preprocessor()
        taken = len(self._records)
        seen: set[str] = set()
        styled: dict[str, CosmeticRecord] = {}
        self._budget.begin_list()
        for number, given in enumerate(lines, 1):
            # A rule is stored as UTF-8 and parsed again from it: it must survive the round trip.
            line = given if given.isascii() else given.encode(errors="replace").decode()
            if line.startswith("!#"):
                parsed = _follow_directive(preprocessor, line)
            elif not preprocessor.active:
                parsed = _NO_RULE
            elif line in seen:
                tally.duplicates += 1
                continue
            else:
                parsed = parse_line(line)
                if parsed.rules:
                    seen.add(line)
                    self._add_rules(source, number, line, parsed.rules)
                elif parsed.cosmetic is not None:
                    if self._judge and (why := cosmetic_refusal(parsed.cosmetic)):
                        tally.refuse(number, line, why)
                        continue
                    styled.setdefault(line, CosmeticRecord(parsed.cosmetic, line.strip(BLANKS), source, number))
            tally.count(number, line, parsed)
        self._cosmetics.extend(styled.values())
        if self._judge:
            self._judge_rules(taken, tally)
        return tally.report()

    def _add_rules(self, source: int, number: int, line: str, rules: tuple[NetworkRule, ...]) -> None:
        text = line.strip(BLANKS)
        for ordinal, rule in enumerate(rules):
            if rule.badfilter:
                self._badfilters.setdefault(rule.identity, set()).add(source)
            else:
                self._records.append((rule, shape_of(rule), text, source, number, ordinal))

    def _judge_rules(self, taken: int, tally: _Tally) -> None:
        """Drops the lines with a refused rule, among the rules from `taken` on."""
        mine = self._records[taken:]
        refusals = BreadthGuard().refusals((record[0], record[1]) for record in mine)
        costly = {}
        for rule, _, _, _, number, _ in mine:
            if (rule.is_regex or rule.conditions is not NO_CONDITIONS or rule.value) and (why := self._budget.refusal(rule)):
                costly[number] = why
        if not refusals and not costly:
            return
        lines = {mine[position][4]: why for position, why in refusals.items()} | costly
        self._records[taken:] = [record for record in mine if record[4] not in lines]
        dropped: dict[int, tuple[str, list[NetworkRule]]] = {}
        for rule, _, text, _, number, _ in mine:
            if number in lines:
                dropped.setdefault(number, (text, []))[1].append(rule)
        for number, (text, rules) in dropped.items():
            tally.take_back(tuple(rules))
            tally.refuse(number, text, lines[number])

    def named_sites(self) -> dict[int, set[str]]:
        """Returns for each source the sites that its blocking rules name (named_sites.py)."""
        named: dict[int, set[str]] = {}
        for rule, _, _, source, _, _ in self._records:
            if sites := sites_of(rule):
                named.setdefault(source, set()).update(sites)
        return named

    @collection_paused()
    def build(self) -> bytes:
        """Returns the compiled form of everything added so far."""
        network: list[RuleRecord] = []
        modifiers: list[RuleRecord] = []
        shapes: tuple[list[PatternShape], list[PatternShape]] = ([], [])
        badfilters = self._badfilters
        filtered = {identity[0] for identity in badfilters}
        for rule, shape, text, source, line, ordinal in self._records:
            cancelled_by = frozenset(badfilters.get(rule.identity, ())) if rule.pattern in filtered else _NOBODY
            if source in cancelled_by:
                continue
            is_found = shape.is_host or (shape.is_literal and not rule.match_case and len(rule.pattern) <= _LITERAL_LENGTH)
            needs_test = not is_found or rule.conditions is not NO_CONDITIONS
            record = RuleRecord(rule, text, source, line, ordinal, needs_test, cancelled_by)
            (modifiers if rule.modifier else network).append(record)
            shapes[bool(rule.modifier)].append(shape)
        sections = _pack_network(network, shapes[False])
        effects = _pack_effects(modifiers, shapes[True])
        return pack_sections([*sections, pack_sections([*effects, *pack_cosmetics(self._cosmetics)])])


def _pack_network(records: list[RuleRecord], shapes: list[PatternShape]) -> list[bytes]:
    planner = _Planner(records, shapes)
    kinds = (
        [number for number, record in enumerate(records) if not record.rule.exception],
        [number for number, record in enumerate(records) if record.rule.exception],
        [number for number, record in enumerate(records) if not record.rule.exception and record.rule.important],
    )
    sections = pack_rules(records)
    for numbers, per_host in zip(kinds, (RULES_PER_HOST, EXCEPTIONS_PER_HOST, RULES_PER_HOST), strict=True):
        sections += pack_index(planner.plan(numbers, per_host))
    return sections


def _pack_effects(records: list[RuleRecord], shapes: list[PatternShape]) -> list[bytes]:
    planner = _Planner(records, shapes)
    params = ParamPlan()
    addresses: dict[str, list[int]] = {}
    groups: dict[Group, list[int]] = {group: [] for group in Group}
    for number, record in enumerate(records):
        name = param_of(record.rule)
        if name:
            params.add(name, record.rule, number)
        elif servers := addresses_of(record.rule):
            _list_under(addresses, servers, number)
        else:
            groups[group_of(record.rule)].append(number)
    return pack_modifiers(records, params, addresses, [planner.plan(groups[group]) for group in Group])


class _Planner:
    """Chooses the index of each rule (rule_index.py)."""

    def __init__(self, records: list[RuleRecord], shapes: list[PatternShape]) -> None:
        self._records = records
        self._shapes = shapes
        self._scores = _score_literals(shapes)

    def plan(self, numbers: list[int], per_host: int = RULES_PER_HOST) -> IndexPlan:
        """Returns the plan for these rules; rules with a path are indexed by host where it has at most `per_host`."""
        shapes = self._shapes
        plan = IndexPlan()
        paths = Counter(shapes[number].host for number in numbers if not shapes[number].is_host)
        pages_of = {number: pages for number in numbers if (pages := self._pages(number))}
        on_page = Counter(name for pages in pages_of.values() for name in pages)
        for number in numbers:
            shape = shapes[number]
            pages = pages_of.get(number, _NO_PAGES)
            if pages and max(on_page[name] for name in pages) <= RULES_PER_PAGE:
                _list_under(plan.sources, pages, number)
            elif shape.is_host or (shape.host and paths[shape.host] <= per_host):
                plan.hosts.setdefault(shape.host, []).append(number)
            else:
                self._plan_by_literal(plan, number, pages)
        return plan

    def _plan_by_literal(self, plan: IndexPlan, number: int, pages: frozenset[str]) -> None:
        literal, score = self._best_literal(self._shapes[number])
        targets = self._records[number].rule.conditions.targets
        if score < TELLING and pages:
            _list_under(plan.sources, pages, number)
        elif score < TELLING and targets and not targets.patterns and not any(name.endswith("*") for name in targets.names):
            _list_under(plan.hosts, targets.names, number)
        elif literal and (literal not in _EVERY_URL or not self._records[number].needs_test):
            _list_under(plan.literals, (literal,), number)
        else:
            plan.everywhere.append(number)

    def _pages(self, number: int) -> frozenset[str]:
        """Returns the hosts of the pages that a rule applies to, none where it does not name all, or names too many."""
        conditions = self._records[number].rule.conditions
        if conditions is NO_CONDITIONS:
            return _NO_PAGES
        pages = conditions.sources
        return _NO_PAGES if pages.patterns or len(pages.names) > MAX_PAGES else pages.names

    def _best_literal(self, shape: PatternShape) -> tuple[str, float]:
        best, best_score = "", 0.0
        for literal in shape.literals:
            key = literal[:_LITERAL_LENGTH]
            score = self._scores[key]
            if not best or score > best_score:
                best, best_score = key, score
        return best, best_score


def _list_under(table: dict[str, list[int]], keys: Iterable[str], number: int) -> None:
    for key in sorted(keys):
        table.setdefault(key, []).append(number)


def _score_literals(shapes: list[PatternShape]) -> dict[str, float]:
    """Returns the score of each literal: higher for long ones, and for those in few rules.

    Source: [ad-traffic §2.1]: a keyword "as unique in the whole rule set as possible". Deviation: of any length.
    """
    literals = sorted({literal[:_LITERAL_LENGTH] for shape in shapes if not shape.is_host for literal in shape.literals})
    if not literals:
        return {}
    haystack = "\n".join(literal for shape in shapes for literal in shape.literals).encode()
    # Four hits of five are of single characters, which are counted without an automaton.
    counts = {literal: haystack.count(literal.encode()) for literal in literals if len(literal) == 1}
    longer = [literal for literal in literals if len(literal) > 1]
    automaton = BytesAhoCorasick([literal.encode() for literal in longer], implementation=Implementation.ContiguousNFA)
    hits = Counter(map(itemgetter(0), automaton.find_matches_as_indexes(haystack, overlapping=True)))
    counts |= {literal: hits[number] for number, literal in enumerate(longer)}
    for literal in literals:
        if any(literal in common for common in _UBIQUITOUS):
            counts[literal] += _UBIQUITOUS_COUNT
    return {literal: len(literal) - 1.5 * log2(max(1, counts[literal])) for literal in literals}
