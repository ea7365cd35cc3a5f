"""Keeps a worker's engine fresh: new snapshots, and the list changes since."""

import logging
import threading
from typing import Final

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot import Snapshot
from gatewayfilter.engine.snapshot_folder import SnapshotFolder
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.interfaces import ChangeFeed
from gatewayfilter.model import Change
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_PAGE: Final = 1000


class EngineFollower:
    """Polls the snapshot pointer and the change feed from a thread of its own, and hands both to the engine.

    A damaged snapshot is counted, logged once and passed over; a database that fails is logged once and asked again. Either way
    the engine goes on with what it has.

    Args:
        engine: the engine in use; it already has a snapshot.
        folder: where snapshots are published.
        feed: the change feed, `None` to follow snapshots alone.
        counters: `snapshot_swaps`, `snapshot_refused`, `overlay_changes`.
        poll_s: time between two looks, in seconds; half of it is the mean delay of a change.
    """

    def __init__(
        self, engine: FilterEngine, folder: SnapshotFolder, feed: ChangeFeed | None, counters: Counters, poll_s: float = 0.1
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._read_feed = feed.read if feed is not None else None
        self._counters = counters
        self._poll_s = poll_s
        self._seen: tuple[int, int] | None = None
        self._feed_failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-follower", daemon=True)

    def start(self) -> None:
        """Takes in what happened since the snapshot was made, so that nobody is served by an older state; starts the thread."""
        self._try_to_follow()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def follow_once(self) -> None:
        """Takes in what is new: the snapshot first, because the feed may already have forgotten what is in it."""
        self._follow_snapshot()
        self._follow_feed()

    def _run(self) -> None:
        while not self._stop.wait(self._poll_s):
            if not self._try_to_follow():
                self._stop.wait(1.0)

    def _try_to_follow(self) -> bool:
        try:
            self.follow_once()
        except Exception:  # noqa: BLE001  the thread must live on: nobody else follows
            _log.exception("following the lists failed; trying again")
            return False
        return True

    def _follow_snapshot(self) -> None:
        pointing = self._folder.pointing()  # read first: a pointer that moves meanwhile is seen at the next look
        if pointing == self._seen:
            return
        path = self._folder.current()
        if path is None:
            return
        self._seen = pointing
        try:
            snapshot = Snapshot.open(path)
        except SnapshotError as error:
            self._counters.add("snapshot_refused")
            _log.error("%s; filtering goes on with the last good one", error)
            return
        now = self._engine.snapshot.info
        if (snapshot.info.created_at, snapshot.info.feed_seq) == (now.created_at, now.feed_seq):  # the one it started with
            snapshot.close()
            return
        self._engine.swap(snapshot, self._changes_after(snapshot.info.feed_seq))
        self._counters.add("snapshot_swaps")
        _log.info("took a new snapshot into use: %s", path.name)

    def _follow_feed(self) -> None:
        while changes := self._read(self._engine.feed_seq):
            self._engine.apply(changes)
            self._counters.add("overlay_changes", len(changes))

    def _changes_after(self, seq: int) -> list[Change]:
        found: list[Change] = []
        while changes := self._read(found[-1].seq if found else seq):
            found.extend(changes)
        return found

    def _read(self, after: int) -> list[Change]:
        if self._read_feed is None:
            return []
        try:
            changes = self._read_feed(after, _PAGE)
        except StoreError as error:
            if not self._feed_failed:
                _log.warning("%s; trying again", error)
            self._feed_failed = True
            return []
        self._feed_failed = False
        return changes
