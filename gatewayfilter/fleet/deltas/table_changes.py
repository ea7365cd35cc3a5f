"""The changes of a table of digests: which entries of the older one are gone, which are new, and new numbers of those that stay.

A table is built again from its entries (`bitmap_table.build_table`), which gives the same bytes in whatever order they come. So a
list that grew costs 20 bytes for a new entry and 4 for one that is gone, although nearly every slot of its table moves.

Part (little-endian): uint64 each, the numbers r, n and a; uint32[r], the places of removed entries among those of the older
table, ascending; uint32[n], the new number for each older number; uint32[a], the numbers of added entries; uint8[a, 16], their
digests.
An entry with another number than the others of its old one is removed and added.
"""

from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bitmap_table import TableArrays, build_table, halves_of, locate
from gatewayfilter.engine.tables.table_patch import entries_of
from gatewayfilter.errors import FleetError

_HEADER: Final = Struct("<QQQ")


def changes_between(old: TableArrays, new: TableArrays) -> bytes:
    """Returns the part that makes the newer table from the older one. About 1 µs an entry, and 100 bytes of memory."""
    digests, numbers = entries_of(old)
    slots = locate(new, halves_of(digests))
    stays = slots >= 0
    before, after = numbers[stays], new.values[slots[stays]].astype(np.uint32)
    renumbered = _most_frequent(before, after, int(numbers.max(initial=0)) + 1)
    odd = after != renumbered[before]
    gone = ~stays
    gone[np.flatnonzero(stays)[odd]] = True
    entries, values = entries_of(new)
    held = locate(old, halves_of(entries))
    come = held < 0
    come[~come] = renumbered[old.values[held[~come]]] != values[~come]
    removed = np.flatnonzero(gone).astype("<u4")
    added, given = np.ascontiguousarray(entries[come]), values[come].astype("<u4")
    counts = _HEADER.pack(len(removed), len(renumbered), len(given))
    return b"".join((counts, removed.tobytes(), renumbered.astype("<u4").tobytes(), given.tobytes(), added.tobytes()))


def changed_table(old: TableArrays, part: bytes) -> memoryview:
    """Returns the section of the newer table.

    Args:
        old: the older one.
        part: of `changes_between`.

    Raises:
        FleetError: the part does not belong to this table.
        SnapshotError: more entries than a table can hold.
    """
    if len(part) < _HEADER.size:
        raise FleetError("the changes of a table are cut short")
    removals, known, additions = _HEADER.unpack_from(part)
    digests, numbers = entries_of(old)
    if len(part) != _HEADER.size + 4 * (removals + known) + 20 * additions:
        raise FleetError("the changes of a table are not as long as their header says")
    words = np.frombuffer(part, "<u4", removals + known + additions, _HEADER.size)
    removed, renumbered, given = np.split(words, (removals, removals + known))
    added = np.frombuffer(part, np.uint8, 16 * additions, _HEADER.size + words.nbytes).reshape(-1, 16)
    if (removed >= len(digests)).any() or (numbers >= known).any():
        raise FleetError("the changes of a table belong to another one")
    stays = np.ones(len(digests), np.bool_)
    stays[removed] = False
    values = np.concatenate((renumbered[numbers[stays]], given)).astype(np.uint32)
    return build_table(np.concatenate((digests[stays], added)), values)


def _most_frequent(before: NDArray[np.uint32], after: NDArray[np.uint32], size: int) -> NDArray[np.uint32]:
    """Returns for each number below `size` the one that most of its entries have now."""
    pairs, counts = np.unique(before.astype(np.uint64) << np.uint64(32) | after, return_counts=True)
    order = np.argsort(counts, kind="stable")
    pairs = pairs[order]
    found = np.zeros(size, np.uint32)
    found[(pairs >> np.uint64(32)).astype(np.int64)] = pairs.astype(np.uint32)  # the lower half; the last one counts
    return found
