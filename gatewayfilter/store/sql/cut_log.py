"""A write-ahead log (`-wal`) that something else cut while processes use it.

Processes share an index of the log (`-shm`), and SQLite never doubts it. Of a log that was cut, reads miss what the index
promises, and the next checkpoint copies holes into the database. An index with an empty header is made anew by whoever reads
next, as after a crash: what the log lost is lost, and all goes on.

This file is also a program, `python -I cut_log.py DATABASE`: closing the index would take this process's own locks on it away.
"""

import fcntl
import logging
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

_MOST_S: Final = 10.0
_HEADER: Final = struct.Struct("=12xBxHI28x")
"""Whether it is made, page size, frames. There are two copies; the number of frames in the database follows.

Source: [SQLite's walformat §2.1].
"""
_COPY_BYTES: Final = 48
_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24


class LogWatch:
    """Watches the log of a database for cuts.

    Attributes:
        path: of the database.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = beside(path, "-wal")
        self._bytes = 0

    def look(self) -> None:
        """Has the index made anew where the log was cut. Costs one system call, and a process after the log became shorter.

        SQLite shortens it, too: after more than `WAL_LIMIT_BYTES`, and at checkpoints that people ask for.
        """
        before, self._bytes = self._bytes, _bytes_of(self._log)
        if self._bytes < before and sys.executable:
            self._mend()

    def _mend(self) -> None:
        command = [sys.executable, "-I", "-S", __file__, str(self.path)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MOST_S, check=True)  # noqa: S603  ourselves
        except (OSError, subprocess.SubprocessError) as error:
            _log.warning("whether %s was cut is not known: %s", self._log, error)
            return
        if done.stdout:
            _log.error("%s was cut by another program: what had not yet reached the database is lost", self._log)


def beside(path: Path, suffix: str) -> Path:
    """Returns the path of a file that SQLite has beside a database."""
    return path.with_name(f"{path.name}{suffix}")


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def mend(path: Path) -> bool:
    """Has the index of a log made anew if the log was cut. Returns whether it was.

    Raises:
        OSError: the files cannot be read or written.
    """
    try:
        index = os.open(beside(path, "-shm"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(index, fcntl.LOCK_EX)  # every process notices the cut: one mends it, and what is written then stays
        if not (header := _promised(index, beside(path, "-wal"))):
            return False
        page_bytes, _, in_database = header
        if _bytes_of(beside(path, "-wal")) < _log_bytes(in_database, page_bytes):
            os.truncate(beside(path, "-wal"), 0)  # its rest is older than the database
        os.pwrite(index, bytes(2 * _COPY_BYTES), 0)
        return True
    finally:
        os.close(index)


def _promised(index: int, log: Path) -> tuple[int, int, int] | None:
    """Returns the header of the index where it promises more than the log has."""
    before = _header(index)
    size = _bytes_of(log)
    # Frames are written before the header, and the header before a log is shortened: the same header twice goes with the size.
    if before is None or before != _header(index):
        return None
    page_bytes, frames, _ = before
    return before if frames and size < _log_bytes(frames, page_bytes) else None


def _log_bytes(frames: int, page_bytes: int) -> int:
    return _LOG_HEADER_BYTES + frames * (page_bytes + _FRAME_HEADER_BYTES)


def _header(index: int) -> tuple[int, int, int] | None:
    """Returns page size, frames, and frames in the database; `None` while the header is being written, or where there is none."""
    read = os.pread(index, 2 * _COPY_BYTES + 4, 0)
    if len(read) < 2 * _COPY_BYTES + 4 or read[:_COPY_BYTES] != read[_COPY_BYTES : 2 * _COPY_BYTES]:
        return None
    is_made, page_bytes, frames = _HEADER.unpack_from(read)
    (in_database,) = struct.unpack_from("=I", read, 2 * _COPY_BYTES)
    return (65_536 if page_bytes == 1 else page_bytes, frames, in_database) if is_made else None


if __name__ == "__main__" and mend(Path(sys.argv[1])):
    sys.stdout.write("cut")
