"""Pauses of single crawl tasks and hosts, over SQLite and PostgreSQL; a queue that machines share refuses them."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from sqlalchemy import Connection

from gatewayfilter.errors import ConfigError
from gatewayfilter.interfaces import CrawlQueue, CrawlRequest, HoldKind, Lease, Priority, QueueState
from gatewayfilter.scaleout.redis.no_holds import NoHolds
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling import frontier_holds
from gatewayfilter.store.repositories.crawling.frontier_holds import MOST_HOLDS
from gatewayfilter.store.sql.database import Area

TASK, HOST = HoldKind.TASK, HoldKind.HOST
A, B, DEEP = "http://a.example/", "http://b.example/", "http://www.a.example/deep"


@pytest.fixture
def queue(store: Store) -> CrawlQueue:
    return store.frontier


def urls(leases: list[Lease]) -> list[str]:
    return [lease.url for lease in leases]


def test_a_held_task_waits_and_others_go_on(queue: CrawlQueue, open_store: Callable[[], Store]) -> None:
    queue.add([CrawlRequest(A, task="news"), CrawlRequest(B), CrawlRequest(DEEP, task="news")], 100.0)
    assert queue.holds.hold(TASK, "news", 101.0)
    assert not queue.holds.hold(TASK, "news", 102.0)
    assert [(hold.kind, hold.name, hold.since) for hold in open_store().frontier.holds.all()] == [(TASK, "news", 101.0)]
    assert queue.stats(110.0) == {"waiting": 3, "due": 1, "leased": 0, "done": 0, "dead": 0}
    assert queue.tasks() == {"news": {"waiting": 2}}
    assert {row.url: (row.state, row.held) for row in queue.show(9, QueueState.WAITING)} == {
        A: (QueueState.WAITING, True),
        B: (QueueState.WAITING, False),
        DEEP: (QueueState.WAITING, True),
    }
    assert queue.waiting(110.0) == (3, 100.0)
    assert urls(open_store().frontier.lease(9, 60.0, 110.0)) == [B]
    assert queue.lease(9, 60.0, 111.0) == []
    assert queue.holds.unhold(TASK, "news")
    assert not queue.holds.unhold(TASK, "news")
    assert queue.holds.all() == []
    assert urls(queue.lease(9, 60.0, 112.0)) == [A, DEEP]


def test_a_held_host_is_that_host_alone(queue: CrawlQueue) -> None:
    v6 = "http://[2001:db8::1]/"
    queue.add([CrawlRequest(A), CrawlRequest(DEEP), CrawlRequest(v6), CrawlRequest("http://a.example:8080/x")], 100.0)
    assert queue.holds.hold(HOST, "a.example", 101.0)
    assert queue.holds.hold(HOST, "2001:db8::1", 101.0)
    assert urls(queue.lease(9, 60.0, 110.0)) == [DEEP]
    queue.holds.unhold(HOST, "2001:db8::1")
    assert urls(queue.lease(9, 60.0, 111.0)) == [v6]


def test_what_begins_to_wait_later_is_held_too(queue: CrawlQueue) -> None:
    queue.add([CrawlRequest(A, task="news"), CrawlRequest(B, task="news"), CrawlRequest(DEEP, task="news")], 100.0)
    failed, visited, given_up = queue.lease(3, 60.0, 100.0, holder="one")
    queue.holds.hold(TASK, "news", 101.0)
    assert queue.retry(failed, 102.0, "timed out")  # a leased one is finished
    assert queue.again(visited, 102.0, Priority.LINK)
    assert queue.dead_letter(given_up, "gone")
    queue.add([CrawlRequest(f"http://new.example/{number}", task="news") for number in range(700)], 103.0)
    assert queue.revive() == 1
    queue.add([CrawlRequest("http://free.example/", Priority.LINK)], 104.0)
    assert urls(queue.lease(2, 60.0, 200.0)) == ["http://free.example/"]  # behind 702 more urgent ones that are held
    assert queue.stats(200.0)["due"] == 0
    assert queue.add([CrawlRequest(A, Priority.MANUAL)], 201.0) == 0  # waits already
    assert queue.lease(2, 60.0, 202.0) == []
    queue.holds.unhold(TASK, "news")
    assert urls(queue.lease(1, 60.0, 203.0)) == [A]
    assert len(queue.lease(1000, 60.0, 203.0)) == 702


def test_a_hold_shows_in_the_queue_that_waits_alone(queue: CrawlQueue) -> None:
    queue.add([CrawlRequest(A, task="news"), CrawlRequest(B)], 100.0)
    dead = queue.lease(2, 60.0, 100.0)[1]
    queue.dead_letter(dead, "gone")
    queue.holds.hold(TASK, "other", 101.0)
    shown = {state: [row.url for row in queue.show(9, state)] for state in QueueState}
    assert shown == {QueueState.WAITING: [], QueueState.LEASED: [A], QueueState.DONE: [], QueueState.DEAD: [B]}


@pytest.fixture
def written(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[Area]:
    """What the store writes from now on: the area of each transaction."""
    areas: list[Area] = []
    write = store._database.write

    def noting(area: Area) -> AbstractContextManager[Connection]:
        areas.append(area)
        return write(area)

    monkeypatch.setattr(store._database, "write", noting)
    return areas


def test_many_urls_are_moved_in_short_transactions(store: Store, written: list[Area], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_holds, "_MOVED_AT_ONCE", 2)
    store.frontier.add([CrawlRequest(f"http://{number}.example/", task="news") for number in range(5)], 100.0)
    written.clear()
    assert store.frontier.holds.hold(TASK, "news", 101.0)
    assert len(written) == 1 + 3
    written.clear()
    assert store.frontier.holds.unhold(TASK, "news")
    assert len(written) == 3 + 1


def test_what_is_held_meanwhile_goes_with_the_hold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.frontier.add([CrawlRequest(A, task="news")], 100.0)
    store.frontier.holds.hold(TASK, "news", 101.0)
    monkeypatch.setattr(frontier_holds.SqlHolds, "_move", lambda *_: None)
    store.frontier.holds.unhold(TASK, "news")
    assert urls(store.frontier.lease(9, 60.0, 102.0)) == [A]


def test_both_holds_of_a_url_must_end(queue: CrawlQueue) -> None:
    queue.add([CrawlRequest(A, task="news")], 100.0)
    queue.holds.hold(TASK, "news", 101.0)
    queue.holds.hold(HOST, "a.example", 101.0)
    queue.holds.unhold(TASK, "news")
    assert queue.lease(9, 60.0, 110.0) == []
    queue.holds.unhold(HOST, "a.example")
    assert urls(queue.lease(9, 60.0, 111.0)) == [A]


@pytest.mark.slow
def test_held_urls_count_towards_the_bound_and_are_cleared(queue: CrawlQueue) -> None:
    queue.max_waiting = 3
    queue.add([CrawlRequest(f"http://a.example/{number}", Priority.LINK, task="news") for number in range(3)], 100.0)
    queue.holds.hold(TASK, "news", 101.0)
    assert queue.add([CrawlRequest(B, Priority.LINK)], 102.0) == 0
    assert queue.clear("news") == 3
    assert queue.holds.hold(HOST, "x.example", 103.0)
    for number in range(MOST_HOLDS - 2):
        queue.holds.hold(HOST, f"{number}.example", 103.0)
    with pytest.raises(ConfigError, match="at most 1,000"):
        queue.holds.hold(HOST, "one-more.example", 104.0)


def test_a_shared_queue_refuses_and_ends_those_of_before(queue: CrawlQueue) -> None:
    queue.holds.hold(HOST, "a.example", 100.0)
    shared = NoHolds(queue.holds)
    with pytest.raises(ConfigError, match=r"queue\.url"):
        shared.hold(TASK, "news", 101.0)
    assert [hold.name for hold in shared.all()] == ["a.example"]
    assert shared.unhold(HOST, "a.example")
    assert not shared.unhold(HOST, "a.example")
    assert NoHolds().all() == []
