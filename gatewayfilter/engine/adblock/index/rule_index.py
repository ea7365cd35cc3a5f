"""The index of network rules: finds the candidate rules of a request without testing the others.

Each rule is in exactly one of four indexes:

1. `hosts`: rules anchored to a complete host name, in a dictionary with look-ups of the host and its parent domains; the
   result is cached per host. Nine rules out of ten are `||host^` and are decided here by one AND.
2. `literals`: one literal of each other rule, in one Aho-Corasick automaton over all of them, run once over the URL.
3. `sources`: rules without a selective literal that name the pages they apply to, by the host of the page.
4. `everywhere`: the few remaining rules.

Source: [ad-traffic §2.2] for the automaton. Deviation: rules with wildcards are in it too, with their rarest literal as
keyword, in place of a hash table of keywords (§2.1): one pass in compiled code costs less than looking
up every substring of length k in Python.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.index.compiled_rule import RuleTest
from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.literal_reach import LiteralReach
from gatewayfilter.engine.adblock.index.literal_scan import MANY_HITS, make_scan
from gatewayfilter.engine.adblock.index.name_table import NameTable, in_parts, pack_name_table
from gatewayfilter.engine.adblock.index.near_rules import NearTables, Proximity, near_rules, proximity
from gatewayfilter.engine.adblock.index.posted_rules import Near, PostedMasks, PostedRules, Postings
from gatewayfilter.engine.adblock.index.rule_table import CANCELLED, NEEDS_TEST, RulesOff, RuleTable
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, DOCUMENT, PARTY_SHIFT
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request
from gatewayfilter.urls import host_suffixes


@dataclass(slots=True)  # a frozen one takes four times as long to make; nothing assigns to it
class RulesBetween:
    """The rules that may match requests of one type between two hosts, put together for many such requests.

    Attributes:
        bits: type and party of the requests.
        tests: number and remaining test of each rule that is tested first.
        certain: number of a rule that matches all of them, -1 without one.
        scans: the URL has to be searched for literals, where no other rule matches.
    """

    bits: int
    tests: tuple[tuple[int, RuleTest], ...]
    certain: int
    scans: bool

    @property
    def is_empty(self) -> bool:
        """Whether no rule can match."""
        return not self.tests and not self.scans and self.certain < 0


NO_RULES = RulesBetween(0, (), -1, scans=False)
"""No rules between two hosts."""

FEW = 100
"""Up to this many rules by literals are tested against host and page first: most requests then need no search of the URL."""


@dataclass(slots=True)
class IndexPlan:
    """The assignment of rules to indexes, made by the builder; each key maps to its rules."""

    hosts: dict[str, list[int]] = field(default_factory=dict)
    literals: dict[str, list[int]] = field(default_factory=dict)
    sources: dict[str, list[int]] = field(default_factory=dict)
    everywhere: list[int] = field(default_factory=list)


def pack_index(plan: IndexPlan) -> list[bytes]:
    """Returns the sections that `RuleIndex` reads."""
    sections = []
    for table in (plan.hosts, plan.literals, plan.sources):
        keys = in_parts(table) if table is plan.hosts else list(table)
        starts = [0]
        rules: list[int] = []
        for key in keys:
            rules += table[key]
            starts.append(len(rules))
        sections += pack_name_table(keys) if table is plan.hosts else [pack_names(keys)]
        sections += [pack_numbers(starts), pack_numbers(rules)]
    return [*sections, pack_numbers(plan.everywhere)]


def _postings(sections: SectionReader, table: RuleTable, keys: int, *, by_host: bool = False) -> Postings:
    starts = sections.numbers()
    rules = sections.numbers()
    if len(starts) != keys + 1:
        raise SnapshotError("the compiled Adblock rules are damaged")
    return Postings(table, starts, rules, by_host=by_host)


class RuleIndex:
    """Rules of one kind: blocks, exceptions or important blocks. Opening it reads names, builds the automaton, parses no rule.

    Attributes:
        literals: the search for the literals of its rules.
        posted: masks and numbers of the rules of each literal.
        tests: number → test of a rule's pattern and conditions.
    """

    def __init__(self, sections: SectionReader, table: RuleTable) -> None:
        self._table = table
        self.tests = table.tests
        self._hosts = NameTable(sections)
        self._host_rules = _postings(sections, table, self._hosts.count, by_host=True)
        literals = sections.names()
        self.posted = PostedMasks(table, _postings(sections, table, len(literals)))
        self._in_url = self.posted.mask
        self._few_in_url = self.posted.candidates() if self.posted.size <= FEW else ()
        self.literals = make_scan(literals)
        self._scan, self._at = self.literals.find, self.literals.at
        self._sources: Mapping[str, int] = sections.numbered_names()
        self._source_rules = _postings(sections, table, len(self._sources))
        self._everywhere = sections.numbers()
        self._near_tables: NearTables | None = None
        self._near = BoundedCache(self._find_near)
        self._near_pages = BoundedCache(self._find_near_page)

    def first(self, request: Request, kind: int, source: str) -> int:
        """Returns the number of the first matching rule found, -1 without one. All sources are on.

        Args:
            request: the request.
            kind: the bit of its type.
            source: host of its source, "" when there is none.
        """
        url = request.url
        near = self._near_pages if kind == DOCUMENT else self._near
        party, in_url, union, candidates = near[url.host, source]
        bits = kind * party
        lowered = ""
        if union & bits:
            for mask, rule, test in candidates:
                if mask & bits:
                    if test is None:
                        return rule
                    lowered = lowered or url.text.lower()
                    if test(request, lowered, source):
                        return rule
        if in_url & bits:
            lowered = lowered or url.text.lower()
            if hits := self._scan(lowered.encode()):
                return self._first_of(hits, request, lowered, bits, source)
        return -1

    def between(self, host: str, source: str, kind: int) -> RulesBetween:
        """Returns the rules that may match requests between two hosts; arguments as in `first`. All sources are on."""
        party, in_url, union, candidates = (self._near_pages if kind == DOCUMENT else self._near)[host, source]
        bits = kind * party
        tests: list[tuple[int, RuleTest]] = []
        if union & bits:
            for mask, rule, test in candidates:
                if mask & bits:
                    if test is None:
                        return RulesBetween(bits, tuple(tests), rule, scans=False)
                    tests.append((rule, test))
        return RulesBetween(bits, tuple(tests), -1, bool(in_url & bits))

    def first_of(
        self, between: RulesBetween, request: Request, lowered: str, source: str, hits: Sequence[tuple[int, ...]] | None = None
    ) -> int:
        """Returns the same rule as `first`, -1 without one.

        Args:
            between: the rules between its hosts.
            request: the request.
            lowered: its URL in lower case.
            source: as in `first`.
            hits: of the literals in the URL, `None` where they were not searched for.
        """
        for rule, test in between.tests:
            if test(request, lowered, source):
                return rule
        if between.scans:
            hits = self._scan(lowered.encode()) if hits is None else hits
            return self._first_of(hits, request, lowered, between.bits, source) if hits else -1
        return between.certain

    def first_on(self, request: Request, kind: int, source: str, off: RulesOff) -> int:
        """Returns the number of the first matching rule found that is in force, -1 without one; arguments as in `first`."""
        url = request.url
        near = self._near_pages if kind == DOCUMENT else self._near
        party, in_url, union, candidates = near[url.host, source]
        bits = kind * party
        if off.restored:
            every = self._find_rules_near(url.host, source, bits)
            candidates = tuple(found for found in every if not found[0] & CANCELLED or found[1] in off.restored)
            union = _union(candidates)
        lowered = ""
        if union & bits:
            for mask, rule, test in candidates:
                if mask & bits and self._table.source(rule) not in off.sources:
                    lowered = lowered or url.text.lower()
                    if test is None or test(request, lowered, source):
                        return rule
        if in_url & bits:
            lowered = lowered or url.text.lower()
            if hits := self._scan(lowered.encode()):
                return self._first_on_of(hits, request, lowered, source, bits, off)
        return -1

    def kinds_near(self, host: str, source: str) -> int:
        """Returns the bits of the resource types in which requests between two hosts may match a rule, all sources on."""
        party, in_url, union, _ = self._near[host, source]
        _, in_page_url, page_union, _ = self._near_pages[host, source]
        reach = (in_url | union | in_page_url | page_union) & ALL_TYPES * party
        return (reach | reach >> PARTY_SHIFT) & ALL_TYPES

    def _first_of(self, hits: Sequence[tuple[int, ...]], request: Request, lowered: str, bits: int, source: str) -> int:
        """Returns the number of the first matching rule among the literals' hits, -1 without one."""
        at = self._at
        if len(hits) > MANY_HITS:
            hits = list({hit[at]: hit for hit in hits}.values())
        for hit in hits:
            for mask, rule in self.posted[hit[at]]:
                if mask & bits and (mask < NEEDS_TEST or (mask < CANCELLED and self.tests[rule](request, lowered, source))):
                    return rule
        return -1

    def _first_on_of(
        self, hits: Sequence[tuple[int, ...]], request: Request, lowered: str, source: str, bits: int, off: RulesOff
    ) -> int:
        """Returns the number of the first matching rule in force among the literals' hits, -1 without one."""
        at = self._at
        if len(hits) > MANY_HITS:
            hits = list({hit[at]: hit for hit in hits}.values())
        for hit in hits:
            for mask, rule in self.posted[hit[at]]:
                if not mask & bits or self._table.source(rule) in off.sources:
                    continue
                if mask & CANCELLED and rule not in off.restored:
                    continue
                if not mask & NEEDS_TEST or self.tests[rule](request, lowered, source):
                    return rule
        return -1

    def _find_near(self, hosts: tuple[str, str]) -> Proximity:
        """Computes the candidate rules of requests to a host from a source, except those indexed by literal and for pages."""
        return proximity(self._tables(), *hosts, ALL_TYPES & ~DOCUMENT)

    def _find_near_page(self, hosts: tuple[str, str]) -> Proximity:
        """Computes the same for pages alone: many rules for pages have costly conditions, and pages are few."""
        return proximity(self._tables(), *hosts, DOCUMENT)

    def _find_rules_near(self, host: str, source: str, reach: int) -> tuple[Near, ...]:
        """Returns the candidate rules between two hosts, those without a test first."""
        return near_rules(self._tables(), host, source, reach)

    def _tables(self) -> NearTables:
        """Returns what is found by hosts and pages; at the first use, as it compiles the rules without a key."""
        tables = self._near_tables
        if tables is None:
            table = self._table
            everywhere = PostedRules(table, self._everywhere)
            few = self._few_in_url
            reach = LiteralReach((mask, table.compiled(rule)) for mask, rule in few) if few else None
            by_hosts = (self._hosts, self._host_rules, self._sources, self._source_rules)
            tables = self._near_tables = (*by_hosts, everywhere, self._in_url, reach)
        return tables

    def all(self, request: Request, lowered: str, bits: int, source: str, off_sources: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches and whose source is on, in the order in which `first` looks."""
        seen: set[int] = set()
        for mask, rule in self._candidates(request.url.host, lowered, bits, source):
            if not mask & bits or rule in seen or self._table.is_off(rule, off_sources):
                continue
            seen.add(rule)
            if not mask & NEEDS_TEST or self.tests[rule](request, lowered, source):
                yield rule

    def _candidates(self, host: str, lowered: str, bits: int, source: str) -> Iterator[tuple[int, int]]:
        masks = self._table.masks
        keys = [key for name in host_suffixes(host) if (key := self._hosts.number(name)) is not None]
        yield from ((masks[rule], rule) for key in keys for rule in self._host_rules.numbers(key))
        if self._in_url & bits:
            for hit in self._scan(lowered.encode()):
                yield from self.posted[hit[self._at]]
        keys = [key for name in (host_names(source) if source else ()) if (key := self._sources.get(name)) is not None]
        yield from ((masks[rule], rule) for key in keys for rule in self._source_rules.numbers(key))
        yield from ((masks[rule], rule) for rule in self._everywhere)


def _union(candidates: Iterable[tuple[int, int]] | Iterable[Near]) -> int:
    union = 0
    for candidate in candidates:
        union |= candidate[0]
    return union
