"""The store: one database and its repositories."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Self

from gatewayfilter.errors import StoreError
from gatewayfilter.store.repositories.change_feed import SqlChangeFeed
from gatewayfilter.store.repositories.crawlers import SqlCrawlers
from gatewayfilter.store.repositories.decision_log import SqlDecisionLog
from gatewayfilter.store.repositories.fingerprints import SqlFingerprintStore
from gatewayfilter.store.repositories.frontier import SqlFrontier
from gatewayfilter.store.repositories.lists import SqlListStore
from gatewayfilter.store.repositories.page_verdicts import SqlVerdictStore
from gatewayfilter.store.repositories.reviews import SqlReviewStore
from gatewayfilter.store.repositories.task_sites import SqlTaskSites
from gatewayfilter.store.repositories.unblock_requests import SqlUnblockRequests
from gatewayfilter.store.repositories.validators import SqlValidators
from gatewayfilter.store.sql.database import BUSY_TIMEOUT_S, Area, Database
from gatewayfilter.store.sql.file_space import tidy_file
from gatewayfilter.store.sql.schema_version import bring_to_head

_log = logging.getLogger(__name__)


class Store:
    """Everything that is small and changes. Threads may share one store; each process opens its own.

    Attributes:
        lists: manual rules and learned entries.
        feed: what changed in them.
        frontier: URLs to crawl.
        crawlers: heartbeats of the crawlers that share it.
        task_sites: how much of each site a task has queued.
        validators: ETags and dates of judged pages.
        log: decisions.
        verdicts: what the classifier said.
        fingerprints: of judged content.
        reviews: review tasks and their decisions.
        unblock: requests of users to unblock a page.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_memory: list[Callable[[], None]] = []
        self.lists = SqlListStore(database)
        self.feed = SqlChangeFeed(database)
        self.frontier = SqlFrontier(database)
        self.crawlers = SqlCrawlers(database)
        self.task_sites = SqlTaskSites(database)
        self.validators = SqlValidators(database)
        self.log = SqlDecisionLog(database)
        self.verdicts = SqlVerdictStore(database)
        self.fingerprints = SqlFingerprintStore(database)
        self.reviews = SqlReviewStore(database)
        self.unblock = SqlUnblockRequests(database)

    @classmethod
    def open(cls, url: str, *, busy_timeout_s: float = BUSY_TIMEOUT_S, before_upgrade: Callable[[], None] | None = None) -> Self:
        """Opens the database with this SQLAlchemy URL, made or migrated when needed.

        Args:
            url: `sqlite:///FILE` or `postgresql+psycopg://…`.
            busy_timeout_s: how long a SQLite write waits for another process.
            before_upgrade: called before an existing database is migrated; it may raise to prevent that.

        Raises:
            StoreError: it cannot be opened, is damaged, is another program's, or has a newer schema than this program knows.
        """
        database = Database.from_url(url, busy_timeout_s=busy_timeout_s)
        try:
            bring_to_head(database, before_upgrade)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def learning(self) -> AbstractContextManager[None]:
        """Makes one transaction of a verdict and its entries: all that the thread writes meanwhile."""
        return self._database.together(Area.VERDICTS)

    def deciding(self) -> AbstractContextManager[None]:
        """Makes one transaction of all that the thread writes meanwhile, in which no other task is opened or decided."""
        return self._database.together(Area.REVIEWS)

    def settling(self) -> AbstractContextManager[None]:
        """Makes one transaction of what becomes of several URLs of the frontier: all that the thread writes meanwhile."""
        return self._database.together(Area.FRONTIER)

    def tidy(self) -> None:
        """Keeps the database's files small: `file_space`. To be called after many rows were deleted.

        Raises:
            StoreError: the database refuses.
        """
        tidy_file(self._database)

    def before_close(self, write: Callable[[], None]) -> None:
        """Has `write` called by `flush`, and before the database is closed: it writes what was only counted in memory."""
        self._in_memory.append(write)

    def flush(self) -> None:
        """Has everything written that was only counted in memory; what the database refuses is logged, and tried again."""
        for write in self._in_memory:
            try:
                write()
            except StoreError as error:
                _log.warning("what was counted in memory cannot be written: %s", error)

    def close(self) -> None:
        """Has everything written, and closes all connections."""
        self.flush()
        self._in_memory.clear()
        self._database.close()
