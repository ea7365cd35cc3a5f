"""The making of a delta between two exported snapshots, by a publisher."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

import zstandard

from gatewayfilter.engine.snapshot.format import Section, read_sections
from gatewayfilter.engine.tables.bitmap_table import TableArrays, arrays_of
from gatewayfilter.errors import SnapshotError
from gatewayfilter.fleet.deltas.canonical_form import GATE, TABLES
from gatewayfilter.fleet.deltas.delta_file import Kind, Part, write_delta
from gatewayfilter.fleet.deltas.table_changes import changes_between

GATE_HEAD: Final = 24
"""Bytes of the header of the gate's section."""
MOST_PATCHED: Final = 1 << 26
"""Bytes of the largest section, older or newer, that is patched: zstd's window has to hold both."""
_SHARE: Final = 2
"""A delta with what it leaves to blocks, and each part of it, is at most the whole divided by this: else blocks are fetched."""
_SMALL: Final = 4_096
"""Bytes of a part for which that does not hold."""
_LEVEL: Final = 9
"""90 changed rules of EasyList: 5.5 KB in 0.06 s, where level 3 misses most of the older section and takes 1.4 MB."""
_LEAST_WINDOW: Final = 17
_MOST_HASHED: Final = 24
"""Of the window and the tables of zstd in bits: 64 MB each."""


def make_delta(old: Path, new: Path) -> bytes | None:
    """Returns the delta between two snapshots, `None` where there is none that would spare anything.

    Args:
        old: the older file; it may be missing or damaged.
        new: the newer one, verified.
    """
    try:
        with mapped(old) as before, mapped(new) as after:
            was, is_now = read_sections(before), read_sections(after)
            parts, left = [], 0
            for section in is_now.values():
                old_one = was.get(section.name)
                if old_one is not None and old_one.checksum == section.checksum:
                    continue  # it is copied
                part = _part(before, after, old_one, section)
                if part is not None and len(part.data) <= max(section.length // _SHARE, _SMALL):
                    parts.append(part)
                else:
                    left += section.length
            delta = write_delta(after[: min(section.offset for section in is_now.values())], parts)
            return delta if len(delta) + left <= len(after) // _SHARE else None
    except (OSError, ValueError, SnapshotError, MemoryError):
        return None


def _part(before: mmap.mmap, after: mmap.mmap, old: Section | None, new: Section) -> Part | None:
    if new.name == GATE:
        return Part(GATE, Kind.GATE, after[new.offset : new.offset + GATE_HEAD])
    if old is None or not is_whole(before, old):
        return None
    if new.name in TABLES:
        return Part(new.name, Kind.TABLE, changes_between(table_of(before, old), table_of(after, new)))
    if max(old.length, new.length) > MOST_PATCHED:
        return None
    window = max((old.length + new.length).bit_length(), _LEAST_WINDOW)
    hashed = min(window, _MOST_HASHED)
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=window, hash_log=hashed, chain_log=hashed)
    compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary_of(content_of(before, old)))
    return Part(new.name, Kind.PATCH, compressor.compress(content_of(after, new)))


def is_whole(data: mmap.mmap, section: Section) -> bool:
    """Returns whether the bytes of a section are as its head says."""
    return blake2b(content_of(data, section), digest_size=16).digest() == section.checksum


def content_of(data: mmap.mmap, section: Section) -> bytes:
    """Returns the bytes of a section."""
    return data[section.offset : section.offset + section.length]


def table_of(data: mmap.mmap, section: Section) -> TableArrays:
    """Returns the table of a section, read from a copy: nothing refers to the file."""
    return arrays_of(content_of(data, section), 0)


def dictionary_of(content: bytes) -> zstandard.ZstdCompressionDict:
    """Returns the content of a section as a dictionary of zstd."""
    return zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Yields a file, to be read in place.

    Raises:
        OSError, ValueError: it cannot be read, or is empty.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
