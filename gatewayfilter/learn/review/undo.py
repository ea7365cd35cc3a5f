"""Undo of review steps: the state before each step, kept with the step, and its restoration."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from gatewayfilter.interfaces import ListStore, ReviewStore, VerdictStore
from gatewayfilter.learn.verdicts.recognition import Recognition
from gatewayfilter.model import (
    Classification,
    ContentId,
    EntryKind,
    LearnedEntry,
    ListAction,
    ManualRule,
    ReviewKind,
    ReviewState,
    ReviewStep,
    ReviewTask,
)


class UndoLog:
    """Remembers task, learned entries and rules as they are before a step, and puts them back.

    Args:
        reviews: the tasks.
        lists: manual rules and learned entries.
        verdicts: what was judged of each URL.
        recognition: what was judged of each content.
    """

    def __init__(self, reviews: ReviewStore, lists: ListStore, verdicts: VerdictStore, recognition: Recognition) -> None:
        self._reviews = reviews
        self._lists = lists
        self._verdicts = verdicts
        self._recognition = recognition

    def of(self, task: ReviewTask) -> dict[str, Any]:
        """Returns what is needed to take back a step that is about to be made, as JSON values."""
        return {
            "state": task.state.value,
            "category": task.category,
            "blocked": task.blocked,
            "decided_at": task.decided_at,
            "decided_by": task.decided_by,
            "learned": [_entry_document(entry) for entry in self._lists.find_learned(task.keys)],
            "rules": [_rule_document(rule) for rule in self.rules_of(task)],
        }

    def put_back(self, task: ReviewTask, step: ReviewStep, now: float) -> ReviewTask:
        """Makes everything be as before a step. Returns the task as it was; it is not written.

        What others did since stays: a rule that a user made or changed, and a verdict on the same content that was given in
        another task.

        Raises:
            StoreError: the database refuses.
        """
        before = _as_kept_now(step.detail)
        undo_log = replace(
            task,
            state=ReviewState(before["state"]),
            category=before["category"],
            blocked=before["blocked"],
            decided_at=before["decided_at"],
            decided_by=before["decided_by"],
        )
        verdict = task.classification if undo_log.state is ReviewState.OPEN else said(undo_log)
        self.record_verdict(task, verdict, now)
        self.remove_own_rules(task)
        self._put_back_rules(task, before["rules"])
        self._lists.remove_learned(task.keys)
        self._lists.put_learned([_entry(document) for document in before["learned"]])
        self._speak_for_contents(undo_log)
        return undo_log

    def record_verdict(self, task: ReviewTask, verdict: Classification, now: float) -> None:
        """Keeps a verdict with the addresses of a task's page; that of a host has none.

        Raises:
            StoreError: the database refuses.
        """
        for url in task.urls if task.kind is ReviewKind.PAGE else ():
            self._verdicts.record(url, verdict, now)

    def rules_of(self, task: ReviewTask) -> list[ManualRule]:
        """Returns the manual rules for exactly the URLs of a task's page, for all clients.

        Raises:
            StoreError: the database refuses.
        """
        if task.kind is not ReviewKind.PAGE:
            return []
        rules = (rule for rule in self._lists.rules() if not rule.group and not rule.scope)
        return [rule for rule in rules if rule.kind is EntryKind.URL and rule.pattern in task.keys]

    def remove_own_rules(self, task: ReviewTask) -> None:
        """Removes the rules that a rejection made; those that a user made or changed since stay.

        Raises:
            StoreError: the database refuses.
        """
        for rule in self.rules_of(task):
            if rule.comment.startswith(mark(task)):
                self._lists.remove_rule(rule.rule_id)

    def _put_back_rules(self, task: ReviewTask, documents: Iterable[dict[str, Any]]) -> None:
        taken = {rule.pattern for rule in self.rules_of(task)}
        rules = [_rule(document) for document in documents]
        self._lists.add_rules([rule for rule in rules if rule.pattern not in taken])

    def _speak_for_contents(self, task: ReviewTask) -> None:
        """Restores the verdict of each content of a task from the newest decision that still stands, of any task."""
        others = [other for other in self._reviews.same_content(task) if other.task_id != task.task_id]
        decided = [other for other in (*others, task) if other.decided_at is not None]
        for content in contents(task):
            about = [other for other in decided if content in contents(other)]
            newest = max(about, key=lambda other: other.decided_at or 0.0, default=None)
            if newest is not None:
                self._recognition.record(content, said(newest), newest.url, judge=newest.decided_by, at=newest.decided_at)
            else:
                self._recognition.forget(content)


def contents(task: ReviewTask) -> list[ContentId]:
    """Returns by what a task's page is known again: its body and its visible text."""
    return [content for content in (task.page, task.content) if content is not None]


def mark(task: ReviewTask) -> str:
    """Returns how the comment of a rule begins that a rejection made."""
    return f"review {task.task_id}:"


def said(task: ReviewTask) -> Classification:
    """Returns the verdict of the reviewer who decided a task: certain, and without doubt."""
    category = "" if task.state is ReviewState.REJECTED else task.category
    return replace(task.classification, category=category, certainty=1.0 if category else 0.0, doubt="")


def _as_kept_now(detail: dict[str, Any]) -> dict[str, Any]:
    """Returns what is kept with a step; steps of before tasks knew two addresses have one entry and one rule at most."""
    if "rules" in detail:
        return detail
    learned, rule = detail["learned"], detail["former_rule"]
    return {**detail, "learned": [learned] if learned else [], "rules": [rule] if rule else []}


def _entry_document(entry: LearnedEntry) -> dict[str, Any]:
    return {**asdict(entry), "action": entry.action.value}


def _entry(document: dict[str, Any]) -> LearnedEntry:
    return LearnedEntry(**{**document, "action": ListAction(document["action"])})


def _rule_document(rule: ManualRule) -> dict[str, Any]:
    return {**asdict(rule), "action": rule.action.value, "kind": rule.kind.value}


def _rule(document: dict[str, Any]) -> ManualRule:
    return ManualRule(**{**document, "action": ListAction(document["action"]), "kind": EntryKind(document["kind"])})
