"""The service follower keeps a worker's engine up to date on the catalogue of services when the operator's own file changes."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.errors import ListError
from gatewayfilter.model import Service

_log = logging.getLogger(__name__)

_EVERY_S: Final = 0.5


class ServiceFollower:
    """Compares the time and size of the file, and reads it when they have changed. A wrong file is logged once and not used.

    Args:
        engine: takes in the catalogue.
        read: returns the whole catalogue; may raise `ListError`.
        path: the operator's own file, which may be missing.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        engine: FilterEngine,
        read: Callable[[], Mapping[str, Service]],
        path: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._read = read
        self._path = path
        self._clock = clock
        self._due_at = 0.0
        self._known = self._stamp()

    def follow_once(self) -> None:
        """Takes the file in if it has changed; twice a second at most."""
        now = self._clock()
        if now < self._due_at:
            return
        self._due_at = now + _EVERY_S
        stamp = self._stamp()
        if stamp == self._known:
            return
        self._known = stamp
        try:
            self._engine.set_services(self._read())
        except ListError as error:
            _log.error("%s; the services stay as they were", error)
        else:
            _log.info("took another catalogue of services into use")

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
