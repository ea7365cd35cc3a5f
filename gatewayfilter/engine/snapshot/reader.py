"""A snapshot: one immutable file with everything that lists and people say, mapped read-only and shared by all processes.

What stands where in the file: docs/snapshot-format.md.
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

from gatewayfilter.engine.adblock import AdblockEffects, AdblockMatcher
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
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, Source

__all__ = ["Snapshot", "SnapshotBuilder", "SnapshotInfo"]


_SHORT_TURN_S = 0.0005
"""How long the thread that opens rules keeps the interpreter while others wait for it; Python's own turn is ten times as long."""

_OPENING = Lock()


@contextmanager
def giving_turns() -> Iterator[None]:
    """Lets other threads go on while rules are opened: 35 ms and more of work, in which a worker has requests to answer.

    A thread that waits for the interpreter gets it soon: each read and write of a request gives it away, and would otherwise cost
    the request 5 ms. The garbage collector rests: where so many objects are made that stay, it would only hold up every thread.
    """
    with _OPENING:  # one at a time, so that what is put back is what was there
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
    """What a snapshot holds.

    Attributes:
        version: of the file format.
        feed_seq: the newest step of the change feed that it includes.
        created_at: Unix seconds.
        blacklist, whitelist, splicelist: distinct list keys, learned ones included.
        adblock_rules, manual_rules, learned: how many of each.
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
        info: what it holds.
        sources: by index, as verdicts name them.
        source_sets: what a number in a table stands for: ascending source indices.
        rules: people's rules.
        bloom: over the keys of all tables.
        tables: what being on a list means → digest → number of a source set.
        learned_table: digest → number of a learned record.
        meta: the section of that name.
        mark: 16 bytes that tell this snapshot from all others.
    """

    def __init__(self, data: Mapped, *, verify: bool) -> None:
        """Reads a snapshot in place; `Snapshot.open` and `Snapshot.from_bytes` are the ways to one.

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
            # Before rules could be switched off, those of a group were kept and not applied: they stay so.
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
        self.mark = mark_of(self._data)
        self.meta: Mapping[str, Any] = self._json(sections["meta"])
        meta = self.meta
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

        Always checked are the file's length, header and section table, and what is read here and now: sources, sets and
        rules. Whoever decides by a snapshot verifies it: a disk may give back something else than what a publisher verified.

        Args:
            path: the file; it may be renamed or removed while it is mapped.
            verify: checks every byte first, about a second for a gigabyte; without it the cost does not depend on the size.

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
        """Opens a snapshot that lies in memory, as `SnapshotBuilder.build` returns it.

        Raises:
            SnapshotError: damaged, no snapshot, or of another version.
        """
        return cls(data, verify=True)

    @property
    def blacklist(self) -> BitmapTable:
        """The table of what lists block."""
        return self.tables[ListAction.BLOCK]

    @property
    def whitelist(self) -> BitmapTable:
        """The table of what lists know to be harmless."""
        return self.tables[ListAction.ALLOW]

    @property
    def splicelist(self) -> BitmapTable:
        """The table of hosts whose connections pass through unread."""
        return self.tables[ListAction.SPLICE]

    @property
    def adblock(self) -> AdblockMatcher:
        """The compiled Adblock rules; opened at the first use, which takes longer than opening all else."""
        if self._adblock is None:
            with giving_turns():
                self._adblock = AdblockMatcher(self._adblock_rules())
        return self._adblock

    @property
    def effects(self) -> AdblockEffects:
        """What Adblock rules change in requests and responses; opened at the first use."""
        if self._effects is None:
            with giving_turns():
                self._effects = AdblockEffects(self._adblock_rules())
        return self._effects

    def _adblock_rules(self) -> memoryview:
        return self.section("adblock")

    def adopt(self, other: "Snapshot") -> None:
        """Takes over what another snapshot has opened of the same Adblock rules, and lets the memory of all else there go.

        Opening them takes some 35 ms in which a worker decides little; where only entries changed, they are the same. The other
        file stays mapped as long as its rules are in use, but its pages leave the process, and come back if somebody still reads.
        """
        if other is self:
            return
        if self.checksum("adblock") == other.checksum("adblock"):
            self._adblock, self._effects, self._rules_home = other.opened_rules
        other.release_pages()

    def verify(self) -> None:
        """Checks every byte that decisions read, and gives the memory of the pages back: about a second of CPU for a gigabyte.

        Other threads go on meanwhile.

        Raises:
            SnapshotError: the file, or the one that its Adblock rules were taken over from, is not what was written.
        """
        try:
            verify_sections(self._data, self._sections)
        finally:
            self.release_pages()
        if self._rules_home is not None:
            self._rules_home.verify_rules()

    def verify_rules(self) -> None:
        """Checks the compiled Adblock rules, which other snapshots may have taken over.

        Raises:
            SnapshotError: they are not what was written.
        """
        try:
            with memoryview(self._data) as view:
                verify_section(view, self._sections["adblock"])
        finally:
            self.release_pages()

    @property
    def opened_rules(self) -> "tuple[AdblockMatcher | None, AdblockEffects | None, Snapshot]":
        """What has been opened of the Adblock rules so far, and the snapshot in whose file they are read."""
        return self._adblock, self._effects, self._rules_home or self

    def release_pages(self) -> None:
        """Gives the memory of the file's pages back; whoever still reads gets them again from the file."""
        if isinstance(self._data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            with suppress(OSError, ValueError):
                self._data.madvise(mmap.MADV_DONTNEED)

    def learned(self, digest: bytes) -> LearnedEntry | None:
        """Returns what was learned under the list key with this digest.

        Raises:
            SnapshotError: its record cannot be read (only ever in a file that was opened without `verify`).
        """
        return self.records.find(digest)

    def section(self, name: str) -> memoryview:
        """Returns a section in place. Its bytes are checked only in a snapshot that was opened with `verify`."""
        section = self._sections[name]
        return memoryview(self._data)[section.offset : section.offset + section.length]

    def checksum(self, name: str) -> bytes:
        """Returns a section's checksum."""
        return self._sections[name].checksum

    def write(self, out: IO[bytes]) -> None:
        """Writes the whole snapshot into a file that is open for writing.

        Raises:
            OSError: it cannot be written.
        """
        out.write(self._data)

    def close(self) -> None:
        """Lets go of the file. Only for a snapshot that no engine holds; without it, the last reader's end does the same."""
        self._adblock = None
        self._effects = None
        self.bloom.close()
        self.records.close()
        for table in self.tables.values():
            table.close()
        if isinstance(self._data, mmap.mmap):
            # Views that somebody still holds keep the mapping; it goes with the last of them.
            with suppress(BufferError):
                self._data.close()

    def _json(self, section: Section) -> Any:
        return json.loads(read_verified(self._data, section))

    def _part[T](self, open_part: Callable[[Mapped, int, int], T], section: Section) -> T:
        return open_part(self._data, section.offset, section.length)
