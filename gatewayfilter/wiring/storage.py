"""Wiring of the state folder: database, snapshots, subscriptions, categories."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayfilter.config import bundled_folder
from gatewayfilter.errors import ListError, StartupError
from gatewayfilter.private_files import make_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.config import Settings
    from gatewayfilter.engine.snapshot.folder import SnapshotFolder
    from gatewayfilter.fleet.folder import FleetFolder
    from gatewayfilter.model import Service
    from gatewayfilter.sources import Categories, Subscriptions
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)


def prepare_data_dir(settings: Settings) -> None:
    """Makes the state folder with mode 0700. On a disk that is mounted read-only, one that is there is used as it is.

    Raises:
        StartupError: it cannot be made, or may not be used.
    """
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(settings.data_dir, 0o700)
    except OSError as error:
        raise StartupError(f"cannot use the state folder {settings.data_dir}: {error.strerror}") from error
    needed = os.R_OK | os.X_OK if on_read_only_disk(settings) else os.R_OK | os.W_OK | os.X_OK
    if not os.access(settings.data_dir, needed):
        raise StartupError(f"cannot write to the state folder {settings.data_dir}")


def on_read_only_disk(settings: Settings) -> bool:
    """Returns whether the file system of the state folder is mounted read-only, as Linux does after errors of the disk."""
    try:
        return bool(os.statvfs(settings.data_dir).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def open_store(
    settings: Settings, *, before_upgrade: Callable[[], None] | None = None, counters: Counters | None = None
) -> Store:
    """Opens the database, made or migrated when needed, with the queue that machines share before its own.

    A database file that was lost is made again from the newest snapshot.

    Args:
        settings: the state folder and the database.
        before_upgrade: called before an existing database is migrated; it may raise to prevent that.
        counters: where outages of a shared queue are counted.

    Raises:
        StartupError, StoreError: it cannot be opened.
    """
    from gatewayfilter.store import Store
    from gatewayfilter.wiring.shared import share_queue

    prepare_data_dir(settings)
    fill = partial(_fill, settings) if (settings.data_dir / "snapshots").is_dir() else None  # else it is the first start
    store = Store.open(settings.store_url, before_upgrade=before_upgrade, fill=fill)
    store.frontier.max_waiting = settings.crawl.max_waiting
    share_queue(settings, store, counters)
    return store


def _fill(settings: Settings, store: Store) -> None:
    from gatewayfilter.wiring.recovery import fill_from_snapshot

    fill_from_snapshot(snapshot_folder(settings), store)


def snapshot_folder(settings: Settings) -> SnapshotFolder:
    """Returns the folder of published snapshots."""
    from gatewayfilter.engine.snapshot.folder import SnapshotFolder

    return SnapshotFolder(settings.data_dir / "snapshots")


def fleet_folder(settings: Settings) -> FleetFolder:
    """Returns the folder of what a publisher exports and a follower has fetched."""
    from gatewayfilter.fleet.folder import FleetFolder

    return FleetFolder(settings.data_dir / "fleet")


def publisher_snapshot(settings: Settings) -> Path | None:
    """Returns the snapshot that was fetched from a fleet's publisher, `None` where none is followed, or none is there yet."""
    path = fleet_folder(settings).base
    return path if settings.fleet.follow and path.is_file() else None


def spool_folder(settings: Settings) -> Path:
    """Returns the folder in which the proxy leaves pages that passed, for the learner to judge."""
    return settings.data_dir / "spool"


def subscriptions(settings: Settings) -> Subscriptions:
    """Returns the subscriptions, bundled starter lists included."""
    from gatewayfilter.sources import Subscriptions

    return Subscriptions(settings.data_dir / "sources", settings.sources, bundled_folder())


def categories() -> Categories:
    """Returns the registry of categories."""
    from gatewayfilter.sources import Categories

    return Categories.load(bundled_folder() / "categories.toml")


def services(settings: Settings) -> dict[str, Service]:
    """Returns the catalogue of services by id: the bundled one, and what the operator's own adds or replaces.

    Raises:
        ListError: a file cannot be read, or an entry of it is wrong.
    """
    from gatewayfilter.sources import load_services

    return load_services(bundled_folder() / "services.toml", own_services(settings))


def own_services(settings: Settings) -> Path:
    """Returns the path of the operator's own catalogue of services, which may be missing."""
    from gatewayfilter.sources import OWN_NAME

    return settings.data_dir / OWN_NAME


def usable_services(settings: Settings) -> dict[str, Service]:
    """As `services`, but an own catalogue that is wrong is left out, with a warning in the log."""
    from gatewayfilter.sources import load_services

    try:
        return services(settings)
    except ListError as error:
        _log.warning("%s; only the bundled services are known", error)
        return load_services(bundled_folder() / "services.toml")


def category_title(registry: Categories, category: str, language: str) -> str:
    """Returns a category's title in a language (`en`, `zh-Hans`)."""
    found = registry.get(category)
    return found.title_zh if language.startswith("zh") else found.title
