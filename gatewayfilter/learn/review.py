"""What a person says of a task, and what comes of it: lists, fingerprints and the task change together, and change back.

Source: [page-dedup] disposal tasks are reviewed by a person; the verdict stays with the content.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from gatewayfilter.errors import ReviewError
from gatewayfilter.interfaces import ListStore, VerdictStore
from gatewayfilter.judgements import ReviewKind, ReviewState, ReviewStep, ReviewStore, ReviewTask
from gatewayfilter.learn.recognition import Recognition
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, PersonRule
from gatewayfilter.settings import LearnSettings

_DAY_S = 86_400.0
APPROVE = "approve"
REJECT = "reject"
CHANGE = "change"
UNDO = "undo"


class ReviewDesk:
    """Decides tasks. Every step says who and when, and can be taken back.

    The order of writes is such that a step that is cut off half way can simply be taken again: the task itself changes last.

    Args:
        reviews: the tasks.
        lists: people's rules and learned entries.
        verdicts: what was judged of each URL.
        recognition: what was judged of each content.
        settings: how long a block counts.
        clock: Unix seconds.
    """

    def __init__(
        self,
        reviews: ReviewStore,
        lists: ListStore,
        verdicts: VerdictStore,
        recognition: Recognition,
        settings: LearnSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reviews = reviews
        self._lists = lists
        self._verdicts = verdicts
        self._recognition = recognition
        self._settings = settings
        self._clock = clock

    def approve(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Says that the task is right: it is blocked, and the same content is known as harmful from now on.

        Raises:
            ReviewError: there is no such task, or it is decided already.
            StoreError: the database refuses.
        """
        return self._block(self._open_task(task_id), who, note, APPROVE)

    def change(self, task_id: int, category: str, who: str, note: str = "") -> ReviewTask:
        """Says that the page is harmful, but of another category; also for a task that is decided already.

        Raises:
            ReviewError: there is no such task, or the category is empty or the one it has.
            StoreError: the database refuses.
        """
        task = self._task(task_id)
        if not category or (category == task.category and task.state is ReviewState.APPROVED):
            raise ReviewError(f"task {task_id} is {task.category or 'harmless'} already")
        return self._block(task, who, note, CHANGE, category)

    def reject(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Says that the page is harmless: it is allowed, by a rule in the person's name that outranks every list.

        The same content is known as harmless from now on, wherever it stands. A host is taken off the list and not listed
        again; its pages go on being judged one by one.

        Raises:
            ReviewError: there is no such task, or it is rejected already.
            StoreError: the database refuses.
        """
        task = self._task(task_id)
        if task.state is ReviewState.REJECTED:
            raise ReviewError(f"task {task_id} is rejected already")
        before = self._before(task)
        if task.kind is ReviewKind.PAGE:
            comment = f"{_mark(task)} not {task.category}" + (f" ({note})" if note else "")
            self._lists.add_rule(ListAction.ALLOW, EntryKind.URL, task.key, comment=comment)
            self._record(task, "", who)
        self._lists.remove_learned((task.key,))
        decided = replace(task, state=ReviewState.REJECTED, blocked=False, decided_at=self._clock(), decided_by=who)
        return self._write(decided, REJECT, who, note, before)

    def undo(self, task_id: int, who: str, note: str = "") -> ReviewTask:
        """Takes the last step back: task, lists and fingerprints are as they were before it.

        Raises:
            ReviewError: there is no such task, or nothing to take back.
            StoreError: the database refuses.
        """
        task = self._task(task_id)
        step = next((step for step in self._reviews.steps(task_id) if not step.undone and step.action != UNDO), None)
        if step is None:
            raise ReviewError(f"nothing was decided of task {task_id}")
        before: dict[str, Any] = step.detail
        self._restore_rule(task, before)
        self._restore_learned(task, before)
        former = replace(
            task,
            state=ReviewState(before["state"]),
            category=before["category"],
            blocked=before["blocked"],
            decided_at=before["decided_at"],
            decided_by=before["decided_by"],
        )
        if former.state is ReviewState.OPEN:
            for content in filter(None, (task.page, task.content)):
                self._recognition.forget(content)
            self._verdicts.record(task.url, task.classification, self._clock())
        else:
            self._record(former, "" if former.state is ReviewState.REJECTED else former.category, former.decided_by)
        taken = ReviewStep(0, task_id, self._clock(), who, UNDO, detail={"of": step.step_id, "note": note})
        self._reviews.undo(former, step.step_id, taken)
        return former

    def _block(self, task: ReviewTask, who: str, note: str, action: str, category: str = "") -> ReviewTask:
        before = self._before(task)
        now = self._clock()
        category = category or task.category
        self._remove_own_rule(task)  # an earlier rejection's would keep it open
        decided = replace(task, category=category, state=ReviewState.APPROVED, blocked=True, decided_at=now, decided_by=who)
        if task.kind is ReviewKind.PAGE:
            self._record(decided, category, who)
        detail = f"{task.classification.summary() if task.kind is ReviewKind.PAGE else task.text}; confirmed by a person"
        until = now + self._settings.block_days * _DAY_S
        self._lists.put_learned((LearnedEntry(task.key, ListAction.BLOCK, category, task.url, detail, now, until),))
        return self._write(decided, action, who, note, before)

    def _record(self, task: ReviewTask, category: str, who: str) -> None:
        """Keeps a person's verdict with the content and with the URL."""
        said = replace(task.classification, category=category)
        for content in filter(None, (task.page, task.content)):
            self._recognition.record(content, said, task.url, judge=who)
        self._verdicts.record(task.url, said, self._clock())

    def _before(self, task: ReviewTask) -> dict[str, Any]:
        """Returns what is needed to take a step back that is about to be made."""
        learned = next(iter(self._lists.find_learned((task.key,))), None)
        rule = self._rule_of(task)
        if rule is not None and task.state is not ReviewState.REJECTED and rule.comment.startswith(_mark(task)):
            rule = None  # of a rejection that was cut off half way
        return {
            "state": task.state.value,
            "category": task.category,
            "blocked": task.blocked,
            "decided_at": task.decided_at,
            "decided_by": task.decided_by,
            "learned": None if learned is None else {**asdict(learned), "action": learned.action.value},
            "former_rule": None if rule is None else {**asdict(rule), "action": rule.action.value, "kind": rule.kind.value},
        }

    def _rule_of(self, task: ReviewTask) -> PersonRule | None:
        rules = self._lists.rules() if task.kind is ReviewKind.PAGE else []
        return next((r for r in rules if r.kind is EntryKind.URL and r.pattern == task.key and not r.group), None)

    def _remove_own_rule(self, task: ReviewTask) -> None:
        """Removes the rule that a rejection made; one that a person made or changed since stays."""
        rule = self._rule_of(task)
        if rule is not None and rule.comment.startswith(_mark(task)):
            self._lists.remove_rule(rule.rule_id)

    def _restore_rule(self, task: ReviewTask, before: dict[str, Any]) -> None:
        self._remove_own_rule(task)
        former = before["former_rule"]
        if former is not None and self._rule_of(task) is None:
            self._lists.add_rule(
                ListAction(former["action"]),
                EntryKind(former["kind"]),
                former["pattern"],
                comment=former["comment"],
                group=former["group"],
                expires_at=former["expires_at"],
            )

    def _restore_learned(self, task: ReviewTask, before: dict[str, Any]) -> None:
        learned = before["learned"]
        if learned is None:
            self._lists.remove_learned((task.key,))
        else:
            self._lists.put_learned((LearnedEntry(**{**learned, "action": ListAction(learned["action"])}),))

    def _write(self, task: ReviewTask, action: str, who: str, note: str, before: dict[str, Any]) -> ReviewTask:
        step = ReviewStep(0, task.task_id, self._clock(), who, action, detail={**before, "note": note})
        self._reviews.decide(task, step)
        return task

    def _open_task(self, task_id: int) -> ReviewTask:
        task = self._task(task_id)
        if task.state is not ReviewState.OPEN:
            raise ReviewError(f"task {task_id} is {task.state.value} already: change it, or undo that first")
        return task

    def _task(self, task_id: int) -> ReviewTask:
        task = self._reviews.get(task_id)
        if task is None:
            raise ReviewError(f"there is no task {task_id}")
        return task


def _mark(task: ReviewTask) -> str:
    """Returns how the comment of a rule begins that a rejection made."""
    return f"review {task.task_id}:"
