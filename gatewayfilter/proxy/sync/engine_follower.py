"""The engine follower keeps a worker's engine up to date: new snapshots, and list changes since. It never uses a damaged one."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.interfaces import ChangeFeed
from gatewayfilter.model import Change
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

_PAGE: Final = 1000
_TRY_AGAIN_S: Final = 60.0
"""A snapshot that was refused is tried again after this time: memory or descriptors may have been short."""
_VERIFY_EVERY_S: Final = 60.0
_VERIFY_SHARE: Final = 1000
"""The snapshot in use is verified once a minute, but in no more than a thousandth of the time: 1 GB every 17 minutes."""


class EngineFollower:
    """Polls the snapshot pointer and the change feed from a thread of its own, and hands both to the engine.

    Every snapshot is verified in this thread before it comes into use, and now and then while it is: disks may return other bytes
    than were written. One that is damaged, or cannot be opened for any reason, is counted, logged once and skipped, and the
    publisher is requested to make another one. A database that fails is logged once and polled again. Either way the engine goes
    on with what it has.

    Args:
        engine: the engine in use; it already has a snapshot, which was verified.
        folder: where snapshots are published.
        feed: the change feed, `None` to follow snapshots alone.
        counters: `snapshot_swaps`, `snapshot_refused`, `overlay_changes`.
        poll_s: time between two polls, in seconds; half of it is the mean delay of a change.
        clock: monotonic seconds.
        beside: called at each poll.
    """

    def __init__(
        self,
        engine: FilterEngine,
        folder: SnapshotFolder,
        feed: ChangeFeed | None,
        counters: Counters,
        poll_s: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
        beside: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._read_feed = feed.read if feed is not None else None
        self._counters = counters
        self._poll_s = poll_s
        self._clock = clock
        self._beside = beside
        self._name = "in use"
        self._taken: tuple[int, int] | None = None
        self._refused: tuple[int, int] | None = None
        self._try_again_at = 0.0
        self._verify_at = clock() + _VERIFY_EVERY_S
        self._feed_failed = False
        self._cut_off: Snapshot | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-follower", daemon=True)

    def start(self) -> None:
        """Applies the changes since the snapshot was made, so that no request is decided by an older state; starts the thread."""
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
        self._engine.keep_time()
        for follow in self._beside:
            follow()
        snapshot = self._engine.snapshot
        is_cut_off = snapshot is not self._cut_off and snapshot.is_cut_off()  # once: there may be no other one
        if is_cut_off:
            self._cut_off = snapshot
        if is_cut_off or self._clock() >= self._verify_at:
            self._verify_in_use()

    def _run(self) -> None:
        while not self._stop.wait(self._poll_s):
            if not self._try_to_follow():
                self._stop.wait(1.0)

    def _try_to_follow(self) -> bool:
        try:
            self.follow_once()
        except Exception:  # noqa: BLE001  the thread must go on: there is no other one
            _log.exception("following the lists failed; trying again")
            return False
        return True

    def _follow_snapshot(self) -> None:
        pointing = self._folder.pointing()  # read first: a pointer that moves meanwhile is seen at the next poll
        if pointing == self._taken or (pointing == self._refused and self._clock() < self._try_again_at):
            return
        path = self._folder.current()
        if path is None:
            return
        try:
            self._take(Snapshot.open(path))
        except Exception as error:  # noqa: BLE001  any failure: it must neither be used nor count as seen
            if pointing != self._refused:
                self._refuse(path.name, error)
                self._folder.refuse()
            self._refused = pointing
            self._try_again_at = self._clock() + _TRY_AGAIN_S
        else:
            self._name, self._taken, self._refused = path.name, pointing, None

    def _take(self, snapshot: Snapshot) -> None:
        """Verifies a snapshot and puts it into use, unless it is the one in use."""
        try:
            if snapshot.mark == self._engine.snapshot.mark:  # the one it started with
                snapshot.close()
                return
            self._put_into_use(snapshot, adopts=True)
        except BaseException:
            snapshot.close()
            raise

    def _put_into_use(self, snapshot: Snapshot, *, adopts: bool) -> None:
        snapshot.verify()
        self._engine.swap(snapshot, self._changes_after(snapshot.info.feed_seq), adopts=adopts)
        self._counters.add("snapshot_swaps")
        self._verify_at = self._clock() + _VERIFY_EVERY_S
        _log.info("took another snapshot into use, made at step %d of the changes", snapshot.info.feed_seq)

    def _refuse(self, name: str, error: Exception) -> None:
        self._counters.add("snapshot_refused")
        reason = str(error) if isinstance(error, SnapshotError) else f"{type(error).__name__}: {error}"
        _log.error("the snapshot %s is refused: %s; filtering goes on with the last good one", name, reason)

    def _verify_in_use(self) -> None:
        """Verifies what decisions are made by; where it was damaged since, the newest good snapshot takes its place."""
        began = self._clock()
        try:
            self._engine.snapshot.verify()
        except SnapshotError as error:
            self._refuse(self._name, error)
            self._fall_back()
        self._verify_at = self._clock() + max(_VERIFY_EVERY_S, _VERIFY_SHARE * (self._clock() - began))

    def _fall_back(self) -> None:
        try:
            snapshot, refused = self._folder.open_newest()
            if refused:
                self._folder.refuse()
            self._put_into_use(snapshot, adopts=False)
        except SnapshotError as error:
            self._folder.refuse()
            _log.error("no other snapshot can replace it until one is published: %s", error)

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
