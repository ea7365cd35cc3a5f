"""Blocks of a snapshot file: pieces of fixed size, counted from the beginning of each section, with their digests.

Sections that grow move all that follow; their content stays. Blocks are therefore cut within each section: what did not change
has the same digests wherever it stands now.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.tables.bloom import Mapped

BLOCK_BYTES: Final = 65_536
DIGEST_BYTES: Final = 16
"""SHA-256, cut to 128 bits: who does not have the signing key has to find a second pre-image."""


def block_digest(block: bytes | memoryview) -> bytes:
    """Returns the digest of a block."""
    return hashlib.sha256(block).digest()[:DIGEST_BYTES]


def cut_segments(data: Mapped) -> list[int]:
    """Returns the lengths of the segments of a snapshot file: what precedes the first section, then each section with its gap.

    Raises:
        SnapshotError: it is no snapshot.
    """
    sections = sorted(section.offset for section in read_sections(data).values())
    bounds = sorted({0, *sections, len(data)})
    return [end - begin for begin, end in pairwise(bounds)]


def spans(segments: Sequence[int], block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, int]]:
    """Yields offset and length of each block."""
    begin = 0
    for length in segments:
        for offset in range(begin, begin + length, block_bytes):
            yield offset, min(block_bytes, begin + length - offset)
        begin += length


def file_digest(path: Path) -> bytes:
    """Returns the SHA-256 of a file. Some 0.5 s for a gigabyte.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
