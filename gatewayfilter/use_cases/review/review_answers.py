"""Decisions on review tasks by a person, recorded in the audit log with what takes them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import inverse_of_reviews
from gatewayfilter.use_cases.review.review_deciding import Decided, Decision, ReviewMove, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gatewayfilter.config import Settings
    from gatewayfilter.model import Actor
    from gatewayfilter.store import Store


def decide_recorded(
    settings: Settings,
    store: Store,
    actor: Actor,
    clock: Callable[[], float],
    tasks: Sequence[int],
    decision: Decision,
    *,
    alike: bool = False,
) -> Decided:
    """Decides tasks as `review_deciding.decide`, and records what was decided."""
    done = decide(settings, store, tasks, decision, alike=alike)
    if done.tasks:
        decided = [item.task for item in done.tasks]
        detail = ", ".join(f"task {task.task_id}" for task in decided[:20]) + (f": {decision.note}" if decision.note else "")
        undo = None if decision.move is ReviewMove.UNDO else inverse_of_reviews(decided)
        AuditTrail(store, clock).record(actor, decision.move.audit_action, decided[0].url, detail, undo)
    return done
