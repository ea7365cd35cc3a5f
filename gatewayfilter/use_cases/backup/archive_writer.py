"""Writing of a backup: a zip file, written aside with mode 0600, synced, and renamed when it is complete."""

import fcntl
import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from gatewayfilter.errors import BackupError
from gatewayfilter.private_files import private

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_BLOCK: Final = 1 << 20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class ArchiveWriter:
    """Adds members to a backup.

    Args:
        archive: open for writing.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members: dict[str, dict[str, object]] = {}

    def add(self, name: str, blocks: Iterable[bytes]) -> int:
        """Adds a member; returns its size in bytes."""
        digest, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | 0o600) << 16
        with self._archive.open(info, "w", force_zip64=True) as member:
            for block in blocks:
                member.write(block)
                digest.update(block)
                size += len(block)
        self._members[name] = {"sha256": digest.hexdigest(), "bytes": size}
        return size

    def add_file(self, name: str, path: Path) -> int:
        """Adds a file.

        Raises:
            BackupError: it cannot be read.
        """
        with _opened(path) as file:
            return self.add(name, iter(lambda: file.read(_BLOCK), b""))

    def finish(self, facts: Mapping[str, object]) -> None:
        """Adds the manifest: the facts, and size and SHA-256 of each member."""
        manifest = {"format": FORMAT, **facts, "members": self._members}
        self._archive.writestr(zipfile.ZipInfo(MANIFEST, _EPOCH), json.dumps(manifest, indent=1, sort_keys=True))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        if error.filename is None:
            raise
        raise BackupError(f"cannot read {path}: {error.strerror}") from error


@contextmanager
def writing(path: Path, *, overwrite: bool = False) -> Iterator[ArchiveWriter]:
    """Yields the writer of a backup. The file is there, complete and synced, when the context ends without an exception.

    Args:
        path: of the backup.
        overwrite: whether a file of this name is replaced.

    Raises:
        BackupError: it cannot be written.
    """
    if path.is_dir() or (not overwrite and path.exists()):
        raise BackupError(f"{path} is there already: give another name, or --overwrite")
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb", opener=_own) as file:
            # Whoever holds the lock writes the file; one that a killed process left is written over.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate()
            try:
                with zipfile.ZipFile(file, "w") as archive:
                    yield ArchiveWriter(archive)
                os.fsync(file.fileno())
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        _sync_folder(path.parent)
    except BlockingIOError as error:
        raise BackupError(f"another process is writing {path}") from error
    except OSError as error:
        raise BackupError(f"cannot write {path}: {error.strerror or error}") from error


def _own(path: str, flags: int) -> int:
    """Opens a file of this user that is no link: others may write to the folder as well. It is truncated later, when locked."""
    descriptor = private(path, (flags & ~os.O_TRUNC) | os.O_NOFOLLOW)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
        os.close(descriptor)
        raise PermissionError(1, f"{path} belongs to somebody else", path)
    return descriptor


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some network file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
