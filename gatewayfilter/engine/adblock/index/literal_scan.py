"""Multi-pattern search: finds thousands of literals in a URL in one pass, by the fastest library that is installed.

========  ===========================  =====================================================================
name      library                      where
========  ===========================  =====================================================================
daachorse daachorse                    x86-64 and macOS, where wheels are published: the default, twice as fast
hyperscan hyperscan (extra ``fast``)   elsewhere, when it is installed
aho       ahocorasick-rs               always there
========  ===========================  =====================================================================

All of them find the same literals, in different orders. `GATEWAYFILTER_ADBLOCK_SCANNER` names one to use instead.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import local
from typing import Any, NamedTuple

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, Implementation
from numpy.typing import NDArray

from gatewayfilter.errors import ConfigError

VARIABLE = "GATEWAYFILTER_ADBLOCK_SCANNER"
"""For benchmarks and debugging: not a setting, as verdicts do not depend on it."""

DFA_LITERALS = 500
"""Up to this many literals the DFA of ahocorasick-rs is small and a third faster; beyond, it takes tens of megabytes."""


MANY_HITS = 16
"""With more hits than this, repeated hits of a literal are removed first: real URLs have none or two, hostile ones thousands."""

_TOGETHER = 1 << 17
"""Bytes of texts that are searched in one call: the bound of the hits that are kept at a time."""


class LiteralScan(NamedTuple):
    """A search for all literals of an index.

    Attributes:
        find: text in lower case, as bytes → the hits, overlapping ones too. Threads may call it at the same time.
        at: index of the literal's number within a hit.
        begin: likewise of the position at which it begins, -1 where hits have none.
    """

    find: Callable[[bytes], Sequence[tuple[int, ...]]]
    at: int
    begin: int = -1

    def find_in_each(self, text: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> dict[int, list[tuple[int, ...]]]:
        """Returns the hits in pieces of a text, by the number of the piece; those without a hit are left out.

        Many are searched in one call, as no literal has a line end. Of a literal with many hits in a piece one is returned.

        Args:
            text: the pieces and others, with a line end behind each.
            begins: int64[n]: of the pieces, ascending.
            ends: int64[n]: of the pieces, before their line ends.
        """
        if self.begin < 0 or not len(begins):
            return self._find_one_by_one(text, begins, ends)
        lengths = ends - begins + 1
        behind = np.cumsum(lengths)
        apart = np.flatnonzero(begins[1:] != ends[:-1] + 1)
        runs = zip(begins[np.r_[0, apart + 1]].tolist(), (ends[np.r_[apart, len(ends) - 1]] + 1).tolist(), strict=True)
        blob = b"".join([text[begin:end] for begin, end in runs])
        found: dict[int, list[tuple[int, ...]]] = {}
        first = 0
        while first < len(behind):
            begin = int(behind[first] - lengths[first])
            last = max(first + 1, int(np.searchsorted(behind, begin + _TOGETHER, "right")))
            hits = self.find(blob[begin : behind[last - 1]])
            places = np.fromiter((hit[self.begin] for hit in hits), np.int64, len(hits))
            numbers = first + np.searchsorted(behind[first:last] - begin, places, "right")
            together: dict[int, list[tuple[int, ...]]] = {}
            for number, hit in zip(numbers.tolist(), hits, strict=True):
                together.setdefault(number, []).append(hit)
            for number, of in together.items():
                found[number] = of if len(of) <= MANY_HITS else self._few(of)
            first = last
        return found

    def _find_one_by_one(
        self, text: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> dict[int, list[tuple[int, ...]]]:
        pieces = zip(begins.tolist(), ends.tolist(), strict=True)
        hits_in = ((number, self.find(text[begin:end])) for number, (begin, end) in enumerate(pieces))
        return {number: list(hits) if len(hits) <= MANY_HITS else self._few(hits) for number, hits in hits_in if hits}

    def _few(self, hits: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return list({hit[self.at]: hit for hit in hits}.values())


def _no_hits(text: bytes) -> Sequence[tuple[int, ...]]:  # noqa: ARG001  # the signature of a search
    return ()


def _with_daachorse(literals: list[bytes]) -> LiteralScan:
    automaton = import_module("daachorse").DoubleArrayAhoCorasick(literals)
    return LiteralScan(automaton.find_overlapping, 2, 0)


def _with_ahocorasick(literals: list[bytes]) -> LiteralScan:
    implementation = Implementation.DFA if len(literals) <= DFA_LITERALS else Implementation.ContiguousNFA
    find = BytesAhoCorasick(literals, implementation=implementation).find_matches_as_indexes
    return LiteralScan(lambda text: find(text, True), 0, 1)


class _Scratch(local):
    """Hyperscan's working memory, one for each thread."""

    space: Any = None


def _with_hyperscan(literals: list[bytes]) -> LiteralScan:
    if any(b"\0" in literal for literal in literals):  # its binding ends a literal there
        return _with_ahocorasick(literals)
    hyperscan = import_module("hyperscan")
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=literals,
        ids=list(range(len(literals))),
        elements=len(literals),
        flags=hyperscan.HS_FLAG_SINGLEMATCH,
        literal=True,
    )
    scan = database.scan
    scratch = _Scratch()

    def note(number: int, _start: int, _end: int, _flags: int, hits: list[tuple[int, ...]]) -> None:
        hits.append((number,))

    def find(text: bytes) -> list[tuple[int, ...]]:
        space = scratch.space
        if space is None:
            space = scratch.space = hyperscan.Scratch(database)
        hits: list[tuple[int, ...]] = []
        scan(text, note, context=hits, scratch=space)
        return hits

    return LiteralScan(find, 0)


SCANNERS: dict[str, tuple[str, Callable[[list[bytes]], LiteralScan]]] = {
    "daachorse": ("daachorse", _with_daachorse),
    "hyperscan": ("hyperscan", _with_hyperscan),
    "aho": ("ahocorasick_rs", _with_ahocorasick),
}
"""Name → (module, constructor), the preferred one first."""


@cache
def available_scanners() -> tuple[str, ...]:
    """Returns the names of the scanners with an installed library, the preferred one first."""
    return tuple(name for name, (module, _) in SCANNERS.items() if find_spec(module) is not None)


def make_scan(literals: Sequence[str], scanner: str | None = None) -> LiteralScan:
    """Returns the search for these literals: distinct, none empty, in lower case.

    Args:
        literals: to be found; a hit refers to one by its position.
        scanner: a name in `SCANNERS`; by default the one in the environment variable, else the best that is installed.

    Raises:
        ConfigError: there is no such scanner, or its library is not installed.
    """
    if not literals:
        return LiteralScan(_no_hits, 0)
    available = available_scanners()
    name = scanner or os.environ.get(VARIABLE) or available[0]
    if name not in available:
        raise ConfigError(f"no scanner {name!r} for Adblock rules; there are: {', '.join(available)}")
    return SCANNERS[name][1]([literal.encode() for literal in literals])
