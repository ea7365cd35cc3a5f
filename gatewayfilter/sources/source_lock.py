"""The lock of a source, and the folder in which its next copy is made."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gatewayfilter.errors import SourceError


@contextmanager
def locked_source(folder: Path, name: str) -> Iterator[Path]:
    """Holds a source's lock, and yields an empty work folder that is deleted afterwards unless it was renamed.

    A process that is killed in between leaves a work folder behind, which the next one removes: the lock goes with its process.

    Args:
        folder: of all sources; made when it is not there.
        name: of the source.

    Raises:
        SourceError: the folder cannot be written.
    """
    work = folder / f".{name}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SourceError(f"cannot write to {folder}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(work, ignore_errors=True)
        try:
            work.mkdir(mode=0o700)
        except OSError as error:
            raise SourceError(f"cannot write to {folder}: {error.strerror}") from error
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
    finally:
        os.close(lock)


def empty(work: Path) -> None:
    """Removes what a download that failed left in a work folder."""
    for path in work.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Removes the work folders of killed processes: an addition that is not tried again would lie there for good."""
    for work in folder.glob(".*.part"):
        try:
            lock = os.open(folder / f"{work.name.removesuffix('.part')}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(work, ignore_errors=True)
        except OSError:  # in use
            continue
        finally:
            os.close(lock)


def sync_folder(folder: Path) -> None:
    """Sees that renames in a folder outlast a loss of power.

    Raises:
        OSError: it cannot be opened or synced.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
