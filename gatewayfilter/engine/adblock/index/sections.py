"""The container of the compiled form: numbered sections of bytes or unsigned 32-bit numbers, read in place.

Layout, little-endian: magic (8 bytes) · number of sections (uint32) · length of each section in bytes (uint32) · the sections,
each padded to 4 bytes. Checksums are in the snapshot that embeds it; here only reads past the end are refused.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import count

from gatewayfilter.errors import SnapshotError, SnapshotVersionError

MAGIC = b"GFADB\x00\x00\x03"
_COUNT = struct.Struct("<I")
_MAX_SECTIONS = 1_000
_STEP = 200_000
"""Bytes of names that are read at once; a name is far shorter."""


def pack_numbers(numbers: Iterable[int]) -> bytes:
    """Returns numbers below 2³² as a section."""
    packed = array("I", numbers)
    if sys.byteorder != "little":
        packed.byteswap()
    return packed.tobytes()


def pack_names(names: Iterable[str]) -> bytes:
    """Returns names without line breaks as a section."""
    return "\n".join(names).encode()


def pack_sections(sections: Sequence[bytes]) -> bytes:
    """Returns the compiled form."""
    head = MAGIC + _COUNT.pack(len(sections)) + pack_numbers(len(section) for section in sections)
    return head + b"".join(section + bytes(-len(section) % 4) for section in sections)


def require_version(blob: memoryview) -> None:
    """Refuses compiled rules of another version of the program.

    Raises:
        SnapshotError: they are.
    """
    if bytes(blob[: len(MAGIC)]) != MAGIC:
        raise SnapshotVersionError("the compiled Adblock rules are of another version")


class SectionReader:
    """A reader of the sections in packing order, without copying them.

    Raises:
        SnapshotError: not a compiled form of this version, or truncated.
    """

    def __init__(self, blob: memoryview) -> None:
        start = len(MAGIC) + _COUNT.size
        require_version(blob)
        if len(blob) < start:
            raise SnapshotError("the compiled Adblock rules are cut off")
        (count,) = _COUNT.unpack_from(blob, len(MAGIC))
        if count > _MAX_SECTIONS or len(blob) < start + 4 * count:
            raise SnapshotError("the compiled Adblock rules are damaged")
        lengths = struct.unpack_from(f"<{count}I", blob, start)
        position = start + 4 * count
        self._sections: list[memoryview] = []
        for length in lengths:
            if position + length > len(blob):
                raise SnapshotError("the compiled Adblock rules are cut off")
            self._sections.append(blob[position : position + length])
            position += length + -length % 4
        self._next = 0

    def raw(self) -> memoryview:
        """Returns the next section as bytes.

        Raises:
            SnapshotError: there is none left.
        """
        if self._next >= len(self._sections):
            raise SnapshotError("the compiled Adblock rules are cut off")
        self._next += 1
        return self._sections[self._next - 1]

    def last(self) -> memoryview:
        """Returns the last section as bytes, out of order.

        Raises:
            SnapshotError: there is none.
        """
        if not self._sections:
            raise SnapshotError("the compiled Adblock rules are cut off")
        return self._sections[-1]

    def numbers(self) -> Sequence[int]:
        """Returns the next section as numbers.

        Raises:
            SnapshotError: it holds none, or there is no section left.
        """
        section = self.raw()
        if len(section) % 4:
            raise SnapshotError("the compiled Adblock rules are damaged")
        if sys.byteorder == "little":
            return section.cast("I")
        swapped = array("I", bytes(section))
        swapped.byteswap()
        return swapped

    def names(self) -> list[str]:
        """Returns the next section as names.

        Raises:
            SnapshotError: it holds none, or there is no section left.
        """
        return list(self.numbered_names())

    def numbered_names(self) -> dict[str, int]:
        """Returns the next section's names, each with its index.

        They are read in steps of some thousand, between which other threads can run.

        Raises:
            SnapshotError: it holds none, one of them twice, or there is no section left.
        """
        section = self.raw()
        names: dict[str, int] = {}
        read = begin = 0
        while begin < len(section):
            rest = bytes(section[begin : begin + _STEP])
            end = rest.rfind(b"\n") if begin + _STEP < len(section) else len(rest)
            if end < 0:
                raise SnapshotError("the compiled Adblock rules are damaged")
            try:
                step = str(rest[:end], "utf-8").split("\n")
            except UnicodeDecodeError as error:
                raise SnapshotError("the compiled Adblock rules are damaged") from error
            names.update(zip(step, count(read)))
            read += len(step)
            begin += end + 1
        if len(names) != read:
            raise SnapshotError("the compiled Adblock rules are damaged")
        return names
