"""Review tasks as rows of tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewayfilter.model import ReviewTask


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
