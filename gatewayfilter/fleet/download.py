"""The download of a snapshot: blocks of the present one are copied, the others are fetched, and each is verified.

The file has its full length from the beginning, so that a full disk is noticed before anything is fetched. What a cut download
left is verified block by block and kept: no journal has to be believed.
"""

import mmap
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from gatewayfilter.errors import FleetError, SnapshotError
from gatewayfilter.fleet.blocks import block_digest, cut_segments, file_digest, spans
from gatewayfilter.fleet.manifest import SnapshotPart, spans_of
from gatewayfilter.fleet.transport import Transport
from gatewayfilter.private_files import private

MOST_REQUESTS: Final = 256
"""Requests of one download; with more gaps than that, blocks in between are fetched too."""
ROOM_BYTES: Final = 64_000_000
"""Room that a download leaves on the disk: the log and the database need some."""
_COPIES: Final = 2
"""Files of its size that a snapshot needs until it is in use: the download, and the one that is made of it."""
_PART: Final = ".part"


class DiskError(FleetError):
    """There is no room, or the folder cannot be written."""


class ContentError(FleetError):
    """What was fetched is not what was signed."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A downloaded file: its path, the bytes that were fetched, and those that were at hand already."""

    path: Path
    fetched: int
    reused: int


class Download:
    """The download of one snapshot.

    Args:
        folder: for the file, which is kept until it is complete; those of other snapshots are removed.
        part: the snapshot.
        present: snapshots whose blocks may be reused; may be missing or damaged.
    """

    def __init__(self, folder: Path, part: SnapshotPart, present: Sequence[Path]) -> None:
        self._folder = folder
        self._part = part
        self._present = present
        self._path = folder / f"{part.name}{_PART}"
        self._spans = spans_of(part)
        self._digests = part.digests()

    def fetch(self, transport: Transport) -> Fetched:
        """Returns the complete, verified file.

        Raises:
            DiskError: it cannot be stored.
            ContentError: a block, or the whole, is not as signed.
            TransportError: the transfer was cut; what came is kept.
        """
        try:
            self._reserve()
            with self._path.open("r+b") as file, _mapped(file.fileno()) as data:
                held = [block_digest(data[at : at + size]) == want for (at, size), want in self._wanted()]
                for path in self._present:
                    self._reuse(path, data, held)
                missing = [number for number, done in enumerate(held) if not done]
                fetched = sum(self._fetch_run(transport, data, run) for run in runs_of(missing))
                data.flush()
            if file_digest(self._path).hex() != self._part.name:
                self._path.unlink()
                raise ContentError("the blocks of the snapshot are as signed, but the whole is not")
        except OSError as error:
            raise DiskError(f"cannot store the publisher's snapshot: {error.strerror or error}") from error
        return Fetched(self._path, fetched, self._part.size - fetched)

    def _wanted(self) -> Iterator[tuple[tuple[int, int], bytes]]:
        return zip(self._spans, self._digests, strict=True)

    def _reserve(self) -> None:
        """Makes the file with all its room on the disk."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in self._folder.glob(f"*{_PART}"):
            if other != self._path:
                other.unlink(missing_ok=True)
        size = self._part.size
        there = self._path.stat().st_blocks * 512 if self._path.exists() else 0
        room = shutil.disk_usage(self._folder).free
        if room < _COPIES * size - there + ROOM_BYTES:
            raise DiskError(
                f"no room for the publisher's snapshot: it needs {_COPIES * size + ROOM_BYTES:,} bytes, {room:,} are free"
            )
        with open(self._path, "ab", opener=private) as file:
            file.truncate(size)
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError:
                file.truncate(0)
                raise

    def _reuse(self, path: Path, data: mmap.mmap, held: list[bool]) -> None:
        """Copies blocks that a present snapshot has, too."""
        wanted: dict[bytes, list[int]] = {}
        for number, digest in enumerate(self._digests):
            if not held[number]:
                wanted.setdefault(digest, []).append(number)
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as old:
                for at, size in spans(cut_segments(old), self._part.block_bytes):
                    block = old[at : at + size]
                    for number in wanted.pop(block_digest(block), ()):
                        begin, length = self._spans[number]
                        if length == size:
                            data[begin : begin + length] = block
                            held[number] = True
        except (OSError, ValueError, SnapshotError):
            return  # nothing can be reused: everything is fetched

    def _fetch_run(self, transport: Transport, data: mmap.mmap, run: range) -> int:
        """Fetches neighbouring blocks; each is written once it was verified. Returns the bytes."""
        begin = self._spans[run[0]][0]
        length = sum(self._spans[number][1] for number in run)
        waiting = bytearray()
        numbers = iter(run)
        number = next(numbers)
        for piece in transport.span(self._part.name, begin, length):
            waiting += piece
            while len(waiting) >= self._spans[number][1]:
                at, size = self._spans[number]
                block = bytes(waiting[:size])
                if block_digest(block) != self._digests[number]:
                    raise ContentError(f"block {number:,} of the snapshot is not as signed")
                data[at : at + size] = block
                del waiting[:size]
                number = next(numbers, number)
        return length


@contextmanager
def _mapped(descriptor: int) -> Iterator[mmap.mmap]:
    with mmap.mmap(descriptor, 0) as data:
        yield data


def runs_of(missing: Sequence[int]) -> list[range]:
    """Returns at most `MOST_REQUESTS` runs of block numbers that cover the missing ones; the smallest gaps are closed."""
    if not missing:
        return []
    gaps = sorted((later - earlier - 1 for earlier, later in pairwise(missing)), reverse=True)
    widest = gaps[MOST_REQUESTS - 1] if len(gaps) >= MOST_REQUESTS else 0
    runs: list[range] = []
    first = missing[0]
    for earlier, later in pairwise(missing):
        if later - earlier - 1 > widest:
            runs.append(range(first, earlier + 1))
            first = later
    return [*runs, range(first, missing[-1] + 1)]
