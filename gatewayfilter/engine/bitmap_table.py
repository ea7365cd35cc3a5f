"""The paper's bitmap hash table as a static image: digest → number, exact, read in place from a mapped file.

A digest belongs to one bucket, and within it to one home slot. A bucket owns a run of 16-byte slots and a bitmap that says which
of its first 64 slots are taken. A look-up reads one bit: clear means "not here". Set means: walk from the home slot
forward to the digest, or to the first free slot.

Section in the snapshot (little-endian), B buckets, S slots, N entries:

=================  ========================================================================================
bytes              what
=================  ========================================================================================
8, 8, 8            B, S, N: uint64
12 * (B + 1)       of each bucket: taken: uint64, bit i for slot i; first: uint32, its first slot; then one
                   more row with first = S
0 to 15            zeros up to a multiple of 16
16 * S             slots: a digest each, zeros when free
4 * S              values: uint32 each, 0 when the slot is free
=================  ========================================================================================

Source: [url-filter, bitmap hash table] with w = 64; p = 64, and more for a bucket whose walk runs past its end.
Deviation: nothing is inserted into a published image, so a bucket's run ends after its last digest instead of growing by
a factor: 22.8 instead of some 28 bytes an entry. scripts/bench/bench_tables.py has the growing table of the paper.
"""

from struct import Struct
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.bloom import Mapped
from gatewayfilter.errors import SnapshotError

SourceSetId = NewType("SourceSetId", int)
"""The certain "yes" of a table: the number that stands beside a digest. A Bloom answer is of another type."""

_WIDTH = 64
_MEAN_LOAD = 60
"""Digests a bucket on average: 22.8 bytes an entry and walks of 3 slots; 64 would save 0.8 bytes for walks of 4."""

_HEADER = Struct("<QQQ")
_split_digest = Struct("<QB7x").unpack
_read_rows = Struct("<QI8xI").unpack_from  # taken and first of a bucket, first of the next
_read_value = Struct("<I").unpack_from
_BUCKET_DTYPE = np.dtype([("taken", "<u8"), ("first", "<u4")])
_MAX_SLOTS = 2**32 - 1


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _homes(digests: NDArray[np.uint8], buckets: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns each digest's bucket and home slot, shape (n,) each: first half mod B, second half mod 64."""
    halves = np.ascontiguousarray(digests).view("<u8").reshape(-1, 2)
    return (halves[:, 0] % np.uint64(buckets)).astype(np.int64), (halves[:, 1] % np.uint64(_WIDTH)).astype(np.int64)


def build_table(digests: NDArray[np.uint8], values: NDArray[np.uint32]) -> bytes:
    """Returns a table section.

    All entries are placed at once: sorted by bucket and home slot, each takes its home or the slot after its predecessor,
    whichever is further, which is a running maximum.

    Args:
        digests: shape (n, 16), each once.
        values: shape (n,).

    Raises:
        SnapshotError: more slots than the format can number (about 3.8 billion entries).
    """
    count = len(digests)
    buckets = max(1, -(-count // _MEAN_LOAD))
    bucket, home = _homes(digests, buckets)
    order = np.argsort(bucket * _WIDTH + home, kind="stable")
    bucket = bucket[order]
    home = home[order]
    loads = np.bincount(bucket, minlength=buckets)
    begins = np.concatenate(([0], np.cumsum(loads)))
    rank = np.arange(count) - begins[bucket]
    stride = _WIDTH + int(loads.max(initial=0)) + 1
    position = np.maximum.accumulate(bucket * stride + home - rank) - bucket * stride + rank
    used = loads > 0
    lengths = np.zeros(buckets, dtype=np.int64)
    lengths[used] = position[begins[1:][used] - 1] + 1
    first = np.concatenate(([0], np.cumsum(lengths)))
    slots = int(first[-1])
    if slots > _MAX_SLOTS:
        raise SnapshotError(f"a table cannot hold {count:,} entries")
    rows = np.zeros(buckets + 1, dtype=_BUCKET_DTYPE)
    rows["first"] = first
    marks = np.where(position < _WIDTH, np.uint64(1) << np.minimum(position, _WIDTH - 1).astype(np.uint64), np.uint64(0))
    if count:
        rows["taken"][:-1][used] = np.add.reduceat(marks, begins[:-1][used])
    slot = first[bucket] + position
    placed = np.zeros((slots, 16), dtype=np.uint8)
    placed[slot] = digests[order]
    numbers = np.zeros(slots, dtype="<u4")
    numbers[slot] = values[order]
    head = _HEADER.pack(buckets, slots, count) + rows.tobytes()
    return b"".join((head, bytes(_aligned(len(head)) - len(head)), placed.tobytes(), numbers.tobytes()))


class BitmapTable:
    """A table section, read in place.

    Attributes:
        count: entries held.
    """

    __slots__ = ("_buckets", "_data", "_find", "_number_of_slots", "_rows", "_slots", "_values", "count")

    def __init__(self, data: Mapped, offset: int, length: int) -> None:
        """Opens the section of `length` bytes at `offset`, a multiple of 16. Cost does not depend on its size.

        Raises:
            SnapshotError: the section is not as long as its header says.
        """
        if length < _HEADER.size:
            raise SnapshotError("a table section is cut short")
        self._buckets, self._number_of_slots, self.count = _HEADER.unpack_from(data, offset)
        head = _aligned(_HEADER.size + _BUCKET_DTYPE.itemsize * (self._buckets + 1))
        if not self._buckets or length != head + 20 * self._number_of_slots:
            raise SnapshotError("a table section is not as long as its header says")
        self._data = data
        self._find = data.find
        self._rows = offset + _HEADER.size
        self._slots = offset + head
        self._values = self._slots + 16 * self._number_of_slots

    def find(self, digest: bytes) -> SourceSetId | None:
        """Returns the number that stands beside a digest of 16 bytes, `None` when the digest is not held."""
        first_half, home = _split_digest(digest)
        home &= 63
        taken, first, after = _read_rows(self._data, self._rows + first_half % self._buckets * 12)
        if not taken >> home & 1:
            return None
        # The walk, done by one search in C: up to the bucket's end, for a digest never stands behind a free slot.
        begin = self._slots + (first + home) * 16
        end = self._slots + after * 16
        at = self._find(digest, begin, end)
        while at >= 0:
            if not (at - begin) & 15:
                number: SourceSetId = _read_value(self._data, self._values + (at - self._slots >> 2))[0]
                return number
            at = self._find(digest, at + 1, end)
        return None

    def find_many(self, digests: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns for each row of shape (n, 16) the number beside it, -1 for none: shape (n,)."""
        rows = np.frombuffer(self._data, dtype=_BUCKET_DTYPE, count=self._buckets + 1, offset=self._rows)
        slots = np.frombuffer(self._data, dtype="<u8", count=2 * self._number_of_slots, offset=self._slots).reshape(-1, 2)
        values = np.frombuffer(self._data, dtype="<u4", count=self._number_of_slots, offset=self._values)
        bucket, home = _homes(digests, self._buckets)
        run = rows["taken"][bucket] >> home.astype(np.uint64)
        asked = np.flatnonzero(run & np.uint64(1))
        bucket, home, run = bucket[asked], home[asked], run[asked]
        wanted = np.ascontiguousarray(digests).view("<u8").reshape(-1, 2)[asked]
        # The ones at the low end of the run are the slots that the walk visits; past the bitmap's end, all that are left.
        first = rows["first"].astype(np.int64)
        ones = np.bitwise_count(run & ~(run + np.uint64(1))).astype(np.int64)
        slot = first[bucket] + home
        end = np.where(home + ones >= _WIDTH, first[bucket + 1], slot + ones)
        found = np.full(len(digests), -1, dtype=np.int64)
        while len(asked):
            equal = slots[slot, 0] == wanted[:, 0]
            hits = np.flatnonzero(equal)
            equal[hits] = slots[slot[hits], 1] == wanted[hits, 1]
            found[asked[equal]] = values[slot[equal]]
            slot += 1
            going = np.flatnonzero(~equal & (slot < end))
            asked, slot, end, wanted = asked[going], slot[going], end[going], wanted[going]
        return found
