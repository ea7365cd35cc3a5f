"""Learned records: the crawler's entries in the snapshot, in full, so that block pages show words and score without a database.

Section `details` (little-endian): count: uint64; ends: uint64[count], the end of each record relative to the first record; then
the records, JSON in UTF-8: [key, action, category, url, detail, created_at, expires_at], and the certainty where one was
estimated. The table `learned` maps a digest to the number of its record.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bitmap_table import BitmapTable
from gatewayfilter.engine.tables.bloom import Mapped
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import LEARNED_PREFIX, LearnedEntry, ListAction, Source

_COUNT = Struct("<Q")
_PAIR = Struct("<QQ")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # shared: creating it takes half the time


def learned_source(action: ListAction, category: str) -> Source:
    """Returns the source of learned entries of this kind: `learned:<category>`, `learned:harmless` without a category."""
    return Source(f"{LEARNED_PREFIX}{category or 'harmless'}", action, category, learned=True)


def build_records(entries: Sequence[LearnedEntry]) -> bytes:
    """Returns the section with the entries, numbered in their order."""
    records = [_encode(_values(entry)).encode("utf-8", "replace") for entry in entries]
    ends = np.fromiter(accumulate(map(len, records)), dtype="<u8", count=len(records))
    return b"".join((_COUNT.pack(len(records)), ends.tobytes(), *records))


def _values(entry: LearnedEntry) -> list[object]:
    values = [entry.key, entry.action, entry.category, entry.url, entry.detail, entry.created_at, entry.expires_at]
    return values if entry.certainty is None else [*values, entry.certainty]


def patch_records(
    section: memoryview, leaving: NDArray[np.int64], entries: Sequence[LearnedEntry]
) -> tuple[bytes, NDArray[np.uint32]]:
    """Returns the section after removals and additions, and the new number of each old record (any number for a removed one).

    Args:
        section: the old one.
        leaving: numbers of the records to remove, shape (r,).
        entries: to add; numbered after those that stay.
    """
    (count,) = _COUNT.unpack_from(section)
    head = _COUNT.size * (1 + count)
    ends = np.frombuffer(section, "<u8", count, _COUNT.size).astype(np.int64)
    stays = np.ones(count, dtype=np.bool_)
    stays[leaving] = False
    lengths = np.diff(ends, prepend=0)
    edges = np.flatnonzero(np.diff(stays.astype(np.int8), prepend=0, append=0))  # starts and ends of the runs that stay
    bounds = np.concatenate(([0], ends))[edges] + head
    runs = [section[begin:end] for begin, end in bounds.reshape(-1, 2).tolist()]
    new = build_records(entries)
    new_head = _COUNT.size * (1 + len(entries))
    kept_ends = np.cumsum(lengths[stays])
    last = int(kept_ends[-1]) if len(kept_ends) else 0
    new_ends = np.frombuffer(new, "<u8", len(entries), _COUNT.size) + np.uint64(last)
    total = len(kept_ends) + len(entries)
    patched = b"".join(
        (_COUNT.pack(total), kept_ends.astype("<u8").tobytes(), new_ends.astype("<u8").tobytes(), *runs, new[new_head:])
    )
    return patched, np.maximum(np.cumsum(stays) - 1, 0).astype(np.uint32)


class LearnedRecords:
    """The learned entries of a snapshot, read in place on access."""

    __slots__ = ("_count", "_data", "_ends", "_records", "_table")

    def __init__(self, data: Mapped, offset: int, length: int, table: BitmapTable) -> None:
        """Opens the section of `length` bytes at `offset`; the cost does not depend on its size.

        Raises:
            SnapshotError: the section's length does not match its header.
        """
        if length < _COUNT.size:
            raise SnapshotError("the details section is cut short")
        (self._count,) = _COUNT.unpack_from(data, offset)
        head = _COUNT.size * (1 + self._count)
        size = _COUNT.unpack_from(data, offset + head - _COUNT.size)[0] if head <= length and self._count else 0
        if head + size != length:
            raise SnapshotError("the details section is not as long as its header says")
        self._data = data
        self._ends = offset + _COUNT.size
        self._records = offset + head
        self._table = table

    def close(self) -> None:
        """Releases the mapped file."""
        self._table.close()

    def keys(self) -> Iterator[str]:
        """Yields the list key of each record.

        Raises:
            SnapshotError: a record cannot be read.
        """
        begin = 0
        for number in range(self._count):
            (end,) = _COUNT.unpack_from(self._data, self._ends + _COUNT.size * number)
            try:
                yield str(json.loads(self._data[self._records + begin : self._records + end])[0])
            except (ValueError, LookupError, TypeError) as error:
                raise SnapshotError("a learned entry's record is damaged") from error
            begin = end

    def find(self, digest: bytes) -> LearnedEntry | None:
        """Returns the learned entry with a key of this digest.

        Raises:
            SnapshotError: its record cannot be read.
        """
        number = self._table.find(digest)
        if number is None:
            return None
        if number >= self._count:
            raise SnapshotError("a learned entry has no record")
        return self._read(number)

    def __iter__(self) -> Iterator[LearnedEntry]:
        """Yields all entries.

        Raises:
            SnapshotError: a record cannot be read.
        """
        return map(self._read, range(self._count))

    def _read(self, number: int) -> LearnedEntry:
        if number:
            begin, end = _PAIR.unpack_from(self._data, self._ends + _COUNT.size * (number - 1))
        else:
            begin, end = 0, _COUNT.unpack_from(self._data, self._ends)[0]
        try:
            values = json.loads(self._data[self._records + begin : self._records + end])
            key, action, category, url, detail, created_at, expires_at, *certainty = values
            times = float(created_at), float(expires_at)
            return LearnedEntry(key, ListAction(action), category, url, detail, *times, *map(float, certainty))
        except (ValueError, TypeError) as error:
            raise SnapshotError("a learned entry's record is damaged") from error
