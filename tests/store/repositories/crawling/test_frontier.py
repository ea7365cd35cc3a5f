"""What is particular to the frontier in SQL: its bounds, its index, what it forgets, its order under any offers."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from gatewayfilter.interfaces import CrawlRequest, Priority, QueueState
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling import frontier as frontier_module
from gatewayfilter.store.repositories.crawling.frontier import DEAD_KEEP_S
from gatewayfilter.store.repositories.crawling.frontier_sql import DUE_IN_LEVEL, NEXT_LEVEL
from gatewayfilter.store.sql.database import Area, Database

LINK, VISIT, RECHECK, MANUAL = Priority.LINK, Priority.VISIT, Priority.RECHECK, Priority.MANUAL


def offers(count: int, priority: int = LINK, start: int = 0) -> list[CrawlRequest]:
    return [CrawlRequest(f"http://{priority}.example/{number}", priority) for number in range(start, start + count)]


@pytest.mark.parametrize("priority", [VISIT, RECHECK, MANUAL])
def test_links_are_refused_at_the_limit_and_all_else_at_twice_the_limit(store: Store, priority: int) -> None:
    frontier = store.frontier
    frontier.max_waiting = 10
    assert frontier.add(offers(15), 1.0) == 10
    assert frontier.refused == 5
    assert frontier.add(offers(1, start=100), 1.0) == 0
    assert frontier.add(offers(15, priority), 1.0) == 10
    assert frontier.refused == 11
    assert frontier.stats(1.0)["waiting"] == 20


def test_what_waits_and_since_when(store: Store) -> None:
    frontier = store.frontier
    assert frontier.waiting(5.0) == (0, None)
    frontier.add([CrawlRequest("http://later.example/", not_before=90.0)], 1.0)
    assert frontier.waiting(5.0) == (1, None)
    frontier.add(offers(2), 3.0)
    frontier.add(offers(1, VISIT), 4.0)
    assert frontier.waiting(5.0) == (4, 3.0)
    frontier.lease(1, 60.0, 5.0)
    assert frontier.waiting(5.0) == (3, 3.0)


def test_a_full_frontier_still_hurries_what_waits(store: Store) -> None:
    frontier = store.frontier
    frontier.max_waiting = 3
    frontier.add(offers(3), 1.0)
    known = offers(3)[2].url
    assert frontier.add([CrawlRequest(known, VISIT), *offers(1, start=50)], 1.0) == 0
    assert frontier.lease(1, 60.0, 1.0)[0].url == known
    assert frontier.refused == 1


def test_room_comes_back_when_urls_leave(store: Store) -> None:
    frontier = store.frontier
    frontier.max_waiting = 3
    frontier.add(offers(3), 1.0)
    frontier.lease(2, 60.0, 1.0)
    assert frontier.add(offers(5, start=10), 1.0) == 2
    frontier.clear()
    assert frontier.add(offers(5, start=20), 1.0) == 3


def test_room_for_long_urls_comes_back_when_the_queue_is_emptied(store: Store) -> None:
    frontier = store.frontier
    frontier.max_waiting = 10
    frontier.add(offers(6), 1.0)
    long = CrawlRequest("http://a.example/".ljust(512, "x"), LINK)
    assert frontier.add([long], 1.0) == 0
    frontier.clear()
    assert frontier.add([long], 1.0) == 1


def test_what_another_process_adds_counts_near_the_limit(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as mine, closing(Store.open(sqlite_url)) as theirs:
        mine.frontier.max_waiting = theirs.frontier.max_waiting = 10
        mine.frontier.add(offers(6), 1.0)
        theirs.frontier.add(offers(6, start=6), 1.0)
        assert mine.frontier.add(offers(6, start=20), 1.0) == 0
        assert mine.frontier.stats(1.0)["waiting"] == 10


@pytest.mark.slow
def test_a_visit_overtakes_a_hundred_thousand_links_and_they_come_after_it_in_order(sqlite_url: str) -> None:
    """With links due now, links due later, and some in work."""
    with closing(Store.open(sqlite_url)) as store:
        links = [CrawlRequest(f"http://s{n % 500}.example/{n}", LINK, 0.0 if n % 2 else 1e9) for n in range(100_000)]
        assert store.frontier.add(links, 1.0) == 100_000
        in_work = store.frontier.lease(50, 60.0, 2.0)
        store.frontier.add([CrawlRequest("http://recheck.example/", RECHECK), CrawlRequest("http://visit.example/")], 3.0)
        first = store.frontier.lease(4, 60.0, 3.0)
        expected = ["http://visit.example/", "http://recheck.example/", links[101].url, links[103].url]
        assert [lease.url for lease in first] == expected
        assert [lease.url for lease in in_work] == [link.url for link in links[1:101:2]]
        assert _steps_of_a_look(store) < 5_000  # SQLite's own count: nobody walked past 100,000 rows


def _steps_of_a_look(store: Store) -> int:
    """Looks for one more visit as a lease does; returns how many steps of its virtual machine SQLite took, in hundreds."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    store.frontier.add([CrawlRequest("http://another.example/")], 4.0)
    with store._database.read() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.set_progress_handler(count, 100)
        try:
            rows = connection.execute(DUE_IN_LEVEL, {"in_state": "waiting", "level": int(VISIT), "now": 4.0, "most": 1}).all()
            level = connection.scalar(NEXT_LEVEL, {"in_state": "waiting", "after": -1})
        finally:
            raw.set_progress_handler(None, 0)
    assert (len(rows), level) == (1, VISIT)
    return steps


def test_leasing_reads_an_index_and_sorts_nothing(sqlite_url: str) -> None:
    """So a visit overtakes 100,000 queued links without walking past them."""
    with closing(Store.open(sqlite_url)) as store:
        store.frontier.add(offers(500), 1.0)
    with closing(Database.from_url(sqlite_url)) as database, database.read() as connection:
        for statement, terms in (
            (NEXT_LEVEL, "COVERING INDEX ix_frontier_state_priority_due_at (state=? AND priority>?)"),
            (DUE_IN_LEVEL, "INDEX ix_frontier_state_priority_due_at (state=? AND priority=? AND due_at<?)"),
        ):
            sql = str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))
            values = {"in_state": "waiting", "after": -1, "level": 100, "now": 5.0, "most": 1, "param_1": 0}
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all()
            assert [row[3] for row in plan] == [f"SEARCH frontier USING {terms}"]


def test_what_rested_and_what_died_is_forgotten_in_the_end(store: Store) -> None:
    frontier = store.frontier
    frontier.add(offers(3, VISIT), 100.0)
    rests, dies, waits = frontier.lease(3, 60.0, 100.0)
    frontier.done(rests, rest_until=1000.0)
    frontier.dead_letter(dies, "gave up")
    frontier.retry(waits, 100.0, "")
    frontier.add([CrawlRequest("http://a.example/")], 999.0)
    assert len(frontier.show(10)) == 4
    frontier.add([CrawlRequest("http://b.example/")], 1100.0)
    assert {row.state for row in frontier.show(10)} == {QueueState.WAITING, QueueState.DEAD}
    frontier.add([CrawlRequest("http://c.example/")], 200.0 + DEAD_KEEP_S)
    assert {row.url for row in frontier.show(10)} == {waits.url, *(f"http://{name}.example/" for name in "abc")}


def test_what_is_settled_is_bounded_and_the_oldest_goes_first(store: Store) -> None:
    frontier = store.frontier
    frontier.max_waiting = 5
    frontier.add(offers(10, VISIT), 100.0)
    for number, lease in enumerate(frontier.lease(10, 60.0, 100.0)):
        assert frontier.dead_letter(lease, "gave up") if number % 2 else frontier.done(lease, rest_until=9000.0)
    frontier.add(offers(6, VISIT, start=10), 101.0)
    for lease in frontier.lease(6, 60.0, 101.0):
        frontier.done(lease, rest_until=5000.0)
    frontier.add(offers(1, VISIT, start=50), 500.0)
    kept = [offer.url for offer in offers(10, VISIT, start=6)]
    assert sorted(row.url for row in frontier.show(50) if row.state is not QueueState.WAITING) == sorted(kept)


_URLS = st.integers(0, 8).map(lambda number: f"http://{number}.example/")
_OFFERS = st.builds(
    CrawlRequest, url=_URLS, priority=st.sampled_from([*Priority]), not_before=st.sampled_from([0.0, 3.0, 7.0, 30.0])
)


@given(batches=st.lists(st.lists(_OFFERS, max_size=6), max_size=6))
@settings(max_examples=25, deadline=None)
def test_any_offers_come_out_in_order(scratch_url: str, batches: list[list[CrawlRequest]]) -> None:
    """Against a model: a dictionary in order of arrival, sorted by priority and the time from which each URL is due."""
    with closing(Store.open(scratch_url)) as store:
        store.frontier.clear()
        model: dict[str, tuple[int, float]] = {}
        for now, batch in enumerate(batches):
            merged: dict[str, tuple[int, float]] = {}
            for offer in batch:
                priority, due = merged.get(offer.url, (offer.priority, offer.not_before))
                merged[offer.url] = (min(priority, offer.priority), min(due, offer.not_before))
            for url, (priority, not_before) in merged.items():
                known_priority, known_due = model.get(url, (priority, 1e9))
                model[url] = (min(known_priority, priority), min(known_due, max(not_before, float(now))))
            store.frontier.add(batch, float(now))
        urls_due = [url for url, (_, due_at) in model.items() if due_at <= 10.0]
        expected = sorted(urls_due, key=lambda url: model[url])
        assert [lease.url for lease in store.frontier.lease(100, 60.0, 10.0)] == expected
        store.frontier.clear()


def test_a_queue_that_is_paused_while_it_is_busy_hands_out_nothing(store: Store) -> None:
    store.frontier.add(offers(3), 1.0)
    assert len(store.frontier.lease(1, 60.0, 2.0)) == 1
    assert store.frontier.pause(3.0)
    assert store.frontier.lease(9, 60.0, 4.0) == []
    assert store.frontier.resume()
    assert len(store.frontier.lease(9, 60.0, 5.0)) == 2
    assert store.frontier.lease(9, 60.0, 6.0) == []
    store.frontier.add(offers(1, VISIT), 7.0)
    assert len(store.frontier.lease(9, 60.0, 8.0)) == 1


def test_a_paused_queue_hands_out_nothing_over_restarts_and_takes_offers(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        store.frontier.add(offers(3), 1.0)
        (lease,) = store.frontier.lease(1, 60.0, 2.0)
        assert store.frontier.paused_since() is None
        assert store.frontier.pause(5.0) is True
        assert store.frontier.pause(6.0) is False
        assert store.frontier.done(lease)
    with closing(Store.open(sqlite_url)) as store:
        assert store.frontier.paused_since() == 5.0
        assert store.frontier.lease(9, 60.0, 100.0) == []
        assert store.frontier.add(offers(1, VISIT), 100.0) == 1
        assert store.frontier.resume()
        assert not store.frontier.resume()
        assert len(store.frontier.lease(9, 60.0, 100.0)) == 3


def test_rows_of_others_are_counted_now_and_then_and_after_a_revival(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_module, "_RECOUNT_AFTER", 3)
    with closing(Store.open(sqlite_url)) as mine, closing(Store.open(sqlite_url)) as theirs:
        mine.frontier.max_waiting = theirs.frontier.max_waiting = 10
        assert mine.frontier.add(offers(1), 1.0) == 1
        assert theirs.frontier.add(offers(8, start=10), 1.0) == 8
        assert [mine.frontier.add(offers(1, start=number), 1.0) for number in (20, 30, 40)] == [1, 1, 0]
        for lease in mine.frontier.lease(11, 60.0, 2.0):
            mine.frontier.dead_letter(lease, "gave up")
        monkeypatch.setattr(frontier_module, "_RECOUNT_AFTER", 1_000)
        assert mine.frontier.add(offers(1, start=50), 3.0) == 1
        assert mine.frontier.revive() == 11
        assert mine.frontier.add(offers(1, start=60), 4.0) == 0


def test_what_rested_is_swept_out_after_so_many_new_urls(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_module, "_RECOUNT_AFTER", 2)
    frontier = store.frontier
    frontier.add(offers(1), 100.0)
    frontier.done(frontier.lease(1, 60.0, 100.0)[0], rest_until=100.5)
    for number, left in ((1, 1), (2, 0)):
        frontier.add(offers(1, start=number), 101.0)
        assert len(frontier.show(9, QueueState.DONE)) == left


def test_what_rested_is_swept_out_each_minute(store: Store) -> None:
    frontier = store.frontier
    frontier.add(offers(1), 100.0)
    frontier.done(frontier.lease(1, 60.0, 100.0)[0], rest_until=100.5)
    for now, left in ((159.9, 1), (160.0, 0)):
        frontier.add(offers(1, start=int(now)), now)
        assert len(frontier.show(9, QueueState.DONE)) == left


def test_an_idle_crawler_only_reads(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url, busy_timeout_s=0.01)) as idle, closing(Store.open(sqlite_url)) as other:
        other.frontier.add([CrawlRequest("http://a.example/", not_before=50.0)], 1.0)
        with other._database.write(Area.FRONTIER):
            assert idle.frontier.lease(9, 60.0, 2.0) == []  # a write would be refused
        assert len(idle.frontier.lease(9, 60.0, 50.0)) == 1
        assert idle.frontier.lease(9, 60.0, 51.0) == []
        with other._database.write(Area.FRONTIER):
            assert idle.frontier.lease(9, 60.0, 52.0) == []
        other.frontier.add(offers(3), 53.0)
        assert len(idle.frontier.lease(1, 60.0, 53.0)) == 1
        assert other.frontier.pause(54.0)
        assert idle.frontier.lease(1, 60.0, 54.0) == []
        with other._database.write(Area.FRONTIER):
            assert idle.frontier.lease(1, 60.0, 55.0) == []


def test_the_token_of_a_lease_fits_its_column(store: Store) -> None:
    store.frontier.add(offers(2), 1.0)
    first, second = (store.frontier.lease(1, 60.0, 1.0)[0] for _ in range(2))
    assert (len(first.token), len(second.token)) == (16, 16)
    assert first.token != second.token


def test_what_is_done_without_a_rest_leaves_no_row(store: Store) -> None:
    frontier = store.frontier
    frontier.add(offers(4), 1.0)
    first, second, third, fourth = frontier.lease(4, 60.0, 2.0)
    assert frontier.done(first, 0.0)
    assert len(frontier.show(9)) == 3
    frontier.done_all([(second, 0.0), (third, 0.5)])
    assert [(row.url, row.state) for row in frontier.show(9)] == [(third.url, QueueState.DONE), (fourth.url, QueueState.LEASED)]
    assert frontier.done(fourth, 0.5)
    assert {row.state for row in frontier.show(9)} == {QueueState.DONE}
