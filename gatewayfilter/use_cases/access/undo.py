"""Undo of recorded changes: states from before are put back, unless somebody has changed them since."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from gatewayfilter.errors import GatewayFilterError, MissingChangeError, PolicyError, UndoError
from gatewayfilter.interfaces import RequestState
from gatewayfilter.model import Actor, AuditEntry, ManualRule, PolicyItem, PolicySet, Role, from_record, kind_of_item
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import EXTRACTION, LINK, LISTS, REQUESTS, REVIEWS, SOURCES, Inverse, item_of, rule_of
from gatewayfilter.use_cases.requests import RequestDecisions

OFFERED: Final = 10
"""The newest changes that pages offer to take back."""

UNDONE: Final = "change.undone"
"""Action of the entry that records an undo; its own undo makes the change again."""

_OF_APPROVERS: Final = ("request.", "review.", "pause.")


type RuleUndo = Callable[[Sequence[tuple[str, int, int]]], object]
"""Takes changes of extraction rules back (`use_cases.learning.extraction_rules.take_back`)."""


class ReviewUndo(Protocol):
    """Takes the last step of a review task back (`learn.ReviewService`)."""

    def undo(self, task_id: int, who: str, note: str = "") -> object:
        """Takes it back; raises `ReviewError` where it cannot be."""
        ...


class SourceUndo(Protocol):
    """Takes changes of subscriptions back (`use_cases.lists.source_undo`)."""

    def take_back(self, pairs: Sequence[Sequence[Mapping[str, Any] | None]]) -> Inverse:
        """Begins to take them back, and returns the inverse of that; raises `UndoError` where they were changed since."""
        ...


class Undo:
    """Takes recorded changes back.

    Args:
        store: the database.
        reviews: makes what undoes decisions on review tasks; called only for those.
        extraction: takes changes of extraction rules back.
        clock: Unix seconds.
        sources: undoes changes of subscriptions, `None` where it cannot be done.
    """

    def __init__(
        self,
        store: Store,
        reviews: Callable[[], ReviewUndo],
        extraction: RuleUndo,
        clock: Callable[[], float] = time.time,
        sources: SourceUndo | None = None,
    ) -> None:
        self._store = store
        self._reviews = reviews
        self._extraction = extraction
        self._sources = sources
        self._clock = clock
        self._trail = AuditTrail(store, clock)

    def offered(self, role: Role, limit: int = OFFERED) -> list[AuditEntry]:
        """Returns the newest changes that a role may take back, the newest first."""
        found = self._store.audit.page(undoable=True, limit=limit if role is Role.ADMIN else 10 * limit)
        return [entry for entry in found if role.covers(role_for(entry))][:limit]

    def undo(self, entry_id: int, actor: Actor, role: Role) -> AuditEntry:
        """Takes a change back, as a whole or not at all. Returns its entry as it is then.

        Raises:
            UndoError: there is no such change, the role may not, it was taken back already, or was changed since.
        """
        entry = self._store.audit.get(entry_id)
        if entry is None or entry.undo is None:
            raise MissingChangeError(f"there is no change {entry_id} that can be taken back")
        if not role.covers(role_for(entry)):
            raise UndoError(f"the change {entry_id} can be taken back by an admin only")
        if entry.undone_at is not None:
            raise UndoError(f"the change {entry_id} was taken back already, by {entry.undone_by}")
        try:
            self._apply(entry, entry.undo, actor)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # an entry of a later version
            raise UndoError(f"the change {entry_id} cannot be taken back by this version") from error
        except UndoError:
            raise
        except GatewayFilterError as error:
            raise UndoError(f"the change {entry_id} cannot be taken back: {error}") from error
        return self._store.audit.get(entry_id) or entry

    def _apply(self, entry: AuditEntry, undo: Mapping[str, Any], actor: Actor) -> None:
        kind = undo["kind"]
        if kind == LISTS:
            with self._trail.changing(actor, UNDONE, entry.subject, f"{entry.entry_id}: {entry.action}"):
                self._put_back(undo)
                self._mark(entry, actor)
            return
        again: Inverse | None = None
        if kind == EXTRACTION:
            self._extraction([(str(name), int(before), int(after)) for name, before, after in undo["rules"]])
        elif kind == SOURCES and self._sources is not None:
            again = self._sources.take_back(undo["items"])
        elif kind not in {REQUESTS, REVIEWS, LINK}:
            raise ValueError(kind)
        elif kind == REQUESTS:
            self._withdraw(undo["decided"])
        elif kind == REVIEWS:
            self._take_back_reviews(undo["decided"], actor)
        elif self._store.bypass.revoke(int(undo["number"]), self._clock()) is None:
            raise UndoError("the link is no longer there")
        self._mark(entry, actor)
        self._trail.record(actor, UNDONE, entry.subject, f"{entry.entry_id}: {entry.action}", again)

    def _mark(self, entry: AuditEntry, actor: Actor) -> None:
        if not self._store.audit.mark_undone(entry.entry_id, self._clock(), actor.name):
            raise UndoError(f"the change {entry.entry_id} was taken back already")

    def _put_back(self, undo: Mapping[str, Any]) -> None:
        now = self._clock()
        items = [(_item(before), _item(after)) for before, after in undo["items"]]
        rules = [(_rule(before), _rule(after)) for before, after in undo["rules"]]
        _refuse_if_changed(self._store.lists.rules(), rules)
        if items:
            self._store.policies.change(lambda policies: _steps_back(policies, items), now)
        there = {_identity(rule): rule.rule_id for rule in self._store.lists.rules()}
        for before, after in rules:
            if before is None and after is not None and (number := there.get(_identity(after))) is not None:
                self._store.lists.remove_rule(number)
        back = [before for before, _ in rules if before is not None]
        self._store.lists.add_rules([rule for rule in back if rule.expires_at is None or rule.expires_at > now])

    def _withdraw(self, decided: Mapping[str, float | None]) -> None:
        decisions = RequestDecisions(self._store, self._clock)
        for number, decided_at in decided.items():
            found = self._store.unblock.find(int(number))
            if found is None or found.state is not RequestState.APPROVED or found.decided_at != decided_at:
                raise UndoError(f"the request {number} was decided again since")
        for number in decided:
            decisions.reopen(int(number))

    def _take_back_reviews(self, decided: Mapping[str, float | None], actor: Actor) -> None:
        for number, decided_at in decided.items():
            task = self._store.reviews.get(int(number))
            if task is None or task.decided_at != decided_at:
                raise UndoError(f"the review task {number} was decided again since")
        service = self._reviews()
        for number in decided:
            service.undo(int(number), actor.name)


def role_for(entry: AuditEntry) -> Role:
    """Returns the role that may take a change back: the one that may make it."""
    action = entry.detail.partition(": ")[2] if entry.action == UNDONE else entry.action
    return Role.APPROVER if action.startswith(_OF_APPROVERS) else Role.ADMIN


def _item(record: Mapping[str, Any] | None) -> PolicyItem | None:
    return None if record is None else from_record(record)


def _rule(document: Mapping[str, Any] | None) -> ManualRule | None:
    return None if document is None else rule_of(document)


def _identity(rule: ManualRule) -> tuple[str, ...]:
    return rule.kind.value, rule.pattern, rule.group, rule.scope


def _refuse_if_changed(rules: Sequence[ManualRule], pairs: Sequence[tuple[ManualRule | None, ManualRule | None]]) -> None:
    """Refuses where a rule is not as the change left it; a rule that has been removed and added again is the same."""
    there = {_identity(rule): rule for rule in rules}
    left = {_identity(after): after for _, after in pairs if after is not None}
    for pair in pairs:
        for state in pair:
            if state is not None and _content(there.get(_identity(state))) != _content(left.get(_identity(state))):
                raise UndoError(f"the entry {state.pattern} was changed since")


def _content(rule: ManualRule | None) -> tuple[object, ...] | None:
    return None if rule is None else (rule.action, rule.comment, rule.expires_at, rule.enabled)


def _steps_back(
    policies: PolicySet, pairs: Sequence[tuple[PolicyItem | None, PolicyItem | None]]
) -> list[tuple[PolicyItem, bool]]:
    steps: list[tuple[PolicyItem, bool]] = []
    for before, after in pairs:
        item = before if before is not None else after
        assert item is not None
        if item_of(policies, kind_of_item(item), item.name) != after:
            raise PolicyError(f"the {kind_of_item(item)} {item.name!r} was changed since")
        steps.append((item, before is not None))
    return steps
