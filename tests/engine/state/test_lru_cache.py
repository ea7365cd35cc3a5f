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


def test_a_generation_is_full_before_the_next_begins() -> None:
    cache: LruCache[int, str] = LruCache()
    for number in range(lru_cache.GENERATION):
        cache.put(number, "x")
    assert (len(cache.young), len(cache)) == (lru_cache.GENERATION, lru_cache.GENERATION)
    cache.put(-1, "y")
    assert (list(cache.young), len(cache)) == ([-1], lru_cache.GENERATION + 1)
    assert cache.get(0) == "x"
    assert list(cache.young) == [-1, 0], "it is young again"
    assert len(cache) == lru_cache.GENERATION + 1
    assert cache.get(-2) is None


def test_what_is_asked_for_stays() -> None:
    cache: LruCache[int, str] = LruCache()
    cache.put(-1, "wanted")
    for number in range(5 * lru_cache.GENERATION):
        cache.put(number, "x")
        if number % 1000 == 0:
            assert cache.get(-1) == "wanted"
