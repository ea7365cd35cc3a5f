"""What every frontier must do, over every implementation that `conftest.py` knows."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.interfaces import CrawlRequest, Frontier, Lease, Priority, QueuedUrl, QueueState
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling.frontier import TASK_REST_S

A, B, C, D = (f"http://{name}.example/" for name in "abcd")
DAY_S = 86_400.0


def urls(leases: list[Lease]) -> list[str]:
    return [lease.url for lease in leases]


def lease_one(frontier: Frontier, now: float, lease_s: float = 60.0) -> Lease:
    (lease,) = frontier.lease(1, lease_s, now)
    return lease


def test_an_empty_frontier_gives_nothing(frontier: Frontier) -> None:
    assert frontier.lease(10, 60.0, 0.0) == []
    assert frontier.show(10) == []
    assert frontier.stats(0.0) == {"waiting": 0, "due": 0, "leased": 0, "done": 0, "dead": 0}
    assert frontier.add([], 0.0) == 0
    assert frontier.revive() == 0
    assert frontier.clear() == 0


def test_the_most_urgent_comes_first_and_the_oldest_among_equals(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(B, Priority.VISIT)], 100.0)
    frontier.add([CrawlRequest(C, Priority.VISIT), CrawlRequest(D, Priority.MANUAL)], 101.0)
    assert urls(frontier.lease(3, 60.0, 102.0)) == [D, B, C]
    assert urls(frontier.lease(3, 60.0, 102.0)) == [A]


def test_offers_of_one_call_keep_their_order(frontier: Frontier) -> None:
    offered = [f"http://x.example/{number}" for number in range(1200)]
    assert frontier.add([CrawlRequest(url) for url in offered], 100.0) == len(offered)
    assert urls(frontier.lease(2000, 60.0, 100.0)) == offered


def test_a_visit_overtakes_queued_links(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(f"http://links.example/{number}", Priority.LINK) for number in range(3000)], 100.0)
    frontier.add([CrawlRequest(A)], 200.0)
    assert lease_one(frontier, 200.0).url == A


def test_a_url_is_not_leased_before_its_time(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, not_before=150.0), CrawlRequest(B, Priority.LINK)], 100.0)
    assert urls(frontier.lease(5, 60.0, 149.0)) == [B]
    assert urls(frontier.lease(5, 60.0, 150.0)) == [A]


def test_adding_again_is_not_new_and_keeps_the_more_urgent_priority(frontier: Frontier) -> None:
    assert frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(A, Priority.RECHECK), CrawlRequest(B)], 100.0) == 2
    assert frontier.add([CrawlRequest(A, Priority.VISIT), CrawlRequest(B, Priority.LINK)], 101.0) == 0
    assert {row.url: row.priority for row in frontier.show(5)} == {A: Priority.VISIT, B: Priority.VISIT}
    assert urls(frontier.lease(5, 60.0, 102.0)) == [A, B]


def test_adding_again_keeps_the_earlier_time(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, not_before=500.0), CrawlRequest(B, not_before=150.0)], 100.0)
    frontier.add([CrawlRequest(A), CrawlRequest(B, not_before=500.0)], 120.0)
    assert urls(frontier.lease(5, 60.0, 120.0)) == [A]
    assert urls(frontier.lease(5, 60.0, 150.0)) == [B]


def test_a_back_off_is_not_shortened_by_another_visit(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "timed out")
    frontier.add([CrawlRequest(A, Priority.VISIT)], 110.0)
    assert frontier.lease(5, 60.0, 399.0) == []
    lease = lease_one(frontier, 400.0)
    assert (lease.priority, lease.attempts) == (Priority.VISIT, 2)


def test_a_lease_says_what_it_is(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.RECHECK)], 100.0)
    lease = lease_one(frontier, 100.0, lease_s=30.0)
    assert (lease.url, lease.priority, lease.attempts, lease.expires_at) == (A, Priority.RECHECK, 1, 130.0)
    assert lease.token


def test_a_leased_url_is_not_leased_nor_added_again(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease_one(frontier, 100.0)
    assert frontier.lease(5, 60.0, 120.0) == []
    assert frontier.add([CrawlRequest(A)], 120.0) == 0
    assert frontier.lease(5, 60.0, 120.0) == []


def test_a_lease_that_runs_out_is_handed_out_again_and_the_first_holder_has_lost_it(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    first = lease_one(frontier, 100.0, lease_s=30.0)
    second = lease_one(frontier, 130.0)
    assert (second.url, second.attempts) == (A, 2)
    assert second.token != first.token
    assert not frontier.done(first)
    assert not frontier.retry(first, 0.0, "late")
    assert not frontier.dead_letter(first, "late")
    assert frontier.done(second)


def test_a_lease_can_be_given_back_once(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert frontier.done(lease)
    assert not frontier.done(lease)
    assert frontier.show(5) == []


def test_several_are_given_back_at_once(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B), CrawlRequest(C), CrawlRequest(D)], 100.0)
    a, b, c, d = frontier.lease(4, 60.0, 100.0)
    assert frontier.done(d)
    frontier.done_all([(a, 200.0), (b, 0.0), (replace(c, token="stolen"), 200.0), (d, 200.0)])
    assert {queued.url: queued.state for queued in frontier.show(9)} == {A: QueueState.DONE, C: QueueState.LEASED}
    assert frontier.add([CrawlRequest(A)], 199.0) == 0
    assert frontier.add([CrawlRequest(A)], 200.0) == 1
    frontier.done_all([])


def test_a_foreign_token_gives_nothing_back(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert not frontier.done(replace(lease, token="stolen"))
    assert not frontier.done(replace(lease, url=B))
    assert frontier.done(lease)


def test_a_finished_url_is_new_when_it_comes_again(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    frontier.done(lease_one(frontier, 100.0))
    assert frontier.add([CrawlRequest(A)], 101.0) == 1
    assert lease_one(frontier, 101.0).attempts == 1


def test_a_resting_url_ignores_offers_until_its_rest_is_over(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    assert frontier.done(lease_one(frontier, 100.0), rest_until=200.0)
    assert frontier.add([CrawlRequest(A, Priority.MANUAL)], 199.0) == 0
    assert frontier.lease(5, 60.0, 300.0) == []
    assert frontier.stats(199.0)["done"] == 1
    assert frontier.add([CrawlRequest(A, Priority.LINK)], 200.0) == 1
    lease = lease_one(frontier, 200.0)
    assert (lease.priority, lease.attempts) == (Priority.LINK, 1)


@pytest.mark.parametrize(
    ("rest_until", "task", "due_at"),
    [
        (150.0, "news", 150.0),  # what was just looked at rests first
        (90_000.0, "news", 110.0 + TASK_REST_S),  # but a task does not wait for a day
        (90_000.0, "other", None),  # its own page
        (90_000.0, "", None),
    ],
)
def test_a_task_looks_for_itself_at_what_rests_for_others(
    frontier: Frontier, rest_until: float, task: str, due_at: float | None
) -> None:
    frontier.add([CrawlRequest(A, task="other")], 100.0)
    frontier.done(lease_one(frontier, 100.0), rest_until=rest_until)
    assert frontier.add([CrawlRequest(A, 100, task=task, depth=2)], 110.0) == (due_at is not None)
    if due_at is None:
        assert frontier.stats(110.0)["done"] == 1
    else:
        assert frontier.lease(5, 60.0, due_at - 1) == []
        lease = lease_one(frontier, due_at)
        assert (lease.task, lease.depth, lease.attempts) == (task, 2, 1)


def test_a_failed_url_comes_back_with_its_error(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    assert frontier.retry(lease_one(frontier, 100.0), 160.0, "connection refused")
    assert frontier.show(5) == [QueuedUrl(A, Priority.VISIT, QueueState.WAITING, 1, 160.0, "connection refused")]
    assert frontier.lease(5, 60.0, 159.0) == []
    assert lease_one(frontier, 160.0).attempts == 2


def test_a_dead_letter_stays_until_it_is_revived(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    frontier.dead_letter(lease_one(frontier, 100.0), "gave up")
    assert frontier.add([CrawlRequest(A)], 110.0) == 0
    assert frontier.show(5, QueueState.DEAD) == [QueuedUrl(A, Priority.VISIT, QueueState.DEAD, 1, 0.0, "gave up")]
    assert urls(frontier.lease(5, 60.0, 1000.0)) == [B]
    assert frontier.revive() == 1
    lease = lease_one(frontier, 1000.0)
    assert (lease.url, lease.attempts) == (A, 1)


def test_a_dead_letter_gets_another_chance_with_a_visit_days_later(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    frontier.dead_letter(lease_one(frontier, 100.0), "gave up")
    assert frontier.add([CrawlRequest(A)], 100.0 + 2 * DAY_S) == 1
    assert lease_one(frontier, 100.0 + 2 * DAY_S).attempts == 1


def test_stats_count_every_state(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(f"http://{number}.example/") for number in range(6)], 100.0)
    frontier.add([CrawlRequest(A, not_before=500.0)], 100.0)
    first, second, third = frontier.lease(3, 60.0, 100.0)
    frontier.done(first, rest_until=900.0)
    frontier.dead_letter(second, "gave up")
    assert third.token
    assert frontier.stats(200.0) == {"waiting": 4, "due": 3, "leased": 1, "done": 1, "dead": 1}


def test_show_is_bounded_and_filtered(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(B), CrawlRequest(C, Priority.MANUAL)], 100.0)
    lease_one(frontier, 100.0)
    assert [row.url for row in frontier.show(2)] == [C, B]
    assert [row.url for row in frontier.show(5, QueueState.WAITING)] == [B, A]
    assert [row.url for row in frontier.show(5, QueueState.LEASED)] == [C]
    assert frontier.show(5, QueueState.DONE) == []


def test_clear_takes_out_all_and_ends_leases(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert frontier.clear() == 2
    assert not frontier.done(lease)
    assert frontier.show(5) == []


def test_two_users_share_one_queue(open_store: Callable[[], Store]) -> None:
    mine, theirs = open_store().frontier, open_store().frontier
    mine.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    first, second = lease_one(mine, 100.0), lease_one(theirs, 100.0)
    assert {first.url, second.url} == {A, B}
    assert theirs.done(first)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 10])
def test_lease_gives_no_more_than_asked_for(frontier: Frontier, limit: int) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B, Priority.LINK), CrawlRequest(C)], 100.0)
    assert len(frontier.lease(limit, 60.0, 100.0)) == min(limit, 3)


def test_what_is_not_counted_is_no_try(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    for _ in range(5):
        lease = lease_one(frontier, 100.0)
        assert lease.attempts == 1
        assert frontier.retry(lease, 100.0, "its host is busy", counted=False)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "timed out")
    assert lease_one(frontier, 400.0).attempts == 2


def test_a_host_that_was_busy_does_not_keep_a_visit_away(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "its host is busy", counted=False)
    frontier.add([CrawlRequest(A, Priority.VISIT)], 110.0)
    assert lease_one(frontier, 110.0).priority == Priority.VISIT


def test_what_is_due_again_waits_until_then_and_starts_afresh(frontier: Frontier) -> None:
    frontier.add([CrawlRequest(A, Priority.VISIT, task="news", depth=2)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 100.0, "timed out")
    lease = lease_one(frontier, 100.0)
    assert frontier.again(lease, 5000.0, 70)
    assert not frontier.again(lease, 5000.0, 70)
    assert frontier.show(5) == [QueuedUrl(A, 70, QueueState.WAITING, 0, 5000.0, "", "news", 2)]
    assert frontier.lease(5, 60.0, 4999.0) == []
    again = lease_one(frontier, 5000.0)
    assert (again.priority, again.attempts, again.task, again.depth) == (70, 1, "news", 2)


def test_a_url_keeps_its_task_and_the_shorter_way(frontier: Frontier) -> None:
    frontier.add(
        [
            CrawlRequest(A),
            CrawlRequest(B, task="news", depth=3),
            CrawlRequest(B, task="news", depth=1),
            CrawlRequest(B, task="other"),
        ],
        100.0,
    )
    frontier.add(
        [CrawlRequest(A, Priority.LINK, task="news", depth=2), CrawlRequest(B, task="news", depth=2), CrawlRequest(B)], 101.0
    )
    assert {lease.url: (lease.task, lease.depth) for lease in frontier.lease(5, 60.0, 102.0)} == {A: ("news", 2), B: ("news", 1)}


def test_what_waits_for_one_task_is_the_second_one_s_when_the_first_has_seen_it(frontier: Frontier) -> None:
    assert frontier.add([CrawlRequest(A, 100, task="first", depth=1)], 100.0) == 1
    assert frontier.add([CrawlRequest(A, 100, task="second")], 101.0) == 0
    first = lease_one(frontier, 102.0)
    assert first.task == "first"
    assert frontier.add([CrawlRequest(A, 100, task="second")], 103.0) == 0, "nor while it is looked at"
    assert frontier.done(first, rest_until=163.0)
    assert frontier.add([CrawlRequest(A, 100, task="second")], 104.0) == 1
    assert lease_one(frontier, 104.0 + TASK_REST_S).task == "second"


def test_one_task_is_cleared_and_counted(store: Store) -> None:
    store.frontier.add(
        [CrawlRequest(A), CrawlRequest(B, task="news"), CrawlRequest(C, task="news"), CrawlRequest(D, task="other")], 100.0
    )
    store.frontier.lease(2, 60.0, 100.0)
    assert store.frontier.tasks() == {"news": {"leased": 1, "waiting": 1}, "other": {"waiting": 1}}
    assert store.frontier.clear("news") == 2
    assert {row.url for row in store.frontier.show(5)} == {A, D}


def test_what_a_crawler_had_in_work_comes_back_when_it_is_gone(store: Store) -> None:
    frontier = store.frontier
    frontier.add([CrawlRequest(url) for url in (A, B, C, D)], 100.0)
    (first,) = frontier.lease(1, 600.0, 100.0, None, "one")
    (second,) = frontier.lease(1, 600.0, 100.0, None, "two")
    (third,) = frontier.lease(1, 600.0, 100.0)
    assert frontier.release(("nobody",), 101.0) == 0
    assert frontier.release(("one",), 101.0) == 1
    assert not frontier.done(first)
    assert {lease.url for lease in frontier.lease(9, 600.0, 101.0, None, "three")} == {first.url, D}
    assert frontier.release_except(("three",), 102.0) == 1  # of "two"; one without a name only runs out
    assert urls(frontier.lease(9, 600.0, 102.0)) == [second.url]
    assert frontier.done(third)
    assert frontier.release_except((), 103.0) == 2
