"""The filter of seen URLs, between the finder of links and the frontier.

Source: [counting-bloom] puts a Bloom filter between the producer of links and the crawl queue, so that only unseen URLs enter.
Deviation: a scalable filter (pybloom-live) without counters, since nothing is ever taken out of it and the number of
links is not known. docs/tables.md has the figures beside filters of one size.
"""

import logging
import os
import tempfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Protocol

from pybloom_live import ScalableBloomFilter

_log = logging.getLogger(__name__)

MAGIC = b"GFSEEN1\n"
INITIAL_CAPACITY = 50_000
ERROR_RATE = 0.0002
"""Of its first part; each later part adds its own, so that a filter of a million links errs about once in a thousand times."""
MAX_ENTRIES = 20_000_000
"""About 60 MB; the filter is emptied then, and pages may be visited once more."""


class SeenUrls(Protocol):
    """A set of URL digests that outlives its process. Not for several threads at a time."""

    def __contains__(self, digest: bytes) -> bool:
        """Returns whether a digest was added."""
        ...

    def add(self, digest: bytes) -> bool:
        """Adds a digest. Returns whether it was new."""
        ...

    def remove(self, digest: bytes) -> bool:
        """Takes a digest out where this set can; returns whether it did."""
        ...

    def save(self) -> None:
        """Writes the set to its file, whole or not at all; raises nothing."""
        ...


class SeenFilter:
    """A set of digests that never forgets, with false positives (one in a thousand).

    Cost: about 6 µs an operation, 2 to 3 bytes an entry. Not for several threads at a time.

    Args:
        path: where it is kept; a damaged file is passed over and the filter starts empty. `None` keeps it in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._unsaved = 0
        self._filter = _read(path) if path is not None else _empty()

    def __len__(self) -> int:
        return len(self._filter)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._filter

    @property
    def unsaved(self) -> int:
        """How many digests the file does not hold yet."""
        return self._unsaved

    @property
    def size_bits(self) -> int:
        """How large the filter is by now; it grows by doubling."""
        return sum(part.num_bits for part in self._filter.filters)

    def add(self, digest: bytes) -> bool:
        """Adds a digest. Returns whether it was new."""
        if len(self._filter) >= MAX_ENTRIES:
            self._filter = _empty()
        new = not self._filter.add(digest)
        self._unsaved += new
        return new

    def remove(self, digest: bytes) -> bool:  # noqa: ARG002  the protocol's
        """Does nothing and returns False: the bits of a digest are others' too."""
        return False

    def save(self) -> None:
        """Writes the filter to its file, whole or not at all. A full disk is logged, not raised: the next time may go better."""
        if self._path is None or not self._unsaved:
            return
        content = BytesIO()
        self._filter.tofile(content)
        payload = content.getbuffer()
        try:
            _write(self._path, (MAGIC, zlib.crc32(payload).to_bytes(4, "little"), payload))
        except OSError as error:
            _log.warning("cannot write %s: %s", self._path.name, error.strerror)
        else:
            self._unsaved = 0


def _empty() -> ScalableBloomFilter:
    return ScalableBloomFilter(INITIAL_CAPACITY, ERROR_RATE, ScalableBloomFilter.SMALL_SET_GROWTH)


def _read(path: Path) -> ScalableBloomFilter:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return _empty()
    except OSError as error:
        _log.warning("cannot read %s: %s; starting with an empty one", path.name, error.strerror)
        return _empty()
    start = len(MAGIC) + 4
    if content[: len(MAGIC)] != MAGIC or zlib.crc32(content[start:]).to_bytes(4, "little") != content[len(MAGIC) : start]:
        _log.warning("%s is damaged; starting with an empty one", path.name)
        return _empty()
    return ScalableBloomFilter.fromfile(BytesIO(content[start:]))


def _write(path: Path, parts: tuple[bytes | memoryview, ...]) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
