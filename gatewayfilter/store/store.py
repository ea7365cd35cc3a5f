"""The store: one database and its repositories."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Self

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Crawlers, CrawlQueue, FingerprintStore
from gatewayfilter.store.backup.sql_backup import SqlBackup
from gatewayfilter.store.backup.upgrade_copies import copy_before_upgrade
from gatewayfilter.store.repositories.access.accounts import SqlAccounts
from gatewayfilter.store.repositories.access.api_tokens import SqlApiTokens
from gatewayfilter.store.repositories.access.audit import SqlAudit
from gatewayfilter.store.repositories.access.kept_answers import SqlKeptAnswers
from gatewayfilter.store.repositories.access.web_sessions import SqlWebSessions
from gatewayfilter.store.repositories.change_feed import SqlChangeFeed
from gatewayfilter.store.repositories.client_traces import SqlClientTraces
from gatewayfilter.store.repositories.crawling.crawlers import SqlCrawlers
from gatewayfilter.store.repositories.crawling.frontier import SqlFrontier
from gatewayfilter.store.repositories.crawling.rule_matches import SqlRuleMatches
from gatewayfilter.store.repositories.crawling.validators import SqlValidators
from gatewayfilter.store.repositories.fingerprints import SqlFingerprintStore
from gatewayfilter.store.repositories.host_facts import SqlHostFacts
from gatewayfilter.store.repositories.lists import SqlListStore
from gatewayfilter.store.repositories.page_verdicts import SqlVerdictStore
from gatewayfilter.store.repositories.policies import SqlPolicyStore
from gatewayfilter.store.repositories.review.bypass_links import SqlBypassLinks
from gatewayfilter.store.repositories.review.decision_history import SqlDecisionHistory
from gatewayfilter.store.repositories.review.notifications import SqlNotifications
from gatewayfilter.store.repositories.review.reviews import SqlReviewStore
from gatewayfilter.store.repositories.review.task_sites import SqlTaskSites
from gatewayfilter.store.repositories.review.unblock_requests import SqlUnblockRequests
from gatewayfilter.store.repositories.traffic.decision_log import SqlDecisionLog
from gatewayfilter.store.repositories.traffic.devices import SqlDevices
from gatewayfilter.store.repositories.traffic.log_counts import SqlLogCounter
from gatewayfilter.store.repositories.traffic.log_followers import SqlLogFollowers
from gatewayfilter.store.repositories.traffic.log_search import SqlLogSearch
from gatewayfilter.store.repositories.traffic.log_stats import SqlLogStats
from gatewayfilter.store.repositories.traffic.log_terms_table import SqlLogIndexer
from gatewayfilter.store.repositories.traffic.quota_usage import SqlQuotaUsage
from gatewayfilter.store.sql.database import BUSY_TIMEOUT_S, Area, Database
from gatewayfilter.store.sql.file_space import tidy_file
from gatewayfilter.store.sql.new_file import new_file
from gatewayfilter.store.sql.schema_version import bring_to_head

_log = logging.getLogger(__name__)


def _prepare_upgrade(database: Database, further: Callable[[], None] | None) -> None:
    if further is not None:
        further()
    if database.path is not None:
        _log.info("the database is upgraded; a copy of it as it was: %s", copy_before_upgrade(database.path))


class Store:
    """All repositories of a database. Threads may share one store; each process opens its own.

    Attributes:
        lists: manual rules and learned entries.
        policies: clients, groups, policies, schedules, pauses and quotas.
        feed: their changes.
        frontier: URLs to crawl.
        crawlers: heartbeats of the crawlers that share it.
        task_sites: number of pages queued per task and site.
        rule_matches: pages that extraction rules have read.
        validators: ETags and dates of classified pages.
        log: decisions.
        usage: minutes of quotas that clients have used.
        devices: that were seen on the network.
        log_followers: how far readers outside of the database have come in the log.
        log_search: finds decisions.
        log_stats: counts of decisions.
        log_counter: brings the counts up to date, in the background.
        log_indexer: brings the search index up to date, in the background.
        verdicts: classifications of pages.
        fingerprints: of classified content.
        host_facts: what the tables hold about the host of a page.
        reviews: review tasks and their decisions.
        decisions: the reviewers' decisions that stand, for feedback and statistics.
        unblock: requests of users to unblock a page.
        bypass: links that unblock a page.
        notifications: events that the operator is notified of.
        accounts: of the dashboard.
        sessions: of browsers.
        tokens: of the API.
        audit: who changed what.
        kept_answers: to requests with an idempotency key.
        backup: the tables as a whole, to back them up and to restore them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_memory: list[Callable[[], None]] = []
        self._others: list[Callable[[], None]] = []
        self.lists = SqlListStore(database)
        self.policies = SqlPolicyStore(database)
        self.feed = SqlChangeFeed(database)
        self.frontier: CrawlQueue = SqlFrontier(database)
        self.crawlers: Crawlers = SqlCrawlers(database)
        self.task_sites = SqlTaskSites(database)
        self.rule_matches = SqlRuleMatches(database)
        self.validators = SqlValidators(database)
        self.log = SqlDecisionLog(database)
        self.usage = SqlQuotaUsage(database)
        self.devices = SqlDevices(database)
        self.log_followers = SqlLogFollowers(database)
        self.log_search = SqlLogSearch(database)
        self.log_stats = SqlLogStats(database)
        self.log_counter = SqlLogCounter(database)
        self.log_indexer = SqlLogIndexer(database)
        self.verdicts = SqlVerdictStore(database)
        self.fingerprints: FingerprintStore = SqlFingerprintStore(database)
        self.host_facts = SqlHostFacts(database)
        self.reviews = SqlReviewStore(database)
        self.decisions = SqlDecisionHistory(database)
        self.bypass = SqlBypassLinks(database, self.lists)
        self.unblock = SqlUnblockRequests(database, self.lists, self.bypass)
        self.notifications = SqlNotifications(database)
        self.client_traces = SqlClientTraces(database)
        self.accounts = SqlAccounts(database)
        self.sessions = SqlWebSessions(database)
        self.tokens = SqlApiTokens(database)
        self.audit = SqlAudit(database)
        self.kept_answers = SqlKeptAnswers(database)
        self.backup = SqlBackup(database)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        before_upgrade: Callable[[], None] | None = None,
        fill: Callable[[Self], None] | None = None,
    ) -> Self:
        """Opens the database with this SQLAlchemy URL; creates or migrates it when needed.

        An existing SQLite database is copied into `backups/` beside it before it is migrated.

        Args:
            url: `sqlite:///FILE` or `postgresql+psycopg://…`.
            busy_timeout_s: maximum wait of a SQLite write for another process.
            before_upgrade: called before an existing database is migrated; it may raise to prevent that.
            fill: writes into a SQLite database that is new, before any other process can see it.

        Raises:
            StoreError: it cannot be opened, is damaged, belongs to another program, or has a newer schema than this program.
        """
        database = Database.from_url(url, busy_timeout_s=busy_timeout_s)
        try:
            if fill is not None and database.path is not None and not database.path.exists():
                cls._make_filled(database.path, fill)
            bring_to_head(database, partial(_prepare_upgrade, database, before_upgrade))
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def _make_filled(cls, path: Path, fill: Callable[[Self], None]) -> None:
        with new_file(path) as aside:
            if aside is not None:
                store = cls.open(f"sqlite:///{aside}")
                try:
                    fill(store)
                finally:
                    store.close()

    def learning(self) -> AbstractContextManager[None]:
        """Runs all writes of the thread meanwhile in one transaction: a verdict and its entries."""
        return self._database.together(Area.VERDICTS)

    def deciding(self) -> AbstractContextManager[None]:
        """Runs all writes of the thread meanwhile in one transaction, during which no other task is opened or decided."""
        return self._database.together(Area.REVIEWS)

    def changing(self) -> AbstractContextManager[None]:
        """Runs all writes of the thread meanwhile in one transaction, during which no other list or policy is changed."""
        return self._database.together(Area.LISTS)

    def settling(self) -> AbstractContextManager[None]:
        """Runs all writes of the thread meanwhile in one transaction: the outcomes of several URLs of the frontier."""
        return self._database.together(Area.FRONTIER)

    def tidy(self) -> None:
        """Keeps the database's files small: `file_space`. To be called after many rows were deleted.

        Raises:
            StoreError: the database refuses.
        """
        tidy_file(self._database)

    def before_close(self, write: Callable[[], None]) -> None:
        """Registers `write` for `flush` and for closing: it writes counts that are held in memory."""
        self._in_memory.append(write)

    def also_close(self, close: Callable[[], None]) -> None:
        """Registers `close` for closing: it closes what stands in front of the database."""
        self._others.append(close)

    def flush(self) -> None:
        """Writes all counts that are held in memory; database errors are logged, and the write is retried."""
        for write in self._in_memory:
            try:
                write()
            except StoreError as error:
                _log.warning("what was counted in memory cannot be written: %s", error)

    def limit_memory(self, size: int) -> None:
        """Limits the memory of SQLite in this process to so many bytes, as far as it can do without; no other database's.

        Raises:
            StoreError: the database refuses.
        """
        self._database.limit_memory(size)

    def close_idle(self) -> None:
        """Closes the database connections that are not in use, for a process that must stay small."""
        self._database.close_idle()

    def close(self) -> None:
        """Writes all counts, and closes all connections."""
        self.flush()
        self._in_memory.clear()
        for close in self._others:
            close()
        self._database.close()
