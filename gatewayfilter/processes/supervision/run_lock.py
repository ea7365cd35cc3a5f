"""The lock of a state folder: one filter at a time."""

import fcntl
import os
from pathlib import Path
from typing import Self

from gatewayfilter.errors import StartupError


class RunLock:
    """Holds `run.lock` in the state folder while the filter runs; the kernel lets go of it however the process ends.

    Raises:
        StartupError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "run.lock"
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupError(f"cannot open {self._path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StartupError(
                f"another GatewayFilter (process {holder}) runs on the state folder {self._path.parent}"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
