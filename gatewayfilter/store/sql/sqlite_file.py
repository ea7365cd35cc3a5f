"""Connections to a SQLite file that is never made by opening it, may be on a read-only disk, and may be replaced meanwhile."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

type FileMark = tuple[int, int, bool]
"""Device and inode of a database's file, and whether it may be written."""

WAL_LIMIT_BYTES: Final = 16_000_000
_WAL_RETRY_S: Final = 0.01
_INCREMENTAL: Final = 2
"""SQLite's value for `auto_vacuum = INCREMENTAL`."""
_PRAGMAS: Final = (
    "PRAGMA synchronous = NORMAL",  # safe in WAL mode; only a power cut can undo the last commits, never half of one
    "PRAGMA foreign_keys = ON",
    f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}",
)


def file_mark(path: Path) -> FileMark | None:
    """Returns what identifies the file at a path now, `None` when there is none. Costs two system calls."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, os.access(path, os.W_OK)


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Opens an existing file, read-only where it cannot be written.

    Raises:
        sqlite3.Error: there is none, or it cannot be opened.
    """
    is_writable = os.access(path, os.W_OK)
    mode = "rw" if is_writable or not path.exists() else "ro"
    if mode == "ro" and not _has_wal(path):
        mode = "ro&immutable=1"  # nothing can make the files beside it that readers of a WAL database share
    connection = sqlite3.connect(
        # The driver begins no transaction of its own, `Database.write` does.
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
    )
    if mode == "rw":
        try:
            _set_up(connection, busy_timeout_s)
        except BaseException:
            connection.close()
            raise
    return connection


def _has_wal(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def _set_up(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (_INCREMENTAL,):  # a full disk has no room to set it again
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a file without tables; nothing for any other
    _turn_to_wal(connection, busy_timeout_s)
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _turn_to_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Sets WAL mode, so that readers and the writer do not block each other; persists in the file."""
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # While another process switches a new file to WAL, SQLite returns "locked" at once, without the busy handler.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_RETRY_S)
        else:
            return
