"""The making of a SQLite file with content: aside, then under its name, complete."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gatewayfilter.errors import StoreError
from gatewayfilter.private_files import private


@contextmanager
def new_file(path: Path) -> Iterator[Path | None]:
    """Yields the path where a new database is to be made; at the end of the block it gets its name. One process at a time.

    What a lost database left beside its name is removed: SQLite would apply its write-ahead log to the new one.

    Yields:
        The path, `None` if another process has made the database meanwhile.

    Raises:
        StoreError: it cannot be made.
    """
    aside = path.with_name(f".{path.name}-new")
    try:
        with open(path.with_name(f".{path.name}.lock"), "ab", opener=private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                yield None
                return
            _remove(aside)
            try:
                yield aside
                for suffix in ("-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
                os.link(aside, path)
            finally:
                _remove(aside)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreError(f"the database {path} cannot be made: {getattr(error, 'strerror', None) or error}") from error


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
