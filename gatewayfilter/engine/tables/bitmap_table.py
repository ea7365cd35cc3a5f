"""The bitmap hash table of the paper as a static image: digest → number, exact, read in place from a mapped file.

A digest belongs to one bucket, and within it to one home slot. A bucket owns a run of 16-byte slots and a bitmap of
which of its first 64 slots are taken. A look-up reads one bit: clear means "not here". Set means: walk from the home slot
forward to the digest, or to its place in the order.

Section in the snapshot (little-endian), B buckets, S slots, N entries, values of W bytes:

=================  ========================================================================================
bytes              what
=================  ========================================================================================
8, 8, 8            B (at least 2), S, N: uint64
4                  W: uint32, 1, 2 or 4: the least that all values fit into
4                  U: uint32, slots that no bucket uses any more
8 * B              taken: uint64 of each bucket, bit i for its slot i
4 * B              first: uint32 of each bucket, its first slot
4 * B              length: uint32 of each bucket, its slots
0 to 15            zeros up to a multiple of 16
16 * (S + 1)       slots: a digest each (first half, second half); the last one is a guard of zeros
W * (S + 1)        values, one for each slot
0 to 15            zeros up to a multiple of 16
=================  ========================================================================================

The bucket is the first half modulo B, the home slot the upper 6 bits of the second half, and a bucket's digests are sorted by
their second halves: a walk ends at the digest or at the first greater one. A free slot has the maximum as its second half, and a
first half that belongs to another bucket; each run ends with one.

Source: [url-filter, bitmap hash table] with w = 64; p = 64, and more for a bucket with a walk past its end; a full bucket is
rewritten behind the others, larger by a growth factor (table_patch.py).
Deviation: digests of a run are sorted, which makes an unsuccessful walk as short as a successful one.
"""

import sys
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple, NewType

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bloom import Mapped
from gatewayfilter.errors import SnapshotError

SourceSetId = NewType("SourceSetId", int)
"""A certain "yes" of a table: the number stored with a digest. A Bloom answer is of another type."""

WIDTH = 64
_HOME_SHIFT = np.uint64(58)
FREE = np.uint64(2**64 - 1)
"""The second half of a free slot."""

MEAN_LOADS = {1: 48, 2: 51, 4: 58}
"""Digests per bucket on average, by the bytes of a value: as few (short walks) as 24 bytes per entry allow."""

_HEADER = Struct("<QQQII")
_split_digest = Struct("<QQ").unpack
MAX_SLOTS = 2**32 - 1

type Digests = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class TableArrays:
    """A table as arrays, B buckets and S slots.

    Attributes:
        taken: uint64[B]; first, length: uint32[B].
        slots: uint64[S + 1, 2], first and second halves.
        values: uint8, uint16 or uint32[S + 1].
        count: entries.
        unused: slots that belong to no bucket.
    """

    taken: NDArray[np.uint64]
    first: NDArray[np.uint32]
    length: NDArray[np.uint32]
    slots: NDArray[np.uint64]
    values: NDArray[np.unsignedinteger[Any]]
    count: int
    unused: int


class Runs(NamedTuple):
    """Positions of entries within their runs.

    Attributes:
        position: int64[n], each entry's slot in its run.
        lengths: int64[b], slots of each run, the free one at its end included; 0 for a run without entries.
        taken: uint64[b], each run's bitmap.
    """

    position: NDArray[np.int64]
    lengths: NDArray[np.int64]
    taken: NDArray[np.uint64]


def aligned(size: int) -> int:
    """Returns the size rounded up to a multiple of 16."""
    return -(-size // 16) * 16


def halves_of(digests: Digests) -> NDArray[np.uint64]:
    """Returns digests of shape (n, 16) as their halves: uint64[n, 2]."""
    return np.ascontiguousarray(digests).view("<u8").reshape(-1, 2)


def buckets_of(halves: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """Returns each digest's bucket: int64[n]."""
    return (halves[:, 0] % np.uint64(buckets)).astype(np.int64)


def value_type(values: NDArray[np.unsignedinteger[Any]]) -> np.dtype[np.unsignedinteger[Any]]:
    """Returns the smallest data type for all values."""
    highest = int(values.max(initial=0))
    return np.dtype("<u1" if highest < 2**8 else "<u2" if highest < 2**16 else "<u4")


def table_order(bucket: NDArray[np.int64], second: NDArray[np.uint64], buckets: int) -> NDArray[np.intp]:
    """Returns the order of entries: by bucket, then by second half. Nearly always one sort of 64-bit numbers."""
    bits = np.uint64(max(1, (buckets - 1).bit_length()))
    order = np.argsort(bucket.astype(np.uint64) << (np.uint64(64) - bits) | second >> bits)
    bucket, second = bucket[order], second[order]
    if bool(((bucket[1:] == bucket[:-1]) & (second[1:] < second[:-1])).any()):  # equal in all compared bits
        return order[np.lexsort((second, bucket))]
    return order


def place(row: NDArray[np.int64], second: NDArray[np.uint64], rows: int) -> Runs:
    """Places entries, given in table order, into runs.

    Each gets its home slot or the one after its predecessor, whichever is further: a running maximum.

    Args:
        row: run number of each entry, ascending, below `rows`.
        second: second half of each entry.
        rows: number of runs.
    """
    home = (second >> _HOME_SHIFT).astype(np.int64)
    loads = np.bincount(row, minlength=rows)
    begins = np.concatenate(([0], np.cumsum(loads)))
    rank = np.arange(len(row)) - begins[row]
    stride = WIDTH + int(loads.max(initial=0)) + 1
    position = np.maximum.accumulate(row * stride + home - rank) - row * stride + rank
    used = loads > 0
    lengths = np.zeros(rows, dtype=np.int64)
    lengths[used] = position[begins[1:][used] - 1] + 2
    marks = np.where(position < WIDTH, np.uint64(1) << np.minimum(position, WIDTH - 1).astype(np.uint64), np.uint64(0))
    taken = np.zeros(rows, dtype=np.uint64)
    if len(row):
        taken[used] = np.add.reduceat(marks, begins[:-1][used])
    return Runs(position, lengths, taken)


def free_slots(bucket: NDArray[np.int64], buckets: int) -> NDArray[np.uint64]:
    """Returns a free slot for each of these buckets, uint64[n, 2], with a first half that belongs to the next bucket."""
    made = np.empty((len(bucket), 2), dtype="<u8")
    made[:, 0] = (bucket + 1) % buckets
    made[:, 1] = FREE
    return made


def build_table(digests: Digests, values: NDArray[np.uint32]) -> memoryview:
    """Returns a table section with these entries.

    Args:
        digests: shape (n, 16), each once.
        values: shape (n,).

    Raises:
        SnapshotError: more slots than the format can number (about 3.6 billion entries).
    """
    numbers = values.astype(value_type(values))
    buckets = max(2, -(-len(digests) // MEAN_LOADS[numbers.itemsize]))
    halves = halves_of(digests)
    bucket = buckets_of(halves, buckets)
    order = table_order(bucket, halves[:, 1], buckets)
    bucket = bucket[order]
    runs = place(bucket, halves[order, 1], buckets)
    first = np.concatenate(([0], np.cumsum(runs.lengths)))
    total = int(first[-1])
    if total > MAX_SLOTS:
        raise SnapshotError(f"a table cannot hold {len(digests):,} entries")
    length = runs.lengths.astype("<u4")
    slots = np.zeros((total + 1, 2), dtype="<u8")
    slots[:-1] = free_slots(np.repeat(np.arange(buckets), runs.lengths), buckets)
    slot = first[bucket] + runs.position
    slots[slot] = halves[order]
    placed = np.zeros_like(numbers, shape=total + 1)
    placed[slot] = numbers[order]
    return pack_table(TableArrays(runs.taken, first[:-1].astype("<u4"), length, slots, placed, len(digests), 0))


def locate(table: TableArrays, halves: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Returns the slot of each digest, -1 for absent ones: int64[n]. All walks are done in parallel, step by step."""
    found = np.full(len(halves), -1, dtype=np.int64)
    buckets = len(table.taken)
    bucket = buckets_of(halves, buckets)
    home = halves[:, 1] >> _HOME_SHIFT
    asked = np.flatnonzero(table.taken[bucket] >> home & np.uint64(1))
    slot = table.first[bucket[asked]].astype(np.int64) + home[asked].astype(np.int64)
    wanted = halves[asked]
    while len(asked):
        held = table.slots[slot]
        like = np.flatnonzero(held[:, 1] == wanted[:, 1])
        same = held[like, 0] == wanted[like, 0]
        hits, doubtful = like[same], like[~same]
        found[asked[hits]] = slot[hits]
        going = held[:, 1] < wanted[:, 1]
        if len(doubtful):  # same second half as another digest, or as a free slot, which belongs to another bucket
            going[doubtful] = buckets_of(held[doubtful], buckets) == buckets_of(wanted[doubtful], buckets)
        left = np.flatnonzero(going)
        asked, wanted, slot = asked[left], wanted[left], slot[left] + 1
    return found


def pack_table(table: TableArrays) -> memoryview:
    """Returns the section of a table, copied once."""
    buckets, slots, width = len(table.taken), len(table.slots) - 1, table.values.itemsize
    head = aligned(_HEADER.size + 16 * buckets)
    section = memoryview(bytearray(head + 16 * (slots + 1) + aligned(width * (slots + 1))))
    _HEADER.pack_into(section, 0, buckets, slots, table.count, width, table.unused)
    packed = arrays_of(section, 0)
    packed.taken[:] = table.taken
    packed.first[:] = table.first
    packed.length[:] = table.length
    packed.slots[:] = table.slots
    packed.values[:] = table.values
    return section


def arrays_of(data: Mapped | memoryview, offset: int) -> TableArrays:
    """Returns the table with its section at `offset`, as arrays that read it in place."""
    buckets, slots, count, width, unused = _HEADER.unpack_from(data, offset)
    head = offset + aligned(_HEADER.size + 16 * buckets)
    offset += _HEADER.size
    return TableArrays(
        np.frombuffer(data, "<u8", buckets, offset),
        np.frombuffer(data, "<u4", buckets, offset + 8 * buckets),
        np.frombuffer(data, "<u4", buckets, offset + 12 * buckets),
        np.frombuffer(data, "<u8", 2 * (slots + 1), head).reshape(-1, 2),
        np.frombuffer(data, f"<u{width}", slots + 1, head + 16 * (slots + 1)),
        count,
        unused,
    )


class BitmapTable:
    """A table section, read in place.

    Attributes:
        count: entries held.
        unused: share of slots that no bucket uses any more.
    """

    __slots__ = ("_buckets", "_data", "_first", "_offset", "_taken", "_values", "_words", "count", "unused")

    def __init__(self, data: Mapped | memoryview, offset: int, length: int) -> None:
        """Opens the section of `length` bytes at `offset`, a multiple of 16. The cost does not depend on its size.

        Raises:
            SnapshotError: the section's length does not match its header, or the machine is big-endian.
        """
        if sys.byteorder != "little":
            raise SnapshotError("tables can only be read on little-endian machines")
        if length < _HEADER.size:
            raise SnapshotError("a table section is cut short")
        buckets, slots, self.count, width, unused = _HEADER.unpack_from(data, offset)
        head = aligned(_HEADER.size + 16 * buckets)
        if buckets < 2 or width not in MEAN_LOADS or length != head + 16 * (slots + 1) + aligned(width * (slots + 1)):
            raise SnapshotError("a table section is not as long as its header says")
        self.unused = unused / max(1, slots)
        self._data = data
        self._buckets = buckets
        view = memoryview(data)[offset : offset + length]
        rows = _HEADER.size + 8 * buckets
        values = head + 16 * (slots + 1)
        self._offset = offset
        # Native views of the mapped bytes: an index into one costs a third of unpacking from the file.
        self._taken = view[_HEADER.size : rows].cast("Q")
        self._first = view[rows : rows + 4 * buckets].cast("I")
        self._words = view[head:values].cast("Q")
        numbers = view[values : values + width * (slots + 1)]
        self._values = numbers if width == 1 else numbers.cast("H") if width == 2 else numbers.cast("I")

    def find(self, digest: bytes) -> SourceSetId | None:
        """Returns the number stored with a digest of 16 bytes, `None` when the digest is absent."""
        first, second = _split_digest(digest)
        bucket = first % self._buckets
        home = second >> 58
        if not self._taken[bucket] >> home & 1:
            return None
        words = self._words
        at = (self._first[bucket] + home) * 2 + 1
        while (held := words[at]) < second:
            at += 2
        while held == second:
            other = words[at - 1]
            if other == first:
                number: SourceSetId = self._values[at >> 1]
                return number
            if other % self._buckets != bucket:
                return None  # a free slot with the same second half
            at += 2
            held = words[at]
        return None

    def find_many(self, digests: Digests) -> NDArray[np.int64]:
        """Returns the number of each row of shape (n, 16), -1 for none: shape (n,). About 0.15 µs per digest."""
        table = self.arrays()
        slot = locate(table, halves_of(digests))
        found = table.values[slot].astype(np.int64)
        found[slot < 0] = -1
        return found

    def arrays(self) -> TableArrays:
        """Returns the table as arrays that read the file in place."""
        return arrays_of(self._data, self._offset)

    def close(self) -> None:
        """Releases the mapped file. No look-up may follow."""
        for view in (self._taken, self._first, self._words, self._values):
            view.release()
