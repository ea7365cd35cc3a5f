"""A Bloom gate that digests are added to where no counters are stored: of removed digests the bits stay set.

A bit that stays makes the gate look into the tables once more; it never changes a verdict.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bloom import BloomFilter, pack_bloom, starts_and_steps


class KeptGate:
    """The gate of a snapshot, in place of its counters (`counting_bloom.CountingBloom`).

    Attributes:
        bits: m.
        positions: k.
        count: digests held.
        stuck: number of saturated counters, of which there are none.

    Args:
        bits: m.
        positions: k.
        count: digests held.
        held: the bits, m / 8 bytes; copied.
    """

    stuck: Final = 0

    def __init__(self, bits: int, positions: int, count: int, held: bytes | memoryview) -> None:
        self.bits = bits
        self.positions = positions
        self.count = count
        self._held: NDArray[np.uint8] = np.frombuffer(held, dtype=np.uint8).copy()

    @classmethod
    def of(cls, bloom: BloomFilter) -> "KeptGate":
        """Returns the gate of a snapshot, copied."""
        return cls(bloom.bits, bloom.positions, bloom.count, bloom.held)

    def add(self, digests: NDArray[np.uint8]) -> None:
        """Adds digests, shape (n, 16)."""
        place, step = starts_and_steps(digests, self.bits)
        for _ in range(self.positions):
            np.bitwise_or.at(self._held, _whole(place >> np.uint64(3)), np.uint8(1) << (place & np.uint64(7)).astype(np.uint8))
            place += step
            np.subtract(place, np.uint64(self.bits), out=place, where=place >= self.bits)
        self.count += len(digests)

    def remove(self, digests: NDArray[np.uint8]) -> None:
        """Counts digests, shape (n, 16), as removed; their bits stay."""
        self.count -= len(digests)

    def gate(self) -> bytes:
        """Returns the Bloom section."""
        return pack_bloom(self.bits, self.positions, max(0, self.count), self._held.tobytes())


def _whole(places: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
    return places.astype(np.int64)
