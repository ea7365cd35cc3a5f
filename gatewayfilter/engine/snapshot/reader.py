"""The snapshot: one immutable file of lists, learned entries and manual rules, mapped read-only and shared by all processes.

Layout of the file: docs/snapshot-format.md.
"""

import gc
import json
import mmap
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any

from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.index.sections import require_version
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.format import (
    SECTION_NAMES,
    TABLE_NAMES,
    VERSION,
    Section,
    mark_of,
    read_sections,
    read_verified,
    verify_section,
    verify_sections,
)
from gatewayfilter.engine.snapshot.learned_records import LearnedRecords
from gatewayfilter.engine.tables.bitmap_table import BitmapTable
from gatewayfilter.engine.tables.bloom import BloomFilter, Mapped
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, PolicySet, Source, from_record

__all__ = ["Snapshot", "SnapshotBuilder", "SnapshotInfo"]


_SHORT_TURN_S = 0.0005
"""Switch interval of the interpreter while rules are opened; Python's default is ten times as long."""

_OPENING = Lock()


@contextmanager
def giving_turns() -> Iterator[None]:
    """Keeps other threads responsive while rules are opened: 35 ms and more of work, while a worker has requests to answer.

    A waiting thread gets the interpreter lock soon: each read and write of a request releases the lock, and would otherwise cost
    the request 5 ms. The garbage collector is paused: with so many new long-lived objects it would only delay every thread.
    """
    with _OPENING:  # one at a time, so that the original settings are restored
        works, turn_s = gc.isenabled(), sys.getswitchinterval()
        gc.disable()
        sys.setswitchinterval(min(turn_s, _SHORT_TURN_S))
        try:
            yield
        finally:
            sys.setswitchinterval(turn_s)
            if works:
                gc.enable()


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """Summary of a snapshot's content.

    Attributes:
        version: of the file format.
        feed_seq: the newest step of the change feed in it.
        created_at: Unix seconds.
        blacklist, whitelist, splicelist: distinct list keys, learned ones included.
        adblock_rules, manual_rules, learned: their numbers.
    """

    version: int
    feed_seq: int
    created_at: float
    blacklist: int
    whitelist: int
    splicelist: int
    adblock_rules: int
    manual_rules: int
    learned: int
    size_bytes: int


class Snapshot:
    """An open snapshot. Immutable; any number of threads may read it.

    Attributes:
        info: summary of its content.
        sources: by index, as named in verdicts.
        source_sets: number in a table → ascending source indices.
        rules: the manual rules.
        policies: clients, groups, policies, schedules and pauses.
        bloom: over the keys of all tables.
        tables: action → digest → number of a source set.
        learned_table: digest → number of a learned record.
        meta: the section of that name.
        mark: 16 bytes, unique to this snapshot.
    """

    def __init__(self, data: Mapped, *, verify: bool) -> None:
        """Reads a snapshot in place; use `Snapshot.open` or `Snapshot.from_bytes` instead.

        Raises:
            SnapshotError: damaged or of another version.
        """
        self._data = data
        sections = read_sections(data)
        if verify:
            verify_sections(data, sections)
        try:
            self._read(sections)
        except KeyError as error:
            raise SnapshotError(f"it has no {error.args[0]!r}") from error
        except (ValueError, TypeError) as error:
            raise SnapshotError("its contents cannot be read") from error

    def _read(self, sections: dict[str, Section]) -> None:
        for name in SECTION_NAMES:
            sections[name]
        self.sources = tuple(
            Source(name, ListAction(action), category, learned=learned)
            for name, action, category, learned in self._json(sections["sources"])
        )
        self.source_sets: tuple[tuple[int, ...], ...] = tuple(map(tuple, self._json(sections["sets"])))
        if any(not 0 <= index < len(self.sources) for members in self.source_sets for index in members):
            raise SnapshotError("its source sets name sources that it does not have")
        self.rules = tuple(
            # Before rules had `enabled`, those of a group were stored and not applied: they stay off.
            ManualRule(rule_id, ListAction(action), EntryKind(kind), pattern, comment, group, expires_at, *(on or [not group]))
            for rule_id, action, kind, pattern, comment, group, expires_at, *on in self._json(sections["rules"])
        )
        self.bloom = self._part(BloomFilter, sections["bloom"])
        self.tables = {action: self._part(BitmapTable, sections[name]) for action, name in TABLE_NAMES.items()}
        self.learned_table = learned = self._part(BitmapTable, sections["learned"])
        details = sections["details"]
        self.records = LearnedRecords(self._data, details.offset, details.length, learned)
        self._adblock: AdblockMatcher | None = None
        self._effects: AdblockEffects | None = None
        self._rules_home: Snapshot | None = None
        self._sections = sections
        require_version(self._adblock_rules())
        self.mark = mark_of(self._data)
        self.meta: Mapping[str, Any] = self._json(sections["meta"])
        meta = self.meta
        self.policies = PolicySet.of(map(from_record, meta.get("policies", ())))
        self.info = SnapshotInfo(
            version=VERSION,
            feed_seq=int(meta["feed_seq"]),
            created_at=float(meta["created_at"]),
            blacklist=int(meta["blacklist"]),
            whitelist=int(meta["whitelist"]),
            splicelist=int(meta["splicelist"]),
            adblock_rules=int(meta["adblock_rules"]),
            manual_rules=len(self.rules),
            learned=learned.count - int(meta["markers"]["learned"]),
            size_bytes=len(self._data),
        )

    @classmethod
    def open(cls, path: Path, *, verify: bool = False) -> "Snapshot":
        """Maps a snapshot file.

        The file's length, header and section table are always verified, and the sections that are read at once: sources, sets and
        rules. Use `verify` before deciding by a snapshot: a disk may return other bytes than the publisher verified.

        Args:
            path: the file; it may be renamed or removed while it is mapped.
            verify: verify every byte first, about a second for a gigabyte; without it the cost does not depend on the size.

        Raises:
            SnapshotError: it cannot be read, is damaged, no snapshot, or of another version.
        """
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            reason = getattr(error, "strerror", None) or "it is empty"
            raise SnapshotError(f"the snapshot {path.name} cannot be used: {reason}") from error
        try:
            return cls(data, verify=verify)
        except SnapshotError as error:
            raise SnapshotError(f"the snapshot {path.name} cannot be used: {error}") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> "Snapshot":
        """Opens a snapshot in memory, as returned by `SnapshotBuilder.build`.

        Raises:
            SnapshotError: damaged, no snapshot, or of another version.
        """
        return cls(data, verify=True)

    @property
    def blacklist(self) -> BitmapTable:
        """The table of blocked keys."""
        return self.tables[ListAction.BLOCK]

    @property
    def whitelist(self) -> BitmapTable:
        """The table of keys known to be harmless."""
        return self.tables[ListAction.ALLOW]

    @property
    def splicelist(self) -> BitmapTable:
        """The table of hosts with spliced connections."""
        return self.tables[ListAction.SPLICE]

    @property
    def adblock(self) -> AdblockMatcher:
        """The compiled Adblock rules; opened at the first use, which takes longer than opening the rest."""
        if self._adblock is None:
            with giving_turns():
                self._adblock = AdblockMatcher(self._adblock_rules())
        return self._adblock

    @property
    def effects(self) -> AdblockEffects:
        """The effects of Adblock rules on requests and responses; opened at the first use."""
        if self._effects is None:
            with giving_turns():
                self._effects = AdblockEffects(self._adblock_rules())
        return self._effects

    def _adblock_rules(self) -> memoryview:
        return self.section("adblock")

    def adopt(self, other: "Snapshot") -> None:
        """Reuses the opened Adblock rules of another snapshot if they are equal, and releases its other memory.

        Opening them takes some 35 ms in which a worker decides few requests; where only entries changed, they are equal. The
        other file stays mapped as long as its rules are in use; its pages are dropped from memory and read again on access.
        """
        if other is self:
            return
        if self.checksum("adblock") == other.checksum("adblock"):
            self._adblock, self._effects, self._rules_home = other.opened_rules
        other.release_pages()

    def is_cut_off(self) -> bool:
        """Returns whether the file, or the file of its reused Adblock rules, has become shorter. Costs one or two system calls.

        The system ends a process that reads beyond the new end.
        """
        if self._rules_home is not None and self._rules_home.is_cut_off():
            return True
        return isinstance(self._data, mmap.mmap) and self._data.size() < len(self._data)

    def verify(self) -> None:
        """Verifies every byte that decisions read, and releases the memory of the pages: about a second of CPU for a gigabyte.

        Other threads keep running.

        Raises:
            SnapshotError: the file, or the file of its reused Adblock rules, is not as it was written.
        """
        if self.is_cut_off():
            raise SnapshotError("its file has become shorter")
        try:
            verify_sections(self._data, self._sections)
        finally:
            self.release_pages()
        if self._rules_home is not None:
            self._rules_home.verify_rules()

    def verify_rules(self) -> None:
        """Verifies the compiled Adblock rules, which other snapshots may reuse.

        Raises:
            SnapshotError: they are not as they were written.
        """
        try:
            with memoryview(self._data) as view:
                verify_section(view, self._sections["adblock"])
        finally:
            self.release_pages()

    @property
    def opened_rules(self) -> "tuple[AdblockMatcher | None, AdblockEffects | None, Snapshot]":
        """The opened Adblock rules, and the snapshot with the file that they are read from."""
        return self._adblock, self._effects, self._rules_home or self

    def release_pages(self) -> None:
        """Releases the memory of the file's pages; further reads load them from the file again."""
        if isinstance(self._data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            with suppress(OSError, ValueError):
                self._data.madvise(mmap.MADV_DONTNEED)

    def learned(self, digest: bytes) -> LearnedEntry | None:
        """Returns the learned entry of the list key with this digest.

        Raises:
            SnapshotError: its record cannot be read (only possible in a file opened without `verify`).
        """
        return self.records.find(digest)

    def listed_by(self, digest: bytes) -> frozenset[int]:
        """Returns every source whose entries include this digest, by index in `sources`, whatever their action."""
        sets = (table.find(digest) for table in self.tables.values())
        return frozenset(index for found in sets if found is not None for index in self.source_sets[found])

    def section(self, name: str) -> memoryview:
        """Returns a section in place. Its bytes are verified only in a snapshot opened with `verify`."""
        section = self._sections[name]
        return memoryview(self._data)[section.offset : section.offset + section.length]

    def checksum(self, name: str) -> bytes:
        """Returns a section's checksum."""
        return self._sections[name].checksum

    def write(self, out: IO[bytes]) -> None:
        """Writes the whole snapshot to a file that is open for writing.

        Raises:
            OSError: it cannot be written.
        """
        out.write(self._data)

    def close(self) -> None:
        """Closes the file. Only for a snapshot that no engine uses; otherwise it is freed with its last reader."""
        self._adblock = None
        self._effects = None
        self.bloom.close()
        self.records.close()
        for table in self.tables.values():
            table.close()
        if isinstance(self._data, mmap.mmap):
            # Views that are still in use keep the mapping; it is freed with the last of them.
            with suppress(BufferError):
                self._data.close()

    def _json(self, section: Section) -> Any:
        return json.loads(read_verified(self._data, section))

    def _part[T](self, open_part: Callable[[Mapped, int, int], T], section: Section) -> T:
        return open_part(self._data, section.offset, section.length)
