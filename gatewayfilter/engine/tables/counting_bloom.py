"""The counting Bloom filter of the publisher: digests can be removed, and the gate's bits are derived from its counters.

Each of m positions is a counter. Adding a digest increments its k positions, removing decrements them, and it may be present when
all k are above zero. The gate (bloom.py) has a bit for each counter, set where the counter is above zero.

Counters have 4 bits by default. A counter that has reached 15 is saturated and stays there: its true count is
unknown, and decrementing it could remove a digest that is still present. Where half of the counters are above zero that happens
to one in 10^16; `stuck` is their number, and the publisher does a full build when there are many. With 32 bits, as in the paper,
no counter is ever saturated, for eight times the memory.

Source: [counting-bloom §3]; 4-bit counters: Fan, Cao, Almeida and Broder, "Summary Cache", 2000.
Deviation: positions come from the digest's own halves as in the gate, which must find the same ones; `salted_positions` has the
paper's derivation, which costs an MD5 for each four positions.
"""

from collections.abc import Iterable, Iterator
from hashlib import md5
from struct import Struct
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bloom import BloomAnswer, optimal_size, pack_bloom, starts_and_steps

type CounterBits = Literal[4, 32]

_split_digest = Struct("<QQ").unpack

_CHUNK = 1 << 20
"""Digests processed at once: bounds the memory of their positions, 40 MB for k = 10."""

_NIBBLES_TO_BITS = np.array(
    [sum(1 << place for place in range(4) if pair >> 4 * place & 15) for pair in range(1 << 16)], dtype=np.uint8
)
"""Four counters of 4 bits → one bit each."""


def salted_positions(data: bytes, positions: int, bits: int) -> list[int]:
    """Returns k positions as the paper derives them: MD5(salt byte ‖ data) cut into four words, the next salt for four more.

    Source: [counting-bloom §3, createHashes].
    Deviation: its words are signed and their absolute value is taken; ours are unsigned.
    """
    found: list[int] = []
    salt = 0
    while len(found) < positions:
        digest = md5(bytes([salt]) + data, usedforsecurity=False).digest()
        found += [int.from_bytes(digest[place : place + 4], "big") % bits for place in range(0, 16, 4)]
        salt += 1
    return found[:positions]


class CountingBloom:
    """A counting filter of 16-byte digests. Not thread-safe.

    Attributes:
        bits: m, the number of counters.
        positions: k.
        count: digests added and not removed, with repetitions.
        counter_bits: 4 or 32.
        counters: uint8[m / 2], the even position in the lower half of a byte; or uint32[m].
    """

    def __init__(
        self,
        bits: int,
        positions: int,
        *,
        counter_bits: CounterBits = 4,
        count: int = 0,
        counters: NDArray[np.unsignedinteger[Any]] | None = None,
    ) -> None:
        """Creates an empty filter, or one from stored counters.

        Raises:
            ValueError: m is not a multiple of 8, or the counters are of another size.
        """
        if bits < 8 or bits % 8 or bits > 2**32 or positions < 1:
            raise ValueError(f"a filter cannot have {bits} counters and {positions} positions")
        if counters is None:
            counters = np.zeros(bits // 2, np.uint8) if counter_bits == 4 else np.zeros(bits, np.uint32)
        if counters.nbytes != bits * counter_bits // 8:
            raise ValueError(f"{counters.nbytes} bytes of counters for {bits} positions of {counter_bits} bits")
        self.bits = bits
        self.positions = positions
        self.count = count
        self.counter_bits = counter_bits
        self.counters: NDArray[np.unsignedinteger[Any]] = counters

    @classmethod
    def for_digests(cls, count: int, error_rate: float, *, counter_bits: CounterBits = 4) -> "CountingBloom":
        """Returns an empty filter for so many digests at this rate of false positives.

        Raises:
            ValueError: the rate is not between 0 and 1.
        """
        bits, positions = optimal_size(count, error_rate)
        return cls(bits, positions, counter_bits=counter_bits)

    @property
    def most(self) -> int:
        """The highest count, at which a counter is saturated."""
        return int(2**self.counter_bits - 1)

    @property
    def stuck(self) -> int:
        """Number of saturated counters. Costs a pass over all."""
        if self.counter_bits == 4:
            return int(np.count_nonzero(self.counters & 15 == 15) + np.count_nonzero(self.counters >= 0xF0))
        return int(np.count_nonzero(self.counters == self.most))

    def add(self, digests: NDArray[np.uint8]) -> None:
        """Adds digests, shape (n, 16), counting repetitions."""
        if self.counter_bits != 4 or len(digests) * self.positions < self.bits // 8 or not self._add_most(digests):
            for chunk in self._chunks(digests):
                places, times = self._tally(chunk)
                self._write(places, np.minimum(self._read(places) + times, self.most))
        self.count += len(digests)

    def _add_most(self, digests: NDArray[np.uint8]) -> bool:
        """Adds a large number of digests by counting in bytes first. Returns False when one of the bytes overflowed."""
        counted = np.zeros(self.bits, dtype=np.uint8)
        for chunk in self._chunks(digests):
            start, step = starts_and_steps(chunk, self.bits)
            for _ in range(self.positions):
                np.add.at(counted, start.view(np.int64), np.uint8(1))
                start += step
                np.subtract(start, np.uint64(self.bits), out=start, where=start >= self.bits)
        if int(counted.sum(dtype=np.int64)) != len(digests) * self.positions:
            return False
        most = np.uint8(self.most)
        even = np.minimum(np.minimum(counted[::2], most) + (self.counters & most), most)
        odd = np.minimum(np.minimum(counted[1::2], most) + (self.counters >> 4), most)
        self.counters = even | odd << 4
        return True

    def remove(self, digests: NDArray[np.uint8]) -> None:
        """Removes digests, shape (n, 16). Only added digests may be removed.

        Raises:
            ValueError: one of them was not added, by the counters; nothing is changed.
        """
        tallies = [self._tally(chunk) for chunk in self._chunks(digests)]
        if len(tallies) > 1:
            places, inverse = np.unique(np.concatenate([places for places, _ in tallies]), return_inverse=True)
            times = np.bincount(inverse, np.concatenate([times for _, times in tallies])).astype(np.int64)
            tallies = [(places, times)]
        for places, times in tallies:
            counted = self._read(places)
            stuck = counted == self.most
            if bool((times > counted)[~stuck].any()):
                raise ValueError("a digest that was never added cannot be removed")
            self._write(places, np.where(stuck, counted, counted - times))
        self.count -= len(digests)

    def ask(self, digest: bytes) -> BloomAnswer:
        """Returns whether a digest may be present."""
        first, second = _split_digest(digest)
        start, step = first % self.bits, second % self.bits | 1
        return self.ask_at((start + number * step) % self.bits for number in range(self.positions))

    def ask_at(self, places: Iterable[int]) -> BloomAnswer:
        """Returns whether the counters at all of these positions are above zero."""
        counters = memoryview(self.counters)
        if self.counter_bits == 4:
            held = all(counters[place >> 1] >> ((place & 1) << 2) & 15 for place in places)
        else:
            held = all(counters[place] for place in places)
        return BloomAnswer.MAYBE if held else BloomAnswer.NO

    def ask_many(self, digests: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Returns for each row of shape (n, 16) whether it may be present: shape (n,)."""
        return (self._read(self._places(digests)) > 0).all(axis=0)

    def gate(self) -> bytes:
        """Returns the Bloom section with the same digests: a bit for each counter, set where it is above zero."""
        if self.counter_bits == 4:
            bits = _NIBBLES_TO_BITS[np.ascontiguousarray(self.counters).view("<u2")]
            held = (bits[::2] | bits[1::2] << 4).tobytes()
        else:
            held = np.packbits(self.counters > 0, bitorder="little").tobytes()
        return pack_bloom(self.bits, self.positions, self.count, held)

    def _chunks(self, digests: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        for begin in range(0, len(digests), _CHUNK):
            yield digests[begin : begin + _CHUNK]

    def _places(self, digests: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Returns the positions of digests: uint32[k, n]."""
        start, step = starts_and_steps(digests, self.bits)
        places = np.empty((self.positions, len(digests)), dtype=np.uint32)
        for row in places:
            row[:] = start
            start += step
            np.subtract(start, np.uint64(self.bits), out=start, where=start >= self.bits)
        return places

    def _tally(self, digests: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the distinct positions of digests, ascending, and the frequency of each."""
        places = self._places(digests).reshape(-1)
        places.sort()
        starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1]))) if len(places) else np.empty(0, np.int64)
        return places[starts].astype(np.int64), np.diff(np.append(starts, len(places)))

    def _read(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        if self.counter_bits == 4:
            pairs: NDArray[np.int64] = self.counters[places >> 1].astype(np.int64)
            pairs >>= (places & 1) << 2
            return pairs & 15
        counted: NDArray[np.int64] = self.counters[places].astype(np.int64)
        return counted

    def _write(self, places: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Writes counters, each position once."""
        if self.counter_bits != 4:
            self.counters[places] = counts
            return
        for odd, kept, shift in ((0, 0xF0, 0), (1, 0x0F, 4)):
            chosen = places & 1 == odd
            pairs = places[chosen] >> 1
            self.counters[pairs] = self.counters[pairs] & kept | counts[chosen].astype(np.uint8) << shift
