"""The lock of a state folder: one filter at a time."""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from gatewayfilter.errors import StartupError


def running_process(folder: Path) -> str:
    """Returns the process id of the filter that runs on the state folder, `""` when none does.

    Raises:
        StartupError: the lock cannot be opened.
    """
    try:
        descriptor = os.open(folder / "run.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StartupError(f"cannot open {folder / 'run.lock'}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return ""


def refuse_while_running(folder: Path) -> None:
    """Does nothing unless a filter runs on the state folder.

    For commands that would migrate the database: a filter of an earlier version cannot read what they leave behind, and would
    go on with the lists that it has.

    Raises:
        StartupError: a filter runs.
    """
    if holder := running_process(folder):
        raise StartupError(
            f"a filter of an earlier version (process {holder}) runs on {folder}: restart it, so that it updates the database"
        )


class RunLock:
    """Holds `run.lock` in the state folder while the filter runs; the kernel lets go of it however the process ends.

    Raises:
        StartupError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "run.lock"
        self._descriptor = -1
        self._is_writable = True

    def __enter__(self) -> Self:
        try:
            self._descriptor = self._opened()
        except OSError as error:
            raise StartupError(f"cannot open {self._path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = "unknown"
            with suppress(OSError):  # a folder
                holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or holder
            os.close(self._descriptor)
            raise StartupError(
                f"another GatewayFilter (process {holder}) runs on the state folder {self._path.parent}: stop it first"
            ) from error
        if self._is_writable:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, str(os.getpid()).encode())
        return self

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
        self._is_writable = False
        # A lock needs no writing. Where the file is missing, the folder itself is locked.
        path = self._path if self._path.exists() else self._path.parent
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
