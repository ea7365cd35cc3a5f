"""What every frontier must do, over every implementation that `conftest.py` knows."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.interfaces import SITE_SLOTS, CrawlQueue, CrawlRequest, Lease, Priority, QueuedUrl, QueueState
from gatewayfilter.store.repositories.crawling.frontier import TASK_REST_S
from gatewayfilter.store.repositories.crawling.frontier_holds import site_slot

A, B, C, D = (f"http://{name}.example/" for name in "abcd")
DAY_S = 86_400.0


def urls(leases: list[Lease]) -> list[str]:
    return [lease.url for lease in leases]


def lease_one(frontier: CrawlQueue, now: float, lease_s: float = 60.0) -> Lease:
    (lease,) = frontier.lease(1, lease_s, now)
    return lease


def test_an_empty_frontier_gives_nothing(frontier: CrawlQueue) -> None:
    assert frontier.lease(10, 60.0, 0.0) == []
    assert frontier.show(10) == []
    assert frontier.stats(0.0) == {"waiting": 0, "due": 0, "leased": 0, "done": 0, "dead": 0}
    assert frontier.add([], 0.0) == 0
    assert frontier.revive() == 0
    assert frontier.clear() == 0


def test_the_most_urgent_comes_first_and_the_oldest_among_equals(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(B, Priority.VISIT)], 100.0)
    frontier.add([CrawlRequest(C, Priority.VISIT), CrawlRequest(D, Priority.MANUAL)], 101.0)
    assert urls(frontier.lease(3, 60.0, 102.0)) == [D, B, C]
    assert urls(frontier.lease(3, 60.0, 102.0)) == [A]


def test_offers_of_one_call_keep_their_order(frontier: CrawlQueue) -> None:
    offered = [f"http://x.example/{number}" for number in range(1200)]
    assert frontier.add([CrawlRequest(url) for url in offered], 100.0) == len(offered)
    assert urls(frontier.lease(2000, 60.0, 100.0)) == offered


def test_a_visit_overtakes_queued_links(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(f"http://links.example/{number}", Priority.LINK) for number in range(3000)], 100.0)
    frontier.add([CrawlRequest(A)], 200.0)
    assert lease_one(frontier, 200.0).url == A


def test_a_url_is_not_leased_before_its_time(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, not_before=150.0), CrawlRequest(B, Priority.LINK)], 100.0)
    assert urls(frontier.lease(5, 60.0, 149.0)) == [B]
    assert urls(frontier.lease(5, 60.0, 150.0)) == [A]


def test_adding_again_is_not_new_and_keeps_the_more_urgent_priority(frontier: CrawlQueue) -> None:
    assert frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(A, Priority.RECHECK), CrawlRequest(B)], 100.0) == 2
    assert frontier.add([CrawlRequest(A, Priority.VISIT), CrawlRequest(B, Priority.LINK)], 101.0) == 0
    assert {row.url: row.priority for row in frontier.show(5)} == {A: Priority.VISIT, B: Priority.VISIT}
    assert urls(frontier.lease(5, 60.0, 102.0)) == [A, B]


def test_adding_again_keeps_the_earlier_time(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, not_before=500.0), CrawlRequest(B, not_before=150.0)], 100.0)
    frontier.add([CrawlRequest(A), CrawlRequest(B, not_before=500.0)], 120.0)
    assert urls(frontier.lease(5, 60.0, 120.0)) == [A]
    assert urls(frontier.lease(5, 60.0, 150.0)) == [B]


def test_a_back_off_is_not_shortened_by_another_visit(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "timed out")
    frontier.add([CrawlRequest(A, Priority.VISIT)], 110.0)
    assert frontier.lease(5, 60.0, 399.0) == []
    lease = lease_one(frontier, 400.0)
    assert (lease.priority, lease.attempts) == (Priority.VISIT, 2)


def test_a_lease_says_what_it_is(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.RECHECK)], 100.0)
    lease = lease_one(frontier, 100.0, lease_s=30.0)
    assert (lease.url, lease.priority, lease.attempts, lease.expires_at) == (A, Priority.RECHECK, 1, 130.0)
    assert lease.token


def test_a_leased_url_is_not_leased_nor_added_again(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease_one(frontier, 100.0)
    assert frontier.lease(5, 60.0, 120.0) == []
    assert frontier.add([CrawlRequest(A)], 120.0) == 0
    assert frontier.lease(5, 60.0, 120.0) == []


def test_a_lease_that_runs_out_is_handed_out_again_and_the_first_holder_has_lost_it(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    first = lease_one(frontier, 100.0, lease_s=30.0)
    second = lease_one(frontier, 130.0)
    assert (second.url, second.attempts) == (A, 2)
    assert second.token != first.token
    assert not frontier.done(first)
    assert not frontier.retry(first, 0.0, "late")
    assert not frontier.dead_letter(first, "late")
    assert frontier.done(second)


def test_a_lease_can_be_given_back_once(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert frontier.done(lease)
    assert not frontier.done(lease)
    assert frontier.show(5) == []


def test_several_are_given_back_at_once(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B), CrawlRequest(C), CrawlRequest(D)], 100.0)
    a, b, c, d = frontier.lease(4, 60.0, 100.0)
    assert frontier.done(d)
    frontier.done_all([(a, 200.0), (b, 0.0), (replace(c, token="stolen"), 200.0), (d, 200.0)])
    assert {queued.url: queued.state for queued in frontier.show(9)} == {A: QueueState.DONE, C: QueueState.LEASED}
    assert frontier.add([CrawlRequest(A)], 199.0) == 0
    assert frontier.add([CrawlRequest(A)], 200.0) == 1
    frontier.done_all([])


def test_a_foreign_token_gives_nothing_back(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert not frontier.done(replace(lease, token="stolen"))
    assert not frontier.done(replace(lease, url=B))
    assert frontier.done(lease)


def test_a_finished_url_is_new_when_it_comes_again(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    frontier.done(lease_one(frontier, 100.0))
    assert frontier.add([CrawlRequest(A)], 101.0) == 1
    assert lease_one(frontier, 101.0).attempts == 1


def test_a_resting_url_ignores_offers_until_its_rest_is_over(frontier: CrawlQueue) -> None:
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
    frontier: CrawlQueue, rest_until: float, task: str, due_at: float | None
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


def test_a_failed_url_comes_back_with_its_error(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    assert frontier.retry(lease_one(frontier, 100.0), 160.0, "connection refused")
    assert frontier.show(5) == [QueuedUrl(A, Priority.VISIT, QueueState.WAITING, 1, 160.0, "connection refused")]
    assert frontier.lease(5, 60.0, 159.0) == []
    assert lease_one(frontier, 160.0).attempts == 2


def test_a_dead_letter_stays_until_it_is_revived(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    frontier.dead_letter(lease_one(frontier, 100.0), "gave up")
    assert frontier.add([CrawlRequest(A)], 110.0) == 0
    assert frontier.show(5, QueueState.DEAD) == [QueuedUrl(A, Priority.VISIT, QueueState.DEAD, 1, 0.0, "gave up")]
    assert urls(frontier.lease(5, 60.0, 1000.0)) == [B]
    assert frontier.revive() == 1
    lease = lease_one(frontier, 1000.0)
    assert (lease.url, lease.attempts) == (A, 1)


def test_a_dead_letter_gets_another_chance_with_a_visit_days_later(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 100.0)
    frontier.dead_letter(lease_one(frontier, 100.0), "gave up")
    assert frontier.add([CrawlRequest(A)], 100.0 + 2 * DAY_S) == 1
    assert lease_one(frontier, 100.0 + 2 * DAY_S).attempts == 1


def test_stats_count_every_state(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(f"http://{number}.example/") for number in range(6)], 100.0)
    frontier.add([CrawlRequest(A, not_before=500.0)], 100.0)
    first, second, third = frontier.lease(3, 60.0, 100.0)
    frontier.done(first, rest_until=900.0)
    frontier.dead_letter(second, "gave up")
    assert third.token
    assert frontier.stats(200.0) == {"waiting": 4, "due": 3, "leased": 1, "done": 1, "dead": 1}


def test_show_is_bounded_and_filtered(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK), CrawlRequest(B), CrawlRequest(C, Priority.MANUAL)], 100.0)
    lease_one(frontier, 100.0)
    assert [row.url for row in frontier.show(2)] == [C, B]
    assert [row.url for row in frontier.show(5, QueueState.WAITING)] == [B, A]
    assert [row.url for row in frontier.show(5, QueueState.LEASED)] == [C]
    assert frontier.show(5, QueueState.DONE) == []


def test_clear_takes_out_all_and_ends_leases(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    lease = lease_one(frontier, 100.0)
    assert frontier.clear() == 2
    assert not frontier.done(lease)
    assert frontier.show(5) == []


def test_two_users_share_one_queue(open_queue: Callable[[], CrawlQueue]) -> None:
    mine, theirs = open_queue(), open_queue()
    mine.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    first, second = lease_one(mine, 100.0), lease_one(theirs, 100.0)
    assert {first.url, second.url} == {A, B}
    assert theirs.done(first)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 10])
def test_lease_gives_no_more_than_asked_for(frontier: CrawlQueue, limit: int) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B, Priority.LINK), CrawlRequest(C)], 100.0)
    assert len(frontier.lease(limit, 60.0, 100.0)) == min(limit, 3)


def test_what_is_not_counted_is_no_try(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    for _ in range(5):
        lease = lease_one(frontier, 100.0)
        assert lease.attempts == 1
        assert frontier.retry(lease, 100.0, "its host is busy", counted=False)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "timed out")
    assert lease_one(frontier, 400.0).attempts == 2


def test_a_host_that_was_busy_does_not_keep_a_visit_away(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.LINK)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 400.0, "its host is busy", counted=False)
    frontier.add([CrawlRequest(A, Priority.VISIT)], 110.0)
    assert lease_one(frontier, 110.0).priority == Priority.VISIT


def test_what_is_due_again_waits_until_then_and_starts_afresh(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A, Priority.VISIT, task="news", depth=2)], 100.0)
    frontier.retry(lease_one(frontier, 100.0), 100.0, "timed out")
    lease = lease_one(frontier, 100.0)
    assert frontier.again(lease, 5000.0, 70)
    assert not frontier.again(lease, 5000.0, 70)
    assert frontier.show(5) == [QueuedUrl(A, 70, QueueState.WAITING, 0, 5000.0, "", "news", 2)]
    assert frontier.lease(5, 60.0, 4999.0) == []
    again = lease_one(frontier, 5000.0)
    assert (again.priority, again.attempts, again.task, again.depth) == (70, 1, "news", 2)


def test_a_url_keeps_its_task_and_the_shorter_way(frontier: CrawlQueue) -> None:
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


def test_what_waits_for_one_task_is_the_second_one_s_when_the_first_has_seen_it(frontier: CrawlQueue) -> None:
    assert frontier.add([CrawlRequest(A, 100, task="first", depth=1)], 100.0) == 1
    assert frontier.add([CrawlRequest(A, 100, task="second")], 101.0) == 0
    first = lease_one(frontier, 102.0)
    assert first.task == "first"
    assert frontier.add([CrawlRequest(A, 100, task="second")], 103.0) == 0, "nor while it is looked at"
    assert frontier.done(first, rest_until=163.0)
    assert frontier.add([CrawlRequest(A, 100, task="second")], 104.0) == 1
    assert lease_one(frontier, 104.0 + TASK_REST_S).task == "second"


def test_one_task_is_cleared_and_counted(frontier: CrawlQueue) -> None:
    frontier.add(
        [CrawlRequest(A), CrawlRequest(B, task="news"), CrawlRequest(C, task="news"), CrawlRequest(D, task="other")], 100.0
    )
    frontier.lease(2, 60.0, 100.0)
    assert frontier.tasks() == {"news": {"leased": 1, "waiting": 1}, "other": {"waiting": 1}}
    assert frontier.clear("news") == 2
    assert {row.url for row in frontier.show(5)} == {A, D}


def test_what_a_crawler_had_in_work_comes_back_when_it_is_gone(frontier: CrawlQueue) -> None:
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


def test_leases_that_are_held_still(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(url) for url in (A, B, C, D)], 100.0)
    first, second, third, fourth = frontier.lease(4, 60.0, 100.0, None, "one")
    others = replace(first, token=f"{first.token}x")
    assert frontier.still_held([others, fourth, first, second, third]) == [fourth, first, second, third]
    frontier.done(first, rest_until=500.0)
    frontier.retry(second, 100.0, "no answer")
    frontier.dead_letter(third, "no answer")
    assert frontier.still_held([first, second, third, fourth]) == [fourth]
    frontier.release(("one",), 101.0)
    assert frontier.still_held([fourth]) == frontier.still_held([]) == []


def test_each_crawler_leases_the_sites_of_its_own_slots(frontier: CrawlQueue) -> None:
    offered = [f"http://s{number % 40}.example/{number}" for number in range(400)]
    frontier.add([CrawlRequest(url) for url in offered], 100.0)
    frontier.add([CrawlRequest("no url at all", Priority.LINK)], 100.0)
    mine = {site_slot(url) for url in offered[:20]}
    leased = frontier.lease(150, 60.0, 100.0, sorted(mine), "one")
    assert urls(leased) == [url for url in offered if site_slot(url) in mine][:150]
    theirs = frontier.lease(500, 60.0, 100.0, sorted(set(range(SITE_SLOTS)) - mine), "two")
    assert urls(theirs[:-1]) == [url for url in offered if site_slot(url) not in mine]
    assert theirs[-1].url == "no url at all"
    rest = frontier.lease(500, 60.0, 100.0, sorted(mine), "one")
    assert urls(leased + rest) == [url for url in offered if site_slot(url) in mine]


def test_what_waits_is_bounded_and_links_first(frontier: CrawlQueue) -> None:
    frontier.max_waiting = 10
    assert frontier.add([CrawlRequest(f"http://l.example/{number}", Priority.LINK) for number in range(15)], 1.0) == 10
    assert frontier.add([CrawlRequest(f"http://v.example/{number}") for number in range(15)], 1.0) == 10
    assert frontier.refused == 10
    assert frontier.add([CrawlRequest("http://l.example/9", Priority.VISIT)], 1.0) == 0
    assert frontier.lease(1, 60.0, 1.0)[0].url == "http://l.example/9", "a full queue still hurries what waits"
    assert frontier.waiting(5.0) == (19, 1.0)


def test_a_paused_queue_takes_offers_and_hands_out_nothing(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A)], 1.0)
    assert frontier.paused_since() is None
    assert frontier.pause(5.0) is True
    assert frontier.pause(6.0) is False
    assert frontier.paused_since() == 5.0
    assert frontier.add([CrawlRequest(B)], 7.0) == 1
    assert frontier.lease(9, 60.0, 8.0) == []
    assert frontier.resume()
    assert not frontier.resume()
    assert urls(frontier.lease(9, 60.0, 9.0)) == [A, B]


def test_pages_follow_each_other(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(f"http://p.example/{number}", 10 * (number % 3)) for number in range(30)], 1.0)
    frontier.lease(4, 60.0, 2.0)
    whole, seen, after = frontier.show(100), [], None
    while True:
        rows, after = frontier.page(7, None, after)
        seen += rows
        if after is None:
            break
    assert seen == whole
    assert len({row.url for row in seen}) == 30
    assert [row.priority for row in seen] == sorted(row.priority for row in seen)
    assert frontier.page(30) == (whole, None), "a full page may be the last"


def test_what_rested_and_what_died_is_forgotten_in_the_end(frontier: CrawlQueue) -> None:
    frontier.add([CrawlRequest(A), CrawlRequest(B)], 100.0)
    rests, dies = frontier.lease(2, 60.0, 100.0)
    frontier.done(rests, rest_until=1000.0)
    frontier.dead_letter(dies, "gave up")
    frontier.add([CrawlRequest(C)], 1100.0)
    assert {row.url for row in frontier.show(9)} == {B, C}
    frontier.add([CrawlRequest(D)], 200.0 + 7 * DAY_S)
    assert {row.url for row in frontier.show(9)} == {C, D}
