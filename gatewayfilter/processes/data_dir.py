"""The preparation of the state folder: database and first snapshot."""

import logging

from gatewayfilter.config import Settings
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.store import Store
from gatewayfilter.wiring import open_store, publish_now, snapshot_folder

_log = logging.getLogger(__name__)


def prepare_lists(settings: Settings) -> None:
    """Makes the database and the first snapshot. A database that fails does not stop a filter that has a snapshot.

    Raises:
        StartupError, StoreError, SnapshotError: there is no last good state to go on with.
    """
    folder = snapshot_folder(settings)
    try:
        store = open_store(settings)
    except StoreError as error:
        if folder.current() is None:
            raise
        _log.error("%s; filtering goes on with the last snapshot, without learning or logging", error)
        return
    try:
        _open_or_publish(settings, store, folder)
    finally:
        store.close()


def _open_or_publish(settings: Settings, store: Store, folder: SnapshotFolder) -> None:
    if folder.current() is None:
        publish_now(settings, store)
        return
    try:
        snapshot, refused = folder.open_newest()
    except SnapshotError as error:
        _log.warning("%s; publishing a new one", error)
        publish_now(settings, store)
        return
    snapshot.close()
    for sentence in refused:
        _log.warning("%s", sentence)
    if refused:
        publish_now(settings, store)
