from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.interfaces import ReviewStore
from gatewayfilter.model import (
    Classification,
    ContentId,
    ContentKind,
    Evidence,
    ReviewKind,
    ReviewState,
    ReviewStep,
    ReviewTask,
    ScoreBreakdown,
    TaskOutline,
)
from gatewayfilter.store import Store

SAID = Classification(
    "gambling",
    42.5,
    20.0,
    {"gambling": 42.5},
    (Evidence("casino", "gambling", 12.0, "title", 4),),
    "Casino 赌场",
    "utf-8",
    bytes(16),
)
TASK = ReviewTask(
    task_id=0,
    kind=ReviewKind.PAGE,
    url="http://a.example/x?y",
    key="a.example/x?y",
    category="gambling",
    classification=SAID,
    blocked=True,
    created_at=100.0,
    text="the best casino 赌场\n" * 50,
    simhash=2**63 + 5,
    page=ContentId(ContentKind.PAGE, b"p" * 16, b"q" * 16),
    content=ContentId(ContentKind.TEXT, b"t" * 16, b"u" * 16),
    score_breakdown=ScoreBreakdown("words-1", "gambling", 40.0, 14.2, 10.0, 9.0, 7.5, 0.0, 42.5, 20.0, 5, 2),
)


@pytest.fixture
def reviews(store: Store) -> ReviewStore:
    return store.reviews


def test_a_task_comes_back_whole_in_a_group_of_its_own(reviews: ReviewStore, open_store: Callable[[], Store]) -> None:
    number = reviews.add(TASK)
    assert open_store().reviews.get(number) == replace(TASK, task_id=number, group_id=number)
    assert reviews.get(number + 1) is None


def test_a_task_without_a_page(reviews: ReviewStore) -> None:
    bare = replace(TASK, kind=ReviewKind.DOMAIN, page=None, content=None, simhash=0, text="", group_id=7, score_breakdown=None)
    number = reviews.add(bare)
    assert reviews.get(number) == replace(bare, task_id=number)


def test_the_newest_task_of_a_key(reviews: ReviewStore) -> None:
    assert reviews.newest_of(TASK.key) is None
    reviews.add(TASK)
    second = reviews.add(TASK)
    reviews.add(replace(TASK, key="b.example/"))
    newest = reviews.newest_of(TASK.key)
    assert newest is not None
    assert newest.task_id == second


def test_tasks_by_state_category_group_and_page(reviews: ReviewStore) -> None:
    first = reviews.add(TASK)
    second = reviews.add(replace(TASK, category="adult", group_id=first))
    third = reviews.add(replace(TASK, state=ReviewState.REJECTED))

    def numbers(*args: ReviewState, **kwargs: object) -> list[int]:
        return [task.task_id for task in reviews.tasks(*args, **kwargs)]  # type: ignore[arg-type]

    assert numbers() == [first, second, third]
    assert numbers(newest_first=True, limit=2) == [third, second]
    assert numbers(ReviewState.OPEN) == [first, second]
    assert numbers(category="adult") == [second]
    assert numbers(group_id=first) == [first, second]
    assert numbers(after=first, limit=1) == [second]
    assert reviews.open_count() == 2


def test_outlines_are_of_open_tasks_the_newest_first(reviews: ReviewStore) -> None:
    first = reviews.add(TASK)
    second = reviews.add(replace(TASK, group_id=first, simhash=0, page=None))
    reviews.add(replace(TASK, state=ReviewState.APPROVED))
    reviews.add(replace(TASK, category="adult"))
    assert reviews.outlines("gambling", 10) == [
        TaskOutline(second, first, "Casino 赌场", 0, b"", "gambling"),
        TaskOutline(first, first, "Casino 赌场", 2**63 + 5, b"p" * 16, "gambling"),
    ]
    assert len(reviews.outlines("gambling", 1)) == 1


def test_harmful_outlines_are_of_blocked_pages(reviews: ReviewStore) -> None:
    waiting = reviews.add(TASK)
    reviews.add(replace(TASK, state=ReviewState.REJECTED, blocked=False))
    approved = reviews.add(replace(TASK, state=ReviewState.APPROVED, category="adult"))
    reviews.add(replace(TASK, kind=ReviewKind.DOMAIN))
    found = reviews.harmful_outlines(10)
    assert [(outline.task_id, outline.category) for outline in found] == [(approved, "adult"), (waiting, "gambling")]
    assert len(reviews.harmful_outlines(1)) == 1


def test_a_decision_and_its_step_are_kept_together(reviews: ReviewStore) -> None:
    number = reviews.add(TASK)
    task = replace(TASK, task_id=number, group_id=number)
    decided = replace(task, state=ReviewState.REJECTED, blocked=False, decided_at=150.0, decided_by="ada")
    step = reviews.decide(decided, ReviewStep(0, number, 150.0, "ada", "reject", detail={"note": "a museum", "x": None}))
    assert reviews.get(number) == decided
    assert reviews.steps(number) == [step]
    undo = reviews.undo(task, step.step_id, ReviewStep(0, number, 160.0, "bob", "undo"))
    assert reviews.get(number) == task
    assert reviews.steps(number) == [undo, replace(step, undone=True)]
    assert reviews.steps(number + 1) == []
    assert reviews.steps(limit=1) == [undo]


def test_counts_by_state_and_category(reviews: ReviewStore) -> None:
    assert reviews.stats() == []
    reviews.add(TASK)
    reviews.add(replace(TASK, created_at=50.0))
    reviews.add(replace(TASK, category="adult", state=ReviewState.APPROVED))
    assert reviews.stats() == [("approved", "adult", 1, 100.0), ("open", "gambling", 2, 50.0)]


def test_tasks_about_the_same_content(reviews: ReviewStore) -> None:
    other = ContentId(ContentKind.PAGE, b"o" * 16, b"q" * 16)
    forged = ContentId(ContentKind.TEXT, b"t" * 16, b"x" * 16)
    first = reviews.add(TASK)
    by_text = reviews.add(replace(TASK, page=other, state=ReviewState.APPROVED))
    by_body = reviews.add(replace(TASK, content=None))
    reviews.add(replace(TASK, page=other, content=forged))
    bare = reviews.add(replace(TASK, page=None, content=None))
    task, without = reviews.get(first), reviews.get(bare)
    assert task is not None
    assert without is not None
    assert [found.task_id for found in reviews.same_content(task)] == [first, by_text, by_body]
    assert reviews.same_content(without) == []


@pytest.mark.parametrize("title", ["ca\0sino", "casino \ud800", "\0"])
def test_a_title_that_no_database_takes_keeps_no_task_away(reviews: ReviewStore, title: str) -> None:
    number = reviews.add(replace(TASK, classification=replace(SAID, title=title)))
    assert reviews.get(number) is not None
    assert [outline.task_id for outline in reviews.outlines("gambling", 5)] == [number]


def test_tasks_in_doubt_are_counted_and_listed_apart(reviews: ReviewStore) -> None:
    doubt = replace(SAID, category="", certainty=0.62, doubt="gambling")
    first = reviews.add(replace(TASK, classification=doubt, blocked=False, doubtful=True))
    second = reviews.add(TASK)
    kept = reviews.get(first)
    assert kept is not None
    assert (kept.doubtful, kept.classification) == (True, doubt)
    assert [task.task_id for task in reviews.tasks(doubtful=True)] == [first]
    assert [task.task_id for task in reviews.tasks(doubtful=False)] == [second]
    assert [task.task_id for task in reviews.tasks()] == [first, second]
    assert (reviews.open_count(doubtful=True), reviews.open_count()) == (1, 2)


def test_an_open_task_is_renewed_in_its_group(reviews: ReviewStore) -> None:
    first = reviews.add(TASK)
    second = reviews.add(replace(TASK, doubtful=True, blocked=False, group_id=first))
    new = replace(TASK, task_id=second, category="fraud", created_at=200.0)
    assert reviews.renew(new)
    assert reviews.get(second) == replace(new, group_id=first)
    decided = replace(new, state=ReviewState.REJECTED, decided_at=300.0, decided_by="ada")
    reviews.decide(decided, ReviewStep(0, second, 300.0, "ada", "reject"))
    assert not reviews.renew(new)
    assert reviews.get(second) == replace(decided, group_id=first)
