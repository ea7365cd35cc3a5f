"""Review tasks as rows of tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.model import ReviewState, ReviewTask
    from gatewayfilter.store import Store

PAGE = 500
"""Tasks read at once."""


def all_tasks(
    store: Store, state: ReviewState | None, category: str = "", group_id: int = 0, *, doubtful: bool | None = None
) -> Iterator[ReviewTask]:
    """Yields tasks in the order of their numbers, read page by page; with `doubtful` those in doubt only, or the others."""
    after = 0
    while batch := store.reviews.tasks(state, category=category, group_id=group_id, after=after, limit=PAGE, doubtful=doubtful):
        yield from batch
        after = batch[-1].task_id


def summary(task: ReviewTask) -> dict[str, object]:
    """Returns a task as JSON, without the details that only `review show` prints."""
    return {
        "task": task.task_id,
        "group": task.group_id,
        "kind": task.kind,
        "state": task.state,
        "blocked": task.blocked,
        "doubtful": task.doubtful,
        "certainty": task.classification.certainty,
        "category": task.category,
        "score": task.classification.score,
        "limit": task.classification.limit,
        "url": task.url,
        "final_url": task.final_url or task.url,
        "title": task.classification.title,
        "evidence": task.classification.summary(),
        "created_at": task.created_at,
        "decided_at": task.decided_at,
        "decided_by": task.decided_by,
    }
