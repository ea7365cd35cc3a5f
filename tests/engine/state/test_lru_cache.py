"""The bounded cache."""

from gatewayfilter.engine.state import lru_cache
from gatewayfilter.engine.state.lru_cache import LruCache


def test_it_never_grows_beyond_two_generations() -> None:
    cache: LruCache[int, str] = LruCache()
    for number in range(5 * lru_cache.GENERATION):
        cache.put(number, "x")
        if number % 1000 == 0:
            assert len(cache) <= 2 * lru_cache.GENERATION
    assert cache.get(0) is None


def test_what_is_asked_for_stays() -> None:
    cache: LruCache[int, str] = LruCache()
    cache.put(-1, "wanted")
    for number in range(5 * lru_cache.GENERATION):
        cache.put(number, "x")
        if number % 1000 == 0:
            assert cache.get(-1) == "wanted"
