"""Several people and learners at the same time, on every database: each task is decided once, asked about once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest

from gatewayfilter.errors import ReviewError
from gatewayfilter.model import ListAction, ReviewState
from gatewayfilter.settings import DomainGrowth, LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import BODY, World

ROUNDS = 8


@pytest.fixture
def worlds(open_store: Callable[[], Store]) -> tuple[World, World]:
    """Two users of one database, each with a connection and memories of its own."""
    return World(open_store(), LearnSettings(domains=DomainGrowth.OFF)), World(
        open_store(), LearnSettings(domains=DomainGrowth.OFF)
    )


def at_once(works: Sequence[Callable[[], object]]) -> list[object]:
    """Lets threads begin together. Returns what each returned, or the error of a person who came second."""
    ready = Barrier(len(works))

    def one(work: Callable[[], object]) -> object:
        ready.wait(60)
        try:
            return work()
        except ReviewError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def test_of_two_people_one_decides_and_the_other_is_told(worlds: tuple[World, World]) -> None:
    ada, bob = worlds
    for number in range(1, ROUNDS + 1):
        key = f"play.example/{number}"
        ada.visit(f"http://{key}", BODY + b"%d" % number)
        answers = at_once([partial(ada.desk.approve, number, "ada"), partial(bob.desk.reject, number, "bob")])
        (told,) = [answer for answer in answers if isinstance(answer, ReviewError)]
        task = ada.store.reviews.get(number)
        assert task is not None
        assert f"was {task.state.value} by {task.decided_by} already" in str(told)
        (step,) = ada.store.reviews.steps(number)
        assert step.who == task.decided_by
        allowed = key in [rule.pattern for rule in ada.store.lists.rules() if rule.action is ListAction.ALLOW]
        listed = None if allowed else ListAction.BLOCK
        assert (allowed, ada.learned(key)) == (task.decided_by == "bob", listed)


@pytest.mark.parametrize("step", ["approve", "reject"])
def test_the_same_step_is_made_once(worlds: tuple[World, World], step: str) -> None:
    ada, bob = worlds
    for number in range(1, ROUNDS + 1):
        ada.visit(f"http://play.example/{number}", BODY + b"%d" % number)
        works = [partial(getattr(world.desk, step), number, who) for world, who in ((ada, "ada"), (bob, "bob"))]
        answers = at_once(works)
        assert len([answer for answer in answers if isinstance(answer, ReviewError)]) == 1
        (made,) = ada.store.reviews.steps(number)
        task = ada.store.reviews.get(number)
        assert task is not None
        assert made.who == task.decided_by
        bob.desk.undo(number, "bob")
        undone = bob.store.reviews.get(number)
        assert undone is not None
        assert undone.state is ReviewState.OPEN
        assert bob.store.lists.rules() == []


def test_undo_at_the_same_time_takes_back_one_step(worlds: tuple[World, World]) -> None:
    ada, bob = worlds
    ada.visit()
    ada.desk.approve(1, "ada")
    answers = at_once([lambda: ada.desk.undo(1, "ada"), lambda: bob.desk.undo(1, "bob")])
    assert len([answer for answer in answers if isinstance(answer, ReviewError)]) == 1
    assert [step.action for step in ada.store.reviews.steps(1)] == ["undo", "approve"]


def test_two_learners_open_one_task(worlds: tuple[World, World]) -> None:
    for number in range(ROUNDS):
        url, body = f"http://play.example/{number}", BODY + b"%d" % number
        at_once([partial(world.visit, url, body) for world in worlds])
    urls = [task.url for task in worlds[0].store.reviews.tasks()]
    assert sorted(urls) == sorted(set(urls))
    assert len(urls) == ROUNDS


def test_a_learner_and_a_person_do_not_lock_each_other_out(worlds: tuple[World, World]) -> None:
    learner, office = worlds
    learner.visit()
    for number in range(ROUNDS):
        decide = office.desk.reject if number % 2 == 0 else office.desk.undo
        at_once([partial(learner.visit, body=BODY + b"%d" % number), partial(decide, 1, "ada")])
    task = office.store.reviews.get(1)
    assert task is not None
    assert task.state is ReviewState.OPEN
    assert len(office.store.reviews.steps(1)) == ROUNDS
