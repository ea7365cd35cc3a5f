"""Recovery of a lost database from the newest snapshot, which holds manual rules, policies and learned entries."""

from __future__ import annotations

import logging
import time
from itertools import batched
from typing import TYPE_CHECKING, Final

from gatewayfilter.errors import SnapshotError

if TYPE_CHECKING:
    from gatewayfilter.engine.snapshot.folder import SnapshotFolder
    from gatewayfilter.store import Store

_log = logging.getLogger(__name__)

_CHUNK: Final = 1000


def fill_from_snapshot(snapshots: SnapshotFolder, store: Store) -> int:
    """Writes what the newest good snapshot holds into an empty database; without a snapshot it stays empty.

    The change feed goes on above the numbers of the lost one, so that processes that follow it miss nothing.

    Returns:
        The number of manual rules.

    Raises:
        StoreError: the database refuses.
    """
    try:
        snapshot, _ = snapshots.open_newest()
    except SnapshotError:
        return 0
    now = time.time()
    try:
        items = [(item, True) for item in snapshot.policies]
        rules = [rule for rule in snapshot.rules if rule.expires_at is None or rule.expires_at > now]
        if items:
            store.policies.change(lambda _: items, now)
        store.lists.add_rules(rules)
        for chunk in batched(snapshot.records, _CHUNK):
            store.lists.put_learned([entry for entry in chunk if entry.expires_at > now])
        store.feed.begin_after(snapshot.info.feed_seq)
        learned = snapshot.info.learned
    finally:
        snapshot.close()
    _log.warning(
        "the database was missing: a new one was made of the snapshot, with %d manual rules, %d policy items, %d learned entries",
        len(rules),
        len(items),
        learned,
    )
    return len(rules)
