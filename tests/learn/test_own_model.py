"""The operator's own model, trained by itself: when it is due, on what, and what it leaves alone."""

import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.classify import LinearModel
from gatewayfilter.classify.models.training import Example, train
from gatewayfilter.errors import ClassifyError
from gatewayfilter.learn import own_model
from gatewayfilter.learn.own_model import (
    AGAIN_AFTER_S,
    USEFUL_AUC,
    Origin,
    OwnModel,
    decided_counts,
    decided_examples,
    newest_examples,
    retrain,
)
from gatewayfilter.model import Classification, ReviewKind, ReviewState, ReviewStep, ReviewTask
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
    monkeypatch.setattr(own_model, "train", lambda _examples, _at: model_of(0.6))
    assert retrain(own, store.reviews) is None
    assert own.path.read_bytes() == b"the one before"


def model_of(auc: float) -> LinearModel:
    by_chance = train([Example(f"{word} {n}", word == "a") for n in range(20) for word in "ab"], 0.0)
    return LinearModel(by_chance.weights, 0.0, 40, 20, auc, 0.0)


@pytest.mark.parametrize(
    ("auc", "origin", "used", "recorded"),
    [
        (USEFUL_AUC, Origin.FILES, True, True),
        (USEFUL_AUC, Origin.REVIEWS, True, True),
        (USEFUL_AUC - 0.01, Origin.FILES, False, False),
        (USEFUL_AUC - 0.01, Origin.REVIEWS, False, True),
    ],
)
def test_a_useful_model_is_used_and_each_training_by_itself_recorded(
    tmp_path: Path, auc: float, origin: Origin, *, used: bool, recorded: bool
) -> None:
    own = OwnModel(tmp_path)
    assert own.put(model_of(auc), origin, 40) is used
    assert own.path.exists() is used
    record = own.record()
    assert (record is not None) is recorded
    assert record is None or (record.origin, record.decided) == (origin, 40)


def test_a_model_is_removed_once_and_none_comes_by_itself_afterwards(tmp_path: Path) -> None:
    own = OwnModel(tmp_path)
    own.path.write_bytes(b"model")
    for there in (True, False):
        assert own.remove() is there
        record = own.record()
        assert record is not None
        assert (record.origin, record.decided) == (Origin.OFF, 0)


def test_a_record_is_for_its_owner_alone_in_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "words"
    OwnModel(folder).note(Origin.FILES, 7)
    assert [(path.name, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()] == [(own_model.RECORD_FILE, 0o600)]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_cannot_be_written_or_removed_is_named_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    own = OwnModel(tmp_path)
    in_the_way = tmp_path / own_model.RECORD_FILE
    (in_the_way / "x").mkdir(parents=True)
    with pytest.raises(ClassifyError, match=f"cannot write {re.escape(str(in_the_way))}: "):
        own.note(Origin.FILES, 0)
    assert [*tmp_path.iterdir()] == [in_the_way]
    own.path.mkdir()
    with pytest.raises(ClassifyError, match=f"cannot remove the model {re.escape(str(own.path))}: "):
        own.remove()


def decided_page(store: Store, number: int, state: ReviewState, *, text: str = "", final_url: str = "", host: str = "") -> None:
    judged = Classification("gambling", 30.0, 20.0)
    kind = ReviewKind.DOMAIN if host else ReviewKind.PAGE
    key = host or f"s{number}.example/"
    task = ReviewTask(0, kind, f"http://s{number}.example/", key, "gambling", judged, blocked=True, created_at=1.0, text=text)
    task = replace(task, task_id=store.reviews.add(replace(task, final_url=final_url)), final_url=final_url)
    decided = replace(task, state=state, decided_at=2.0, decided_by="ada")
    store.reviews.decide(decided, ReviewStep(0, task.task_id, 2.0, "ada", "decision", detail={}))


def test_all_decided_pages_with_a_text_are_examples(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_model, "_PAGE", 2)
    for number in range(3):
        decided_page(store, number, ReviewState.APPROVED, text=f"bad {number}")
        decided_page(store, number + 10, ReviewState.REJECTED, text=f"good {number}")
    decided_page(store, 20, ReviewState.APPROVED)
    decided_page(store, 21, ReviewState.APPROVED, text="a sentence about a host", host=".s21.example")
    found = [Example(f"bad {number}", harmful=True) for number in range(3)]
    found += [Example(f"good {number}", harmful=False) for number in range(3)]
    assert list(decided_examples(store.reviews)) == found
    assert decided_counts(store.reviews) == {ReviewState.APPROVED: 5, ReviewState.REJECTED: 3}
    monkeypatch.setattr(own_model, "MOST_OF_EACH", 2)
    newest = ["good 2", "good 1"]
    assert [example.text for example in newest_examples(store.reviews)] == newest, "two tasks without a page's text are newer"


def test_the_site_that_answered_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_model, "MOST_OF_SITE", 1)
    for number in range(3):
        decided_page(store, number, ReviewState.APPROVED, text=f"{number}", final_url=f"http://a{number}.same.example/{number}")
    decided_page(store, 3, ReviewState.REJECTED, text="3", final_url="http://same.example/3")
    assert [example.text for example in newest_examples(store.reviews)] == ["2", "3"]
