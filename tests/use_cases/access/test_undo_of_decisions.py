"""What of a change is taken back: decisions on review tasks, rules that have ended meanwhile, pauses that ended by themselves."""

from collections.abc import Sequence

import pytest

from gatewayfilter.errors import UndoError
from gatewayfilter.model import (
    Actor,
    Change,
    ChangeKind,
    Classification,
    EntryKind,
    ListAction,
    Pause,
    PauseScope,
    PolicySet,
    ReviewKind,
    ReviewTask,
    Role,
    Via,
)
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.inverses import inverse_of_changes, inverse_of_reviews
from gatewayfilter.use_cases.access.undo import Undo
from tests.use_cases.access.turned_clock import Clock

ADA = Actor("ada", Via.SESSION)
JUDGED = Classification("gambling", 42.0, 20.0, {"gambling": 42.0})


class Reviews:
    """Notes which steps on review tasks are taken back."""

    def __init__(self) -> None:
        self.undone: list[tuple[int, str]] = []

    def undo(self, task_id: int, who: str, note: str = "") -> object:
        assert note == ""
        self.undone.append((task_id, who))
        return None


def no_rules(changed: Sequence[tuple[str, int, int]]) -> None:
    assert changed is None


@pytest.fixture
def trail(store: Store, clock: Clock) -> AuditTrail:
    return AuditTrail(store, clock)


def test_decisions_on_tasks_are_taken_back_unless_one_was_decided_since(store: Store, trail: AuditTrail, clock: Clock) -> None:
    reviews = Reviews()
    undo = Undo(store, lambda: reviews, no_rules, clock)
    url = "http://a.example/"
    tasks = []
    for decided_at in (5.0, 6.0):
        made = ReviewTask(0, ReviewKind.PAGE, url, "a.example/", "gambling", JUDGED, True, 1.0, decided_at=decided_at)
        found = store.reviews.get(store.reviews.add(made))
        assert found is not None
        tasks.append(found)
    inverse = inverse_of_reviews(tasks)
    stale = inverse | {"decided": inverse["decided"] | {str(tasks[1].task_id): 7.0}}
    with pytest.raises(UndoError, match=f"the review task {tasks[1].task_id} was decided again since"):
        undo.undo(trail.record(ADA, "review.rejected", url, undo=stale), ADA, Role.APPROVER)
    assert reviews.undone == []
    undo.undo(trail.record(ADA, "review.rejected", url, undo=inverse), ADA, Role.APPROVER)
    assert reviews.undone == [(task.task_id, "ada") for task in tasks]


@pytest.mark.parametrize(("ends", "back"), [(None, True), (10.5, True), (10.0, False)])
def test_a_rule_that_has_ended_meanwhile_stays_removed(
    store: Store, trail: AuditTrail, clock: Clock, ends: float | None, *, back: bool
) -> None:
    until = None if ends is None else clock.now + ends
    rule = store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example", expires_at=until)
    with trail.changing(ADA, "rule.removed", "a.example") as recording:
        store.lists.remove_rule(rule.rule_id)
    clock.now += 10.0
    Undo(store, Reviews, no_rules, clock).undo(recording.entry_id, ADA, Role.ADMIN)
    assert [found.pattern for found in store.lists.rules()] == ["a.example"] * back


@pytest.mark.parametrize(("until", "recorded"), [(99.0, False), (100.0, False), (100.5, True)])
def test_a_pause_that_ended_by_itself_was_ended_by_nobody(until: float, *, recorded: bool) -> None:
    pause = Pause(PauseScope.ALL, "", until, harm_too=False)
    changes = [Change(1, ChangeKind.POLICY_REMOVED, policy=pause)]
    assert (inverse_of_changes(PolicySet.of([pause]), changes, 100.0) is not None) is recorded
