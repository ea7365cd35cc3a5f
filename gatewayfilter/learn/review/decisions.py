"""Decisions on review tasks: lists, fingerprints and the task change in one step, and can be changed back.

Source: [page-dedup] disposal tasks are reviewed by a person; the verdict stays with the content.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from gatewayfilter.errors import MissingTaskError, ReviewError
from gatewayfilter.interfaces import ListStore, ReviewStore, VerdictStore
from gatewayfilter.learn.review.undo import UndoLog, contents, mark, said
from gatewayfilter.learn.verdicts.list_growth import CONFIRMED
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, ReviewKind, ReviewState, ReviewStep, ReviewTask
from gatewayfilter.settings import LearnSettings

_DAY_S = 86_400.0
APPROVE = "approve"
REJECT = "reject"
CHANGE = "change"
UNDO = "undo"
_MOST_STEPS = 1000
"""Steps of one task that are read for undo and redo."""


class ReviewService:
    """Decides tasks. Every step records who and when, can be undone, and can be redone.

    Each step is one transaction that begins with reading the task: of two reviewers who decide at once the second is told
    what the first one decided. Within it verdicts come first, then lists, then fingerprints: the order in which the learner takes
    their locks.

    Args:
        reviews: the tasks.
        lists: manual rules and learned entries.
        verdicts: what was judged of each URL.
        recognition: what was judged of each content.
        settings: how long a block counts.
        clock: Unix seconds.
        together: makes one transaction of what is written meanwhile, in which no other task changes.
    """

    def __init__(
        self,
        reviews: ReviewStore,
        lists: ListStore,
        verdicts: VerdictStore,
        recognition: Recognition,
        settings: LearnSettings,
        clock: Callable[[], float] = time.time,
        together: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._reviews = reviews
        self._lists = lists
        self._recognition = recognition
        self._settings = settings
        self._clock = clock
        self._together = together
        self._undo_log = UndoLog(reviews, lists, verdicts, recognition)

    def approve(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Approves a task: it is blocked, and the same content counts as harmful afterwards.

        Raises:
            ReviewError: there is no such task, or it is decided already.
            StoreError: the database refuses.
        """
        with self._together():
            task = self._task(task_id)
            if task.state is not ReviewState.OPEN:
                raise ReviewError(f"task {task_id} {_decided(task)}: change its category, or undo that first")
            return self._block(task, who, note, APPROVE)

    def change(self, task_id: int, category: str, who: str, note: str = "", *, overturn: bool = False) -> ReviewTask:
        """Moves a task to another category; also one that the same reviewer has decided already.

        Args:
            task_id: the task's number.
            category: the right one.
            who: the reviewer.
            note: why.
            overturn: also where another reviewer has decided already.

        Raises:
            ReviewError: there is no such task, the category is empty or the one it has, or another reviewer has decided.
            StoreError: the database refuses.
        """
        with self._together():
            task = self._task(task_id)
            if not category or (category == task.category and task.state is ReviewState.APPROVED):
                raise ReviewError(f"task {task_id} is {task.category or 'harmless'} already")
            _may_overturn(task, who, overturn=overturn)
            return self._block(task, who, note, CHANGE, category)

    def reject(self, task_id: int, who: str, note: str = "", *, overturn: bool = False) -> ReviewTask:
        """Rejects a task: the page is harmless and allowed, by a manual rule in the reviewer's name, which outranks every list.

        The same content counts as harmless afterwards, on every site. A host is removed from the list and not listed
        again; its pages go on being judged one by one.

        Args:
            task_id: the task's number.
            who: the reviewer.
            note: why.
            overturn: also where another reviewer has approved it.

        Raises:
            ReviewError: there is no such task, it is rejected already, or another reviewer has approved it.
            StoreError: the database refuses.
        """
        with self._together():
            task = self._task(task_id)
            if task.state is ReviewState.REJECTED:
                raise ReviewError(f"task {task_id} {_decided(task)}")
            _may_overturn(task, who, overturn=overturn)
            return self._allow(task, who, note, REJECT)

    def undo(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Takes the last step back: task, lists and fingerprints are as they were before it.

        Raises:
            ReviewError: there is no such task, or nothing to take back.
            StoreError: the database refuses.
        """
        with self._together():
            task = self._task(task_id)
            steps = self._reviews.steps(task_id, limit=_MOST_STEPS)
            step = next((step for step in steps if not step.undone and step.action != UNDO), None)
            if step is None:
                raise ReviewError(f"nothing was decided of task {task_id}")
            now = self._clock()
            undo_log = self._undo_log.put_back(task, step, now)
            taken = ReviewStep(0, task_id, now, who, UNDO, detail={"of": step.step_id, "note": note})
            self._reviews.undo(undo_log, step.step_id, taken)
            return undo_log

    def redo(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Does the step again that was undone last; only until something else is decided.

        Raises:
            ReviewError: there is no such task, or nothing to do again.
            StoreError: the database refuses.
        """
        with self._together():
            task = self._task(task_id)
            undone = _last_undone(self._reviews.steps(task_id, limit=_MOST_STEPS))
            if undone is None:
                raise ReviewError(f"nothing of task {task_id} was undone last")
            step, undo_id = undone
            note = note or str(step.detail.get("note", ""))
            if step.action == REJECT:
                return self._allow(task, who, note, REJECT, redoes=undo_id)
            category = str(step.detail.get("to", ""))
            return self._block(task, who, note, step.action, category, redoes=undo_id)

    def same_content(self, task_id: int) -> list[ReviewTask]:
        """Returns the other open tasks about pages with this page's body or text: a decision on one holds for all.

        Raises:
            StoreError: the database refuses.
        """
        task = self._reviews.get(task_id)
        same = self._reviews.same_content(task) if task is not None else []
        return [other for other in same if other.task_id != task_id and other.state is ReviewState.OPEN]

    def _allow(self, task: ReviewTask, who: str, note: str, action: str, redoes: int = 0) -> ReviewTask:
        now = self._clock()
        before = self._undo_log.of(task)
        decided = replace(task, state=ReviewState.REJECTED, blocked=False, decided_at=now, decided_by=who)
        self._undo_log.record_verdict(task, said(decided), now)
        if task.kind is ReviewKind.PAGE:
            comment = f"{mark(task)} not {task.category}" + (f" ({note})" if note else "")
            self._lists.add_rules([ManualRule(0, ListAction.ALLOW, EntryKind.URL, key, comment) for key in task.keys])
        self._lists.remove_learned(task.keys)
        return self._write(decided, who, action, {**before, "note": note}, redoes)

    def _block(self, task: ReviewTask, who: str, note: str, action: str, category: str = "", redoes: int = 0) -> ReviewTask:
        now = self._clock()
        before = self._undo_log.of(task)
        category = category or task.category
        decided = replace(task, category=category, state=ReviewState.APPROVED, blocked=True, decided_at=now, decided_by=who)
        self._undo_log.record_verdict(task, said(decided), now)
        self._undo_log.remove_own_rules(task)  # an earlier rejection's would keep it open
        detail = f"{task.classification.summary() if task.kind is ReviewKind.PAGE else task.text}{CONFIRMED}"
        until = now + self._settings.block_days * _DAY_S
        addresses = zip(task.keys, task.urls, strict=True)
        self._lists.put_learned(
            [LearnedEntry(key, ListAction.BLOCK, category, url, detail, now, until, certainty=1.0) for key, url in addresses]
        )
        return self._write(decided, who, action, {**before, "note": note, "to": category}, redoes)

    def _write(self, task: ReviewTask, who: str, action: str, detail: dict[str, Any], redoes: int) -> ReviewTask:
        """Stores the manual verdict with the content, and the step with the task."""
        if task.decided_at is None:
            raise AssertionError("a decision has a time")
        for content in contents(task) if task.kind is ReviewKind.PAGE else ():
            self._recognition.record(content, said(task), task.url, judge=who, at=task.decided_at)
        if redoes:
            detail["redoes"] = redoes
        self._reviews.decide(task, ReviewStep(0, task.task_id, task.decided_at, who, action, detail=detail))
        return task

    def _task(self, task_id: int) -> ReviewTask:
        task = self._reviews.get(task_id)
        if task is None:
            raise MissingTaskError(f"there is no task {task_id}")
        newest = self._reviews.newest_of(task.key)
        if newest is not None and newest.task_id != task_id:
            raise ReviewError(f"task {task_id} is history: task {newest.task_id} is about the same address now")
        return task


def _decided(task: ReviewTask) -> str:
    return f"was {task.state.value} by {task.decided_by} already"


def _may_overturn(task: ReviewTask, who: str, *, overturn: bool) -> None:
    """Refuses to overturn by accident a decision that another reviewer made meanwhile."""
    if task.state is not ReviewState.OPEN and task.decided_by != who and not overturn:
        raise ReviewError(f"task {task.task_id} {_decided(task)}: undo that first, or add --overturn")


def _last_undone(steps: list[ReviewStep]) -> tuple[ReviewStep, int] | None:
    """Returns the step that was taken back last, and the number of the step that took it back and was not itself made good.

    There is none where something new was decided since.
    """
    made_good: set[object] = set()
    for step in steps:
        if "redoes" in step.detail:
            made_good.add(step.detail["redoes"])
        elif step.action == UNDO:
            if step.step_id not in made_good:
                return next(((taken, step.step_id) for taken in steps if taken.step_id == step.detail["of"]), None)
        elif not step.undone:
            return None
    return None
