"""The repair of a damaged SQLite database: it is moved aside, and a new one is made from the newest snapshot."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayfilter.errors import StartupError, StoreError
from gatewayfilter.store import faults_of
from gatewayfilter.wiring import open_store

if TYPE_CHECKING:
    from gatewayfilter.config import Settings


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was done.

    Attributes:
        moved_to: the damaged file, `None` if there was none.
        manual_rules, learned: how many of each the new database holds.
    """

    moved_to: Path | None
    manual_rules: int
    learned: int


def repair_database(settings: Settings) -> RepairReport:
    """Makes a new database in place of one that is damaged or missing. The filter must not run.

    Raises:
        StoreError: it is not in the state folder, or a new one cannot be made.
        StartupError: it is not damaged, or cannot be moved.
    """
    if settings.store.url:
        raise StoreError("db repair is for the database in the state folder: repair the one in store.url with its own tools")
    path = settings.data_dir / "gatewayfilter.sqlite3"
    moved = _moved_aside(path, settings.store_url) if path.exists() else None
    with closing(open_store(settings)) as store:
        return RepairReport(moved, len(store.lists.rules()), store.lists.learned_count())


def _moved_aside(path: Path, url: str) -> Path:
    try:
        if not faults_of(url):
            raise StartupError(f"the database {path} is not damaged: nothing was changed")
    except StoreError:
        pass  # it cannot even be read
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        for suffix in ("-wal", "-shm", ""):
            source = path.with_name(path.name + suffix)
            if source.exists():
                source.rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise StartupError(f"cannot move {path} aside: {error.strerror}") from error
    return aside
