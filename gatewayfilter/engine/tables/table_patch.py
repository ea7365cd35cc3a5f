"""Table patches: remove entries from and add entries to a table image without rebuilding it.

The gap of a removed entry is closed by displaced entries behind it. The bucket of an added entry is rewritten; a bucket that is
full moves behind all others, into a run that is larger by the growth factor, and its old slots stay unused. With too many unused
slots, or too high or too low a load, the whole table is rebuilt from its own digests.

Source: [url-filter, bitmap hash table] for the growth of a full bucket: allocate p * r slots, copy, free the old ones.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.bitmap_table import (
    FREE,
    MAX_SLOTS,
    MEAN_LOADS,
    WIDTH,
    Digests,
    TableArrays,
    arrays_of,
    buckets_of,
    build_table,
    free_slots,
    halves_of,
    locate,
    pack_table,
    place,
    table_order,
    value_type,
)

GROWTH = 1.25
"""r of the paper: a bucket that moves gets this many times the slots that it needs."""

MOST_UNUSED = 0.2
MOST_LOAD = 1.3
LEAST_LOAD = 0.5
"""Bounds beyond which a patched table is rebuilt: unused slots, and load relative to that of a new table."""


def entries_of(table: TableArrays) -> tuple[Digests, NDArray[np.uint32]]:
    """Returns all digests of a table, uint8[n, 16], and their numbers, uint32[n]."""
    bucket, slot = _slots_of(table, np.arange(len(table.taken)))
    held = _is_held(table, bucket, slot)
    slot = slot[held]
    return table.slots[slot].view(np.uint8).reshape(-1, 16), table.values[slot].astype(np.uint32)


def patch_table(
    table: TableArrays,
    removed: Digests,
    added: Digests,
    values: NDArray[np.uint32],
    renumbered: NDArray[np.uint32] | None = None,
) -> memoryview:
    """Returns the section of a table after a change.

    Args:
        table: the old one.
        removed: digests to remove, shape (r, 16); absent ones are ignored.
        added: digests to add, or with a new number, shape (a, 16), each once.
        values: their numbers, shape (a,).
        renumbered: new number for each old one, for entries that stay; `None` if unchanged.

    Raises:
        SnapshotError: more slots than the format supports.
    """
    if renumbered is not None and len(renumbered):
        table = replace(table, values=renumbered[np.minimum(table.values, len(renumbered) - 1)])
    table = replace(table, values=table.values.astype(max(value_type(table.values), value_type(values)), copy=False))
    known = locate(table, halves_of(added))
    gone = np.setdiff1d(locate(table, halves_of(removed)), np.append(known, -1))
    new = known < 0
    entering, numbers = halves_of(added)[new], values[new]
    count = table.count - len(gone) + len(entering)
    load = count / len(table.taken) / MEAN_LOADS[table.values.itemsize]
    section = pack_table(replace(table, count=count))
    patched = arrays_of(section, 0)
    patched.values[known[~new]] = values[~new]
    _close_up(patched, gone)
    if load > MOST_LOAD or (load < LEAST_LOAD and len(table.taken) > 2):
        return _rebuilt(patched, entering, numbers)
    if not len(entering):
        return section
    grown = _with_entries(patched, entering, numbers)
    slots = len(grown.slots) - 1
    if grown.unused > MOST_UNUSED * slots or slots > MAX_SLOTS:
        return _rebuilt(patched, entering, numbers)
    return pack_table(grown)


def _close_up(table: TableArrays, holes: NDArray[np.int64]) -> None:
    """Removes the entries in these slots, ascending, and moves displaced entries back towards their home slots.

    All holes are processed in parallel: an entry behind a hole that is not in its home slot moves into the hole, which makes the
    next slot a hole; otherwise the slot becomes free. A hole directly before another one waits for it.
    """
    buckets = len(table.taken)
    bucket = buckets_of(table.slots[holes], buckets)
    position = holes - table.first[bucket]
    while len(holes):
        waits = np.append(holes[1:] == holes[:-1] + 1, False)
        behind = table.slots[holes + 1]
        moves = behind[:, 1] != FREE
        doubtful = np.flatnonzero(~moves)
        moves[doubtful] = buckets_of(behind[doubtful], buckets) == bucket[doubtful]
        moves &= ((behind[:, 1] >> np.uint64(58)).astype(np.int64) <= position) & ~waits
        target = holes[moves]
        table.slots[target] = behind[moves]
        table.values[target] = table.values[target + 1]
        ends = ~moves & ~waits
        table.slots[holes[ends]] = free_slots(bucket[ends], buckets)
        table.values[holes[ends]] = 0
        marked = ends & (position < WIDTH)
        np.bitwise_and.at(table.taken, bucket[marked], ~(np.uint64(1) << position[marked].astype(np.uint64)))
        stays = ~ends
        holes, bucket, position = (holes + moves)[stays], bucket[stays], (position + moves)[stays]


def _with_entries(table: TableArrays, added: NDArray[np.uint64], values: NDArray[np.uint32]) -> TableArrays:
    """Returns the table with further entries, none of which is in it yet."""
    buckets = len(table.taken)
    added_bucket = buckets_of(added, buckets)
    touched = np.unique(added_bucket)
    bucket, slot = _slots_of(table, touched)
    held = _is_held(table, bucket, slot)
    halves = np.concatenate((table.slots[slot[held]], added))
    numbers = np.concatenate((table.values[slot[held]], values.astype(table.values.dtype)))
    row = np.searchsorted(touched, np.concatenate((bucket[held], added_bucket)))
    order = table_order(row, halves[:, 1], max(2, len(touched)))
    row, halves, numbers = row[order], halves[order], numbers[order]
    runs = place(row, halves[:, 1], len(touched))

    first, length, taken = table.first.copy(), table.length.copy(), table.taken.copy()
    moved = runs.lengths > length[touched]
    moving = touched[moved]
    old_slots = len(table.slots) - 1
    room = np.ceil(runs.lengths[moved] * GROWTH).astype(np.int64)
    first[moving] = old_slots + np.concatenate(([0], np.cumsum(room)))[:-1]
    unused = table.unused + int(table.length[moving].sum())
    length[moving] = room
    taken[touched] = runs.taken
    total = old_slots + int(room.sum())
    slots = np.zeros((total + 1, 2), dtype="<u8")
    slots[:old_slots] = table.slots[:-1]
    placed = np.zeros(total + 1, dtype=table.values.dtype)
    placed[:old_slots] = table.values[:-1]
    grown = TableArrays(taken, first, length, slots, placed, table.count, unused)
    bucket, slot = _slots_of(grown, touched)
    slots[slot] = free_slots(bucket, buckets)
    placed[slot] = 0
    target = first[touched[row]].astype(np.int64) + runs.position
    slots[target] = halves
    placed[target] = numbers
    return grown


def _rebuilt(table: TableArrays, added: NDArray[np.uint64], values: NDArray[np.uint32]) -> memoryview:
    digests, numbers = entries_of(table)
    return build_table(np.concatenate((digests, added.view(np.uint8).reshape(-1, 16))), np.concatenate((numbers, values)))


def _slots_of(table: TableArrays, buckets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the bucket and the number of every slot of these buckets."""
    lengths = table.length[buckets].astype(np.int64)
    ends = np.cumsum(lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    return np.repeat(buckets, lengths), np.repeat(table.first[buckets].astype(np.int64), lengths) + within


def _is_held(table: TableArrays, bucket: NDArray[np.int64], slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    held: NDArray[np.bool_] = table.slots[slot, 1] != FREE
    doubtful = np.flatnonzero(~held)  # a digest may have the second half of a free slot, but its first half belongs to its bucket
    held[doubtful] = buckets_of(table.slots[slot[doubtful]], len(table.taken)) == bucket[doubtful]
    return held
