"""What the learner holds of the snapshot in use, and whether the database is still the one that it was made from."""

from gatewayfilter.config import Settings
from gatewayfilter.errors import SnapshotError
from gatewayfilter.store import Store
from gatewayfilter.wiring import snapshot_folder


class PublishedSnapshot:
    """The facts of the current snapshot.

    Args:
        settings: name the folder.

    Attributes:
        feed_seq: the newest step of the change feed in it, 0 for none.
        created_at: Unix seconds, 0 for none.
    """

    def __init__(self, settings: Settings) -> None:
        self._folder = snapshot_folder(settings)
        self._pointing: tuple[int, int] | None = None
        self._feed_mark = ""
        self.feed_seq = 0
        self.created_at = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Reads the facts again if another snapshot was published since."""
        pointing = self._folder.pointing()
        if pointing is not None and pointing == self._pointing:
            return
        self._pointing = pointing
        try:
            snapshot, _ = self._folder.open_newest(verify=False)
        except SnapshotError:
            self.feed_seq, self.created_at, self._feed_mark = 0, 0.0, ""
            return
        try:
            self.feed_seq, self.created_at = snapshot.info.feed_seq, snapshot.info.created_at
            self._feed_mark = str(snapshot.meta.get("notes", {}).get("feed_mark", ""))
        finally:
            snapshot.close()

    def is_of_another_database(self, store: Store) -> bool:
        """Returns whether the database is not the one that the snapshot was made from: an older copy, or a new one.

        The numbers of a feed that is behind go on above those of the snapshot, so that what people change counts at once.

        Raises:
            StoreError: the database refuses.
        """
        self.refresh()
        if store.feed.last_seq() < self.feed_seq:
            store.feed.begin_after(self.feed_seq)
            return True
        return bool(self._feed_mark) and store.feed.mark(self.feed_seq) != self._feed_mark
