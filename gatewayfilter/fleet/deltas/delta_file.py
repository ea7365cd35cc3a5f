"""The file of a delta: the head of the newer snapshot, and for each of its sections how it is made from the older one.

File: `GWFLDLT1`, the length of a JSON text (uint32, little-endian), the text, and the parts, one behind the other. The text has
`head`, the length of the first part, which is what precedes the sections of the newer snapshot, and `sections`: name, kind and
length of the part of each section.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct
from typing import Final

from gatewayfilter.errors import FleetError

_MAGIC: Final = b"GWFLDLT1"
_LENGTH: Final = Struct("<I")
_MOST_SECTIONS: Final = 64
_LONGEST_TEXT: Final = 65_536


class Kind(StrEnum):
    """How a section is made."""

    TABLE = "table"
    """Removed and added entries (`table_changes`); the table is built again."""
    GATE = "gate"
    """Built again from the digests of the newer tables; the part is the header of the section."""
    PATCH = "patch"
    """Compressed by zstd with the older section as dictionary."""


@dataclass(frozen=True, slots=True)
class Part:
    """What makes a section: its name, how, and the data for that."""

    name: str
    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta.

    Attributes:
        head: what precedes the sections of the newer snapshot: header and section table.
        parts: of its sections; those without are fetched by blocks.
    """

    head: bytes
    parts: tuple[Part, ...]


def write_delta(head: bytes, parts: Sequence[Part]) -> bytes:
    """Returns the file of a delta."""
    sections = [[part.name, part.kind, len(part.data)] for part in parts]
    text = json.dumps({"head": len(head), "sections": sections}, separators=(",", ":")).encode()
    return b"".join((_MAGIC, _LENGTH.pack(len(text)), text, head, *(part.data for part in parts)))


def read_delta(data: bytes) -> Delta:
    """Returns the delta of a file.

    Raises:
        FleetError: it is none.
    """
    begin = len(_MAGIC) + _LENGTH.size
    length = int.from_bytes(data[len(_MAGIC) : begin], "little")
    if not data.startswith(_MAGIC) or length > _LONGEST_TEXT:
        raise FleetError("it is no delta, or one of another version")
    try:
        document = json.loads(data[begin : begin + length])
        sections = [(str(name), Kind(kind), int(size)) for name, kind, size in document["sections"]]
        sizes = [int(document["head"]), *(size for _, _, size in sections)]
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise FleetError("the text of a delta cannot be read") from error
    at = begin + length
    if len(sections) > _MOST_SECTIONS or min(sizes) < 0 or at + sum(sizes) != len(data):
        raise FleetError("a delta is not as long as its text says")
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    parts = zip(sections, pieces[1:], strict=True)
    return Delta(pieces[0], tuple(Part(name, kind, piece) for (name, kind, _), piece in parts))
