"""Training to the last digit: which examples count, how the folds are measured, and where the descent ends."""

import random
from unittest.mock import Mock

import numpy as np
import pytest

from gatewayfilter.classify.models import training
from gatewayfilter.classify.models.linear_model import BITS, MAX_CHARACTERS, LinearModel
from gatewayfilter.classify.models.training import LEAST_OF_EACH, Example, area_under_curve, fit, read_examples, train
from gatewayfilter.errors import ClassifyError


def texts(harmful: int = 22, harmless: int = 44) -> list[Example]:
    """Returns texts that letters tell apart, though not all of them."""
    chance = random.Random(5)
    made = [(index < harmful, "bcde" if index < harmful else "abcd") for index in range(harmful + harmless)]
    return [Example("".join(chance.choices(letters, k=4)) + chr(0x4E00 + at), is_it) for at, (is_it, letters) in enumerate(made)]


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return train(texts(), 7.0)


def test_the_descent_ends_where_it_did(model: LinearModel) -> None:
    """The figures are those of this program when the test was written: another path would end elsewhere."""
    assert model.auc == pytest.approx(0.94111111)
    ends = -0.4626469, -4.1073958, -3.1474949, 3.6119500, 5.2891179
    assert (model.bias, *map(model.logit, ("a", "ab", "de", "e"))) == pytest.approx(ends, abs=1e-5)
    assert (model.examples, model.harmful, model.trained_at) == (66, 22, 7.0)
    assert (model.weights.dtype.name, model.weights.shape) == ("float32", (1 << BITS,))
    unmeasured = fit(texts())
    assert (unmeasured.auc, unmeasured.trained_at, unmeasured.bias) == (0.5, 0.0, model.bias)
    assert (unmeasured.examples, unmeasured.harmful) == (66, 22)
    assert (unmeasured.weights == model.weights).all()


def test_a_step_that_is_too_long_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_PENALTY", 3_000.0)
    found = fit(texts())
    ends = -0.0000788449, -0.0094353974, -0.0065587661, 0.0099460752, 0.0145895956
    assert (found.bias, *map(found.logit, ("a", "ab", "de", "e"))) == pytest.approx(ends, abs=1e-7)


@pytest.mark.parametrize(("penalty", "logit"), [(136.52, -0.38058838), (136.545, -0.19029419)])
def test_a_step_must_lead_down_by_a_share_of_its_slope(penalty: float, logit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between both penalties the first step ceases to lead down enough: it is halved."""
    monkeypatch.setattr(training, "_PENALTY", penalty)
    monkeypatch.setattr(training, "_STEPS", 1)
    assert fit(texts()).logit("a") == pytest.approx(logit, abs=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_what_is_no_number_ends_the_descent_at_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_PENALTY", float("nan"))
    directions = Mock(side_effect=training._direction)
    monkeypatch.setattr(training, "_direction", directions)
    found = fit(texts())
    assert directions.call_count == 1
    assert found.bias == 0.0
    assert not found.weights.any()


def test_so_many_of_each_are_needed() -> None:
    assert fit(texts(LEAST_OF_EACH, LEAST_OF_EACH)).examples == 2 * LEAST_OF_EACH
    for harmful, harmless in ((LEAST_OF_EACH - 1, LEAST_OF_EACH), (LEAST_OF_EACH, LEAST_OF_EACH - 1)):
        with pytest.raises(ClassifyError, match=f"there are {harmful} and {harmless}$"):
            fit(texts(harmful, harmless))


def test_texts_that_are_read_alike_count_once() -> None:
    made = texts()
    first = made[0].text
    again = [Example(first.upper(), harmful=True), Example(f" {first}", harmful=True), *made]
    assert fit(again).examples == 66
    long = [Example("x" * MAX_CHARACTERS + end, harmful=True) for end in "ab"]
    short = [Example("x" * (MAX_CHARACTERS - 1) + end, harmful=True) for end in "ab"]
    assert fit([*made, *long]).examples == 67
    assert fit([*made, *short]).examples == 68


def test_equal_scores_count_half() -> None:
    labels = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    assert area_under_curve(np.array([2.0, 2.0, 3.0, 1.0, 3.0]), labels) == pytest.approx((1 + 0.5 + 0 + 0.5 + 1 + 1) / 6)


def test_examples_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MAX_EXAMPLES", 2)
    lines = ['{"text": "a", "label": true}', " ", '{"text": "  ", "label": "x"}', '{"text": "b", "label": ""}']
    found = [Example("a", harmful=True), Example("b", harmful=False)]
    assert read_examples(lines, "x") == found
    assert read_examples([*lines, '{"text": "c", "label": "x"}'], "x") == found
    with pytest.raises(ClassifyError, match=r'^x:5: "text" must be text, and "label" a category'):
        read_examples([*lines, '{"text": "c", "label": 1}'], "x")
    with pytest.raises(ClassifyError, match=r'^x:1: no JSON object with "text" and "label"'):
        read_examples(["7"], "x")
    with pytest.raises(ClassifyError, match=r"^x:1: no JSON object"):
        read_examples(["[" * 200_000], "x")
