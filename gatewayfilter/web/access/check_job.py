"""Checks of URLs in the child process: the engine over the newest lists takes memory that the web process does without."""

from __future__ import annotations

import pickle
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from gatewayfilter import wiring
from gatewayfilter.errors import SnapshotError
from gatewayfilter.use_cases.url_check import UrlCheck, check_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gatewayfilter.config import Settings
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.model import Request
    from gatewayfilter.store import Store

MOST_READ = 64 << 20
"""Bytes of lists that a search may read here: a slow disk reads them in some seconds, and checks of URLs wait for that."""

_NO_LISTS: Final = "no lists are in force yet: the filter publishes them when it starts"


def check(settings: bytes, request: Request, client: str, now: float, at: float | None) -> UrlCheck:
    """Returns what is in force for a request.

    Args:
        settings: pickled; the engine is kept for as long as they are the same.
        request: without a client.
        client: name, address or `user:NAME`, `""` for none.
        now: Unix seconds.
        at: as if it were then, `None` for now.

    Raises:
        PolicyError: there is no such client.
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
    """
    return _checker(settings).check(request, client, now, at)


def prepare(settings: bytes) -> None:
    """Opens the engine, so that the first check does not wait for it; arguments as `check`.

    Raises:
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
    """
    _checker(settings).prepare()


def resolvers(settings: bytes, now: float) -> tuple[int, int]:
    """Returns how many well-known servers of DNS over HTTPS are blocked, and how many there are; arguments as `check`.

    Raises:
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
    """
    return _checker(settings).resolvers(now)


def count_entries(settings: bytes, now: float) -> dict[str, Any]:
    """Returns how many entries there are, as `list_jobs.counts`; arguments and exceptions as `check`."""
    from gatewayfilter.use_cases.lists.list_jobs import counts  # noqa: PLC0415  when it is asked for

    return counts(*_checker(settings).parts(now), now)


def search_entries(settings: bytes, text: str, now: float) -> dict[str, Any] | None:
    """Returns which lists have a host or URL, as `list_jobs.search`; `None` where it would have to read much.

    Raises:
        SnapshotError: no lists were published yet.
        StoreError: the database refuses.
    """
    from gatewayfilter.use_cases.lists.list_jobs import search  # noqa: PLC0415  when it is asked for
    from gatewayfilter.use_cases.lists.list_search import bytes_to_read  # noqa: PLC0415  when it is asked for

    own, store, engine = _checker(settings).parts(now)
    if bytes_to_read(own, engine, text) > MOST_READ:
        return None
    return search(own, store, engine, text, partial=False)


class _Checker:
    """Checks by the lists and changes of now."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = wiring.open_store(settings)
        self._engine: FilterEngine | None = None
        self._snapshot: Path | None = None
        self._now = 0.0

    def prepare(self) -> None:
        """Opens the engine."""
        self._current()

    def check(self, request: Request, client: str, now: float, at: float | None) -> UrlCheck:
        """Returns what is in force for a request."""
        self._now = now
        if at is None:
            return check_url(self._settings, self._store, self._current(), request, client, self._clock)
        clock = partial(_fixed, at)
        engine = self._newest(clock)
        try:
            self._follow(engine)
            return check_url(self._settings, self._store, engine, request, client, clock)
        finally:
            engine.snapshot.close()

    def resolvers(self, now: float) -> tuple[int, int]:
        """Returns how many well-known servers of DNS over HTTPS are blocked, and how many there are."""
        from gatewayfilter.gateway.doh_servers import blocked_resolvers  # noqa: PLC0415  on a gateway alone

        self._now = now
        return blocked_resolvers(self._current())

    def parts(self, now: float) -> tuple[Settings, Store, FilterEngine]:
        """Returns settings, database, and the engine of now."""
        self._now = now
        return self._settings, self._store, self._current()

    def _current(self) -> FilterEngine:
        newest = wiring.snapshot_folder(self._settings).current()
        if self._engine is None or newest != self._snapshot:
            self._engine, self._snapshot = self._newest(self._clock), newest
        self._follow(self._engine)
        return self._engine

    def _newest(self, clock: Callable[[], float]) -> FilterEngine:
        """Opens the engine over the newest lists; where none were published yet, that is what the error says."""
        try:
            return wiring.newest_engine(self._settings, clock=clock)
        except SnapshotError as error:
            if wiring.snapshot_folder(self._settings).current() is None:
                raise SnapshotError(_NO_LISTS) from error
            raise

    def _follow(self, engine: FilterEngine) -> None:
        while changes := self._store.feed.read(engine.feed_seq):
            engine.apply(changes)

    def _clock(self) -> float:
        return self._now


@lru_cache(maxsize=1)
def _checker(settings: bytes) -> _Checker:
    loaded: Settings = pickle.loads(settings)  # noqa: S301  of the parent process
    return _Checker(loaded)


def _fixed(at: float) -> float:
    return at
