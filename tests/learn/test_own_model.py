"""The operator's own model, trained by itself: when it is due, on what, and what it leaves alone."""

from pathlib import Path

import pytest

from gatewayfilter.classify import LinearModel
from gatewayfilter.classify.models.training import Example, train
from gatewayfilter.learn import own_model
from gatewayfilter.learn.own_model import AGAIN_AFTER_S, Origin, OwnModel, decided_counts, newest_examples, retrain
from gatewayfilter.model import ReviewState
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from tests.learn.review_world import World

ENOUGH = {ReviewState.APPROVED: 20, ReviewState.REJECTED: 20}
OFFERS = ("free spins and a jackpot", "bet on slots now", "roulette bonus today", "poker and chips for cash")
CALM = ("beans need water", "the library opens at nine", "a walk along the river", "soup with leeks")


def later(own: OwnModel) -> float:
    record = own.record()
    assert record is not None
    return record.at + AGAIN_AFTER_S


def decide(store: Store, approved: int, rejected: int, *, site: str = "") -> None:
    world = World(store, LearnSettings())
    for number in range(approved + rejected):
        pool = OFFERS if number < approved else CALM
        text = f"<title>{number * 7919:x}</title><p>casino {pool[number % 4]} {pool[(number + 1) % 4]} {number}</p>"
        world.visit(f"http://{site or f's{number}.example'}/{number}", text.encode())
        task = store.reviews.tasks(ReviewState.OPEN)[-1].task_id
        world.desk.approve(task, "ada") if number < approved else world.desk.reject(task, "ada")


def test_a_model_is_due_once_there_are_enough_of_each(tmp_path: Path) -> None:
    own = OwnModel(tmp_path / "words")
    assert not own.is_due({}, 0.0)
    assert not own.is_due({ReviewState.APPROVED: 500, ReviewState.REJECTED: 19}, 0.0)
    assert own.is_due(ENOUGH, 0.0)
    own.note(Origin.REVIEWS, 40)
    now = later(own)
    assert not own.is_due(ENOUGH, now)
    more = {ReviewState.APPROVED: 30, ReviewState.REJECTED: 30}
    assert own.is_due(more, now)
    assert not own.is_due(more, now - 1)
    own.note(Origin.REVIEWS, 1000)
    assert not own.is_due({ReviewState.APPROVED: 550, ReviewState.REJECTED: 540}, later(own))
    assert own.is_due({ReviewState.APPROVED: 560, ReviewState.REJECTED: 540}, later(own))


@pytest.mark.parametrize("origin", [Origin.FILES, Origin.OFF])
def test_what_the_operator_made_or_removed_is_left_alone(tmp_path: Path, origin: Origin) -> None:
    own = OwnModel(tmp_path)
    own.note(origin, 0)
    assert not own.is_due({ReviewState.APPROVED: 999, ReviewState.REJECTED: 999}, later(own))


def test_a_model_of_before_there_were_records_is_left_alone(tmp_path: Path) -> None:
    own = OwnModel(tmp_path)
    own.path.write_bytes(b"model")
    assert not own.is_due(ENOUGH, 0.0)
    (tmp_path / own_model.RECORD_FILE).write_text("{")
    assert not own.is_due(ENOUGH, 0.0)


def test_it_is_trained_on_what_people_decided(store: Store, tmp_path: Path) -> None:
    own = OwnModel(tmp_path)
    decide(store, 22, 22)
    assert own.is_due(decided_counts(store.reviews), 0.0)
    model = retrain(own, store.reviews)
    assert model is not None
    assert (model.examples, model.harmful) == (44, 22)
    kept = LinearModel.load(own.path)
    assert kept is not None
    assert kept.auc == model.auc >= 0.7
    record = own.record()
    assert record is not None
    assert (record.origin, record.decided) == (Origin.REVIEWS, 44)
    assert own.remove()
    assert not own.is_due({ReviewState.APPROVED: 999, ReviewState.REJECTED: 999}, later(own))


def test_one_site_makes_no_model(store: Store, tmp_path: Path) -> None:
    own = OwnModel(tmp_path)
    decide(store, 22, 22, site="one.example")
    assert len(list(newest_examples(store.reviews))) == 20
    assert retrain(own, store.reviews) is None
    assert not own.path.exists()
    assert not own.is_due(decided_counts(store.reviews), later(own))


def test_a_model_little_better_than_chance_is_not_used(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnModel(tmp_path)
    own.path.write_bytes(b"the one before")
    by_chance = train([Example(f"{word} {n}", word == "a") for n in range(20) for word in "ab"], 0.0)
    poor = LinearModel(by_chance.weights, 0.0, 40, 20, 0.6, 0.0)
    monkeypatch.setattr(own_model, "train", lambda _examples, _at: poor)
    assert retrain(own, store.reviews) is None
    assert own.path.read_bytes() == b"the one before"
