"""Fingerprints behind a shared cache over doubles: the order of look-ups, and what is made good after an outage."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from gatewayfilter.model import Classification, ContentId, ContentKind, Fingerprint
from gatewayfilter.scaleout.redis import cached_fingerprints
from gatewayfilter.scaleout.redis.cached_fingerprints import CachedFingerprints
from gatewayfilter.scaleout.redis.connection import RedisAwayError
from gatewayfilter.telemetry import Counters

A, B, C = (ContentId(ContentKind.PAGE, letter * 16, b"p" * 16) for letter in (b"a", b"b", b"c"))


def judged(content: ContentId, judge: str = "", until: float = 900.0) -> Fingerprint:
    return Fingerprint(content, Classification("", 1.0, 20.0), judge, "w", "http://a.test/", 1.0, until)


class Place:
    """A store, or a cache that may be away: has fingerprints, and notes what is asked."""

    def __init__(self, *held: Fingerprint) -> None:
        self.held = {found.content: found for found in held}
        self.calls: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {}
        self.is_away = False

    def find_all(self, contents: Any, now: float) -> dict[ContentId, Fingerprint]:
        self._note("find_all", list(contents), now)
        return {content: self.held[content] for content in contents if content in self.held}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self._note(name, *values)
            return self.answers.get(name)

        return call

    def _note(self, *call: Any) -> None:
        if self.is_away:
            raise RedisAwayError("away")
        self.calls.append(call)

    def taken(self) -> list[tuple[Any, ...]]:
        found, self.calls = self.calls, []
        return found


def over(store: Place, cache: Place, now: float = 50.0) -> tuple[CachedFingerprints, Counters]:
    counters = Counters()
    store.answers.setdefault("newest", [])
    return CachedFingerprints(cast("Any", store), cast("Any", cache), counters, lambda: now), counters


def test_memory_comes_first_then_the_cache_then_the_database() -> None:
    store, cache = Place(judged(B)), Place(judged(A))
    found, counters = over(store, cache)
    assert found.find_all([A, B, C], 10.0) == {A: judged(A), B: judged(B)}
    assert store.taken() == [("newest", 1000, 10.0), ("find_all", [B, C], 10.0)]
    begin: list[tuple[Any, ...]] = [("put_all", [], 10.0), ("remove", [])]
    sent = ("put_all", [judged(B)], 10.0)
    assert cache.taken() == [*begin, ("put_all", [], 10.0), ("find_all", [A, B, C], 10.0), sent]
    assert found.find(A, 14.9) == judged(A)  # from memory
    assert (store.taken(), cache.taken()) == ([], [])
    assert found.find(A, 15.0) == judged(A)
    assert cache.taken() == [("find_all", [A], 15.0)]
    assert found.find(C, 15.0) is None
    assert (store.taken(), counters["cache_away"]) == ([("find_all", [C], 15.0)], 0)
    assert cache.taken() == [("find_all", [C], 15.0)], "nothing is shared where nothing is known"


def test_what_has_expired_is_not_used_from_memory() -> None:
    store, cache = Place(), Place(judged(A, until=12.0))
    found, _ = over(store, cache)
    assert found.find(A, 10.0) is not None
    cache.held.clear()
    assert found.find(A, 11.9) is not None
    assert found.find(A, 12.0) is None


def test_memory_is_bounded_and_loses_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_fingerprints, "MOST_LOCAL", 2)
    store, cache = Place(), Place(judged(A), judged(B), judged(C))
    found, _ = over(store, cache)
    found.find_all([A, B], 10.0)
    found.find_all([A], 16.0)  # is the newest now
    found.find_all([C], 16.0)
    cache.held.clear()
    assert list(found.find_all([A, B, C], 17.0)) == [A, C]


def test_what_was_written_while_redis_was_away_is_written_later() -> None:
    store, cache = Place(judged(A)), Place()
    found, counters = over(store, cache)
    store.answers |= {"newest": [judged(B, "ada"), judged(C)], "remove": True}
    cache.is_away = True
    assert found.find_all([A, C], 10.0) == {A: judged(A)}
    assert counters["cache_away"] == 2
    found.put(judged(C))
    assert found.remove(B)
    store.taken()
    cache.is_away = False
    found.find(C, 20.0)
    assert cache.taken() == [
        ("put_all", [judged(B, "ada")], 20.0),  # what people decided, when the cache is first reached
        ("remove", [B]),
        ("put_all", [judged(A), judged(C)], 20.0),
        ("find_all", [C], 20.0),
    ]
    found.find(C, 21.0)
    assert cache.taken() == [("find_all", [C], 21.0)]
    cache.is_away = True
    found.put(judged(C))
    cache.is_away = False
    store.taken()
    found.find(C, 22.0)
    assert cache.taken()[:2] == [("remove", []), ("put_all", [judged(C)], 22.0)]
    assert store.taken() == [("find_all", [C], 22.0)], "decisions are written once"


def test_what_is_written_later_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_fingerprints, "_MOST_PENDING", 2)
    store, cache = Place(), Place()
    found, _ = over(store, cache)
    cache.is_away = True
    found.put_all([judged(A), judged(B), judged(C)])
    found.find(A, 10.0)
    cache.is_away = False
    found.find(A, 11.0)
    assert ("put_all", [judged(B), judged(C)], 11.0) in cache.taken()


def test_changes_go_to_the_database_then_to_the_cache_and_out_of_memory() -> None:
    store, cache = Place(), Place(judged(A))
    found, _ = over(store, cache)
    newer = replace(judged(A), hits=7)
    for change, call, sent in (
        (lambda: found.put_all([newer]), ("put_all", [newer]), ("put_all", [newer], 50.0)),
        (lambda: found.touch({A: 2}, 99.0), ("touch", {A: 2}, 99.0), ("touch", {A: 2}, 99.0, 50.0)),
        (lambda: found.remove(A), ("remove", A), ("remove", (A,))),
    ):
        found.find(A, 10.0)
        store.taken(), cache.taken()
        change()
        assert store.taken() == [call]
        assert cache.taken() == [sent]
        found.find(A, 10.0)
        assert cache.taken() == [("find_all", [A], 10.0)]
    cache.is_away = True
    found.touch({A: 2}, 99.0)  # does not raise
    assert store.taken() == [("touch", {A: 2}, 99.0)]


def test_the_rest_is_of_this_machine() -> None:
    store, cache = Place(), Place()
    found, _ = over(store, cache)
    store.answers |= {"newest": [judged(A)], "holds": True, "sweep": 3, "stats": {"page": 1}, "remove": False}
    assert (found.newest(5, 1.0), found.holds(ContentKind.IMAGE)) == ([judged(A)], True)
    assert (found.sweep(2.0), found.stats(), found.remove(B)) == (3, {"page": 1}, False)
    assert store.taken() == [("newest", 5, 1.0), ("holds", ContentKind.IMAGE), ("sweep", 2.0), ("stats",), ("remove", B)]
    assert cache.taken() == [("remove", (B,))]
