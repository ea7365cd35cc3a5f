"""Where a page of tasks ended, as a text, and the tasks of one group."""

from dataclasses import replace

import pytest

from gatewayfilter.model import Classification, ReviewKind, ReviewTask
from gatewayfilter.store import Store
from gatewayfilter.use_cases.review.review_tasks import (
    TaskPosition,
    TaskQuery,
    find_task,
    read_position,
    task_facts,
    task_page,
    write_position,
)

TASK = ReviewTask(
    0,
    ReviewKind.PAGE,
    "http://a.test/",
    "a.test/",
    "gambling",
    Classification("gambling", 42.0, 20.0),
    blocked=True,
    created_at=1.0,
)


@pytest.mark.parametrize("position", [None, TaskPosition(7), TaskPosition(7, doubtful=True), TaskPosition(12_345)])
def test_positions_are_read_as_they_were_written(position: TaskPosition | None) -> None:
    assert read_position(write_position(position)) == position


def test_positions_are_short() -> None:
    assert [write_position(one) for one in (None, TaskPosition(7), TaskPosition(7, doubtful=True))] == ["", "7", "7d"]
    assert read_position("d") is None


def test_the_tasks_of_a_group(store: Store) -> None:
    first = store.reviews.add(TASK)
    assert first is not None
    number = getattr(first, "task_id", first)
    group = find_task(store, number).group_id
    for name in ("b", "c"):
        store.reviews.add(replace(TASK, url=f"http://{name}.test/", key=f"{name}.test/", group_id=group if name == "b" else 0))
    ids = {item.task.url: item.task.task_id for item in task_page(store, TaskQuery(), 10).tasks}
    assert len(ids) == 3
    of_group = task_page(store, TaskQuery(group_of=ids["http://b.test/"]), 10).tasks
    assert [item.task.url for item in of_group] == ["http://a.test/", "http://b.test/"]
    alone = task_page(store, TaskQuery(group_of=ids["http://c.test/"]), 10).tasks
    assert [item.task.url for item in alone] == ["http://c.test/"]
    facts = task_facts(store, find_task(store, ids["http://a.test/"]))
    assert [task.url for task in facts.alike] == ["http://b.test/"]
    assert not facts.steps
    assert not facts.requests
