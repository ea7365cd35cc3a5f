"""The matching scheme of the paper, to the letter, as a reference for the default one (rule_index.py).

Source: [ad-traffic §2.1] rules with a wildcard: a substring of length k as keyword, as unique in the rule set as possible, in
a hash table keyword → rules; every substring of length k of the URL is looked up. [ad-traffic §2.2] rules without one: an
Aho-Corasick automaton over all of them.
Deviation: both halves only find candidates, as today's rules carry options that the paper's do not; therefore the search
does not end at the first hit but at the first rule that holds. A rule whose literals are all shorter than k goes into the
automaton (without one: into a table for its length); a rule without any is tried on every URL. The separator `^` counts
as a wildcard. Parser, tests of a rule and the order of exceptions are those of the default, so that verdicts are identical
and the figures compare the search alone.
"""

from collections import Counter
from collections.abc import Iterator
from mmap import mmap

from gatewayfilter.engine.adblock.index.literal_scan import make_scan
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.pattern import shape_of
from gatewayfilter.engine.adblock.index.rule_table import CANCELLED, EXCEPTION, IMPORTANT, RulesOff, RuleTable
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request

PAPER_K = 8
"""The keyword length that served best in the paper."""


class PaperIndex:
    """Finds rules by keyword table and automaton."""

    def __init__(self, table: RuleTable, numbers: list[int], k: int, *, use_automaton: bool) -> None:
        self._table = table
        literals = {number: shape_of(table.rule(number)).literals for number in numbers}
        in_automaton: dict[str, list[tuple[int, int]]] = {}
        keyed: list[int] = []
        rest: list[tuple[int, int]] = []
        for number in numbers:
            longest = max(literals[number], key=len, default="")
            is_plain = len(literals[number]) == 1 and _is_plain(table.rule(number).pattern)
            if not longest:
                rest.append((table.masks[number], number))
            elif use_automaton and (is_plain or len(longest) < k):
                in_automaton.setdefault(longest, []).append((table.masks[number], number))
            else:
                keyed.append(number)
        grams: dict[int, list[str]] = {}
        for number in keyed:
            length = min(k, max(map(len, literals[number])))
            grams[number] = [gram for literal in literals[number] for gram in _grams(literal, length)]
        frequency = Counter(gram for found in grams.values() for gram in found)
        tables: dict[int, dict[str, list[tuple[int, int]]]] = {}
        for number in keyed:
            keyword = min(grams[number], key=lambda gram: (frequency[gram], gram))
            tables.setdefault(len(keyword), {}).setdefault(keyword, []).append((table.masks[number], number))
        self._tables = tables
        self._plain = list(in_automaton.values())
        self._scan, self._at, _ = make_scan(list(in_automaton))
        self._rest = rest

    def first(self, request: Request, kind: int, source: str) -> int:
        """Returns the number of the first rule that matches, -1 without one; all sources are on."""
        bits = kind * party_of(request.url.host, source)
        lowered = request.url.text.lower()
        for mask, rule in self._candidates(lowered):
            if mask & bits and not mask & CANCELLED and self._table.tests[rule](request, lowered, source):
                return rule
        return -1

    def first_on(self, request: Request, kind: int, source: str, off: RulesOff) -> int:
        """Returns the number of the first rule that matches and is in force, -1 without one."""
        bits = kind * party_of(request.url.host, source)
        lowered = request.url.text.lower()
        for mask, rule in self._candidates(lowered):
            is_on = self._table.source(rule) not in off.sources and (not mask & CANCELLED or rule in off.restored)
            if mask & bits and is_on and self._table.tests[rule](request, lowered, source):
                return rule
        return -1

    def all(self, request: Request, lowered: str, bits: int, source: str, off_sources: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches and whose source is on."""
        for mask, rule in dict.fromkeys(self._candidates(lowered)):
            if mask & bits and not self._table.is_off(rule, off_sources) and self._table.tests[rule](request, lowered, source):
                yield rule

    def _candidates(self, lowered: str) -> Iterator[tuple[int, int]]:
        for hit in self._scan(lowered.encode()):
            yield from self._plain[hit[self._at]]
        for length, keywords in self._tables.items():
            for start in range(len(lowered) - length + 1):
                found = keywords.get(lowered[start : start + length])
                if found is not None:
                    yield from found
        yield from self._rest


def _grams(text: str, k: int) -> Iterator[str]:
    return (text[start : start + k] for start in range(len(text) - k + 1))


def _is_plain(pattern: str) -> bool:
    """Tells whether a pattern is no regular expression and has no wildcard."""
    return not ("*" in pattern or "^" in pattern or (len(pattern) > 2 and pattern[0] == "/" and pattern[-1] == "/"))


class PaperScheme(AdblockMatcher):
    """Decides as `AdblockMatcher`, by the paper's way of finding rules. For comparison; it reads every rule at opening.

    Args:
        blob: what `AdblockBuilder.build` made.
        k: length of the keywords.
        use_automaton: without it, plain rules are in the hash table too: the paper's point of comparison.

    Raises:
        SnapshotError: the blob is damaged or of another version.
    """

    def __init__(self, blob: bytes | memoryview | mmap, k: int = PAPER_K, *, use_automaton: bool = True) -> None:
        super().__init__(blob)
        masks = list(self._table.masks)
        blocks = [number for number, mask in enumerate(masks) if not mask & EXCEPTION]
        exceptions = [number for number, mask in enumerate(masks) if mask & EXCEPTION]
        important = [number for number in blocks if masks[number] & IMPORTANT]
        self._blocks, self._exceptions, self._important = (
            PaperIndex(self._table, numbers, k, use_automaton=use_automaton) for numbers in (blocks, exceptions, important)
        )
