"""Decisions on review tasks: of one, of those about the same content, and of similar ones with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.errors import MissingError, ReviewError
from gatewayfilter.model import ListAction, ManualRule, ReviewState, ReviewTask
from gatewayfilter.urls import parse_url
from gatewayfilter.use_cases.review.review_tasks import PAGE
from gatewayfilter.use_cases.review.unblock_index import UnblockIndex, complete_requests
from gatewayfilter.wiring import categories, review_service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gatewayfilter.config import Settings
    from gatewayfilter.learn import ReviewService
    from gatewayfilter.store import Store


class ReviewMove(StrEnum):
    """A step on a task."""

    APPROVE = "approve"
    REJECT = "reject"
    CHANGE = "change"
    UNDO = "undo"
    REDO = "redo"

    @property
    def audit_action(self) -> str:
        """The code of the step in the audit log."""
        return _AUDIT_ACTIONS[self]


_AUDIT_ACTIONS = {
    ReviewMove.APPROVE: "review.approved",
    ReviewMove.REJECT: "review.rejected",
    ReviewMove.CHANGE: "review.changed",
    ReviewMove.UNDO: "review.undone",
    ReviewMove.REDO: "review.redone",
}

_SPREAD = frozenset({ReviewMove.APPROVE, ReviewMove.REJECT, ReviewMove.CHANGE})
"""Steps that are taken for the open tasks about the same content, too."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, and who takes it.

    Attributes:
        who: the name in the record of steps.
        note: the reason.
        category: of `CHANGE`.
        overturn: also where another reviewer has decided already.
    """

    move: ReviewMove
    who: str
    note: str = ""
    category: str = ""
    overturn: bool = False


class Because(StrEnum):
    """The reason for which a task was decided."""

    NAMED = "named"
    SAME_CONTENT = "same content"
    ALIKE = "alike"


@dataclass(frozen=True, slots=True)
class DecidedTask:
    """A task after a decision.

    Attributes:
        because: why it was decided.
        allowing: manual rules that allow for everybody what was just blocked: they outrank every list.
    """

    task: ReviewTask
    because: Because
    allowing: tuple[ManualRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """Tasks that were decided, and one sentence for each that could not be.

    Attributes:
        all_missing: there are refused ones, and none of them exists.
    """

    tasks: tuple[DecidedTask, ...]
    refused: tuple[str, ...]
    all_missing: bool = False


@dataclass(frozen=True, slots=True)
class AlsoDecided:
    """Open tasks that a decision on a task is about, too.

    Attributes:
        same: about the same content; they are decided with it.
        alike: with similar pages; they are decided with it on request.
    """

    same: tuple[ReviewTask, ...]
    alike: tuple[ReviewTask, ...]


def also_decided(store: Store, task: ReviewTask) -> AlsoDecided:
    """Returns what else a decision on a task decides: what a rejection lifts."""
    others = store.reviews.same_content(task)
    same = tuple(other for other in others if other.task_id != task.task_id and other.state is ReviewState.OPEN)
    known = {task.task_id, *(other.task_id for other in same)}
    return AlsoDecided(same, tuple(other for other in _open_alike(store, [task]) if other.task_id not in known))


def decide(settings: Settings, store: Store, tasks: Sequence[int], decision: Decision, *, alike: bool = False) -> Decided:
    """Decides tasks one by one; one that cannot be decided is reported, and the others are still decided.

    Requests of users about the pages are closed.

    Args:
        settings: the settings.
        store: the database.
        tasks: their numbers.
        decision: the step.
        alike: also of the open tasks of their groups.

    Raises:
        ReviewError: there is no such category; nothing was decided.
    """
    if decision.move is ReviewMove.CHANGE:
        _check_category(decision.category)
    service = review_service(settings, store)
    same = [task.task_id for number in tasks if decision.move in _SPREAD for task in service.same_content(number)]
    named = [task for number in tasks if (task := store.reviews.get(number)) is not None] if alike else []
    near = [task.task_id for task in _open_alike(store, named)]
    decided: list[ReviewTask] = []
    refused: list[ReviewError] = []
    for number in dict.fromkeys((*tasks, *same, *near)):
        try:
            decided.append(_take(service, number, decision))
        except ReviewError as error:
            refused.append(error)
    index = UnblockIndex(store.unblock)
    for task in decided:
        if task.state is not ReviewState.OPEN:
            complete_requests(store.unblock, index, task)
    rules = _rules_in_the_way(store, decided)
    reasons = {**dict.fromkeys(near, Because.ALIKE), **dict.fromkeys(same, Because.SAME_CONTENT)}
    reasons |= dict.fromkeys(tasks, Because.NAMED)
    return Decided(
        tuple(DecidedTask(task, reasons[task.task_id], tuple(rules.get(task.task_id, ()))) for task in decided),
        tuple(map(str, refused)),
        bool(refused) and all(isinstance(error, MissingError) for error in refused),
    )


def _check_category(name: str) -> None:
    registry = categories()
    if name not in registry:
        known = sorted(entry.category_id for entry in registry)
        raise ReviewError(f"there is no category {name!r}: there are {', '.join(known)}")


def _take(service: ReviewService, number: int, decision: Decision) -> ReviewTask:
    who, note, overturn = decision.who, decision.note, decision.overturn
    match decision.move:
        case ReviewMove.APPROVE:
            return service.approve(number, who, note)
        case ReviewMove.REJECT:
            return service.reject(number, who, note, overturn=overturn)
        case ReviewMove.CHANGE:
            return service.change(number, decision.category, who, note, overturn=overturn)
        case ReviewMove.UNDO:
            return service.undo(number, who, note)
        case ReviewMove.REDO:
            return service.redo(number, who, note)


def _open_alike(store: Store, tasks: Iterable[ReviewTask]) -> list[ReviewTask]:
    groups = {task.group_id for task in tasks}
    return [other for group in groups for other in store.reviews.tasks(ReviewState.OPEN, group_id=group, limit=PAGE)]


def _rules_in_the_way(store: Store, decided: list[ReviewTask]) -> dict[int, list[ManualRule]]:
    """Returns manual rules that allow, for all clients, what was just blocked: a manual rule outranks every list."""
    rules = ManualRules(store.lists.rules() if any(task.blocked for task in decided) else ())
    if not rules:
        return {}
    now = time.time()
    found = {}
    for task in decided:
        url = parse_url(task.url)
        matching = rules.matching(url, rules.for_host(url), now) if task.blocked else []
        found[task.task_id] = [rule for rule in matching if rule.action is ListAction.ALLOW and not rule.group]
    return found
