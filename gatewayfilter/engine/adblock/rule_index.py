"""Finds the rules that may match a request without trying the others.

Four ways, each rule in exactly one of them:

1. `hosts`: rules anchored to a complete host name, in a dictionary that is asked for the host and its parent domains; the
   answer is kept for each host. Nine rules out of ten are `||host^` and are decided here by one AND.
2. `literals`: one literal of each other rule, in one Aho-Corasick automaton over all of them, run once over the URL.
3. `sources`: rules without a telling literal that name the pages they work on, by the host of the page.
4. `everywhere`: the few that are left.

Source: [ad-traffic §2.2] for the automaton. Deviation: rules with wildcards are in it too, with their rarest literal as
keyword, in place of a hash table of keywords (§2.1, paper_scheme.py): one pass in compiled code costs less than looking
up every substring of length k in Python.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ahocorasick_rs import AhoCorasick, Implementation

from gatewayfilter.engine.adblock.compiled_rule import host_names
from gatewayfilter.engine.adblock.rule_table import CANCELLED, NEEDS_TEST, RuleTable
from gatewayfilter.engine.adblock.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request
from gatewayfilter.urls import host_suffixes

CACHE_SIZE = 8_192
"""Hosts and sources whose answers are kept. Clients choose the keys: a full cache is emptied."""

DFA_LITERALS = 500
"""Up to this many literals a DFA is small and a third faster; beyond it takes tens of megabytes and gains nothing."""

type Candidates = tuple[tuple[int, int], ...]
"""(mask, rule) of each."""


@dataclass(slots=True)
class IndexPlan:
    """Which rules stand where, as the builder decides; a key stands for its rules."""

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


def _no_hits(text: str, overlapping: bool) -> list[tuple[int, int, int]]:  # noqa: ARG001, FBT001  # AhoCorasick's signature
    return []


def make_automaton(literals: list[str]) -> Callable[[str, bool], list[tuple[int, int, int]]]:
    """Returns the search for all literals; a hit is (number of the literal, start, end)."""
    if not literals:
        return _no_hits
    implementation = Implementation.DFA if len(literals) <= DFA_LITERALS else Implementation.ContiguousNFA
    return AhoCorasick(literals, store_patterns=False, implementation=implementation).find_matches_as_indexes


class RuleIndex:
    """Rules of one kind: blocks, exceptions or important blocks. Opening it reads names and builds the automaton, no rule."""

    def __init__(self, sections: SectionReader, table: RuleTable) -> None:
        self._table = table
        hosts = sections.names()
        self._hosts: Mapping[str, int] = dict(zip(hosts, range(len(hosts)), strict=True))
        self._host_rules = _Postings(sections, len(hosts))
        literals = sections.names()
        postings = _Postings(sections, len(literals))
        masks = table.masks
        self._literals = [tuple((masks[rule], rule) for rule in postings[number]) for number in range(len(literals))]
        self._scan = make_automaton(literals)
        sources = sections.names()
        self._sources: Mapping[str, int] = dict(zip(sources, range(len(sources)), strict=True))
        self._source_rules = _Postings(sections, len(sources))
        self._everywhere: Candidates = tuple((masks[rule], rule) for rule in sections.numbers())
        self._host_cache: dict[str, tuple[int, Candidates]] = {}
        self._source_cache: dict[str, Candidates] = {}

    def first(self, request: Request, lowered: str, bits: int, source: str) -> int:
        """Returns the number of the first rule found that matches, -1 without one. All sources are on.

        Args:
            request: the request.
            lowered: its URL in lower case.
            bits: its type and party, as in a rule's mask.
            source: host of its source, "" when there is none.
        """
        host = request.url.host
        found = self._host_cache.get(host) or self._find_host(host)
        if found[0] & bits:
            for mask, rule in found[1]:
                if mask & bits and (mask < NEEDS_TEST or self._holds(mask, rule, request, lowered, source)):
                    return rule
        for literal, _, _ in self._scan(lowered, True):
            for mask, rule in self._literals[literal]:
                if mask & bits and (mask < NEEDS_TEST or self._holds(mask, rule, request, lowered, source)):
                    return rule
        candidates = self._source_cache.get(source)
        for mask, rule in self._find_source(source) if candidates is None else candidates:
            if mask & bits and self._holds(mask, rule, request, lowered, source):
                return rule
        return -1

    def _holds(self, mask: int, rule: int, request: Request, lowered: str, source: str) -> bool:
        if mask & CANCELLED:
            return False
        return not mask & NEEDS_TEST or self._table.test(rule, request, lowered, source)

    def all(self, request: Request, lowered: str, bits: int, source: str, off_sources: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches and whose source is on, in the order in which `first` looks."""
        seen: set[int] = set()
        for mask, rule in self._candidates(request.url.host, lowered, source):
            if not mask & bits or rule in seen or self._table.is_off(rule, off_sources):
                continue
            seen.add(rule)
            if not mask & NEEDS_TEST or self._table.test(rule, request, lowered, source):
                yield rule

    def _candidates(self, host: str, lowered: str, source: str) -> Iterator[tuple[int, int]]:
        yield from self._find_host(host)[1]
        for literal, _, _ in self._scan(lowered, True):
            yield from self._literals[literal]
        yield from self._find_source(source)

    def _find_host(self, host: str) -> tuple[int, Candidates]:
        masks = self._table.masks
        rules = [
            (masks[rule], rule)
            for name in host_suffixes(host)
            if (number := self._hosts.get(name)) is not None
            for rule in self._host_rules[number]
        ]
        rules.sort(key=lambda candidate: candidate[0] & NEEDS_TEST)
        union = 0
        for mask, _ in rules:
            union |= mask
        if len(self._host_cache) >= CACHE_SIZE:
            self._host_cache.clear()
        found = self._host_cache[host] = (union, tuple(rules))
        return found

    def _find_source(self, source: str) -> Candidates:
        masks = self._table.masks
        rules = [
            (masks[rule], rule)
            for name in (host_names(source) if source else ())
            if (number := self._sources.get(name)) is not None
            for rule in self._source_rules[number]
        ]
        if len(self._source_cache) >= CACHE_SIZE:
            self._source_cache.clear()
        found = self._source_cache[source] = (*rules, *self._everywhere)
        return found
