"""Host listing: whether a subscribed black list of a category holds a host.

Learned entries do not count: they rest on the classifier's own verdicts.
"""

import time
from collections.abc import Callable
from pathlib import Path

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import ListAction
from gatewayfilter.urls import digest_of, domain_key, host_key, host_suffixes

CHECK_EVERY_S = 5.0
"""How often the folder is examined for another snapshot."""


class HostListing:
    """Looks hosts up in the published snapshot; a new one is opened when it is published.

    Args:
        folder: of the snapshots.
        clock: seconds, monotonic.
    """

    def __init__(self, folder: SnapshotFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._look_at = 0.0
        self._opened: tuple[Path | None, Snapshot | None] = None, None

    def source_of(self, host: str, category: str) -> str:
        """Returns the name of a black list of this category that holds the host or a domain above it, `""` for none.

        Sources in categories that are switched off count as well: the listing is a fact about the host, whether it blocks or not.
        """
        snapshot = self._current()
        if snapshot is None:
            return ""
        for key in (host_key(host), *map(domain_key, host_suffixes(host))):
            number = snapshot.tables[ListAction.BLOCK].find(digest_of(key))
            members = snapshot.source_sets[number] if number is not None else ()
            for source in (snapshot.sources[index] for index in members):
                if source.category == category and not source.learned:
                    return source.name
        return ""

    def _current(self) -> Snapshot | None:
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + CHECK_EVERY_S
            path = self._folder.current()
            if path is None or path != self._opened[0]:
                self._opened = path, self._open()
        return self._opened[1]

    def _open(self) -> Snapshot | None:
        try:
            return self._folder.open_newest(verify=False)[0]
        except SnapshotError:
            return None
