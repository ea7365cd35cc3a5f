"""Review tasks in pages, and all the facts about one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from gatewayfilter.errors import MissingTaskError
from gatewayfilter.model import ReviewState, ReviewTask
from gatewayfilter.use_cases.review.unblock_index import UnblockIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.interfaces import UnblockRequest
    from gatewayfilter.model import ReviewStep
    from gatewayfilter.store import Store

POSITION = r"^(\d{1,15})(d?)$"
"""The form of a position in an address."""
PAGE = 500
"""Tasks read at once."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks are asked for.

    Attributes:
        state: `None` for any.
        category: `""` for any.
        group_of: the number of a task: only those with pages similar to its page; 0 for any.
        asked: only those about pages that users requested to unblock.
        doubtful: `True` for pages in doubt alone, `False` for those that are blocked meanwhile, `None` for both.
    """

    state: ReviewState | None = ReviewState.OPEN
    category: str = ""
    group_of: int = 0
    asked: bool = False
    doubtful: bool | None = None


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task, and how often users requested to unblock its page."""

    task: ReviewTask
    asked: int


@dataclass(frozen=True, slots=True)
class TaskPosition:
    """Where a page of tasks ends: those in doubt come after all others."""

    task_id: int = 0
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks of a page, and what the next one begins after; `None` when this is the last."""

    tasks: tuple[ListedTask, ...]
    after: TaskPosition | None


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Facts beside a task.

    Attributes:
        alike: the other tasks of its group.
        steps: that were taken, newest first.
        archived: where its page is stored, `""` for nowhere.
        requests: of users to unblock its page.
    """

    alike: tuple[ReviewTask, ...]
    steps: tuple[ReviewStep, ...]
    archived: str
    requests: tuple[UnblockRequest, ...]


def all_tasks(
    store: Store,
    state: ReviewState | None,
    category: str = "",
    group_id: int = 0,
    *,
    doubtful: bool | None = None,
    after: int = 0,
    at_once: int = PAGE,
) -> Iterator[ReviewTask]:
    """Yields tasks in the order of their numbers, read page by page; with `doubtful` those in doubt only, or the others."""
    while batch := store.reviews.tasks(
        state, category=category, group_id=group_id, after=after, limit=at_once, doubtful=doubtful
    ):
        yield from batch
        after = batch[-1].task_id


def find_task(store: Store, task_id: int) -> ReviewTask:
    """Returns a task.

    Raises:
        MissingTaskError: there is none of this number.
    """
    task = store.reviews.get(task_id)
    if task is None:
        raise MissingTaskError(f"there is no task {task_id}")
    return task


def task_page(store: Store, query: TaskQuery, limit: int, after: TaskPosition | None = None) -> TaskPage:
    """Returns tasks, the oldest first, and after them those about pages in doubt.

    Args:
        store: the database.
        query: which.
        limit: most tasks.
        after: where the page before ended, `None` for the first.

    Raises:
        MissingTaskError: there is no task `query.group_of`.
    """
    group = store.reviews.get(query.group_of) if query.group_of else None
    if query.group_of and group is None:
        raise MissingTaskError(f"there is no task {query.group_of}")
    index = UnblockIndex(store.unblock)
    at_once = PAGE if query.asked else limit + 1  # each task comes with the text of its page
    found = (
        ListedTask(task, index.times(task))
        for task in _in_order(store, query, group.group_id if group else 0, after or TaskPosition(), at_once)
        if (index.of(task) or not query.asked) and (query.doubtful is not False or task.blocked)
    )
    shown = tuple(islice(found, limit))
    last = shown[-1].task if next(found, None) is not None else None
    return TaskPage(shown, TaskPosition(last.task_id, last.doubtful) if last is not None else None)


def _in_order(store: Store, query: TaskQuery, group_id: int, after: TaskPosition, at_once: int) -> Iterator[ReviewTask]:
    if not after.doubtful and not query.doubtful:
        yield from all_tasks(store, query.state, query.category, group_id, doubtful=False, after=after.task_id, at_once=at_once)
        after = TaskPosition(0, doubtful=True)
    first = after.task_id if after.doubtful else 0
    yield from all_tasks(store, query.state, query.category, group_id, doubtful=True, after=first, at_once=at_once)


def task_facts(store: Store, task: ReviewTask) -> TaskFacts:
    """Returns what is known beside a task."""
    return TaskFacts(
        alike=tuple(other for other in store.reviews.tasks(group_id=task.group_id) if other.task_id != task.task_id),
        steps=tuple(store.reviews.steps(task.task_id)),
        archived=store.verdicts.archived(task.url),
        requests=tuple(UnblockIndex(store.unblock).of(task)),
    )


def read_position(text: str) -> TaskPosition | None:
    """Returns where a page of tasks ended, `None` for `""`."""
    found = re.match(POSITION, text)
    return TaskPosition(int(found[1]), bool(found[2])) if found else None


def write_position(position: TaskPosition | None) -> str:
    """Returns a position as `read_position` reads it, `""` for none."""
    return f"{position.task_id}{'d' if position.doubtful else ''}" if position is not None else ""
