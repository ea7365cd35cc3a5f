"""`gatewayfilter restore`: everything from one file, all or nothing."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.errors import BackupError
from gatewayfilter.private_files import private
from gatewayfilter.sources.source_lock import locked_source
from gatewayfilter.store import Store
from gatewayfilter.store.backup import BACKED_UP, Part, TableChanges
from gatewayfilter.store.backup.older_schema import at_this_schema, check_schema
from gatewayfilter.use_cases.backup.archive_reader import Archive
from gatewayfilter.use_cases.backup.backing_up import Wanted, back_up
from gatewayfilter.use_cases.backup.file_swap import FileSwap
from gatewayfilter.use_cases.backup.restore_plan import FileChange, KindChanges, count_files, plan_files
from gatewayfilter.use_cases.backup.state_files import SEALED_CA, Places

WORK: Final = ".restore"
"""The folder of a restore in the state folder; it is there while one is under way, or was interrupted."""
SAFETY_FOLDER: Final = "backups"
_SAFETY_COPIES: Final = 5
_ARCHIVE: Final = "archive.zip"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored.

    Attributes:
        changes: by kind; those without a change included.
        safety_copy: the backup of the state before.
        files: kinds of files that changed.
    """

    changes: list[KindChanges]
    safety_copy: Path
    files: frozenset[str]


class Restore:
    """A restore into one installation.

    Args:
        store: the database that is restored into.
        places: of the files.
        passphrase: of the certificate authority in the backup; `None` leaves the one in use.
    """

    def __init__(self, store: Store, places: Places, passphrase: str | None = None) -> None:
        self._store = store
        self._places = places
        self._passphrase = passphrase

    def preview(self, path: Path) -> list[KindChanges]:
        """Returns what `carry_out` would change.

        Raises:
            BackupError, StoreError: the backup cannot be used, or the present state not be read.
        """
        with Archive(path) as archive, _work_folder(self._places.data_dir, "dry-run") as folder:
            check_schema(archive.schema)
            self._check_room(archive, copies=1)
            files = plan_files(archive, self._places, self._passphrase)
            with at_this_schema(archive, archive.schema, folder) as rows:
                return _by_kind(self._store.backup.compare(rows), files)

    def carry_out(self, path: Path) -> RestoreReport:
        """Restores a backup: all of it, or nothing when anything fails.

        Raises:
            BackupError, StoreError: nothing was changed.
        """
        data_dir = self._places.data_dir
        with _only_one(data_dir):
            if (data_dir / WORK).exists():
                _finish(self._store, data_dir)
            try:
                with _work_folder(data_dir, "") as folder:
                    return self._carried_out(path, folder)
            except OSError as error:
                raise BackupError(f"the backup cannot be restored: {error.strerror or error}; nothing was changed") from error

    def _carried_out(self, path: Path, folder: Path) -> RestoreReport:
        with Archive(path) as source:
            check_schema(source.schema)
            self._check_room(source, copies=3)
        with Archive(_copied(path, folder / _ARCHIVE)) as archive:
            check_schema(archive.schema)
            files = plan_files(archive, self._places, self._passphrase)
            kinds = frozenset(change.kind for change in files)
            with at_this_schema(archive, archive.schema, folder) as rows:
                self._store.backup.compare(rows)  # refuses rows that cannot be used before anything is written
                safety_copy = self._safety_copy(archive)
                counted = count_files(files)
                swap = FileSwap(folder)
                try:
                    swap.stage(files, archive)
                    with _locked_sources(self._places.data_dir, files), self._store.backup.replace(rows, folder) as changes:
                        swap.begin()
                        swap.apply()
                except BaseException:
                    swap.undo()
                    raise
                swap.end()
        shown = [KindChanges(change.title, change.added, change.changed, change.removed) for change in changes]
        return RestoreReport([*shown, *counted], safety_copy, kinds)

    def _check_room(self, archive: Archive, copies: int) -> None:
        needed, free = copies * archive.total_bytes, shutil.disk_usage(self._places.data_dir).free
        if needed > free:
            raise BackupError(
                f"too little room: the restore needs some {needed / 1e6:,.0f} MB in {self._places.data_dir}, "
                f"{free / 1e6:,.0f} MB are free"
            )

    def _safety_copy(self, archive: Archive) -> Path:
        """Backs up the present state of what the restore changes; the newest few are kept."""
        folder = self._places.data_dir / SAFETY_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        parts = frozenset(item.part for item in BACKED_UP if item.table.name in archive.tables()) | {Part.STATE}
        sealed = self._passphrase if self._passphrase is not None and any(self._places.ca.glob("*")) else None
        path = folder / time.strftime("before-restore-%Y%m%d-%H%M%S.gfbackup", time.gmtime())
        back_up(self._store, self._places, path, Wanted(parts, archive.with_lists, sealed), overwrite=True)
        for old in sorted(folder.glob("before-restore-*.gfbackup"))[:-_SAFETY_COPIES]:
            old.unlink(missing_ok=True)
        return path


def finish_interrupted(store: Store, data_dir: Path) -> bool:
    """Completes a restore whose process was killed after it had begun to write; takes away what is left of an earlier one.

    Returns:
        Whether a restore was completed.

    Raises:
        BackupError, StoreError: it cannot be completed now.
    """
    if not (data_dir / WORK).exists():
        return False
    with _only_one(data_dir):
        try:
            return _finish(store, data_dir)
        except OSError as error:
            raise BackupError(f"an interrupted restore cannot be completed: {error.strerror or error}") from error


def _finish(store: Store, data_dir: Path) -> bool:
    folder = data_dir / WORK
    swap = FileSwap(folder)
    if not swap.begun:
        shutil.rmtree(folder, ignore_errors=True)
        return False
    swap.resume()
    with (
        Archive(folder / _ARCHIVE) as archive,
        at_this_schema(archive, archive.schema, folder) as rows,
        store.backup.replace(rows, folder),
    ):
        swap.apply()
    swap.end()
    return True


def _by_kind(tables: list[TableChanges], files: list[FileChange]) -> list[KindChanges]:
    shown = [KindChanges(change.title, change.added, change.changed, change.removed) for change in tables]
    return [*shown, *count_files(files)]


def holds_authority(archive: Archive) -> bool:
    """Returns whether a backup holds the certificate authority."""
    return archive.has(SEALED_CA)


def _copied(path: Path, copy: Path) -> Path:
    """Copies the backup: what is verified must be what is restored."""
    with path.open("rb") as source, open(copy, "wb", opener=private) as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    return copy


@contextmanager
def _work_folder(data_dir: Path, suffix: str) -> Iterator[Path]:
    folder = data_dir / f"{WORK}{suffix and '-'}{suffix}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise BackupError(f"cannot write to {data_dir}: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Holds the lock of restores; the kernel releases it however the process ends."""
    try:
        descriptor = os.open(data_dir / "restore.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BackupError(f"cannot write to {data_dir}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise BackupError("another restore is under way") from error
    finally:
        os.close(descriptor)


@contextmanager
def _locked_sources(data_dir: Path, files: list[FileChange]) -> Iterator[None]:
    """Holds the locks of the subscriptions that change: the learner may be updating one."""
    names = {change.unit.removeprefix("sources/") for change in files if change.unit.startswith("sources/")}
    with ExitStack() as locks:
        for name in sorted(names):
            locks.enter_context(locked_source(data_dir / "sources", name))
        yield
