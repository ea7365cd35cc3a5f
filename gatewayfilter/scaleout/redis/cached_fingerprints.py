"""The fingerprint store behind a shared cache: look-ups go to memory, then to Redis, then to the machine's own database.

While Redis is away the database alone is used; changes of that time are written to Redis when it is back.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gatewayfilter.interfaces import FingerprintStore
from gatewayfilter.model import ContentId, ContentKind, Fingerprint
from gatewayfilter.scaleout.redis.connection import RedisAwayError
from gatewayfilter.scaleout.redis.fingerprint_cache import RedisFingerprintCache
from gatewayfilter.telemetry import Counters

MOST_LOCAL: Final = 4096
LOCAL_S: Final = 5.0
"""A verdict is used from memory for so long: a reviewer on another machine may decide otherwise."""
_MOST_PENDING: Final = 20_000
_MOST_DECISIONS: Final = 1000
"""Decisions of reviewers that are written to the cache when it is first reached, and when it is back."""


class CachedFingerprints:
    """Implements `interfaces.FingerprintStore` over a store and a shared cache. Thread-safe.

    Counts `cache_away`: look-ups that the database alone answered because Redis was away.

    Args:
        store: the machine's own; it has all that was judged here.
        cache: what all machines judged.
        counters: where it is counted.
        clock: Unix seconds, for the lifetime of what is written.
    """

    def __init__(
        self, store: FingerprintStore, cache: RedisFingerprintCache, counters: Counters, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._cache = cache
        self._counters = counters
        self._clock = clock
        self._lock = threading.Lock()
        self._local: OrderedDict[ContentId, tuple[Fingerprint, float]] = OrderedDict()
        self._pending: OrderedDict[ContentId, Fingerprint | None] = OrderedDict()
        self._is_synchronized = False

    def find(self, content: ContentId, now: float) -> Fingerprint | None:
        """Returns the fingerprint with this key and this proof."""
        return self.find_all((content,), now).get(content)

    def find_all(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        """Returns those of these contents that are known and not expired, in one round to each place."""
        found = self._from_memory(contents, now)
        missing = [content for content in contents if content not in found]
        if not missing:
            return found
        self._synchronize(now)
        try:
            cached = self._cache.find_all(missing, now)
        except RedisAwayError:
            self._counters.add("cache_away", len(missing))
            cached = {}
        self._keep(cached.values(), now)
        found |= cached
        if unknown := [content for content in missing if content not in cached]:
            stored = self._store.find_all(unknown, now)
            found |= stored
            self._share(stored.values(), now)
        return found

    def newest(self, limit: int, now: float) -> list[Fingerprint]:
        """Returns those of this machine with the latest hits, the latest first."""
        return self._store.newest(limit, now)

    def holds(self, kind: ContentKind) -> bool:
        """Returns whether this machine has any fingerprint of this kind."""
        return self._store.holds(kind)

    def put(self, fingerprint: Fingerprint) -> None:
        """Adds a fingerprint, or replaces the one with the same kind and key; a reviewer's is replaced by a reviewer's only."""
        self.put_all((fingerprint,))

    def put_all(self, fingerprints: Sequence[Fingerprint]) -> None:
        """Adds or replaces several, in one transaction of the database, then in the cache."""
        self._store.put_all(fingerprints)
        self._drop([fingerprint.content for fingerprint in fingerprints])
        self._share(fingerprints, self._clock())

    def touch(self, hits: Mapping[ContentId, int], expires_at: float) -> None:
        """Counts hits and extends the expiry to at least this time (Unix seconds)."""
        self._store.touch(hits, expires_at)
        self._drop(hits)
        try:
            self._cache.touch(hits, expires_at, self._clock())
        except RedisAwayError:
            return  # the month that was left goes on

    def remove(self, content: ContentId) -> bool:
        """Deletes one on this machine and in the cache. Returns False when this machine had none."""
        removed = self._store.remove(content)
        self._drop((content,))
        try:
            self._cache.remove((content,))
        except RedisAwayError:
            self._later({content: None})
        return removed

    def sweep(self, now: float) -> int:
        """Removes expired ones of this machine; Redis does so itself. Returns their number."""
        return self._store.sweep(now)

    def stats(self) -> dict[str, int]:
        """Returns counts of this machine: each kind, `harmful`, `by_people`, `hits` in all, and `image_hits` of them."""
        return self._store.stats()

    def _share(self, fingerprints: Iterable[Fingerprint], now: float) -> None:
        known = list(fingerprints)
        if not known:
            return
        try:
            self._cache.put_all(known, now)
        except RedisAwayError:
            self._later({found.content: found for found in known})

    def _synchronize(self, now: float) -> None:
        """Writes what the cache lacks: changes of the time without it, and this machine's decisions of reviewers."""
        if self._is_synchronized and not self._pending:
            return
        with self._lock:
            pending, self._pending = self._pending, OrderedDict()
        try:
            if not self._is_synchronized:
                decided = [found for found in self._store.newest(_MOST_DECISIONS, now) if found.judge]
                self._cache.put_all(decided, now)
            self._cache.remove([content for content, found in pending.items() if found is None])
            self._cache.put_all([found for found in pending.values() if found is not None], now)
            self._is_synchronized = True
        except RedisAwayError:
            self._later(pending)

    def _later(self, changes: Mapping[ContentId, Fingerprint | None]) -> None:
        with self._lock:
            self._pending.update(changes)
            while len(self._pending) > _MOST_PENDING:
                self._pending.popitem(last=False)

    def _from_memory(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        found: dict[ContentId, Fingerprint] = {}
        with self._lock:
            for content in contents:
                kept = self._local.get(content)
                if kept is not None and now < kept[1] and now < kept[0].expires_at:
                    found[content] = kept[0]
        return found

    def _keep(self, fingerprints: Iterable[Fingerprint], now: float) -> None:
        with self._lock:
            for fingerprint in fingerprints:
                self._local[fingerprint.content] = fingerprint, now + LOCAL_S
                self._local.move_to_end(fingerprint.content)
            while len(self._local) > MOST_LOCAL:
                self._local.popitem(last=False)

    def _drop(self, contents: Iterable[ContentId]) -> None:
        with self._lock:
            for content in contents:
                self._local.pop(content, None)
