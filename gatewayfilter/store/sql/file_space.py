"""Disk space of a SQLite database beside its rows: the write-ahead log, and free pages of deleted rows.

SQLite reuses free pages and checkpoints its log after each 4 MB, so both grow only in exceptional cases: the log during permanent
reads, the free pages after large deletions. PostgreSQL manages its own files.
"""

import logging
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.sqlite_file import WAL_LIMIT_BYTES

_log = logging.getLogger(__name__)

FREE_PAGES: Final = 4_096
"""Pages (16 MB) that may stay free for the rows to come, and beyond that a quarter of the file."""
_STEP_PAGES: Final = 1_000
"""Pages released in one transaction: some 20 ms in which no other process can write."""
_PAUSE_S: Final = 0.01
_INCREMENTAL: Final = 2


def tidy_file(database: Database) -> int:
    """Checkpoints a long write-ahead log, and releases free pages to the system. Returns the number of pages.

    Files of earlier releases keep their size, as only VACUUM can convert them; their free pages are reused.

    Raises:
        StoreError: the database refuses.
    """
    if database.path is None:
        return 0
    _fold_back(database, database.path.with_name(f"{database.path.name}-wal"))
    given_back = 0
    while (pages := _surplus(database)) > 0:
        with database.write(Area.LOG) as connection:
            # Bypasses SQLAlchemy, which ends a statement without columns after its first step: one page.
            driver = connection.connection.cursor()
            driver.execute(f"PRAGMA incremental_vacuum({min(pages, _STEP_PAGES)})")
            driver.fetchall()
        given_back += min(pages, _STEP_PAGES)
        time.sleep(_PAUSE_S)
    return given_back


def _surplus(database: Database) -> int:
    """Returns the number of free pages in excess, 0 for a file that cannot release any."""
    with database.read() as connection:
        mode, free, pages = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("auto_vacuum", "freelist_count", "page_count")
        )
    return max(free - max(FREE_PAGES, pages // 4), 0) if mode == _INCREMENTAL else 0


def _fold_back(database: Database, log: Path) -> None:
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size > WAL_LIMIT_BYTES:
        with database.read() as connection, closing(connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")) as result:
            busy = result.scalar()
        if busy:
            _log.info("the write-ahead log of the database is long, and a reader still uses it: trying again")
