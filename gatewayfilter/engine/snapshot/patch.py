"""The snapshot patch: makes the next snapshot from the one in use where only learned entries or manual rules changed.

Lists are neither read nor hashed again: their sections are copied unchanged from the old file. Learned entries are removed
from and added to the tables by bucket (table_patch.py), and to the counters by digest; the gate is derived from the counters.

A patch leaves behind until the next full build: unused numbers of source sets and learned categories, markers of hosts (and
ports) without a learned prefix, unused slots, saturated counters. All of it is bounded here, and none of it causes a wrong
verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gatewayfilter.engine.snapshot.format import SECTION_NAMES, TABLE_NAMES
from gatewayfilter.engine.snapshot.image import SnapshotImage, as_json, policy_rows, rule_rows, source_rows
from gatewayfilter.engine.snapshot.learned_records import learned_source, patch_records
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.tables.bitmap_table import BitmapTable, Digests
from gatewayfilter.engine.tables.counting_bloom import CountingBloom
from gatewayfilter.engine.tables.host_markers import blocked_part_of, parts_counted, prefix_marker, recount
from gatewayfilter.engine.tables.kept_gate import KeptGate
from gatewayfilter.engine.tables.table_patch import patch_table
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import LearnedEntry, ListAction, ManualRule, PolicySet
from gatewayfilter.urls import digest_of

MOST_PATCHES = 500
"""Patches after which a full build is due: about a day of a busy learner."""

MOST_STUCK = 1e-4
"""Maximum share of saturated counters: the gate's false-positive rate can have risen by so much at most."""

MOST_ERRORS = 2.0
"""Maximum false-positive rate of the gate as a multiple of the wanted one, once it holds more than it was sized for."""

_ABSENT = -1


class RebuildDueError(SnapshotError):
    """The snapshot in use cannot be patched; the message has the reason."""


def learned_changes(entries: Mapping[str, LearnedEntry | None], now: float) -> dict[bytes, LearnedEntry | None]:
    """Returns the changes of learned entries by digest, from those by key; expired entries count as removed."""
    return {digest_of(key): entry if entry is not None and entry.expires_at > now else None for key, entry in entries.items()}


def patch_snapshot(
    old: Snapshot,
    counters: CountingBloom | KeptGate,
    changes: Mapping[bytes, LearnedEntry | None],
    rules: Sequence[ManualRule],
    *,
    policies: PolicySet | None = None,
    feed_seq: int,
    created_at: float,
    notes: Mapping[str, Any] | None = None,
) -> SnapshotImage:
    """Returns a snapshot as a patch of another.

    Args:
        old: opened with `verify`; the image reads it in place, so it must stay open until the image is written.
        counters: those of the old snapshot; changed in place, also when an exception is raised. Where there are none, its gate
            (`KeptGate`), which may then admit more than a gate from counters does.
        changes: of learned entries (`learned_changes`); one that the snapshot already includes has no effect.
        rules: the current manual rules.
        policies: the current clients, groups, policies, schedules and pauses; `None` keeps those of the old snapshot.
        feed_seq: the newest step of the change feed that changes and rules include.
        created_at: Unix seconds.
        notes: the publisher's notes, merged over those of the old snapshot.

    Raises:
        RebuildDueError: a full build is due.
        SnapshotError: more entries than the format can hold.
    """
    if old.meta["patches"] >= MOST_PATCHES:
        raise RebuildDueError(f"{MOST_PATCHES} snapshots in a row followed from the last full one")
    counted = _recounted_parts(old, changes)
    patch = _ListPatch(old, changes, counted)
    changes = {**changes, **counted}
    kept: dict[str, bytes | memoryview] = {name: old.section(name) for name in SECTION_NAMES}
    sections = dict(kept)
    meta = {**old.meta, "feed_seq": feed_seq, "created_at": created_at, "patches": old.meta["patches"] + 1}
    meta["policies"] = policy_rows(old.policies if policies is None else policies)
    meta["notes"] = {**old.meta["notes"], **(notes or {})}
    meta["markers"] = dict(meta["markers"])
    for action, name in TABLE_NAMES.items():
        sections[name] = _patch_list(patch, action, counters) or sections[name]
        meta["markers"][name] += patch.more_markers[action]
        meta[name] = old.tables[action].count + patch.more_keys[action] - meta["markers"][name]
    counted_gate = counters if isinstance(counters, CountingBloom) else None
    if counted_gate is not None:
        _check_gate(counted_gate, float(old.meta["error_rate"]))
    learned = old.learned_table.count
    if changes:
        learned = _patch_learned(old, changes, sections)
        sections["bloom"] = counters.gate()
        held = old.learned_table.find_many(_as_digests(counted)) >= 0
        meta["markers"]["learned"] += sum(record is not None for record in counted.values()) - int(held.sum())
    sections["meta"] = as_json(meta)
    sections["sources"] = as_json(source_rows(patch.sources))
    sections["sets"] = as_json(patch.sets)
    sections["rules"] = as_json(rule_rows(tuple(rules)))
    checksums = {name: old.checksum(name) for name in SECTION_NAMES if sections[name] is kept[name]}
    return SnapshotImage(tuple(sections.items()), counted_gate, learned - meta["markers"]["learned"], checksums)


def _as_digests(digests: Iterable[bytes]) -> Digests:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 16)


def _patch_list(patch: "_ListPatch", action: ListAction, counters: CountingBloom | KeptGate) -> memoryview | None:
    """Returns the section of a table (`None`: unchanged), and updates the counters by its added and removed keys."""
    section, gone, come = patch.table(action)
    try:
        counters.remove(gone)
    except ValueError as error:
        raise RebuildDueError(f"the counters do not fit the snapshot: {error}") from error
    counters.add(come)
    return section


def _patch_learned(old: Snapshot, changes: Mapping[bytes, LearnedEntry | None], sections: dict[str, bytes | memoryview]) -> int:
    """Adds the changed table and records of learned entries to the sections; returns the number of records."""
    digests = _as_digests(changes)
    entries = [entry for entry in changes.values() if entry is not None]
    numbers = old.learned_table.find_many(digests)
    learned: int = old.learned_table.count + len(entries) - int((numbers >= 0).sum())
    sections["details"], renumbered = patch_records(old.section("details"), numbers[numbers >= 0], entries)
    come = np.fromiter((entry is not None for entry in changes.values()), np.bool_, len(digests))
    values = np.arange(learned - len(entries), learned, dtype=np.uint32)
    sections["learned"] = patch_table(old.learned_table.arrays(), digests[~come], digests[come], values, renumbered)
    return learned


def _recounted_parts(old: Snapshot, changes: Mapping[bytes, LearnedEntry | None]) -> dict[bytes, LearnedEntry | None]:
    """Returns the changes of the records that count blocked parts of hosts, by digest; `None` where no part is left."""
    found: dict[str, LearnedEntry | None] = {}

    def count(entry: LearnedEntry | None, change: int) -> None:
        marker = blocked_part_of(entry) if entry is not None else ""
        if entry is not None and marker:
            before = found[marker] if marker in found else old.learned(digest_of(marker))
            found[marker] = recount(before, marker, entry, change)

    for digest, entry in changes.items():
        count(entry, 1)
        count(old.learned(digest), -1)
    return {
        digest_of(marker): record if record is not None and parts_counted(record) > 0 else None
        for marker, record in found.items()
    }


def _check_gate(counters: CountingBloom, error_rate: float) -> None:
    stuck = counters.stuck
    if stuck > counters.bits * MOST_STUCK:
        raise RebuildDueError(f"{stuck:,} counters are stuck")
    rate = (1 - np.exp(-counters.positions * counters.count / counters.bits)) ** counters.positions
    if rate > MOST_ERRORS * error_rate:
        raise RebuildDueError("more is held than the gate was made for")


class _ListPatch:
    """The effect of changed learned entries on the tables of lists.

    Attributes:
        sources, sets: those of the old snapshot, with additions.
        more_keys: net gain of a table in keys, markers included; `more_markers` the net gain in markers.

    Args:
        old: the snapshot to be patched.
        changes: of learned entries.
        counted: changes of the records that count them.
    """

    def __init__(
        self, old: Snapshot, changes: Mapping[bytes, LearnedEntry | None], counted: Mapping[bytes, LearnedEntry | None]
    ) -> None:
        self._old = old
        self.sources = list(old.sources)
        self.sets = [list(members) for members in old.source_sets]
        self.more_keys: dict[ListAction, int] = dict.fromkeys(ListAction, 0)
        self.more_markers: dict[ListAction, int] = dict.fromkeys(ListAction, 0)
        self._entries = len(changes)
        self._set_numbers = {tuple(members): number for number, members in enumerate(self.sets)}
        self._indices = {(source.action, source.category): index for index, source in enumerate(self.sources) if source.learned}
        # A key has one learned entry at most, so any learned source of it is that entry's.
        self._coming: dict[ListAction, dict[bytes, int]] = {
            action: dict.fromkeys((*changes, *counted), _ABSENT) for action in ListAction
        }
        self._markers: dict[ListAction, dict[bytes, int]] = {action: {} for action in ListAction}
        for digest, entry in (*changes.items(), *counted.items()):
            if entry is None:
                continue
            index = self._index_of(entry)
            self._coming[entry.action][digest] = index
            if marker := prefix_marker(entry.key):
                self._markers[entry.action][digest_of(marker)] = index

    def _index_of(self, entry: LearnedEntry) -> int:
        index = self._indices.get((entry.action, entry.category))
        if index is None:
            index = self._indices[entry.action, entry.category] = len(self.sources)
            self.sources.append(learned_source(entry.action, entry.category))
        return index

    def table(self, action: ListAction) -> tuple[memoryview | None, Digests, Digests]:
        """Returns a table's section (`None`: unchanged), the digests that it loses and those that it gains."""
        coming, markers = self._coming[action], self._markers[action]
        digests = np.frombuffer(b"".join((*coming, *markers)), np.uint8).reshape(-1, 16)
        table = self._old.tables[action]
        before = table.find_many(digests)
        after = before.copy()
        after[: len(coming)] = self._changed_sets(before[: len(coming)].tolist(), coming.values(), stays=False)
        after[len(coming) :] = self._changed_sets(before[len(coming) :].tolist(), markers.values(), stays=True)
        gone = digests[(before >= 0) & (after < 0)]
        come = digests[(before < 0) & (after >= 0)]
        put = (after >= 0) & (after != before)
        held, holds = before[self._entries :] >= 0, after[self._entries :] >= 0
        self.more_keys[action] = len(come) - len(gone)
        self.more_markers[action] = int(holds.sum()) - int(held.sum())
        if not len(gone) and not put.any():
            return None, gone, come
        section = patch_table(table.arrays(), gone, digests[put], after[put].astype(np.uint32))
        changed = BitmapTable(section, 0, len(section))
        if not np.array_equal(changed.find_many(digests), after):
            raise SnapshotError(f"the table {TABLE_NAMES[action]} was not patched as it should be")
        return section, gone, come

    def _changed_sets(self, before: Iterable[int], coming: Iterable[int], *, stays: bool) -> list[int]:
        """Returns the number of each digest's new source set, -1 when no source is left.

        Args:
            before: the old numbers, -1 for none.
            coming: the learned source added to each, -1 for none.
            stays: existing learned sources stay.
        """
        known: dict[tuple[int, int], int] = {(_ABSENT, _ABSENT): _ABSENT}
        after: list[int] = []
        for change in zip(before, coming, strict=True):
            number = known.get(change)
            if number is None:
                number = known[change] = self._changed_set(*change, stays=stays)
            after.append(number)
        return after

    def _changed_set(self, number: int, coming: int, *, stays: bool) -> int:
        members = self.sets[number] if number >= 0 else []
        kept = {index for index in members if stays or not self.sources[index].learned}
        wanted = tuple(sorted(kept | {coming} - {_ABSENT}))
        if not wanted:
            return _ABSENT
        if wanted not in self._set_numbers:
            self._set_numbers[wanted] = len(self.sets)
            self.sets.append(list(wanted))
        return self._set_numbers[wanted]
