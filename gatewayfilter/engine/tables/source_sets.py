"""Source sets: digests of many lists merged into one table, each once, with the interned set of its lists."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MergedDigests:
    """Distinct digests and the sources of each.

    Attributes:
        digests: uint8[n, 16], each once.
        sets: uint32[n], the number of each digest's source set.
    """

    digests: NDArray[np.uint8]
    sets: NDArray[np.uint32]


class SourceSets:
    """Interns sets of source indices: equal sets share one number, so the sources of an entry take four bytes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def number_of(self, sources: tuple[int, ...]) -> int:
        """Returns the number of a set, given as ascending source indices."""
        return self._numbers.setdefault(sources, len(self._numbers))

    def as_lists(self) -> list[list[int]]:
        """Returns all sets, by number."""
        return [list(sources) for sources in self._numbers]

    def merge(self, chunks: Sequence[tuple[int, NDArray[np.uint8]]]) -> MergedDigests:
        """Merges chunks of (source index, digests of shape (n, 16)).

        Groups equal digests by one stable sort on their first halves, then interns the sets of all groups at once, source
        by source, so the work in Python depends only on the number of distinct sets.
        """
        if not chunks:
            return MergedDigests(np.empty((0, 16), dtype=np.uint8), np.empty(0, dtype=np.uint32))
        ordered = sorted(chunks, key=lambda chunk: chunk[0])
        digests = np.concatenate([chunk for _, chunk in ordered])
        sources = np.repeat(
            np.fromiter((source for source, _ in ordered), dtype=np.uint32, count=len(ordered)),
            [len(chunk) for _, chunk in ordered],
        )
        digests, sources = _grouped(digests, sources)
        starts = np.flatnonzero(_new_digest(digests))
        lengths = np.diff(np.append(starts, len(digests)))
        return MergedDigests(digests[starts], self._intern(starts, lengths, sources))

    def _intern(self, starts: NDArray[np.intp], lengths: NDArray[np.intp], sources: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Returns the set number of each group of rows, given where it starts and its length."""
        known: list[tuple[int, ...]] = [(int(source),) for source in np.unique(sources)]
        numbers = np.searchsorted(np.unique(sources), sources[starts]).astype(np.int64)
        for depth in range(1, int(lengths.max(initial=0))):
            longer = np.flatnonzero(lengths > depth)
            pairs = numbers[longer] << 32 | sources[starts[longer] + depth]
            distinct, inverse = np.unique(pairs, return_inverse=True)
            numbers[longer] = len(known) + inverse
            known += [(*known[int(pair) >> 32], int(pair) & 0xFFFFFFFF) for pair in distinct]
        used, inverse = np.unique(numbers, return_inverse=True)
        final = np.fromiter((self.number_of(known[int(number)]) for number in used), dtype=np.uint32, count=len(used))
        return final[inverse]


def _new_digest(digests: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Returns for each row whether it differs from the row before it."""
    halves = digests.view("<u8").reshape(-1, 2)
    new = np.ones(len(digests), dtype=np.bool_)
    new[1:] = (halves[1:] != halves[:-1]).any(axis=1)
    return new


def _grouped(digests: NDArray[np.uint8], sources: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Groups equal digests, sources ascending within each, every (digest, source) once. The input is ordered by source."""
    halves = digests.view("<u8").reshape(-1, 2)
    order = np.argsort(halves[:, 0], kind="stable")
    first = halves[order, 0]
    second = halves[order, 1]
    alike = first[1:] == first[:-1]
    if bool((alike & (second[1:] != second[:-1])).any()):  # two MD5s with the same first half: sort by both halves
        order = np.lexsort((halves[:, 1], halves[:, 0]))
    digests = digests[order]
    sources = sources[order]
    repeated = ~_new_digest(digests)
    repeated[1:] &= sources[1:] == sources[:-1]
    keep = ~repeated
    return digests[keep], sources[keep]
