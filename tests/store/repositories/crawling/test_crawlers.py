"""Heartbeats of crawlers."""

from gatewayfilter.store import Store

DAY = 86_400.0


def test_who_was_heard_of_lately_is_alive(store: Store) -> None:
    for name, now in (("b", 10.0), ("a", 11.0), ("b", 12.0)):
        store.crawlers.beat(name, now)
    assert [store.crawlers.alive(since) for since in (0.0, 11.5, 12.0, 12.5)] == [["a", "b"], ["b"], ["b"], []]
    assert store.crawlers.leave("b")
    assert not store.crawlers.leave("b")
    assert store.crawlers.alive(0.0) == ["a"]


def test_a_crawler_that_is_new_has_those_of_the_day_before_forgotten(store: Store) -> None:
    store.crawlers.beat("old", 9.9)
    store.crawlers.beat("kept", 10.0)
    store.crawlers.beat("kept", 10.0)
    store.crawlers.beat("new", DAY + 10.0)
    assert store.crawlers.alive(0.0) == ["kept", "new"]
    store.crawlers.beat("new", 3 * DAY)
    assert store.crawlers.alive(0.0) == ["kept", "new"], "only then"
