"""The matcher: finds the deciding rule of a request among compiled Adblock rules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from mmap import mmap
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.adblock.index.compiled_rule import is_in
from gatewayfilter.engine.adblock.index.near_rules import party_of
from gatewayfilter.engine.adblock.index.rule_index import NO_RULES, RuleIndex, RulesBetween
from gatewayfilter.engine.adblock.index.rule_table import IMPORTANT, RulesOff, RuleTable
from gatewayfilter.engine.adblock.index.sections import SectionReader
from gatewayfilter.engine.adblock.syntax.rule import DOCUMENT, TYPE_BITS, AdblockMatch
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request, ResourceType

_ALL_ON: frozenset[int] = frozenset()
_TYPE_BITS = dict(TYPE_BITS)


@dataclass(slots=True)  # as `RulesBetween`
class PairRules:
    """The rules that may decide requests of one type from one page's host to another: for many such requests.

    Attributes:
        source: host of their source, "" when there is none.
        blocks, exceptions: the rules.
    """

    source: str
    blocks: RulesBetween
    exceptions: RulesBetween

    @property
    def blocking(self) -> int:
        """Number of the rule that blocks all of these requests, where no literal of an exception is in their URL; -1 without."""
        tested = self.blocks.tests or self.exceptions.tests or self.exceptions.certain >= 0
        return -1 if tested else self.blocks.certain


NO_PAIR = PairRules("", NO_RULES, NO_RULES)
"""No rules."""


class FindsRules(Protocol):
    """An index of rules; arguments as in `RuleIndex`."""

    def first(self, request: Request, kind: int, source: str) -> int:
        """Returns the number of a rule that matches while all sources are on, -1 without one."""
        ...

    def first_on(self, request: Request, kind: int, source: str, off: RulesOff) -> int:
        """Returns the number of a rule that matches and is in force, -1 without one."""
        ...

    def all(self, request: Request, lowered: str, bits: int, source: str, off_sources: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches and whose source is on."""
        ...


class AdblockMatcher:
    """The network rules of a compiled form made by `AdblockBuilder.build`. Keeps a view of the blob; readers need no lock.

    Args:
        blob: the compiled form; it must not change while the matcher lives.

    Attributes:
        names_clients: some rules may hold for some clients alone: they are told apart by a `KnownRequest`.

    Raises:
        SnapshotError: it is damaged or of another version.
    """

    def __init__(self, blob: bytes | memoryview | mmap) -> None:
        sections = SectionReader(memoryview(blob).toreadonly())
        try:
            self._table = RuleTable(sections)
            self._pair_blocks, self._pair_exceptions = RuleIndex(sections, self._table), RuleIndex(sections, self._table)
            self._blocks: FindsRules = self._pair_blocks
            self._exceptions: FindsRules = self._pair_exceptions
            self._important: FindsRules = RuleIndex(sections, self._table)
        except (IndexError, ValueError) as error:
            raise SnapshotError("the compiled Adblock rules are damaged") from error
        self.names_clients = self._table.names_clients

    @property
    def rule_count(self) -> int:
        """Number of network rules in force."""
        return len(self._table)

    def match(self, request: Request, off_sources: frozenset[int] = _ALL_ON) -> AdblockMatch | None:
        """Returns the rule that decides, `None` when nothing blocks.

        An important exception beats an important block, which beats an exception, which beats a block. An exception is
        only returned where there was a block to beat.

        Args:
            request: the request.
            off_sources: lists that do not count at all.
        """
        kind = _TYPE_BITS[request.resource_type]
        page = request.source
        source = page.host if page is not None else request.url.host if kind == DOCUMENT else ""
        if kind == DOCUMENT and source != request.url.host:
            return self._match_page(request, source, off_sources)
        off = self._table.without(off_sources) if off_sources else None
        if off is None or not (off.sources or off.restored):
            block = self._blocks.first(request, kind, source)
            if block < 0:
                return None
            if self._exceptions.first(request, kind, source) < 0:
                return self._table.describe(block)
        else:
            block = self._blocks.first_on(request, kind, source, off)
            if block < 0:
                return None
            if self._exceptions.first_on(request, kind, source, off) < 0:
                return self._table.describe(block)
        return self._match_partly(request, (source,), off_sources)

    def takes_pairs(self, off_sources: frozenset[int]) -> bool:
        """Returns whether `pair` holds while these lists are off, for any client: no rule in force is left out by them."""
        if self._table.names_clients:
            return False
        off = self._table.without(off_sources) if off_sources else None
        return off is None or not (off.sources or off.restored)

    def pair(self, host: str, page: str, kind: ResourceType) -> PairRules | None:
        """Returns the rules for requests to a host from a page's host, `None` where `match` alone can decide.

        Args:
            host: of the requests.
            page: of the page that causes them, "" when unknown.
            kind: the type of all of them.
        """
        bit = _TYPE_BITS[kind]
        source = page or (host if bit == DOCUMENT else "")
        if bit == DOCUMENT and source != host:
            return None
        return PairRules(source, self._pair_blocks.between(host, source, bit), self._pair_exceptions.between(host, source, bit))

    def literals_in(
        self, text: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64], *, exceptions: bool = False
    ) -> dict[int, list[tuple[int, ...]]]:
        """Returns the hits of the literals of blocks, or of exceptions, in URLs in lower case: see `LiteralScan.find_in_each`."""
        return (self._pair_exceptions if exceptions else self._pair_blocks).literals.find_in_each(text, begins, ends)

    def first_block(self, pair: PairRules, request: Request, lowered: str, hits: Sequence[tuple[int, ...]] | None) -> int:
        """Returns the number of the block that `match` finds first, -1 without one.

        Args:
            pair: of the request.
            request: the request.
            lowered: its URL in lower case.
            hits: of `literals_in`; `None` where they were not searched for.
        """
        return self._pair_blocks.first_of(pair.blocks, request, lowered, pair.source, hits)

    @property
    def blocks(self) -> RuleIndex:
        """The index of the rules that block, for what is decided in batches by `pair`."""
        return self._pair_blocks

    @property
    def exceptions(self) -> RuleIndex:
        """Likewise of the exceptions."""
        return self._pair_exceptions

    def describe(self, rule: int) -> AdblockMatch:
        """Returns a rule as a match for verdicts."""
        return self._table.describe(rule)

    def match_all(self, request: Request) -> list[AdblockMatch]:
        """Returns every matching network rule, the deciding one first."""
        sources = sources_of(request)
        found = list(
            dict.fromkeys(
                chain(self._all(self._exceptions, request, sources, _ALL_ON), self._all(self._blocks, request, sources, _ALL_ON))
            )
        )
        masks = self._table.masks
        found.sort(key=lambda number: not masks[number] & IMPORTANT)
        matches = [self._table.describe(number) for number in found]
        winner = self.match(request)
        if winner is not None:
            matches.remove(winner)
            matches.insert(0, winner)
        return matches

    def _match_page(self, request: Request, source: str, off_sources: frozenset[int]) -> AdblockMatch | None:
        """Decides a page with a linking page: a rule may match by either of its sources (`sources_of`)."""
        if not self._table.restores(off_sources):  # then no rule is in force that `first` leaves out
            own = request.url.host
            if self._blocks.first(request, DOCUMENT, own) < 0 and self._blocks.first(request, DOCUMENT, source) < 0:
                return None
        return self._match_partly(request, sources_of(request), off_sources)

    def _match_partly(self, request: Request, sources: tuple[str, ...], off_sources: frozenset[int]) -> AdblockMatch | None:
        """Decides with some lists off, or between a block and an exception; rare, so written for clarity."""
        block = next(self._all(self._blocks, request, sources, off_sources), None)
        if block is None:
            return None
        masks = self._table.masks
        exceptions = sorted(
            self._all(self._exceptions, request, sources, off_sources), key=lambda number: not masks[number] & IMPORTANT
        )
        if not exceptions:
            return self._table.describe(block)
        if not masks[exceptions[0]] & IMPORTANT:
            important = next(self._all(self._important, request, sources, off_sources), None)
            if important is not None:
                return self._table.describe(important)
        return self._table.describe(exceptions[0])

    def _all(self, index: FindsRules, request: Request, sources: tuple[str, ...], off: frozenset[int]) -> Iterator[int]:
        """Yields the number of every rule that matches by any of these sources, with repetitions."""
        kind = _TYPE_BITS[request.resource_type]
        host = request.url.host
        lowered = request.url.text.lower()
        for source in sources:
            for number in index.all(request, lowered, kind * party_of(host, source), source, off):
                if source == sources[0] or not is_in(self._table.rule(number).conditions.not_sources, host):
                    yield number


def sources_of(request: Request) -> tuple[str, ...]:
    """Returns the hosts that count as a request's source: a page's own, then the linking page's (docs/adblock.md, "Policies").

    The linking page does not count for a rule that excludes the page itself (`domain=~`).
    """
    page = request.source
    if request.resource_type is not ResourceType.DOCUMENT:
        return ("" if page is None else page.host,)
    host = request.url.host
    return (host,) if page is None or page.host == host else (host, page.host)


def request_bits(request: Request) -> tuple[int, str]:
    """Returns a request's type and party as the bits of a rule's mask, and the host of its source, "" when there is none.

    For a page with a linking page it is the linking page's host: one of the two that count (`sources_of`).

    A page without a source is its own; anything else without one counts as first and as third party, as in the
    reference engines (docs/adblock.md, "Policies").
    """
    kind = _TYPE_BITS[request.resource_type]
    host = request.url.host
    source = request.source.host if request.source is not None else host if kind == DOCUMENT else ""
    return kind * party_of(host, source), source
