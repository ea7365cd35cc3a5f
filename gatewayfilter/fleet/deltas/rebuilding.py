"""The making of the newer snapshot from the older one and a delta, by a follower.

Each section is made by itself, and counts only where it has the length and the checksum that the newer head
states. What cannot be made stays empty. The result is verified against the signed manifest, block by block, as a download is.
"""

import mmap
import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Final

import zstandard

from gatewayfilter.engine.snapshot.format import Section, read_sections
from gatewayfilter.errors import FleetError, SnapshotError
from gatewayfilter.fleet.deltas.canonical_form import LISTS, TABLES, gate_of
from gatewayfilter.fleet.deltas.delta_file import Kind, Part, read_delta
from gatewayfilter.fleet.deltas.making import GATE_HEAD, MOST_PATCHED, content_of, dictionary_of, is_whole, mapped, table_of
from gatewayfilter.fleet.deltas.table_changes import changed_table
from gatewayfilter.private_files import private

_MOST_POSITIONS: Final = 64
_LARGEST_GATE: Final = 1 << 24
"""Bytes; a larger one is fetched by blocks, as making it takes eight times as much memory."""
_GATE: Final = Struct("<QI")
"""Bits and positions, at the beginning of the gate's head."""
_SIZE: Final = slice(16, 24)
"""Where the head of a snapshot has the length of the file (docs/snapshot-format.md)."""


def rebuild(old: Path, data: bytes, target: Path, most: int) -> set[str]:
    """Writes the newer snapshot, as far as it can be made. Returns the names of the sections that are complete.

    Args:
        old: the older snapshot, verified.
        data: the delta.
        target: is replaced.
        most: bytes of the newer snapshot, at most.

    Raises:
        FleetError: it is no delta for a snapshot.
        OSError: a file cannot be read or written.
    """
    delta = read_delta(data)
    size = int.from_bytes(delta.head[_SIZE], "little")
    if not len(delta.head) < size <= most:
        raise FleetError("the delta is for a snapshot of another size")
    target.unlink(missing_ok=True)
    with open(target, "w+b", opener=private) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        with mapped(old) as before, mmap.mmap(file.fileno(), size) as after:
            after[: len(delta.head)] = delta.head
            try:
                making = _Making(before, after)
            except SnapshotError as error:
                raise FleetError(f"the delta is for no snapshot: {error}") from error
            making.copy(len(delta.head))
            for part in sorted(delta.parts, key=lambda part: part.kind is Kind.GATE):  # the gate is made from the tables
                making.make(part, len(delta.head))
            return making.done


class _Making:
    """Makes the sections of a file that has its head already.

    Attributes:
        done: names of the sections that are complete.
    """

    def __init__(self, before: mmap.mmap, after: mmap.mmap) -> None:
        self._before = before
        self._after = after
        self._was = read_sections(before)
        self._sections = read_sections(after)
        self.done: set[str] = set()

    def copy(self, head: int) -> None:
        """Copies the sections that did not change."""
        for name, section in self._sections.items():
            old = self._was.get(name)
            if old is not None and old.checksum == section.checksum:
                self._put(section, head, content_of(self._before, old))

    def make(self, part: Part, head: int) -> None:
        """Makes a section, where that is possible."""
        section = self._sections.get(part.name)
        if section is None:
            return
        with suppress(FleetError, SnapshotError, ValueError, IndexError, zstandard.ZstdError):
            self._put(section, head, self._made(part, section))

    def _put(self, section: Section, head: int, content: bytes | memoryview) -> None:
        right = len(content) == section.length and blake2b(content, digest_size=16).digest() == section.checksum
        if right and section.offset >= head:
            self._after[section.offset : section.offset + section.length] = bytes(content)
            self.done.add(section.name)

    def _made(self, part: Part, section: Section) -> bytes | memoryview:
        if part.kind is Kind.GATE:
            return self._gate(part, section)
        old = self._was.get(part.name)
        if old is None or (part.kind is Kind.TABLE and part.name not in TABLES):
            raise FleetError(f"there was no section {part.name!r}")
        if not is_whole(self._before, old):  # it was left to blocks
            raise FleetError(f"the older section {part.name!r} is not whole")
        if part.kind is Kind.TABLE:
            return changed_table(table_of(self._before, old), part.data)
        # The length stands in the frame, so that nothing larger is ever made room for.
        if zstandard.frame_content_size(part.data) != section.length or max(section.length, old.length) > MOST_PATCHED:
            raise FleetError("a patch for a section of another length")
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary_of(content_of(self._before, old)))
        return decompressor.decompress(part.data, max_output_size=section.length)

    def _gate(self, part: Part, section: Section) -> bytes:
        if len(part.data) != GATE_HEAD:
            raise FleetError("the head of the gate has another length")
        bits, positions = _GATE.unpack_from(part.data)
        sized = bits % 8 == 0 and GATE_HEAD + bits // 8 == section.length
        if not sized or section.length > _LARGEST_GATE or not 0 < positions <= _MOST_POSITIONS or not self.done.issuperset(LISTS):
            raise FleetError("the gate cannot be made")
        return gate_of([content_of(self._after, self._sections[name]) for name in LISTS], bits, positions)
