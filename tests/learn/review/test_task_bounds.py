"""Which pages are asked about again, which are answers, and what becomes of a host with harmful pages."""

from dataclasses import replace

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.learn.learning_pipeline import _is_answered, _is_image
from gatewayfilter.learn.review.task_intake import _is_change
from gatewayfilter.model import Classification, ReviewKind, ReviewState, ReviewTask
from gatewayfilter.settings import DomainGrowth, LearnSettings
from gatewayfilter.store import Store
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
    assert world.counters["hosts_harmful"] == harmful
