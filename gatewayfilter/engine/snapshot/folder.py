"""The snapshot folder: published files under ascending numbers, and a symbolic link to the one in use.

The link `current` is replaced by a rename. A publisher writes a temporary file, verifies it, renames it, then replaces the link;
if it is killed at any point, the link still points to a complete file. The counters of a snapshot (counter_file.py) are stored
beside it under its number, and only those of the one in use are kept. One publisher at a time holds the lock, from before it
reads its input: otherwise a snapshot of older lists could replace one of newer lists.
"""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path

from gatewayfilter.engine.snapshot.image import SnapshotImage
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.snapshot.sizes import POINTER
from gatewayfilter.engine.tables.counter_file import read_counters, write_counters
from gatewayfilter.engine.tables.counting_bloom import CountingBloom
from gatewayfilter.errors import SnapshotError, SnapshotVersionError
from gatewayfilter.private_files import private

_LOCK = ".lock"
_ASIDE = ".publishing"
_COUNTERS_ASIDE = ".counting"
_NEXT_POINTER = ".current-next"
_REFUSED = ".refused"
_ROOM_BYTES = 64_000_000
"""That a copy leaves on the disk, for the database and its log."""
_NAME = re.compile(r"snapshot-(\d{8,})\.gfs", re.ASCII)
_COUNTERS_NAME = re.compile(r"counters-(\d{8,})\.gfc", re.ASCII)

type PutIntoUse = Callable[[bytes | SnapshotImage], Path]
"""Writes a snapshot, makes it the current one and returns its path."""


class SnapshotFolder:
    """Publishes snapshots and opens the newest valid one.

    Args:
        folder: created with mode 0700 at the first publication.
        keep: number of files to keep, the one in use included.
    """

    def __init__(self, folder: Path, *, keep: int = 3) -> None:
        self._folder = folder
        self._pointer = str(folder / POINTER)
        self._keep = max(1, keep)

    @contextmanager
    def publishing(self, on_wait: Callable[[], object] | None = None) -> Iterator[PutIntoUse]:
        """Holds the publisher's lock: input that is read inside is not older than that of any earlier publication.

        Yields the function that writes a snapshot, makes it the current one and returns its path. Old files beyond `keep`, and
        damaged ones, are removed; processes that have them mapped can still read them.

        Args:
            on_wait: called once if another publisher holds the lock, before waiting for it.

        Raises:
            SnapshotError: the disk is full, the folder cannot be written, or the file does not verify; the current snapshot stays
                current. The yielded function raises the same.
        """
        with self._write_faults_told():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = open(self._folder / _LOCK, "ab", opener=private)  # noqa: SIM115  closed below, with other error handling
        with lock:  # released by the kernel when the process dies
            with self._write_faults_told():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if on_wait:
                        on_wait()
                    fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                self._tidy()
                yield self._publish
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a process forked meanwhile has the file open, too

    def publish(self, data: bytes) -> Path:
        """Publishes a snapshot that does not depend on earlier ones, as in `publishing`.

        Raises:
            SnapshotError: as `publishing`.
        """
        with self.publishing() as publish:
            return publish(data)

    @contextmanager
    def _write_faults_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SnapshotError(f"cannot write a snapshot to {self._folder}: {error.strerror or error}") from error

    def _tidy(self) -> None:
        """Removes leftovers of killed publishers: temporary files, and snapshots that never became current."""
        with suppress(OSError):
            for name in (_ASIDE, _COUNTERS_ASIDE, _NEXT_POINTER):
                (self._folder / name).unlink(missing_ok=True)
            current = self.current()
            if current is not None:
                number = _number_of(current)
                for newer in self._numbers():
                    if newer > number:
                        self._path(newer).unlink(missing_ok=True)
                self._prune_counters(number)

    def _publish(self, image: bytes | SnapshotImage) -> Path:
        with self._write_faults_told():
            path = self._write([image] if isinstance(image, bytes) else image.parts())
            if isinstance(image, SnapshotImage) and image.counters is not None:
                self._keep_counters(image.counters, path)
            self._sync()
            pointer = self._folder / _NEXT_POINTER
            pointer.unlink(missing_ok=True)
            pointer.symlink_to(path.name)
            self._move_folder_aside()
            pointer.rename(self._folder / POINTER)
            self._sync()
        with suppress(OSError):  # neither a failed removal nor a full disk must fail the publication
            self._keep_good(path)
        self._prune_counters(_number_of(path))
        with suppress(OSError):  # the refused snapshot is no longer the current one
            (self._folder / _REFUSED).unlink(missing_ok=True)
        return path

    def _keep_good(self, published: Path) -> None:
        """Removes snapshots beyond `keep`, and damaged ones; copies the current one where no other is good.

        So a snapshot that is damaged later has one that takes its place, also the first, and one that replaced a damaged one.
        """
        number = _number_of(published)
        refused = self._refused()
        kept, good = 1, False
        for path in map(self._path, self._numbers()):
            if path == published:
                continue
            state = _state_of(path)
            if kept >= self._keep or path.name == refused or state is _State.DAMAGED:
                with suppress(OSError):
                    path.unlink()
            else:
                kept, good = kept + 1, good or state is _State.GOOD
        if not good and self._keep > 1:
            self._copy(published, self._path(number - 1))

    def _copy(self, path: Path, copy: Path) -> None:
        """Copies a snapshot, where that leaves room on the disk and no other file has the place."""
        aside = self._folder / _ASIDE
        if copy.exists() or shutil.disk_usage(self._folder).free < path.stat().st_size + _ROOM_BYTES:
            return
        try:
            aside.touch(mode=0o600)
            shutil.copyfile(path, aside)
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.rename(copy)
        except OSError:
            aside.unlink(missing_ok=True)
            raise

    def _move_folder_aside(self) -> None:
        """Renames a folder that is in the place of the link; its content is kept.

        A rename cannot replace a folder, and lists would not be updated. Copying the state folder with links followed creates
        one.
        """
        place = self._folder / POINTER
        if place.is_dir() and not place.is_symlink():
            place.rename(self._folder / f"{POINTER}-moved-{time.time_ns()}")

    def refuse(self) -> None:
        """Records that the current snapshot cannot be used, so that the publisher builds another (`is_refused`)."""
        current = self.current()
        with suppress(OSError), open(self._folder / _REFUSED, "w", encoding="ascii", opener=private) as file:
            file.write(current.name if current is not None else "")

    def is_refused(self) -> bool:
        """Returns whether there is no current snapshot, or it was refused after its publication. Costs some system calls."""
        current = self.current()
        if current is None:
            return True
        return self._refused() == current.name

    def _refused(self) -> str:
        try:
            return (self._folder / _REFUSED).read_text(encoding="ascii", errors="replace")
        except OSError:
            return ""

    def _keep_counters(self, counters: CountingBloom, path: Path) -> None:
        """Stores the counters of a snapshot. A failure is ignored: without them the next snapshot is built in full."""
        aside = self._folder / _COUNTERS_ASIDE
        try:
            snapshot = Snapshot.open(path)
            try:
                write_counters(aside, counters, snapshot.mark)
            finally:
                snapshot.close()
            aside.rename(self._counters_path(_number_of(path)))
        except (OSError, SnapshotError):
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def counters_of(self, path: Path, mark: bytes) -> CountingBloom:
        """Returns the stored counters of a snapshot.

        Args:
            path: the snapshot's file.
            mark: its mark.

        Raises:
            SnapshotError: there are none, or they cannot be used.
        """
        return read_counters(self._counters_path(_number_of(path)), mark)

    def _prune_counters(self, kept: int) -> None:
        with suppress(OSError):
            for path in self._folder.iterdir():
                found = _COUNTERS_NAME.fullmatch(path.name)
                if found and int(found[1]) != kept:
                    path.unlink(missing_ok=True)

    def _write(self, parts: list[bytes | memoryview]) -> Path:
        """Writes, verifies and renames the file, and returns its path; on failure no file is left."""
        aside = self._folder / _ASIDE  # overwrites a leftover of a killed publisher
        try:
            with open(aside, "wb", opener=private) as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            Snapshot.open(aside, verify=True).close()
            path = self._path(max(self._numbers(), default=0) + 1)
            aside.rename(path)
        except (OSError, SnapshotError):
            aside.unlink(missing_ok=True)
            raise
        return path

    def pointing(self) -> tuple[int, int] | None:
        """Returns the identity of the link, which changes with each replacement; `None` without a link. Costs one lstat.

        Each replacement creates another link, with another inode and time. The target is not examined: it may be gone.
        """
        try:
            found = os.lstat(self._pointer)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def current(self) -> Path | None:
        """Returns the target of the link, `None` when there is none. Costs a readlink and a stat."""
        try:
            path = self._folder / (self._folder / POINTER).readlink()
        except OSError:
            return None
        return path if path.is_file() else None

    def open_newest(self, *, verify: bool = True) -> tuple[Snapshot, list[str]]:
        """Opens the current snapshot, or if it cannot be used the newest valid one.

        Returns the snapshot and, for each refused one, a sentence with the reason.

        Raises:
            SnapshotError: none can be used.
        """
        refused: list[str] = []
        paths = [self._path(number) for number in self._numbers()]
        current = self.current()
        if current is not None:
            paths = [current, *(path for path in paths if path != current)]
        for path in paths:
            try:
                return Snapshot.open(path, verify=verify), refused
            except SnapshotError as error:
                refused.append(str(error))
        if refused:
            raise SnapshotError(f"no snapshot in {self._folder} can be used: {'; '.join(refused)}")
        raise SnapshotError(f"there is no snapshot in {self._folder}")

    def _path(self, number: int) -> Path:
        return self._folder / f"snapshot-{number:08}.gfs"

    def _counters_path(self, number: int) -> Path:
        return self._folder / f"counters-{number:08}.gfc"

    def _numbers(self) -> list[int]:
        """Returns the numbers of the published files, the newest first."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return []
        return sorted((int(match[1]) for match in map(_NAME.fullmatch, names) if match), reverse=True)

    def _sync(self) -> None:
        """Makes renames in the folder durable (fsync)."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _State(Enum):
    GOOD = auto()
    DAMAGED = auto()
    UNKNOWN = auto()
    """It cannot be read now, or another version of the program wrote it."""


def _state_of(path: Path) -> _State:
    """Returns whether length, header and sections of a snapshot are as they were written; its other bytes are not verified."""
    try:
        Snapshot.open(path).close()
    except SnapshotError as error:
        return _State.UNKNOWN if isinstance(error.__cause__, OSError | SnapshotVersionError) else _State.DAMAGED
    return _State.GOOD


def _number_of(path: Path) -> int:
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0
