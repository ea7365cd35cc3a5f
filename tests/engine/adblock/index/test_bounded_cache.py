"""The cache of two generations: `gatewayfilter.engine.adblock.index.bounded_cache`."""

import pytest

from gatewayfilter.engine.adblock.index import bounded_cache
from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(bounded_cache, "GENERATION", 3)
    return []


def cache_of(found: list[int]) -> BoundedCache[int, int]:
    def find(key: int) -> int:
        found.append(key)
        return -key

    return BoundedCache(find)


def test_a_value_is_computed_once_while_it_is_in_use(found: list[int]) -> None:
    cache = cache_of(found)
    for key in range(1, 50):
        assert (cache[0], cache[key]) == (0, -key)
    assert found == list(range(50))


def test_what_was_not_in_use_for_two_generations_is_computed_again(found: list[int]) -> None:
    cache = cache_of(found)
    for key in (1, 2, 3, 4, 5, 6, 3, 1):
        assert cache[key] == -key
    assert found == [1, 2, 3, 4, 5, 6, 1]


def test_nothing_is_left_of_what_is_forgotten(found: list[int]) -> None:
    cache = cache_of(found)
    for _ in range(2):
        for key in (1, 2, 3, 4):
            assert cache[key] == -key
        cache.forget()
        assert len(cache) == 0
    assert found == [1, 2, 3, 4] * 2
