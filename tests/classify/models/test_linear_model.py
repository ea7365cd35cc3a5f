"""The linear model: features, training, file format, and how its opinion moves a verdict."""

import io
import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, LinearModel, PageClassifier
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.models.linear_model import BITS, features
from gatewayfilter.classify.models.training import Example, area_under_curve, read_examples, train
from gatewayfilter.classify.score import Judgement
from gatewayfilter.classify.score_adjustment import with_opinion
from gatewayfilter.errors import ClassifyError
from gatewayfilter.model import Evidence
from tests.case_tables import all_cases

OFFER = ("free spins and bonus", "bet now and win", "注册送彩金", "deposit and play slots", "百家乐开户", "jackpot tonight")
NEWS = (
    "the council met today",
    "rain is expected",
    "会议今天召开",
    "a recipe with leeks",
    "公园里的花开了",
    "the train was late",
)


def examples(count: int) -> list[Example]:
    chance = random.Random(3)
    return [
        Example(" ".join(chance.choices(OFFER if index % 2 else NEWS, k=4)) + f" {index}", bool(index % 2))
        for index in range(count)
    ]


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return train(examples(120), 1000.0)


@given(st.text(max_size=300))
def test_features_are_a_unit_vector_of_different_places(text: str) -> None:
    found = features(text)
    assert len(found.indices) == len(found.values)
    assert (np.diff(found.indices.astype(np.int64)) > 0).all()
    assert (found.indices < 1 << BITS).all()
    assert not text or np.linalg.norm(found.values) == pytest.approx(1.0, abs=1e-4)


def test_features_do_not_change_from_release_to_release() -> None:
    assert [int(index) for index in features("ab").indices] == [69901, 85321, 207037]


def test_a_model_tells_unseen_texts_apart(model: LinearModel) -> None:
    assert model.auc > 0.95
    assert (model.examples, model.harmful, model.trained_at) == (120, 60, 1000.0)
    assert model.probability("bonus slots, bet now") > 0.6
    assert model.probability("今天公园会议") < 0.4
    assert 0.0 < model.probability("") < 1.0


def test_labels_without_meaning_give_chance() -> None:
    chance = random.Random(1)
    noise = [Example("".join(chance.choices("abcdefghij ", k=60)), bool(index % 2)) for index in range(200)]
    assert 0.3 < train(noise, 0.0).auc < 0.7


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(ClassifyError, match="at least 20 harmful and 20 harmless pages; there are 15 and 15"):
        train(examples(30), 0.0)
    with pytest.raises(ClassifyError, match="there are 1 and 0"):
        train([Example("the same", harmful=True)] * 100, 0.0)


def test_area_under_curve() -> None:
    labels = np.array([1.0, 1.0, 0.0, 0.0])
    assert area_under_curve(np.array([4.0, 3.0, 2.0, 1.0]), labels) == 1.0
    assert area_under_curve(np.array([1.0, 2.0, 3.0, 4.0]), labels) == 0.0
    assert area_under_curve(np.array([1.0, 1.0, 1.0, 1.0]), labels) == 0.5
    assert area_under_curve(np.array([4.0, 2.0, 2.0, 1.0]), labels) == 0.875


def test_a_saved_model_is_the_same(model: LinearModel, tmp_path: Path) -> None:
    path = tmp_path / "words" / "model.npz"
    assert LinearModel.load(path) is None
    model.save(path)
    again = LinearModel.load(path)
    assert again is not None
    assert again.logit("free spins") == model.logit("free spins")
    assert (again.auc, again.examples, again.harmful, again.trained_at) == (model.auc, 120, 60, 1000.0)


def _npz(**arrays: object) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


NUMBERS = np.array([1.0, BITS, 0.0, 9.0, 4.0, 0.9, 0.0])
WEIGHTS = np.zeros(1 << BITS, np.float32)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a model",
        pickle.dumps({"weights": 1}),
        _npz(weights=WEIGHTS),
        _npz(weights=WEIGHTS[:9], numbers=NUMBERS),
        _npz(weights=WEIGHTS.astype(np.float64)[: 1 << 10], numbers=NUMBERS),
        _npz(weights=np.full(1 << BITS, np.nan, np.float32), numbers=NUMBERS),
        _npz(weights=WEIGHTS, numbers=np.full(7, np.inf)),
        _npz(weights=WEIGHTS, numbers=NUMBERS + 1),
        _npz(weights=np.array([object()]), numbers=NUMBERS),
        _npz(weights=np.zeros(9_000_000, np.float32), numbers=NUMBERS),  # a few KB that unpack to 36 MB
        _npz(weights=WEIGHTS, numbers=NUMBERS)[:300],
    ],
)
def test_damaged_models_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(ClassifyError, match="is no model of this program"):
        LinearModel.load(path)


def test_a_model_with_any_byte_damaged_is_refused_or_read(tmp_path: Path) -> None:
    good = _npz(weights=np.arange(1 << BITS, dtype=np.float32) % 7, numbers=NUMBERS)
    path = tmp_path / "model.npz"
    refused = 0
    places = [*range(0, 120, 3), len(good) // 2, len(good) - 30]
    for place in places:
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            LinearModel.load(path)
        except ClassifyError:
            refused += 1
    assert refused > len(places) // 3


@all_cases("line", ["{", "[]", '{"text": "x"}', '{"text": 1, "label": ""}', '{"text": "x", "label": 7}', "null"])
def test_bad_example_lines_are_named(line: str) -> None:
    with pytest.raises(ClassifyError, match=r"pages\.jsonl:2: "):
        read_examples(['{"text": "fine", "label": ""}', line], "pages.jsonl")


def test_examples_of_a_file() -> None:
    lines = [
        json.dumps({"text": "a", "label": "gambling"}),
        "",
        json.dumps({"text": "b", "label": ""}),
        '{"text":" ","label":""}',
    ]
    assert read_examples(lines, "x") == [Example("a", harmful=True), Example("b", harmful=False)]


WORDS = Lexicon.of([WordFile("gambling", words={"slots": 6.0, "bonus": 6.0, "poker": 6.0}, limit=15.0, min_words=2)])


@all_cases(
    ("score", "words", "logit", "harmful"),
    [
        (14.0, 2, 4.0, True),
        (14.0, 1, 4.0, False),  # statistics alone make no page harmful
        (14.0, 2, -4.0, False),
        (8.0, 3, 30.0, True),
        (7.4, 3, 30.0, False),  # clearly under
        (16.0, 2, -4.0, False),
        (16.0, 2, 0.0, True),
        (23.0, 2, -30.0, True),  # clearly over
    ],
)
def test_the_second_opinion_counts_in_the_grey_zone(score: float, words: int, logit: float, *, harmful: bool) -> None:
    evidence = tuple(Evidence(str(index), "gambling", score / words, "main", 0) for index in range(words))
    found = Judgement("gambling" if score > 15 else "", score, 15.0, {"gambling": score}, evidence)
    moved = with_opinion(found, WORDS, logit)
    assert bool(moved.category) == harmful
    assert moved.score == pytest.approx(sum(hit.weight for hit in moved.evidence), abs=0.01)


def test_a_page_that_the_second_opinion_withdraws_is_in_doubt() -> None:
    evidence = tuple(Evidence(str(index), "gambling", 8.0, "main", 0) for index in range(2))
    moved = with_opinion(Judgement("gambling", 16.0, 15.0, {"gambling": 16.0}, evidence), WORDS, -4.0)
    assert (moved.category, moved.certainty, moved.doubt) == ("", None, "gambling")


def test_a_classifier_asks_its_model(model: LinearModel) -> None:
    classifier = PageClassifier(WORDS, model)
    plain = PageClassifier(WORDS)
    text = "slots and bonus: deposit, free spins, bet now"
    assert not plain.classify_text(text).harmful
    assert classifier.classify_text(text).harmful
    assert "second opinion" in classifier.classify_text(text).evidence[-1].word
    assert classifier.classify_text("the council met today").evidence == ()
