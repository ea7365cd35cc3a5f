"""The planner of the rule index: chooses for each rule where it is found (index/rule_index.py)."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from math import log2
from operator import itemgetter

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation

from gatewayfilter.engine.adblock.index.pattern import PatternShape
from gatewayfilter.engine.adblock.index.rule_index import IndexPlan
from gatewayfilter.engine.adblock.index.rule_table import NEEDS_TEST, PLAIN_RULE, PLAIN_SHAPE, RuleColumns
from gatewayfilter.engine.adblock.syntax.rule import NO_CONDITIONS

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
LITERAL_LENGTH = 32
"""Characters of a literal by which a rule is found."""

_NO_PAGES: frozenset[str] = frozenset()


class Planner:
    """Chooses the index of each rule (index/rule_index.py)."""

    def __init__(self, columns: RuleColumns) -> None:
        self._columns = columns
        self._scores = _score_literals(columns)

    def plan(self, numbers: list[int], per_host: int = RULES_PER_HOST) -> IndexPlan:
        """Returns the plan for these rules; rules with a path are indexed by host where it has at most `per_host`."""
        rules, shapes, hosts = self._columns.rules, self._columns.shapes, self._columns.hosts
        plan = IndexPlan()
        by_host = plan.hosts
        others = [number for number in numbers if rules[number] is not PLAIN_RULE]
        paths = Counter(shape.host for number in others if not (shape := shapes[number]).is_host)
        pages_of = {number: pages for number in others if (pages := self._pages(number))}
        on_page = Counter(chain.from_iterable(pages_of.values()))
        for number in numbers:
            if rules[number] is PLAIN_RULE:
                by_host.setdefault(hosts[number], []).append(number)
                continue
            shape = shapes[number]
            pages = pages_of.get(number, _NO_PAGES)
            if pages and max(on_page[name] for name in pages) <= RULES_PER_PAGE:
                list_under(plan.sources, pages, number)
            elif shape.is_host or (shape.host and paths[shape.host] <= per_host):
                by_host.setdefault(shape.host, []).append(number)
            else:
                self._plan_by_literal(plan, number, pages)
        return plan

    def _plan_by_literal(self, plan: IndexPlan, number: int, pages: frozenset[str]) -> None:
        literal, score = self._best_literal(self._columns.shapes[number])
        targets = self._columns.rules[number].conditions.targets
        if score < TELLING and pages:
            list_under(plan.sources, pages, number)
        elif score < TELLING and targets and not targets.patterns and not any(name.endswith("*") for name in targets.names):
            list_under(plan.hosts, targets.names, number)
        elif literal and (literal not in _EVERY_URL or not self._columns.masks[number] & NEEDS_TEST):
            list_under(plan.literals, (literal,), number)
        else:
            plan.everywhere.append(number)

    def _pages(self, number: int) -> frozenset[str]:
        """Returns the hosts of the pages that a rule applies to, none where it does not name all, or names too many."""
        conditions = self._columns.rules[number].conditions
        if conditions is NO_CONDITIONS:
            return _NO_PAGES
        pages = conditions.sources
        return _NO_PAGES if pages.patterns or len(pages.names) > MAX_PAGES else pages.names

    def _best_literal(self, shape: PatternShape) -> tuple[str, float]:
        best, best_score = "", 0.0
        for literal in shape.literals:
            key = literal[:LITERAL_LENGTH]
            score = self._scores[key]
            if not best or score > best_score:
                best, best_score = key, score
        return best, best_score


def list_under(table: dict[str, list[int]], keys: Iterable[str], number: int) -> None:
    """Adds a rule's number under each of these keys."""
    for key in sorted(keys):
        table.setdefault(key, []).append(number)


def _score_literals(columns: RuleColumns) -> dict[str, float]:
    """Returns the score of each literal: higher for long ones, and for those in few rules.

    Source: [ad-traffic §2.1]: a keyword "as unique in the whole rule set as possible". Deviation: of any length.
    """
    shapes = [shape for shape in columns.shapes if shape is not PLAIN_SHAPE]
    literals = sorted({literal[:LITERAL_LENGTH] for shape in shapes if not shape.is_host for literal in shape.literals})
    plain = (host for rule, host in zip(columns.rules, columns.hosts, strict=True) if rule is PLAIN_RULE)
    haystack = "\n".join(chain(plain, chain.from_iterable(shape.literals for shape in shapes))).encode()
    # Four hits of five are of single characters, which are counted without an automaton.
    octets = np.bincount(np.frombuffer(haystack, np.uint8), minlength=256).tolist()
    counts = {literal: octets[ord(literal)] for literal in literals if len(literal) == 1}  # all literals are of ASCII
    longer = [literal for literal in literals if len(literal) > 1]
    automaton = BytesAhoCorasick([literal.encode() for literal in longer], implementation=Implementation.ContiguousNFA)
    hits = Counter(map(itemgetter(0), automaton.find_matches_as_indexes(haystack, overlapping=True)))
    counts |= {literal: hits[number] for number, literal in enumerate(longer)}
    common = "\n".join(_UBIQUITOUS)  # no literal has a line break
    for literal in literals:
        if literal in common:
            counts[literal] += _UBIQUITOUS_COUNT
    return {literal: len(literal) - 1.5 * log2(max(1, counts[literal])) for literal in literals}
