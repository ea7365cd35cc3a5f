"""Replacement of many files so that either all are replaced or none, also when the process is killed in between."""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.errors import BackupError
from gatewayfilter.private_files import private
from gatewayfilter.use_cases.backup.archive_reader import Archive
from gatewayfilter.use_cases.backup.restore_plan import FileChange

_JOURNAL: Final = "journal.json"


@dataclass(frozen=True, slots=True)
class _Move:
    staged: Path | None
    target: Path


class FileSwap:
    """New files that lie beside the old ones until they take their places.

    The moves are noted in a journal before the first one. While the journal is there, `apply` may be called again, also by
    another process, and completes what an earlier call did not.

    Args:
        folder: of the staged files and the journal, on the file system of the state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = folder / _JOURNAL
        self._moves: list[_Move] = []
        self._done: list[tuple[Path | None, Path]] = []

    @property
    def begun(self) -> bool:
        """Whether there is a journal."""
        return self._journal.exists()

    def stage(self, changes: Sequence[FileChange], archive: Archive) -> None:
        """Writes the new files, synced, with the owner and mode of those that they replace.

        Raises:
            OSError: they cannot be written.
            BackupError: the backup can no longer be read.
        """
        for number, change in enumerate(changes):
            if change.removes:
                self._moves.append(_Move(None, change.target))
                continue
            inside = change.target.is_relative_to(self._folder.parent)
            staged = self._folder / f"file-{number}" if inside else change.target.with_name(f".{change.target.name}.restore")
            self._moves.append(_Move(staged, change.target))
            with open(staged, "wb", opener=private) as file:
                file.writelines(change.blocks(archive))
                file.flush()
                self._dress(file.fileno(), change.target)
                os.fsync(file.fileno())

    def begin(self) -> None:
        """Writes the journal, synced.

        Raises:
            OSError: it cannot be written.
        """
        document = [[str(move.staged) if move.staged else None, str(move.target)] for move in self._moves]
        part = self._journal.with_suffix(".part")
        with open(part, "w", encoding="utf-8", opener=private) as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._journal)
        _sync(self._folder)

    def resume(self) -> None:
        """Reads the journal of an earlier process.

        Raises:
            BackupError: it cannot be read.
        """
        try:
            document = json.loads(self._journal.read_text())
            self._moves = [_Move(Path(staged) if staged else None, Path(target)) for staged, target in document]
        except (OSError, ValueError, TypeError) as error:
            raise BackupError(f"an interrupted restore cannot be completed: {self._journal} is damaged") from error

    def apply(self) -> None:
        """Makes all moves. What was moved already, by this or an earlier process, is passed over.

        Raises:
            OSError: one fails; `undo` takes the others back.
        """
        for number, move in enumerate(self._moves):
            if move.staged is not None and not move.staged.exists():
                continue
            self._keep(number, move.target)
            if move.staged is None:
                move.target.unlink(missing_ok=True)
                with suppress(OSError):  # of a subscription with further files, or not empty
                    move.target.parent.rmdir()
            else:
                self._make_folder(move.target.parent)
                move.staged.replace(move.target)
        for parent in {move.target.parent for move in self._moves}:
            _sync(parent)

    def undo(self) -> None:
        """Takes back the moves of this process and removes the journal."""
        for old, target in reversed(self._done):
            with suppress(OSError):
                if old is None:
                    target.unlink(missing_ok=True)
                else:
                    self._make_folder(target.parent)
                    old.replace(target)
        self.end()

    def end(self) -> None:
        """Removes journal and staged files."""
        self._journal.unlink(missing_ok=True)
        for move in self._moves:
            if move.staged is not None:
                move.staged.unlink(missing_ok=True)
        for old, _ in self._done:
            if old is not None:
                old.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, number: int, target: Path) -> None:
        if not target.exists():
            self._done.append((None, target))
            return
        inside = target.is_relative_to(self._folder.parent)
        old = self._folder / f"old-{number}" if inside else target.with_name(f".{target.name}.before-restore")
        old.unlink(missing_ok=True)
        try:
            old.hardlink_to(target)
        except OSError:  # another file system, or one without links
            shutil.copy2(target, old)
        self._done.append((old, target))

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0 and folder.is_relative_to(self._folder.parent):
            status = self._folder.parent.stat()
            os.chown(folder, status.st_uid, status.st_gid)

    def _dress(self, descriptor: int, target: Path) -> None:
        """Gives a staged file mode and owner of its target, or the owner of the state folder where there is none yet."""
        try:
            status = target.stat()
            os.fchmod(descriptor, status.st_mode & 0o777)
        except FileNotFoundError:
            status = self._folder.parent.stat()
        if os.geteuid() == 0:
            os.fchown(descriptor, status.st_uid, status.st_gid)


def _sync(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
