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
from gatewayfilter.engine.adblock.index.compiled_rule import CompiledRule, RuleTest, host_names
from gatewayfilter.engine.adblock.index.literal_scan import make_scan
from gatewayfilter.engine.adblock.index.rule_table import CANCELLED, NEEDS_TEST, RulesOff, RuleTable
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.engine.adblock.syntax.rule import ALL_TYPES, PARTY_SHIFT
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request
from gatewayfilter.urls import host_suffixes, registrable_domain

type Candidates = tuple[tuple[int, int], ...]
"""(mask, rule) of each."""

type Near = tuple[tuple[int, int, RuleTest | None], ...]
"""(mask, rule, remaining test) of each rule that may apply between two hosts."""

type Proximity = tuple[int, int, int, Near]
"""Cached facts about requests to one host from another: the party (`party_of`); the OR of the masks of the rules by literals;
that of the other candidates; and of each of these its mask, its number, and its remaining test."""

MANY_HITS = 16
"""With more hits than this, repeated hits of a literal are removed first: real URLs have none or two, hostile ones thousands."""

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
        starts = [0]
        for rules in table.values():
            starts.append(starts[-1] + len(rules))
        sections += [pack_names(table), pack_numbers(starts), pack_numbers(rule for rules in table.values() for rule in rules)]
    return [*sections, pack_numbers(plan.everywhere)]


class _Postings:
    """Number of a key → its rules."""

    __slots__ = ("_rules", "_starts")

    def __init__(self, sections: SectionReader, keys: int) -> None:
        self._starts = sections.numbers()
        self._rules = sections.numbers()
        if len(self._starts) != keys + 1 or self._starts[-1] != len(self._rules):
            raise SnapshotError("the compiled Adblock rules are damaged")

    def __getitem__(self, key: int) -> Sequence[int]:
        return self._rules[self._starts[key] : self._starts[key + 1]]


class RuleIndex:
    """Rules of one kind: blocks, exceptions or important blocks. Opening it reads names, builds the automaton, parses no rule."""

    def __init__(self, sections: SectionReader, table: RuleTable) -> None:
        self._table = table
        self._tests = table.tests
        self._hosts: Mapping[str, int] = sections.numbered_names()
        self._host_rules = _Postings(sections, len(self._hosts))
        literals = sections.names()
        postings = _Postings(sections, len(literals))
        masks = table.masks
        self._literals = [tuple((masks[rule], rule) for rule in postings[number]) for number in range(len(literals))]
        by_literal = tuple(candidate for candidates in self._literals for candidate in candidates)
        self._in_url = _union(by_literal)
        self._few_in_url = by_literal if len(by_literal) <= FEW else ()
        self._few: list[tuple[int, str, CompiledRule]] = []
        self._scan, self._at = make_scan(literals)
        self._sources: Mapping[str, int] = sections.numbered_names()
        self._source_rules = _Postings(sections, len(self._sources))
        self._everywhere: Candidates = tuple((masks[rule], rule) for rule in sections.numbers())
        self._at_host = BoundedCache(self._find_host)
        self._at_page = BoundedCache(self._find_page)
        self._near = BoundedCache(self._find_near)
        self._all_near = BoundedCache(self._find_all_near)

    def first(self, request: Request, kind: int, source: str) -> int:
        """Returns the number of the first matching rule found, -1 without one. All sources are on.

        Args:
            request: the request.
            kind: the bit of its type.
            source: host of its source, "" when there is none.
        """
        url = request.url
        party, in_url, union, candidates = self._near[url.host, source]
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

    def first_on(self, request: Request, kind: int, source: str, off: RulesOff) -> int:
        """Returns the number of the first matching rule found that is in force, -1 without one; arguments as in `first`."""
        url = request.url
        party, in_url, union, candidates = self._near[url.host, source]
        bits = kind * party
        if off.restored:
            every = self._all_near[url.host, source]
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
        reach = (in_url | union) & ALL_TYPES * party
        return (reach | reach >> PARTY_SHIFT) & ALL_TYPES

    def _first_of(self, hits: Sequence[tuple[int, ...]], request: Request, lowered: str, bits: int, source: str) -> int:
        """Returns the number of the first matching rule among the literals' hits, -1 without one."""
        at = self._at
        if len(hits) > MANY_HITS:
            hits = list({hit[at]: hit for hit in hits}.values())
        for hit in hits:
            for mask, rule in self._literals[hit[at]]:
                if mask & bits and (mask < NEEDS_TEST or (mask < CANCELLED and self._tests[rule](request, lowered, source))):
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
            for mask, rule in self._literals[hit[at]]:
                if not mask & bits or self._table.source(rule) in off.sources:
                    continue
                if mask & CANCELLED and rule not in off.restored:
                    continue
                if not mask & NEEDS_TEST or self._tests[rule](request, lowered, source):
                    return rule
        return -1

    def _find_near(self, hosts: tuple[str, str]) -> Proximity:
        """Computes the candidate rules of requests to a host from a source, except those indexed by literal."""
        host, source = hosts
        near = tuple(found for found in self._find_all_near(hosts) if not found[0] & CANCELLED)
        return party_of(host, source), self._may_be_in_url(host, source), _union(near), near

    def _find_all_near(self, hosts: tuple[str, str]) -> Near:
        """Computes the same with the rules that are cancelled while all sources are on, those without a test first."""
        host, source = hosts
        reach = ALL_TYPES * party_of(host, source)
        near: list[tuple[int, int, RuleTest | None]] = []
        for mask, rule in (*self._at_host[host], *self._at_page[source]):
            if not mask & reach:
                continue
            left = self._table.compiled(rule).between(host, source) if mask & NEEDS_TEST else True
            if left:
                near.append((mask, rule, None if left is True else left))
        near.sort(key=lambda candidate: candidate[2] is not None)
        return tuple(near)

    def _may_be_in_url(self, host: str, source: str) -> int:
        """Returns the OR of the masks of the rules by literals that may apply; of all of them where testing would take long."""
        if not self._few_in_url:
            return self._in_url
        if not self._few:
            ready = ((mask, self._table.compiled(rule)) for mask, rule in self._few_in_url)
            self._few = [(mask, compiled.in_host, compiled) for mask, compiled in ready]
        return _union((mask,) for mask, in_host, compiled in self._few if in_host in host and compiled.between(host, source))

    def all(self, request: Request, lowered: str, bits: int, source: str, off_sources: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches and whose source is on, in the order in which `first` looks."""
        seen: set[int] = set()
        for mask, rule in self._candidates(request.url.host, lowered, bits, source):
            if not mask & bits or rule in seen or self._table.is_off(rule, off_sources):
                continue
            seen.add(rule)
            if not mask & NEEDS_TEST or self._tests[rule](request, lowered, source):
                yield rule

    def _candidates(self, host: str, lowered: str, bits: int, source: str) -> Iterator[tuple[int, int]]:
        yield from self._at_host[host]
        if self._in_url & bits:
            for hit in self._scan(lowered.encode()):
                yield from self._literals[hit[self._at]]
        yield from self._at_page[source]

    def _find_host(self, host: str) -> Candidates:
        masks = self._table.masks
        rules = [
            (masks[rule], rule)
            for name in host_suffixes(host)
            if (number := self._hosts.get(name)) is not None
            for rule in self._host_rules[number]
        ]
        return tuple(rules)

    def _find_page(self, source: str) -> Candidates:
        masks = self._table.masks
        rules = [
            (masks[rule], rule)
            for name in (host_names(source) if source else ())
            if (number := self._sources.get(name)) is not None
            for rule in self._source_rules[number]
        ]
        return (*rules, *self._everywhere)


def _union(candidates: Iterable[tuple[int, ...]] | Iterable[tuple[int, int, RuleTest | None]]) -> int:
    union = 0
    for candidate in candidates:
        union |= candidate[0]
    return union


def party_of(host: str, source: str) -> int:
    """Returns the factor that turns a type's bit into a request's bits in a rule's mask.

    Args:
        host: host of the request.
        source: host of its source; with "" it counts as first and as third party.
    """
    if not source:
        return 1 | 1 << PARTY_SHIFT
    return 1 if source == host or registrable_domain(source) == registrable_domain(host) else 1 << PARTY_SHIFT
