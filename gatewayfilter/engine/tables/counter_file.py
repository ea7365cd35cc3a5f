"""The counter file: the publisher's counting filter on disk, beside the snapshot that it belongs to.

The file (little-endian):

======  ======  ==========================================================
offset  length  what
======  ======  ==========================================================
0       8       magic: the ASCII characters ``GWFLTCBF``
8       4       version: 1
12      4       bits a counter: 4 or 32
16      8       m: counters
24      4       k: positions a digest
28      4       zeros
32      8       n: digests counted
40      16      the snapshot's mark (`snapshot_format.mark_of`)
56      16      BLAKE2b-128 of bytes 0-55 followed by the counters
72      m * b   counters: two a byte, the even one in the lower half; or uint32
======  ======  ==========================================================

A file that is damaged, or belongs to another snapshot, costs only time: the publisher does a full build.
"""

import os
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.tables.counting_bloom import CounterBits, CountingBloom
from gatewayfilter.errors import SnapshotError
from gatewayfilter.private_files import private

MAGIC = b"GWFLTCBF"
VERSION = 1
_HEADER = Struct("<8sIIQI4xQ16s")
_CHECKSUM_SIZE = 16
_WIDTHS: dict[int, CounterBits] = {4: 4, 32: 32}


def write_counters(path: Path, counters: CountingBloom, mark: bytes) -> None:
    """Writes a file and syncs it; the caller renames it.

    Raises:
        OSError: it cannot be written.
    """
    header = _HEADER.pack(MAGIC, VERSION, counters.counter_bits, counters.bits, counters.positions, counters.count, mark)
    content = memoryview(np.ascontiguousarray(counters.counters)).cast("B")
    with open(path, "wb", opener=private) as file:
        file.writelines((header, _checksum(header, content), content))
        file.flush()
        os.fsync(file.fileno())


def read_counters(path: Path, mark: bytes) -> CountingBloom:
    """Reads the counters of the snapshot with this mark.

    Raises:
        SnapshotError: the file is missing, damaged, or of another snapshot.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SnapshotError(f"the counters {path.name} cannot be used: {error.strerror}") from error
    start = _HEADER.size + _CHECKSUM_SIZE
    if len(content) < start:
        raise SnapshotError(f"the counters {path.name} cannot be used: the file is cut short")
    header = content[: _HEADER.size]
    magic, version, width, bits, positions, count, owner = _HEADER.unpack(header)
    if magic != MAGIC or version != VERSION or width not in _WIDTHS:
        raise SnapshotError(f"the counters {path.name} cannot be used: they are of another format")
    view = memoryview(content)[start:]
    if _checksum(header, view) != content[_HEADER.size : start]:
        raise SnapshotError(f"the counters {path.name} cannot be used: they are damaged")
    if owner != mark:
        raise SnapshotError(f"the counters {path.name} cannot be used: they belong to another snapshot")
    held: NDArray[np.unsignedinteger[Any]] = np.frombuffer(view, np.uint8).copy()
    if width == 32:
        held = held.view("<u4")
    try:
        return CountingBloom(bits, positions, counter_bits=_WIDTHS[width], count=count, counters=held)
    except ValueError as error:
        raise SnapshotError(f"the counters {path.name} cannot be used: {error}") from error


def _checksum(header: bytes, counters: memoryview) -> bytes:
    digest = blake2b(header, digest_size=_CHECKSUM_SIZE)
    digest.update(counters)
    return digest.digest()
