"""Backups that are sent and received: as files in a folder of the state, while that lasts."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from gatewayfilter.config import Loaded
from gatewayfilter.errors import BackupError
from gatewayfilter.store import Store
from gatewayfilter.store.backup import Part
from gatewayfilter.use_cases.backup.backing_up import BackupReport, Wanted, back_up
from gatewayfilter.use_cases.backup.restore_plan import KindChanges
from gatewayfilter.use_cases.backup.restoring import Restore, RestoreReport
from gatewayfilter.use_cases.backup.state_files import Places
from gatewayfilter.wiring import publish_now

_FOLDER: Final = "transfers"
_OLD_S: Final = 3600.0
_CHUNK: Final = 1 << 20


@contextmanager
def transfer_file(data_dir: Path) -> Iterator[Path]:
    """Yields the path of a file that does not exist yet, in a folder of mode 0700; it is removed at the end.

    Raises:
        BackupError: the folder cannot be made.
    """
    folder = data_dir / _FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for stale in folder.iterdir():  # of a process that was killed
            if stale.stat().st_mtime < time.time() - _OLD_S:
                stale.unlink(missing_ok=True)
    except OSError as error:
        raise BackupError(f"cannot use {folder}: {error.strerror}") from error
    path = folder / f"{secrets.token_hex(8)}.gfbackup"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


class MadeBackup:
    """A backup that waits to be sent; the file is removed when it is closed.

    Attributes:
        report: what is in it.
        file: open for reading.
    """

    def __init__(self, report: BackupReport, file: BinaryIO, held: ExitStack) -> None:
        self.report = report
        self.file = file
        self._held = held

    def blocks(self) -> Iterator[bytes]:
        """Yields its content, and closes it."""
        with self:
            while block := self.file.read(_CHUNK):
                yield block

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Removes the file."""
        self._held.close()


def made_backup(store: Store, loaded: Loaded, *, with_log: bool, passphrase: str) -> MadeBackup:
    """Makes a backup to be sent.

    Args:
        store: the database.
        loaded: the settings.
        with_log: whether the log is in it.
        passphrase: encrypts the certificate authority, which is left out without one.

    Raises:
        BackupError, StoreError: something cannot be read, or the file not be written.
    """
    parts = frozenset({Part.STATE, Part.LOG} if with_log else {Part.STATE})
    with ExitStack() as held:
        path = held.enter_context(transfer_file(loaded.settings.data_dir))
        report = back_up(store, _places(loaded), path, Wanted(parts, passphrase=passphrase or None))
        return MadeBackup(report, held.enter_context(path.open("rb")), held.pop_all())


def shown_changes(store: Store, loaded: Loaded, upload: BinaryIO) -> list[KindChanges]:
    """Returns what a received backup would change.

    Raises:
        BackupError, StoreError: it cannot be used.
    """
    with _received(loaded, upload) as path:
        return Restore(store, _places(loaded)).preview(path)


def restored(store: Store, loaded: Loaded, upload: BinaryIO) -> RestoreReport:
    """Restores a received backup, without the certificate authority, and publishes the lists.

    Raises:
        BackupError, StoreError: it cannot be used; nothing was changed.
        SnapshotError: it was restored, but the lists could not be published.
    """
    with _received(loaded, upload) as path:
        report = Restore(store, _places(loaded)).carry_out(path)
    publish_now(loaded.settings, store)
    return report


@contextmanager
def _received(loaded: Loaded, upload: BinaryIO) -> Iterator[Path]:
    """Yields the path of a copy of an upload; errors name the file that was sent, not the copy."""
    with transfer_file(loaded.settings.data_dir) as path:
        _keep(upload, path)
        try:
            yield path
        except BackupError as error:
            raise BackupError(str(error).replace(str(path), "the file")) from error


def _keep(upload: BinaryIO, path: Path) -> None:
    try:
        with path.open("xb") as copy:
            while block := upload.read(_CHUNK):
                copy.write(block)
    except OSError as error:
        raise BackupError(f"cannot keep the upload: {error.strerror}") from error


def _places(loaded: Loaded) -> Places:
    return Places.of(loaded.settings, loaded.file)
