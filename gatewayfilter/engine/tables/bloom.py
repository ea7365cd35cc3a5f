"""The Bloom filter as a gate: a digest is certainly on no list, or may be on one.

The digests are MD5s already, so their bits serve as the hash functions: the two 64-bit halves of a digest are a start
and a step (double hashing), the k positions are start + j * step modulo m.

Section in the snapshot (little-endian): m: uint64, the number of bits; k: uint32, positions a digest; 4 zero bytes;
n: uint64, the digests held; then bits: uint8[ceil(m / 8)], position i in byte i // 8, bit i % 8.

Source: [url-filter, URL filter step 2] for the gate; [counting-bloom] for m and k from n and e.
Deviation: double hashing of one digest instead of further salted digests: the same rate of errors at no cost.
"""

import math
import mmap
from collections.abc import Sequence
from enum import Enum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.errors import SnapshotError

type Mapped = bytes | mmap.mmap
"""The buffer of a section that is read in place: a mapped file, or bytes in memory."""

_HEADER = Struct("<QI4xQ")
_split_digest = Struct("<QQ").unpack
_LEAST_BITS = 1024


class BloomAnswer(Enum):
    """The answer of a Bloom filter. There is no "yes": a hit never decides anything by itself."""

    NO = "no"
    MAYBE = "maybe"


_NO = BloomAnswer.NO
_MAYBE = BloomAnswer.MAYBE


def optimal_size(count: int, error_rate: float) -> tuple[int, int]:
    """Returns (m, k): bits and positions per digest for `count` digests at a false-positive rate of `error_rate`.

    Source: [counting-bloom]: m >= n * log2(1/e) / ln 2, k = (m/n) * ln 2. m is rounded up to whole bytes.

    Raises:
        ValueError: the rate is not between 0 and 1.
    """
    if not 0 < error_rate < 1:
        raise ValueError(f"the error rate must lie between 0 and 1, not {error_rate}")
    bits = math.ceil(count * math.log2(1 / error_rate) / math.log(2))
    bits = max(_LEAST_BITS, -(-bits // 8) * 8)
    positions = max(1, round(bits / max(count, 1) * math.log(2)))
    return bits, min(positions, math.ceil(math.log2(1 / error_rate)))


def build_bloom(digests: NDArray[np.uint8], error_rate: float) -> bytes:
    """Returns a Bloom section with the digests.

    Args:
        digests: shape (n, 16); may be repeated.
        error_rate: wanted share of "maybe" for absent digests.

    Raises:
        ValueError: the rate is not between 0 and 1.
    """
    bits, positions = optimal_size(len(digests), error_rate)
    return filled_bloom(bits, positions, [digests])


def filled_bloom(bits: int, positions: int, parts: Sequence[NDArray[np.uint8]]) -> bytes:
    """Returns a Bloom section of a given size: m bits, k positions a digest, and as n the digests of all parts.

    Args:
        bits: m, a multiple of 8.
        positions: k.
        parts: of shape (n, 16) each.
    """
    marks = np.zeros(bits, dtype=np.bool_)
    for digests in parts:
        start, step = starts_and_steps(digests, bits)
        for _ in range(positions):
            marks[start] = True
            start += step
            np.subtract(start, np.uint64(bits), out=start, where=start >= bits)
    return pack_bloom(bits, positions, sum(map(len, parts)), np.packbits(marks, bitorder="little").tobytes())


def pack_bloom(bits: int, positions: int, count: int, held: bytes) -> bytes:
    """Returns the section for m bits, k positions a digest, n digests, and the bits themselves, m / 8 bytes."""
    return _HEADER.pack(bits, positions, count) + held


def starts_and_steps(digests: NDArray[np.uint8], bits: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the first position and the step of each digest, shape (n,) each."""
    halves = np.ascontiguousarray(digests).view("<u8").reshape(-1, 2)
    modulus = np.uint64(bits)
    return halves[:, 0] % modulus, halves[:, 1] % modulus | np.uint64(1)


class BloomFilter:
    """A Bloom section, read in place.

    Attributes:
        bits: m.
        positions: k.
        count: digests held when it was built.
    """

    __slots__ = ("_held", "bits", "count", "positions")

    def __init__(self, data: Mapped, offset: int, length: int) -> None:
        """Opens the section of `length` bytes at `offset`. The cost does not depend on its size.

        Raises:
            SnapshotError: the section is shorter than its header requires.
        """
        if length < _HEADER.size:
            raise SnapshotError("the Bloom section is cut short")
        self.bits, self.positions, self.count = _HEADER.unpack_from(data, offset)
        if self.bits < _LEAST_BITS or self.bits % 8 or not self.positions or length != _HEADER.size + self.bits // 8:
            raise SnapshotError("the Bloom section is not as long as its header says")
        self._held = memoryview(data)[offset + _HEADER.size : offset + length]

    def ask(self, digest: bytes) -> BloomAnswer:
        """Returns whether a digest of 16 bytes may be present. Half of the bits are set: a miss reads two of them on average."""
        held = self._held
        bits = self.bits
        first, second = _split_digest(digest)
        position = first % bits
        if not held[position >> 3] >> (position & 7) & 1:
            return _NO
        step = second % bits | 1
        for _ in range(self.positions - 1):
            position += step
            if position >= bits:
                position -= bits
            if not held[position >> 3] >> (position & 7) & 1:
                return _NO
        return _MAYBE

    @property
    def held(self) -> memoryview:
        """The bits, m / 8 bytes, read in place."""
        return self._held

    def close(self) -> None:
        """Releases the mapped file. No look-up may follow."""
        self._held.release()

    def ask_many(self, digests: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Returns for each row of shape (n, 16) whether it may be present: shape (n,), true for "maybe"."""
        held = np.frombuffer(self._held, dtype=np.uint8)
        position, step = starts_and_steps(digests, self.bits)
        maybe = np.ones(len(digests), dtype=np.bool_)
        for _ in range(self.positions):
            maybe &= (held[position >> np.uint64(3)] >> (position & np.uint64(7)).astype(np.uint8) & 1).astype(np.bool_)
            position += step
            np.subtract(position, np.uint64(self.bits), out=position, where=position >= self.bits)
        return maybe
