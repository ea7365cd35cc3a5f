"""Decisions on review tasks with those of the same content, similar ones, rules in their way; counts of what was decided."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingTaskError, ReviewError
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import Classification, EntryKind, ListAction, ReviewKind, ReviewState, ReviewTask
from gatewayfilter.model.fingerprint import ContentId, ContentKind
from gatewayfilter.store import Store
from gatewayfilter.use_cases.review.review_deciding import (
    Because,
    Decided,
    Decision,
    ReviewMove,
    also_decided,
    decide,
)
from gatewayfilter.use_cases.review.review_reports import review_counts
from gatewayfilter.use_cases.review.review_tasks import TaskPosition, TaskQuery, find_task, task_facts, task_page
from gatewayfilter.use_cases.review.unblock_index import UnblockIndex, complete_requests

NOW = 1_800_000_000.0
JUDGED = Classification("gambling", 42.0, 20.0, {"gambling": 42.0})


def task(host: str, **values: object) -> ReviewTask:
    url = f"http://{host}/x"
    return replace(
        ReviewTask(0, ReviewKind.PAGE, url, f"{host}/x", "gambling", JUDGED, blocked=True, created_at=NOW),
        **values,  # type: ignore[arg-type]
    )


@pytest.fixture
def tasks(store: Store) -> dict[str, int]:
    """A group of three similar pages, and one of another group."""
    first = store.reviews.add(task("a.example"))
    numbers = {"a": first}
    for name, group in (("b", first), ("c", first), ("d", 0)):
        numbers[name] = store.reviews.add(task(f"{name}.example", group_id=group))
    return numbers


def because(done: Decided) -> dict[int, Because]:
    return {item.task.task_id: item.because for item in done.tasks}


def decided(settings: Settings, store: Store, move: ReviewMove, *numbers: int, alike: bool = False) -> Decided:
    return decide(settings, store, numbers, Decision(move, "anna"), alike=alike)


def test_similar_tasks_are_decided_on_request(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    first = find_task(store, tasks["a"])
    assert {other.task_id for other in also_decided(store, first).alike} == {tasks["b"], tasks["c"]}
    assert also_decided(store, first).same == ()
    assert because(decided(settings, store, ReviewMove.REJECT, tasks["a"])) == {tasks["a"]: Because.NAMED}
    done = decided(settings, store, ReviewMove.REJECT, tasks["b"], tasks["d"], alike=True)
    assert because(done) == {tasks["b"]: Because.NAMED, tasks["d"]: Because.NAMED, tasks["c"]: Because.ALIKE}
    assert store.reviews.open_count() == 0


def test_tasks_about_the_same_content_are_decided_together(settings: Settings, store: Store) -> None:
    content = ContentId(ContentKind.TEXT, b"d" * 16, b"c" * 16)
    numbers = [store.reviews.add(task(f"{name}.example", content=content)) for name in ("a", "b")]
    store.reviews.add(task("c.example"))
    assert [other.task_id for other in also_decided(store, find_task(store, numbers[0])).same] == [numbers[1]]
    assert because(decided(settings, store, ReviewMove.APPROVE, numbers[0])) == {
        numbers[0]: Because.NAMED,
        numbers[1]: Because.SAME_CONTENT,
    }
    assert because(decided(settings, store, ReviewMove.UNDO, numbers[0])) == {numbers[0]: Because.NAMED}


def test_what_cannot_be_decided_is_told_and_the_others_are(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    done = decided(settings, store, ReviewMove.APPROVE, 98, tasks["a"], 99)
    assert (list(because(done)), len(done.refused), done.all_missing) == ([tasks["a"]], 2, True)
    again = decided(settings, store, ReviewMove.APPROVE, tasks["a"], 99)
    assert (again.tasks, again.all_missing) == ((), False)
    assert decided(settings, store, ReviewMove.APPROVE).all_missing is False
    with pytest.raises(ReviewError, match="no category 'gamblin': there are "):
        decide(settings, store, [tasks["b"]], Decision(ReviewMove.CHANGE, "anna", category="gamblin"))
    done = decide(settings, store, [tasks["b"]], Decision(ReviewMove.CHANGE, "anna", category="ads"))
    assert done.tasks[0].task.category == "ads"


def test_another_reviewer_is_overturned_on_purpose(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    decided(settings, store, ReviewMove.APPROVE, tasks["a"])
    for move, category in ((ReviewMove.REJECT, ""), (ReviewMove.CHANGE, "ads")):
        other = Decision(move, "ben", category=category)
        assert len(decide(settings, store, [tasks["a"]], other).refused) == 1
        assert decide(settings, store, [tasks["a"]], replace(other, overturn=True)).refused == ()
        decide(settings, store, [tasks["a"]], Decision(ReviewMove.UNDO, "ben"))
    assert decided(settings, store, ReviewMove.REDO, tasks["a"]).refused == ()


def test_rules_that_allow_what_was_just_blocked_are_named(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    wanted = store.lists.add_rule(ListAction.ALLOW, EntryKind.DOMAIN, ".a.example")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
    store.lists.add_rule(ListAction.ALLOW, EntryKind.HOST, "b.example")
    store.lists.add_rule(ListAction.ALLOW, EntryKind.URL, "a.example/x", group="mine")
    done = decided(settings, store, ReviewMove.APPROVE, tasks["a"], tasks["d"])
    assert [item.allowing for item in done.tasks] == [(wanted,), ()]
    assert decided(settings, store, ReviewMove.REJECT, tasks["b"]).tasks[0].allowing == ()


def test_requests_about_a_decided_page_are_closed(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    def ask(*hosts: str) -> None:
        asked = [UnblockRequest(f"http://{host}/x", "10.0.0.7", "learned", "", "", "", "", NOW) for host in hosts]
        store.unblock.ask(asked)

    ask("a.example", "b.example")
    ask("a.example")
    page = task_page(store, TaskQuery(asked=True), 9)
    assert [(item.task.task_id, item.asked) for item in page.tasks] == [(tasks["a"], 2), (tasks["b"], 1)]
    assert [(item.task.task_id, item.asked) for item in task_page(store, TaskQuery(), 1).tasks] == [(tasks["a"], 2)]
    assert len(task_facts(store, find_task(store, tasks["a"])).requests) == 1
    decided(settings, store, ReviewMove.APPROVE, tasks["a"])
    decided(settings, store, ReviewMove.UNDO, tasks["b"])
    assert [request.url for request in store.unblock.open_requests()] == ["http://b.example/x"]
    of_host = replace(find_task(store, tasks["b"]), kind=ReviewKind.DOMAIN, key=".b.example")
    index = UnblockIndex(store.unblock)
    assert index.times(of_host) == 1
    assert complete_requests(store.unblock, index, of_host) == 0, "pages of a host are judged one by one"
    assert len(store.unblock.open_requests()) == 1


def test_tasks_in_doubt_come_after_all_others(store: Store) -> None:
    doubtful = Classification("", 12.0, 20.0, {"gambling": 12.0}, doubt="gambling")
    for name, in_doubt in (("a", True), ("b", False), ("c", True), ("d", False)):
        judged = doubtful if in_doubt else JUDGED
        store.reviews.add(task(f"{name}.example", classification=judged, blocked=not in_doubt, doubtful=in_doubt))
    first = task_page(store, TaskQuery(), 3)
    assert ([item.task.task_id for item in first.tasks], first.after) == ([2, 4, 1], TaskPosition(1, doubtful=True))
    assert [item.task.task_id for item in task_page(store, TaskQuery(), 3, first.after).tasks] == [3]
    with pytest.raises(MissingTaskError, match="no task 99"):
        task_page(store, TaskQuery(group_of=99), 3)


def test_what_became_of_tasks(settings: Settings, store: Store, tasks: dict[str, int]) -> None:
    empty = {"open": 4, "oldest_open_hours": 2.5, "decided_in_7_days": 0, "median_hours_to_decision": None}
    found = review_counts(store, NOW + 9_000)
    assert {name: found[name] for name in empty} == empty
    assert found["counts"] == [{"state": "open", "category": "gambling", "tasks": 4, "oldest_hours": 2.5}]
    decided(settings, store, ReviewMove.APPROVE, tasks["a"])
    task_of = find_task(store, tasks["a"])
    assert (task_of.state, task_of.decided_at is not None) == (ReviewState.APPROVED, True)
    assert task_of.decided_at is not None
    found = review_counts(store, task_of.decided_at)
    assert (found["open"], found["decided_in_7_days"]) == (3, 1)
    assert found["median_hours_to_decision"] == round((task_of.decided_at - NOW) / 3_600, 1)
    assert review_counts(store, task_of.decided_at + 8 * 86_400)["decided_in_7_days"] == 0
    assert review_counts(store, NOW)["counts"][0]["oldest_hours"] == 0.0


def test_hours_have_one_digit_behind_the_point() -> None:
    waits_s = 500.26 * 3_600

    def decided_since(moment: float) -> list[tuple[float, float]]:
        assert moment == NOW - 7 * 86_400
        return [(NOW - 2 * waits_s, NOW - waits_s)]

    reviews = SimpleNamespace(stats=lambda: [("open", "games", 2, NOW - waits_s)], decided_since=decided_since)
    assert review_counts(cast("Store", SimpleNamespace(reviews=reviews)), NOW) == {
        "open": 2,
        "oldest_open_hours": 500.3,
        "decided_in_7_days": 1,
        "median_hours_to_decision": 500.3,
        "counts": [{"state": "open", "category": "games", "tasks": 2, "oldest_hours": 500.3}],
    }
