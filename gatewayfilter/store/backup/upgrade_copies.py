"""Copies of a SQLite database, made before it is migrated, and the way back to the newest that this program can read.

They stand in `backups/` beside the database, private, the newest three. PostgreSQL has no file: its operator keeps dumps.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StoreError
from gatewayfilter.private_files import make_private
from gatewayfilter.store.sql.schema_version import known_schemas

KEPT: Final = 3
_FOLDER: Final = "backups"
_NAME: Final = "before-upgrade-"
_SPARE_BYTES: Final = 50_000_000
"""Left free beside a copy: the migration itself writes, too."""
_BUSY_S: Final = 30.0
_VERSION: Final = "SELECT version_num FROM alembic_version"


def copy_before_upgrade(path: Path) -> Path:
    """Copies a database as it is, while others may use it; older copies but the newest three are removed.

    Raises:
        StoreError: there is no room, or the copy cannot be written; the database must not be migrated then.
    """
    folder = path.parent / _FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _need_room(path, folder)
        part = folder / f".{_NAME}{os.getpid()}.part"
        part.unlink(missing_ok=True)
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)) as connection:
                schema = str(connection.execute(_VERSION).fetchone()[0])
                connection.execute("VACUUM INTO ?", (str(part),))
            copy = folder / f"{_NAME}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{Path(schema).name}.sqlite3"
            _write_through(part)  # VACUUM INTO does not
            part.rename(copy)
            _write_through(folder)
        finally:
            part.unlink(missing_ok=True)
        for old in [one for one in _copies(path) if one != copy][KEPT - 1 :]:  # the clock may have been set back meanwhile
            old.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the database {path} cannot be copied before its upgrade: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} cannot be copied before its upgrade: {error}") from error
    return copy


def newest_usable_copy(path: Path) -> Path | None:
    """Returns the newest copy of a database that this program can read, `None` if there is none."""
    known = known_schemas()
    return next((copy for copy in _copies(path) if _schema_of(copy) in known), None)


def go_back(path: Path) -> tuple[Path, Path]:
    """Puts the newest copy that this program can read in a database's place. No other process may use the database.

    Returns:
        The copy, which stays, and where the database was moved to.

    Raises:
        StoreError: there is no such copy, or the files cannot be moved.
    """
    known = known_schemas()
    copy = next((one for one in _copies(path) if _schema_of(one) in known and _is_whole(one)), None)
    if copy is None:
        raise StoreError(
            f"no copy in {path.parent / _FOLDER} can be read by this program: restore a backup, or update GatewayFilter"
        )
    aside = path.with_name(f"{path.name}.newer-{time.strftime('%Y%m%d-%H%M%S')}")
    fresh = path.with_name(f".{path.name}.back")
    try:
        fresh.unlink(missing_ok=True)
        shutil.copyfile(copy, fresh)
        make_private(fresh, 0o600)
        _write_through(fresh)
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a stop between two renames must not part them
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        fresh.rename(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise StoreError(f"cannot put {copy.name} in the place of {path}: {error.strerror}") from error
    return copy, aside


def _need_room(path: Path, folder: Path) -> None:
    needed = _SPARE_BYTES + sum(file.stat().st_size for file in _files_of(path))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"the database {path} cannot be copied before its upgrade: "
            f"{needed / 1e6:,.0f} MB are needed, {free / 1e6:,.0f} are free"
        )


def _files_of(path: Path) -> Iterable[Path]:
    return (file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())


def _copies(path: Path) -> list[Path]:
    """Returns the copies, newest first: the names begin with their times."""
    return sorted((path.parent / _FOLDER).glob(f"{_NAME}*.sqlite3"), reverse=True)


def _write_through(path: Path) -> None:
    """Has the disk write a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_whole(copy: Path) -> bool:
    """Returns whether a copy is undamaged; reads all of it."""
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.Error:
        return False


def _schema_of(copy: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            return str(connection.execute(_VERSION).fetchone()[0])
    except (sqlite3.Error, TypeError):
        return ""
