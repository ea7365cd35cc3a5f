"""Which pages are asked about again, which are answers, and what becomes of a host with harmful pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page
from gatewayfilter.learn.learning_pipeline import _is_answered, _is_image
from gatewayfilter.learn.review.task_intake import TaskIntake, _is_change
from gatewayfilter.model import Classification, LearnedEntry, ListAction, ReviewKind, ReviewState, ReviewTask, ScoreBreakdown
from gatewayfilter.settings import DomainGrowth, LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.learn.review_world import BODY, World

TASK = ReviewTask(
    1,
    ReviewKind.PAGE,
    "http://a.test/",
    "a.test/",
    "gambling",
    Classification("gambling", 3.0, 2.0),
    blocked=True,
    created_at=0.0,
)
DECIDED = [state for state in ReviewState if state is not ReviewState.OPEN]


@pytest.mark.parametrize(
    ("earlier", "now", "change"),
    [
        (None, TASK, True),
        (TASK, TASK, False),
        (TASK, replace(TASK, category="adult"), False),
        (TASK, replace(TASK, doubtful=True), False),
        (replace(TASK, doubtful=True), TASK, True),
        (replace(TASK, doubtful=True), replace(TASK, doubtful=True), False),
        *((replace(TASK, state=state), TASK, False) for state in DECIDED),
        *((replace(TASK, state=state, doubtful=True), TASK, False) for state in DECIDED),
        *((replace(TASK, state=state), replace(TASK, category="adult"), True) for state in DECIDED),
    ],
)
def test_what_is_asked_about_again(earlier: ReviewTask | None, now: ReviewTask, *, change: bool) -> None:
    assert _is_change(now, earlier) is change


@pytest.mark.parametrize(
    ("status", "body", "answered"),
    [
        (199, b"x", False),
        (200, b"x", True),
        (299, b"x", True),
        (300, b"x", False),
        (404, b"x", False),
        (200, b"", False),
        (404, b"", False),
    ],
)
def test_which_pages_are_answers(status: int, body: bytes, *, answered: bool) -> None:
    assert _is_answered(Page("http://a.test/", "http://a.test/", status, {}, body)) is answered


@pytest.mark.parametrize(("said", "image"), [("image/png", True), ("IMAGE/gif; a=b", True), ("text/html", False), ("", False)])
def test_images(said: str, *, image: bool) -> None:
    headers = {"content-type": said} if said else {}
    assert _is_image(Page("http://a.test/", "http://a.test/", 200, headers, b"x")) is image


@pytest.mark.parametrize(
    ("growth", "harmful", "blocked"),
    [(DomainGrowth.BLOCK, 1, [True]), (DomainGrowth.REVIEW, 0, [False]), (DomainGrowth.OFF, 0, [])],
)
def test_a_host_with_harmful_pages(store: Store, growth: DomainGrowth, harmful: int, blocked: list[bool]) -> None:
    world = World(store, LearnSettings(domain_pages=3, domains=growth))
    for number in range(3):
        assert not [task for task in store.reviews.tasks() if task.kind is ReviewKind.DOMAIN]
        world.visit(f"http://play.example/{number}", BODY + b"%d" % number)
    assert [task.blocked for task in store.reviews.tasks() if task.kind is ReviewKind.DOMAIN] == blocked
    assert [task.group_id == task.task_id for task in store.reviews.tasks() if task.kind is ReviewKind.DOMAIN] == [True] * len(
        blocked
    )
    assert world.counters["hosts_harmful"] == harmful


class Explaining:
    """Tells of each page how it was judged, unless that cannot be told."""

    def breakdown_of(self, page: Page, category: str) -> ScoreBreakdown | None:
        if b"!" in page.body:
            raise ClassifyError("not readable")
        return ScoreBreakdown("words", category, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 1, 1)


@pytest.mark.parametrize(
    ("content_type", "body", "told"),
    [("text/html", b"x", True), ("text/html", b"x!", False), ("image/png", b"x", False)],
)
def test_how_a_page_was_judged_is_kept_with_its_task_where_it_can_be_told(
    store: Store, content_type: str, body: bytes, *, told: bool
) -> None:
    intake = TaskIntake(store.reviews, Counters(), 10, explain=Explaining())
    page = Page("http://a.test/", "http://a.test/", 200, {"content-type": content_type}, body)
    intake.page(page, TASK.classification, blocked=True)
    (task,) = store.reviews.tasks()
    assert (task.score_breakdown is not None) is told
    assert (
        intake.host(
            LearnedEntry(".a.test", ListAction.BLOCK, "gambling", "http://a.test/", "why", 0.0, 9.0),
            TASK.classification,
            blocked=True,
        )
        == 2
    )
    assert store.reviews.tasks()[1].score_breakdown is None


def test_of_two_learners_that_open_a_task_at_once_one_does(store: Store) -> None:
    counters, page = Counters(), Page("http://a.test/", "http://a.test/", 200, {"content-type": "text/html"}, b"x")
    other = TaskIntake(store.reviews, Counters(), 10)

    @contextmanager
    def after_the_other() -> Iterator[None]:
        assert other.page(page, TASK.classification, blocked=True) == 1
        yield

    intake = TaskIntake(store.reviews, counters, 10, together=after_the_other)
    assert intake.page(page, TASK.classification, blocked=True) is None
    assert counters.as_dict() == {}
    assert len(store.reviews.tasks()) == 1


def test_a_page_that_was_rejected_stays_open_when_another_category_is_found(store: Store) -> None:
    world = World(store, LearnSettings())
    world.visit()
    world.desk.reject(1, "ada")
    intake = TaskIntake(store.reviews, world.counters, 10)
    page = Page("http://play.example/", "http://play.example/", 200, {"content-type": "text/html"}, b"x")
    assert intake.page(page, Classification("adult", 3.0, 2.0), blocked=True) == 2
    assert [task.blocked for task in store.reviews.tasks()] == [False, False], "it passes by the reviewer's rule"


def test_the_tasks_that_may_be_open_are_counted(store: Store) -> None:
    counters = Counters()
    intake = TaskIntake(store.reviews, counters, 2)
    opened = [
        intake.page(Page(url, url, 200, {}, b"x"), TASK.classification, blocked=True)
        for url in ("http://a.test/", "http://b.test/", "http://c.test/")
    ]
    assert opened == [1, 2, None]
    assert counters.as_dict() == {"reviews_opened": 2, "reviews_dropped": 1}
