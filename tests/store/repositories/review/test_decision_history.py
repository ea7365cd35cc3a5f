"""Decisions that stand, over every database."""

from dataclasses import replace

from gatewayfilter.interfaces import DecidedPage, PageDecision
from gatewayfilter.model import Classification, Evidence, ReviewKind, ReviewState, ReviewStep, ReviewTask
from gatewayfilter.store import Store

SAID = Classification("gambling", 42.5, 20.0, {}, (Evidence("casino", "gambling", 12.0, "title", 4),))
TASK = ReviewTask(0, ReviewKind.PAGE, "http://a.example/", "a.example/", "gambling", SAID, blocked=True, created_at=100.0)


def decide(store: Store, number: int, state: ReviewState, at: float, *, category: str = "gambling", blocked: bool = True) -> int:
    task = replace(TASK, task_id=number, state=state, category=category, decided_at=at, decided_by="ada")
    return store.reviews.decide(task, ReviewStep(0, number, at, "ada", "decision", detail={"blocked": blocked})).step_id


def test_only_decisions_that_stand_are_returned(store: Store) -> None:
    history = store.decisions
    assert (history.last_step(), history.decided_pages(9), history.decisions_since(0.0)) == (0, [], [])
    led = replace(TASK, url="http://short.example/", final_url="http://b.example/", key="short.example/")
    whole = replace(TASK, kind=ReviewKind.DOMAIN, key=".c.example")
    first, second, third, _ = (store.reviews.add(task) for task in (TASK, led, whole, replace(TASK, key="open.example/")))
    decide(store, first, ReviewState.REJECTED, 200.0)
    decide(store, second, ReviewState.APPROVED, 210.0, category="fraud", blocked=False)
    decide(store, third, ReviewState.REJECTED, 220.0)
    assert history.decided_pages(9) == [
        DecidedPage(second, "http://b.example/", second, False, "fraud", SAID),
        DecidedPage(first, "http://a.example/", first, True, "gambling", SAID),
    ]
    assert [page.task_id for page in history.decided_pages(1)] == [second]
    assert history.decisions_since(0.0) == [
        PageDecision("gambling", rejected=True, blocked=True, decided_at=200.0),
        PageDecision("gambling", rejected=False, blocked=False, decided_at=210.0),
    ]
    assert [decision.decided_at for decision in history.decisions_since(205.0)] == [210.0]


def test_a_decision_that_was_overturned_or_undone_does_not_stand(store: Store) -> None:
    number = store.reviews.add(TASK)
    decide(store, number, ReviewState.APPROVED, 200.25)
    step = decide(store, number, ReviewState.REJECTED, 300.5)
    assert store.decisions.decisions_since(0.0) == [PageDecision("gambling", rejected=True, blocked=True, decided_at=300.5)]
    before = replace(TASK, task_id=number, state=ReviewState.APPROVED, decided_at=200.25, decided_by="ada")
    store.reviews.undo(before, step, ReviewStep(0, number, 400.0, "ada", "undo", detail={"of": step}))
    assert store.decisions.decisions_since(0.0) == [PageDecision("gambling", rejected=False, blocked=True, decided_at=200.25)]
    assert store.decisions.last_step() == step + 1
