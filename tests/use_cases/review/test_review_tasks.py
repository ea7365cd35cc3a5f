from dataclasses import replace

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingError, ReviewError
from gatewayfilter.model import Classification, ReviewKind, ReviewState, ReviewTask
from gatewayfilter.store import Store
from gatewayfilter.use_cases.review.review_deciding import Because, Decision, ReviewMove, also_decided, decide
from gatewayfilter.use_cases.review.review_tasks import TaskQuery, find_task, task_facts, task_page

DOUBT = Classification("", 12.0, 20.0, {"gambling": 12.0}, (), "Bets", certainty=0.62, doubt="gambling")
HARMFUL = replace(DOUBT, category="gambling", score=42.0, certainty=0.995, doubt="")


def task(number: int, *, doubtful: bool = False) -> ReviewTask:
    judged = DOUBT if doubtful else HARMFUL
    host = f"h{number}.example"
    return ReviewTask(
        0, ReviewKind.PAGE, f"http://{host}/", f"{host}/", "gambling", judged, not doubtful, float(number), doubtful=doubtful
    )


@pytest.fixture
def tasks(store: Store) -> None:
    for number in range(1, 7):
        store.reviews.add(task(number, doubtful=number in {1, 4}))


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (TaskQuery(), [2, 3, 5, 6, 1, 4]),
        (TaskQuery(doubtful=True), [1, 4]),
        (TaskQuery(doubtful=False), [2, 3, 5, 6]),
        (TaskQuery(asked=True), []),
        (TaskQuery(category="fraud"), []),
    ],
)
def test_pages_of_tasks_hold_each_once(store: Store, query: TaskQuery, numbers: list[int], limit: int) -> None:
    found, after = list[int](), None
    for _ in range(10):
        page = task_page(store, query, limit, after)
        assert len(page.tasks) <= limit
        found += [item.task.task_id for item in page.tasks]
        after = page.after
        if after is None:
            break
    assert found == numbers


@pytest.mark.usefixtures("tasks")
def test_what_is_not_there(store: Store, settings: Settings) -> None:
    with pytest.raises(MissingError, match="there is no task 99"):
        find_task(store, 99)
    with pytest.raises(ReviewError, match="there is no task 99"):
        task_page(store, TaskQuery(group_of=99), 10)
    with pytest.raises(ReviewError, match="there is no category 'nope'"):
        decide(settings, store, [1], Decision(ReviewMove.CHANGE, "kim", category="nope"))
    decided = decide(settings, store, [99, 2], Decision(ReviewMove.REJECT, "kim", "a museum"))
    assert [(item.task.task_id, item.because) for item in decided.tasks] == [(2, Because.NAMED)]
    assert decided.refused == ("there is no task 99",)


@pytest.mark.usefixtures("tasks")
def test_a_step_is_taken_and_taken_back(store: Store, settings: Settings) -> None:
    assert also_decided(store, find_task(store, 2)).same == ()
    rejected = decide(settings, store, [2], Decision(ReviewMove.REJECT, "kim", "a museum")).tasks[0].task
    assert (rejected.state, rejected.decided_by) == (ReviewState.REJECTED, "kim")
    assert [step.detail["note"] for step in task_facts(store, rejected).steps] == ["a museum"]
    again = decide(settings, store, [2], Decision(ReviewMove.UNDO, "kim")).tasks[0].task
    assert again.state is ReviewState.OPEN
    assert task_page(store, TaskQuery(ReviewState.REJECTED), 10).tasks == ()
