"""What the crawler learned, kept in the snapshot in full, so that block pages name words and score without a database.

Section `details` (little-endian): count: uint64; ends: uint64[count], where each record ends, counted from the first record; then
the records, JSON in UTF-8: [key, action, category, url, detail, created_at, expires_at]. The table `learned` leads from
a digest to the number of its record.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from struct import Struct

import numpy as np

from gatewayfilter.engine.bitmap_table import BitmapTable
from gatewayfilter.engine.bloom import Mapped
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import LearnedEntry, ListAction, Source

_COUNT = Struct("<Q")
_PAIR = Struct("<QQ")


def learned_source(action: ListAction, category: str) -> Source:
    """Returns the source that learned entries of this kind stand under: `learned:<category>`, `learned:harmless` without one."""
    return Source(f"learned:{category or 'harmless'}", action, category, learned=True)


def build_records(entries: Sequence[LearnedEntry]) -> bytes:
    """Returns the section that holds the entries, numbered in their order."""
    records = [
        json.dumps(
            [entry.key, entry.action, entry.category, entry.url, entry.detail, entry.created_at, entry.expires_at],
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode("utf-8", "replace")
        for entry in entries
    ]
    ends = np.fromiter(accumulate(map(len, records)), dtype="<u8", count=len(records))
    return b"".join((_COUNT.pack(len(records)), ends.tobytes(), *records))


class LearnedRecords:
    """The learned entries of a snapshot, read in place when they are asked for."""

    __slots__ = ("_count", "_data", "_ends", "_records", "_table")

    def __init__(self, data: Mapped, offset: int, length: int, table: BitmapTable) -> None:
        """Opens the section of `length` bytes at `offset`; cost does not depend on its size.

        Raises:
            SnapshotError: the section is not as long as its header says.
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
        """Lets go of the mapped file."""
        self._table.close()

    def find(self, digest: bytes) -> LearnedEntry | None:
        """Returns the learned entry whose key has this digest.

        Raises:
            SnapshotError: its record cannot be read.
        """
        number = self._table.find(digest)
        if number is None:
            return None
        if number >= self._count:
            raise SnapshotError("a learned entry has no record")
        if number:
            begin, end = _PAIR.unpack_from(self._data, self._ends + _COUNT.size * (number - 1))
        else:
            begin, end = 0, _COUNT.unpack_from(self._data, self._ends)[0]
        try:
            key, action, category, url, detail, created_at, expires_at = json.loads(
                self._data[self._records + begin : self._records + end]
            )
            return LearnedEntry(key, ListAction(action), category, url, detail, float(created_at), float(expires_at))
        except (ValueError, TypeError) as error:
            raise SnapshotError("a learned entry's record is damaged") from error
