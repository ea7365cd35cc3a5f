"""The snapshot container: a header, a table of named sections with checksums, the sections. See docs/snapshot-format.md.

Little-endian throughout. A file is refused if it has another magic or version, is truncated or too long, or if a
checksum does not match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING

from gatewayfilter.errors import SnapshotError, SnapshotVersionError
from gatewayfilter.model import ListAction

if TYPE_CHECKING:
    from gatewayfilter.engine.tables.bloom import Mapped

MAGIC = b"GWFLTSNP"
VERSION = 3
"""Incremented whenever a reader of the previous version would misread a file."""

TABLE_NAMES = {ListAction.BLOCK: "blacklist", ListAction.ALLOW: "whitelist", ListAction.SPLICE: "splicelist"}
"""The sections with list keys, by the action of their entries, in the order of the file."""

SECTION_NAMES = ("meta", "sources", "sets", "rules", "bloom", *TABLE_NAMES.values(), "learned", "details", "adblock")
"""All sections, in the order of the file."""

ALIGNMENT = 64
"""Sections begin at multiples of a cache line, so that slots and numbers are aligned."""

MAX_SECTIONS = 64
_CHECKSUM_SIZE = 16
_HEADER = Struct("<8sIIQ24x16s")
_HEADER_SIZE = 64
_ROW = Struct("<16sQQ16s")


@dataclass(frozen=True, slots=True)
class Section:
    """Offset and length of a section in bytes, and its BLAKE2b-128."""

    name: str
    offset: int
    length: int
    checksum: bytes


def _checksum(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=_CHECKSUM_SIZE)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def pack_sections(
    sections: Sequence[tuple[str, bytes | memoryview]], checksums: Mapping[str, bytes] | None = None
) -> list[bytes | memoryview]:
    """Returns the file with the sections, in this order, as parts to be written in sequence.

    The sections themselves are not copied; names are ASCII, at most 16 characters. `checksums` are those known already.
    """
    offset = _aligned(_HEADER_SIZE + _ROW.size * len(sections))
    rows: list[bytes] = []
    parts: list[bytes | memoryview] = []
    for name, data in sections:
        checksum = (checksums or {}).get(name) or _checksum(data)
        rows.append(_ROW.pack(name.encode("ascii"), offset, len(data), checksum))
        padding = _aligned(len(data)) - len(data)
        parts += (data, bytes(padding))
        offset += len(data) + padding
    table = b"".join(rows)
    plain = _HEADER.pack(MAGIC, VERSION, len(sections), offset, bytes(_CHECKSUM_SIZE))
    header = plain[:-_CHECKSUM_SIZE] + _checksum(plain[:-_CHECKSUM_SIZE], table)
    gap = bytes(_aligned(_HEADER_SIZE + len(table)) - _HEADER_SIZE - len(table))
    return [header, table, gap, *parts]


def mark_of(data: Mapped) -> bytes:
    """Returns the mark of a snapshot, 16 bytes: the checksum of its header, which covers the checksums of all sections."""
    return data[_HEADER_SIZE - _CHECKSUM_SIZE : _HEADER_SIZE]


def read_sections(data: Mapped) -> dict[str, Section]:
    """Reads header and section table; the cost does not depend on the file's size.

    Raises:
        SnapshotError: not a snapshot, another version, a length other than in its header, or a damaged header.
    """
    if len(data) < _HEADER_SIZE or data[: len(MAGIC)] != MAGIC:
        raise SnapshotError("it is not a snapshot")
    _, version, count, size, checksum = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SnapshotVersionError(f"it is of format version {version}, this program reads version {VERSION}")
    end = _HEADER_SIZE + _ROW.size * count
    if count > MAX_SECTIONS or end > len(data):
        raise SnapshotError("its header is damaged")
    if _checksum(data[: _HEADER_SIZE - _CHECKSUM_SIZE], data[_HEADER_SIZE:end]) != checksum:
        raise SnapshotError("its header is damaged")
    if len(data) != size:
        raise SnapshotError(f"it has {len(data):,} bytes instead of {size:,}")
    return {section.name: section for section in _read_rows(data, count)}


def _read_rows(data: Mapped, count: int) -> Iterator[Section]:
    for index in range(count):
        name, offset, length, checksum = _ROW.unpack_from(data, _HEADER_SIZE + _ROW.size * index)
        if offset % ALIGNMENT or offset + length > len(data):
            raise SnapshotError("its header is damaged")
        yield Section(name.rstrip(b"\0").decode("ascii", "replace"), offset, length, checksum)


def read_verified(data: Mapped, section: Section) -> bytes:
    """Returns the bytes of a section after verification.

    Raises:
        SnapshotError: they are not those that were written.
    """
    content = data[section.offset : section.offset + section.length]
    if _checksum(content) != section.checksum:
        raise SnapshotError(f"its section {section.name!r} is damaged")
    return content


def verify_section(view: memoryview, section: Section) -> None:
    """Verifies the bytes of one section in place.

    Raises:
        SnapshotError: they are not those that were written.
    """
    with view[section.offset : section.offset + section.length] as content:
        if _checksum(content) != section.checksum:
            raise SnapshotError(f"its section {section.name!r} is damaged")


def verify_sections(data: Mapped, sections: dict[str, Section]) -> None:
    """Verifies every byte of the file that the header does not cover: about a second for a gigabyte.

    Raises:
        SnapshotError: a section is damaged; the message names it.
    """
    view = memoryview(data)
    try:
        end = _HEADER_SIZE + _ROW.size * len(sections)
        for section in sorted(sections.values(), key=lambda section: section.offset):
            if section.offset < end or any(view[end : section.offset]):
                raise SnapshotError("there is something between its sections")
            end = section.offset + section.length
            verify_section(view, section)
        if any(view[end:]):
            raise SnapshotError("there is something between its sections")
    finally:
        view.release()
