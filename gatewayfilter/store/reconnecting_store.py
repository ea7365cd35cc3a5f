"""A database that may be away for a while: the filter goes on without it and takes it up again when it is back."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, cast

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.interfaces import ChangeFeed, DecisionLog, Frontier, UnblockRequests
from gatewayfilter.store import Store
from gatewayfilter.wiring import open_store

_RETRY_AFTER_S: Final = 5.0


class ReconnectingStore:
    """Opens the database when it is first used, and again after it failed, at most every few seconds.

    Its parts raise `StoreError` while the database cannot be opened.

    Attributes:
        feed, frontier, log, unblock: as in `Store`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._error = StoreError("the database was not opened yet")
        self._retry_at = 0.0
        self.feed = cast("ChangeFeed", _Part(self, "feed"))
        self.frontier = cast("Frontier", _Part(self, "frontier"))
        self.log = cast("DecisionLog", _Part(self, "log"))
        self.unblock = cast("UnblockRequests", _Part(self, "unblock"))

    def call(self, part: str, method: str, arguments: tuple[Any, ...]) -> Any:
        """Calls a method of one of the store's parts.

        Raises:
            StoreError: the database cannot be opened, or refused.
        """
        store = self._opened()
        try:
            return getattr(getattr(store, part), method)(*arguments)
        except StoreError as error:
            self._forget(store, error)
            raise

    def close(self) -> None:
        """Closes the database."""
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
                    self._store = open_store(self._settings)
                except GatewayFilterError as error:
                    self._remember(StoreError(str(error)))
                    raise self._error from error
            return self._store

    def _forget(self, store: Store, error: StoreError) -> None:
        with self._lock:
            if self._store is store:
                self._store = None
                self._remember(error)
                store.close()

    def _remember(self, error: StoreError) -> None:
        self._error = error
        self._retry_at = time.monotonic() + _RETRY_AFTER_S


class _Part:
    def __init__(self, store: ReconnectingStore, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *arguments: self._store.call(self._name, method, arguments)
