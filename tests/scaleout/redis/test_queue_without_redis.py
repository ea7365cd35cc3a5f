"""The shared queue over doubles: what goes where, what happens while Redis is away, when what waits here is moved."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from gatewayfilter.errors import ConfigError, StoreUnavailableError
from gatewayfilter.interfaces import CrawlRequest, Hold, HoldKind, Lease, Priority, QueueState
from gatewayfilter.scaleout.redis.connection import RedisAwayError
from gatewayfilter.scaleout.redis.no_holds import NoHolds
from gatewayfilter.scaleout.redis.shared_queue import SharedCrawlers, SharedQueue
from gatewayfilter.telemetry import Counters

OWN = Lease("http://own.test/", Priority.LINK, 1, "sql-1", 60.0, "news", 3)
SHARED = Lease("http://shared.test/", Priority.VISIT, 1, "redis-1", 60.0)
OFFER = CrawlRequest("http://a.test/")


class Side:
    """One of the two: notes its calls, and answers as it is told; a shared one may be away."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[Any, ...]] = []
        self.is_away = False
        self.max_waiting, self.refused = 100, 0
        self.holds: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            if self.is_away or f"{name}!" in self.answers:
                raise RedisAwayError("away")
            self.calls.append((name, *values, *named.values()))
            return self.answers.get(name)

        return call

    def taken(self) -> list[tuple[Any, ...]]:
        found, self.calls = self.calls, []
        return found


def both(**answers: Any) -> tuple[SharedQueue, Side, Side, Counters]:
    shared, own, counters = Side(**answers), Side(**answers), Counters()
    return SharedQueue(cast("Any", shared), cast("Any", own), counters), shared, own, counters


def test_bounds_are_those_of_both_and_refusals_add_up() -> None:
    queue, shared, own, _ = both()
    queue.max_waiting = 7
    assert (queue.max_waiting, shared.max_waiting, own.max_waiting) == (7, 7, 7)
    shared.refused, own.refused = 5, 2
    assert queue.refused == 7
    queue.refused = 4
    assert (shared.refused, own.refused, queue.refused) == (4, 0, 4)


def test_urls_go_to_the_machines_own_queue_while_redis_is_away() -> None:
    queue, shared, own, counters = both(add=2, lease=[OWN])
    assert queue.add(iter([OFFER, OFFER]), 5.0) == 2
    assert shared.taken() == [("add", [OFFER, OFFER], 5.0)]
    assert (own.taken(), counters["queue_away"]) == ([], 0)
    shared.is_away = True
    assert queue.add(iter([OFFER, OFFER]), 6.0) == 2
    assert own.taken() == [("add", [OFFER, OFFER], 6.0)]
    assert counters["queue_away"] == 2
    assert queue.lease(3, 60.0, 7.0, [1, 2], "me") == [OWN]
    assert own.taken() == [("lease", 3, 60.0, 7.0, None, "me")]


def test_what_waits_here_is_moved_once_a_second() -> None:
    queue, shared, own, _ = both()
    shared.answers = {"lease": [SHARED], "add": 1}
    own.answers = {"lease": [OWN]}
    assert queue.lease(3, 60.0, 100.0, [1], "me") == [SHARED]
    moved = CrawlRequest(OWN.url, OWN.priority, 0.0, OWN.task, OWN.depth)
    assert shared.taken() == [("lease", 3, 60.0, 100.0, [1], "me"), ("add", [moved], 100.0)]
    assert own.taken() == [("lease", 500, 60.0, 100.0, None, ""), ("done_all", [(OWN, 0.0)])]
    queue.lease(3, 60.0, 100.9)
    assert own.taken() == []
    queue.lease(3, 60.0, 101.0)
    assert len(own.taken()) == 2
    own.answers = {"lease": []}
    queue.lease(3, 60.0, 101.0)  # a second that has begun anew
    queue.lease(3, 60.0, 100.9)  # a clock that was set back
    assert [call[0] for call in own.taken()] == ["lease"]
    assert [call[0] for call in shared.taken()].count("add") == 1
    own.answers = {"lease": [OWN] * 500}
    queue.lease(3, 60.0, 200.0)
    queue.lease(3, 60.0, 200.0)  # there may be more
    assert [call[0] for call in own.taken()] == ["lease", "done_all"] * 2


def test_what_cannot_be_moved_stays_here() -> None:
    queue, shared, own, _ = both(lease=[OWN])
    shared.answers |= {"add!": True}
    assert queue.lease(3, 60.0, 100.0) == [OWN]
    assert [call[0] for call in own.taken()] == ["lease"]


def test_leases_are_given_back_to_the_queue_that_they_are_of() -> None:
    queue, shared, own, _ = both(done=True, retry=True, again=False, dead_letter=True)
    calls: list[tuple[Callable[[Lease], bool], tuple[Any, ...], bool]] = [
        (lambda lease: queue.done(lease, 9.0), ("done", 9.0), True),
        (lambda lease: queue.retry(lease, 8.0, "busy", counted=False), ("retry", 8.0, "busy", False), True),
        (lambda lease: queue.again(lease, 7.0, 50), ("again", 7.0, 50), False),
        (lambda lease: queue.dead_letter(lease, "gone"), ("dead_letter", "gone"), True),
    ]
    for call, (name, *values), answer in calls:
        assert call(OWN) is answer
        assert call(SHARED) is answer
        assert own.taken() == [(name, OWN, *values)]
        assert shared.taken() == [(name, SHARED, *values)]
    shared.is_away = True
    for call, (name, *_), _ in calls:
        call(OWN)
        assert own.taken()[0][0] == name
        with pytest.raises(StoreUnavailableError, match=r"queue\.url"):
            call(SHARED)
    assert own.taken() == []
    shared.is_away = False
    assert queue.retry(SHARED, 8.0, "busy")
    assert shared.taken() == [("retry", SHARED, 8.0, "busy", True)]


def test_several_leases_are_divided() -> None:
    queue, shared, own, _ = both()
    queue.done_all([(SHARED, 1.0), (OWN, 2.0), (SHARED, 0.0)])
    assert own.taken() == [("done_all", [(OWN, 2.0)])]
    assert shared.taken() == [("done_all", [(SHARED, 1.0), (SHARED, 0.0)])]
    queue.done_all([(SHARED, 1.0)])
    assert (own.taken(), len(shared.taken())) == ([], 1)
    own.answers, shared.answers = {"still_held": [OWN]}, {"still_held": [SHARED]}
    assert queue.still_held([SHARED, OWN]) == [OWN, SHARED]
    assert own.taken() == [("still_held", [OWN])]
    assert shared.taken() == [("still_held", [SHARED])]
    shared.is_away = True
    assert queue.still_held([OWN]) == [OWN]
    with pytest.raises(StoreUnavailableError):
        queue.still_held([SHARED])
    with pytest.raises(StoreUnavailableError):
        queue.done_all([(SHARED, 1.0)])


def test_leases_of_crawlers_that_end_are_released_in_both() -> None:
    queue, shared, own, _ = both(release=2, release_except=3)
    assert queue.release(["me"], 5.0) == 4
    assert queue.release_except(["me"], 6.0) == 3
    assert own.taken() == [("release", ["me"], 5.0)]
    assert shared.taken() == [("release", ["me"], 5.0), ("release_except", ["me"], 6.0)]
    shared.is_away = True
    assert (queue.release(["me"], 5.0), queue.release_except(["me"], 6.0)) == (2, 0)


def test_what_is_shown_is_of_the_shared_queue_while_it_is_there() -> None:
    queue, shared, own, _ = both()
    reads: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "stats": (lambda: queue.stats(1.0), (1.0,)),
        "waiting": (lambda: queue.waiting(2.0), (2.0,)),
        "show": (lambda: queue.show(3, QueueState.DEAD), (3, QueueState.DEAD)),
        "page": (lambda: queue.page(4, QueueState.DONE, (1, 2.0, 3)), (4, QueueState.DONE, (1, 2.0, 3))),
        "tasks": (queue.tasks, ()),
        "paused_since": (queue.paused_since, ()),
    }
    shared.answers, own.answers = dict.fromkeys(reads, "shared"), dict.fromkeys(reads, "own")
    for name, (read, values) in reads.items():
        shared.is_away = False
        assert read() == "shared"
        assert (shared.taken(), own.taken()) == ([(name, *values)], [])
        shared.is_away = True
        assert read() == "own"
        assert own.taken() == [(name, *values)]


def test_changes_of_the_whole_queue_need_redis() -> None:
    queue, shared, own, _ = both(pause=True, resume=True, revive=3, clear=4)
    assert (queue.pause(9.0), queue.resume(), queue.revive(), queue.clear("news")) == (True, True, 3, 8)
    assert shared.taken() == [("pause", 9.0), ("resume",), ("revive",), ("clear", "news")]
    assert own.taken() == [("clear", "news")]
    shared.is_away = True
    for change in (lambda: queue.pause(9.0), queue.resume, queue.revive, queue.clear):
        with pytest.raises(StoreUnavailableError):
            change()
    assert own.taken() == []


def test_members_of_before_an_outage_count_as_alive_for_a_while() -> None:
    now = [100.0]
    shared, own = Side(alive=["b", "a"], leave=True), Side(alive=["own"], leave=False)
    crawlers = SharedCrawlers(cast("Any", shared), cast("Any", own), lambda: now[0])
    shared.is_away = True
    assert crawlers.alive(1.0) == ["own"], "of a process that has not met Redis"
    crawlers.beat("own", 1.0)
    assert own.taken() == [("alive", 1.0), ("beat", "own", 1.0)]
    assert crawlers.leave("own") is False
    shared.is_away = False
    assert crawlers.alive(2.0) == ["a", "b"]
    crawlers.beat("a", 2.0)
    assert crawlers.leave("a")
    assert shared.taken() == [("alive", 2.0), ("beat", "a", 2.0), ("leave", "a")]
    assert own.taken() == [("leave", "own"), ("leave", "a")]
    now[0] = 200.0
    shared.answers["alive"] = ["c"]
    assert crawlers.alive(3.0) == ["c"], "the time after the outage at the beginning is over"
    shared.is_away = True
    assert crawlers.alive(3.0) == ["c"]
    shared.is_away = False
    shared.answers["alive"] = ["d"]
    assert crawlers.alive(4.0) == ["c", "d"]
    now[0] = 214.9
    assert crawlers.alive(4.0) == ["c", "d"]
    now[0] = 215.0
    assert crawlers.alive(4.0) == ["d"]
    assert crawlers.alive(4.0) == ["d"]


def test_without_an_outage_those_that_are_gone_do_not_count() -> None:
    shared = Side(alive=["a", "b"])
    crawlers = SharedCrawlers(cast("Any", shared), cast("Any", Side()), lambda: 1.0)
    assert crawlers.alive(1.0) == ["a", "b"]
    shared.answers["alive"] = ["c"]
    assert crawlers.alive(1.0) == ["c"]


def test_holds_of_before_are_shown_and_ended() -> None:
    hold = Hold(HoldKind.HOST, "a.test", 5.0)
    own = Side(unhold=True, all=[hold])
    holds = NoHolds(cast("Any", own))
    assert holds.unhold(HoldKind.HOST, "a.test")
    assert holds.all() == [hold]
    assert own.taken() == [("unhold", HoldKind.HOST, "a.test"), ("all",)]
    assert not NoHolds().unhold(HoldKind.HOST, "a.test")
    assert NoHolds().all() == []
    with pytest.raises(ConfigError, match="a single task"):
        holds.hold(HoldKind.TASK, "news", 6.0)
