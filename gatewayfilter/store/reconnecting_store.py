"""A reconnecting database client: filtering continues while the database is unavailable.

It has the methods that a proxy worker calls; no request waits for them.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from gatewayfilter.errors import GatewayFilterError, StoreUnavailableError
from gatewayfilter.interfaces import CrawlRequest, UnblockChanges, UnblockRequest
from gatewayfilter.model import Change, LogRecord, QuotaUse
from gatewayfilter.store.store import Store

_RETRY_AFTER_S: Final = 5.0


class ReconnectingStore:
    """Opens the database at its first use, and again after a failure, at most every few seconds.

    Its attributes have the methods of `Store`'s; each raises `StoreUnavailableError` while the database cannot be opened.

    Args:
        open_store: opens the database; its exceptions become a `StoreUnavailableError`.
        most_log_bytes: disk space that the log may take; the oldest records are removed before a batch is written.

    Attributes:
        feed: the list changes.
        frontier: writes URLs to crawl.
        log: writes decisions.
        unblock: requests to unblock pages, and bypass links.
        usage: writes the use of quotas.
    """

    def __init__(self, open_store: Callable[[], Store], most_log_bytes: float = math.inf) -> None:
        self._connection = _Connection(open_store)
        self.feed = _Feed(self._connection)
        self.frontier = _Frontier(self._connection)
        self.log = _Log(self._connection, most_log_bytes)
        self.unblock = _Unblock(self._connection)
        self.usage = _Usage(self._connection)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()


class _Connection:
    """The open database, if any, and the time of the next attempt. Thread-safe."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._error = StoreUnavailableError("the database was not opened yet")
        self._retry_at = 0.0

    def use[T](self, work: Callable[[Store], T]) -> T:
        """Returns the result of `work` on the open database.

        Raises:
            StoreUnavailableError: the database cannot be opened, or is locked, full, damaged or away.
            StoreError: it refuses what was to be written.
        """
        store = self._opened()
        try:
            return work(store)
        except StoreUnavailableError as error:
            self._forget(store, error)
            raise

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _opened(self) -> Store:
        with self._lock:
            if self._store is None:
                if time.monotonic() < self._retry_at:
                    raise self._error
                try:
                    self._store = self._open_store()
                except GatewayFilterError as error:
                    self._remember(StoreUnavailableError(str(error)))
                    raise self._error from error
            return self._store

    def _forget(self, store: Store, error: StoreUnavailableError) -> None:
        with self._lock:
            if self._store is store:
                self._store = None
                self._remember(error)
                store.close()

    def _remember(self, error: StoreUnavailableError) -> None:
        self._error = error
        self._retry_at = time.monotonic() + _RETRY_AFTER_S


class _Feed:
    """Implements `interfaces.ChangeFeed`."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def last_seq(self) -> int:
        return self._connection.use(lambda store: store.feed.last_seq())

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        return self._connection.use(lambda store: store.feed.read(after, limit))


class _Frontier:
    """Implements `interfaces.CrawlRequestStore`."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        return self._connection.use(lambda store: store.frontier.add(offers, now))


class _Log:
    """Implements `interfaces.DecisionWriter`. The log exceeds its bound by one batch of each worker at most.

    The rate of a flood is bounded by nothing but the processor, so the process that writes also makes room: a process that looks
    from time to time falls behind as soon as it is late.
    """

    def __init__(self, connection: _Connection, most_bytes: float) -> None:
        self._connection = connection
        self._most_bytes = most_bytes

    def write(self, records: Sequence[LogRecord]) -> None:
        self._connection.use(lambda store: self._write(store, records))

    def _write(self, store: Store, records: Sequence[LogRecord]) -> None:
        store.log.shrink(self._most_bytes)  # before: a batch that was written is not written again when this fails
        store.log.write(records)


class _Unblock:
    """Implements `interfaces.UnblockRequestStore`."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def ask(self, requests: Sequence[UnblockRequest]) -> int:
        return self._connection.use(lambda store: store.unblock.ask(requests))

    def redeem(self, link_ids: Sequence[int], now: float) -> int:
        return self._connection.use(lambda store: store.unblock.redeem(link_ids, now))

    def changes(self, after: int) -> UnblockChanges:
        return self._connection.use(lambda store: store.unblock.changes(after))


class _Usage:
    """Implements `interfaces.QuotaUsageWriter`."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def add(self, uses: Sequence[QuotaUse]) -> int:
        return self._connection.use(lambda store: store.usage.add(uses))
