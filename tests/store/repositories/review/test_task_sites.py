"""How much of a site a task may queue: bounded in a period, shared, and over restarts."""

from collections.abc import Callable

import pytest

from gatewayfilter.store import Store
from gatewayfilter.store.repositories.review.task_sites import KEEP_S

DAY_S = 86_400.0


def test_a_site_has_so_many_pages_in_a_period(store: Store) -> None:
    sites = store.task_sites
    assert sites.take("news", "a.example", 3, 5, 100.0, DAY_S) == 3
    assert sites.take("news", "a.example", 3, 5, 200.0, DAY_S) == 2
    assert sites.take("news", "a.example", 3, 5, 300.0, DAY_S) == 0
    assert sites.take("news", "b.example", 3, 5, 300.0, DAY_S) == 3
    assert sites.take("other", "a.example", 3, 5, 300.0, DAY_S) == 3
    assert sites.totals() == {"news": 8, "other": 3}
    assert sites.take("news", "a.example", 9, 5, 100.0 + DAY_S, DAY_S) == 5
    assert sites.take("news", "a.example", 1, 5, 101.0 + DAY_S, DAY_S) == 0
    assert sites.forget("news") == 2
    assert sites.totals() == {"other": 3}


@pytest.mark.parametrize(("wanted", "limit", "got"), [(0, 5, 0), (5, 5, 5), (9, 1, 1), (1, 100, 1)])
def test_never_more_than_asked_for_or_left(store: Store, wanted: int, limit: int, got: int) -> None:
    assert store.task_sites.take("t", "a.example", wanted, limit, 1.0, DAY_S) == got


def test_all_crawlers_share_one_budget_over_restarts(open_store: Callable[[], Store]) -> None:
    assert open_store().task_sites.take("t", "a.example", 3, 4, 1.0, DAY_S) == 3
    assert open_store().task_sites.take("t", "a.example", 3, 4, 2.0, DAY_S) == 1


def test_a_limit_that_was_lowered_gives_nothing_more(store: Store) -> None:
    assert store.task_sites.take("t", "a.example", 9, 9, 1.0, DAY_S) == 9
    assert store.task_sites.take("t", "a.example", 9, 3, 2.0, DAY_S) == 0


def test_sites_of_old_are_forgotten(store: Store) -> None:
    store.task_sites.take("t", "a.example", 1, 9, 1.0, DAY_S)
    store.task_sites.take("t", "b.example", 1, 9, 2.0 + KEEP_S, DAY_S)
    assert store.task_sites.totals() == {"t": 1}
