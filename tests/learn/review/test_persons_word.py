"""A person's word always wins: in any order of visits, decisions, changed pages, changed words, own rules and time."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.errors import ReviewError
from gatewayfilter.learn import recheck_offers
from gatewayfilter.learn.review.decisions import ReviewService
from gatewayfilter.model import EntryKind, ListAction, ReviewKind, ReviewState, ReviewTask
from gatewayfilter.settings import GrowthMode, LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from tests.learn.review_world import BODY, World

URLS: Final = ("http://play.example/", "http://mirror.example/x", "http://third.example/")
BODIES: Final = (BODY, BODY.replace(b"<p>", b"<p><p>"), BODY + b" and more", b"<p>beans")
DAY_S: Final = 86_400.0
_PEOPLE = st.sampled_from(("ada", "bob"))
_TASKS = st.integers(1, 4)
_EVENTS = st.one_of(
    st.tuples(st.just("visit"), st.sampled_from(URLS), st.sampled_from(BODIES), st.sampled_from((0, 1))),
    st.tuples(st.sampled_from(("approve", "reject", "change", "undo", "redo")), _TASKS, _PEOPLE),
    st.tuples(st.just("rule"), st.sampled_from(URLS), st.sampled_from(ListAction)),
    st.tuples(st.just("later"), st.sampled_from((0.01, 0.5, 40.0))),
)
_DECISIONS: dict[str, Callable[[ReviewService, int, str], object]] = {
    "approve": lambda desk, task, who: desk.approve(task, who),
    "reject": lambda desk, task, who: desk.reject(task, who, overturn=True),
    "change": lambda desk, task, who: desk.change(task, "fraud", who, overturn=True),
    "undo": lambda desk, task, who: desk.undo(task, who),
    "redo": lambda desk, task, who: desk.redo(task, who),
}


class Story:
    """Two learners with memories of their own, and a desk in a third process."""

    def __init__(self, store: Store, learn: LearnSettings) -> None:
        self.store = store
        self.learners = (World(store, learn), World(store, learn))
        self.office = World(store, learn)
        self.learn = learn
        self.rules: dict[str, ListAction] = {}
        self.said_harmless: set[str] = set()

    @property
    def now(self) -> float:
        return self.office.now

    def tick(self, seconds: float) -> None:
        for world in (*self.learners, self.office):
            world.now += seconds

    def tell(self, event: tuple[object, ...]) -> None:
        """Lets one thing happen."""
        self.tick(1.0)
        match event:
            case ("visit", str() as url, bytes() as body, int() as learner):
                said = self.learners[learner].visit(url, body)
                assert said is not None
                key = parse_url(url).key
                found = self.office.recognition.recorded(self.office.recognition.ids.of_page(body))
                if found is not None and found.judge:
                    assert said.category == found.classification.category, "the content is known by a person's word"
                    if not said.harmful:
                        self.said_harmless.add(key)  # a newer word than that about the address
            case ("rule", str() as url, ListAction() as action):
                self.store.lists.add_rule(action, EntryKind.URL, parse_url(url).key, comment="mine")
                self.rules[parse_url(url).key] = action
            case ("later", float() as days):
                self.tick(days * DAY_S)
                recheck_offers(self.store.lists, self.now)
            case (str() as step, int() as task, str() as who):
                self.decide(step, task, who)
            case _:
                raise AssertionError(event)

    def decide(self, step: str, task_id: int, who: str) -> None:
        try:
            _DECISIONS[step](self.office.desk, task_id, who)
        except ReviewError:
            return
        task = self.store.reviews.get(task_id)
        assert task is not None
        if step in {"approve", "reject", "change"}:
            self.said_harmless.discard(task.key)
            if step == "reject":
                self.rules.pop(task.key, None)
        else:
            self.rules.pop(task.key, None)  # as it was before, whatever that was
            self.said_harmless.add(task.key)

    def check(self) -> None:
        """What must hold at any time."""
        tasks = [task for task in self.store.reviews.tasks() if task.kind is ReviewKind.PAGE]
        rules = {rule.pattern: rule.action for rule in self.store.lists.rules()}
        blocked = {entry.key for entry in self.store.lists.learned() if entry.action is ListAction.BLOCK}
        for key, action in self.rules.items():
            assert rules[key] is action, "the newest rule of a person stands"
        for task in {task.key: task for task in tasks}.values():
            if task.state is ReviewState.REJECTED and task.key not in self.rules:
                assert rules.get(task.key) is ListAction.ALLOW
            if self.counts(task):
                assert task.key in blocked, "what a person confirmed stays blocked"
        assert len({task.key for task in tasks if task.state is ReviewState.OPEN}) == len(
            [task for task in tasks if task.state is ReviewState.OPEN]
        ), "one open task a key"

    def counts(self, task: ReviewTask) -> bool:
        if task.state is not ReviewState.APPROVED or task.decided_at is None or task.key in self.said_harmless:
            return False
        return self.now < task.decided_at + self.learn.block_days * DAY_S


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GrowthMode.BLOCK_AND_REVIEW, GrowthMode.REVIEW])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(_EVENTS, min_size=4, max_size=18))
def test_a_persons_word_wins_in_any_order(migrated_database: Path, mode: GrowthMode, events: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        path = shutil.copy(migrated_database, Path(folder) / "gatewayfilter.sqlite3")
        with closing(Store.open(f"sqlite:///{path}")) as store:
            story = Story(store, LearnSettings(mode=mode))
            story.tell(("visit", URLS[0], BODY, 0))
            for event in events:
                story.tell(event)
                story.check()
