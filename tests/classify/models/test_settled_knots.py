"""The last step of training: knots of `standard` that are chosen once more, and what gives way to them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gatewayfilter.classify.models.calibration import KINDS, Calibration
from gatewayfilter.classify.models.text_model import TEXT_MODEL_FILE, TextModel
from scripts.training import knots
from scripts.training.bounds import FAR, PASSAGES_OVER, SETTLED_FOUND, SETTLED_GROUPS, SETTLED_MOST, SMALLEST_GAP
from scripts.training.inputs import CATEGORIES, HARMLESS, LICENSED, Sample, text_page
from scripts.training.settled import Odds, unlearned, with_knots
from tests.classify.bundled_classifiers import bundled as bundled_classifier
from tests.classify.synthetic_pages import SAMPLES

WORDS = SAMPLES.parents[2] / "lists" / "words"


@pytest.fixture(scope="module")
def bundled() -> Calibration:
    model = TextModel.load(WORDS / TEXT_MODEL_FILE)
    assert model is not None
    return model.calibration


def sample(origin: str, label: str, number: int = 0, half: str = "real") -> Sample:
    return Sample(origin, origin, f"{origin} {number}", half, "en", label, text_page("text"))


def odds(rows: Sequence[tuple[str, str, float]]) -> Odds:
    """Pages of the first kind with these log-odds."""
    samples = [sample(origin, label, number) for number, (origin, label, _) in enumerate(rows)]
    read = np.array([value for *_, value in rows])
    return Odds(samples, read, np.where(read == FAR, -1, 0))


@pytest.mark.parametrize("standard", [-4.0, 0.0, 8.0])
def test_the_other_strictnesses_and_passages_give_way(bundled: Calibration, standard: float) -> None:
    settled = with_knots(bundled, np.full(KINDS * len(CATEGORIES), standard))
    assert (settled.knots[1] == standard).all()
    assert (np.diff(settled.knots, axis=0) >= SMALLEST_GAP - 1e-9).all()
    assert (settled.knots[0] <= bundled.knots[0]).all()
    assert (settled.knots[2] >= bundled.knots[2]).all()
    assert (settled.passages >= np.maximum(bundled.passages, settled.knots[2] + PASSAGES_OVER)).all()


def test_the_bundled_model_is_settled(bundled: Calibration) -> None:
    again = with_knots(bundled, bundled.knots[1])
    assert (again.knots == bundled.knots).all()
    assert (again.passages == bundled.passages).all()


def test_what_weights_were_learned_from_is_left_out() -> None:
    learned = [sample(LICENSED[0], HARMLESS), sample("press", "drugs", half="tune")]
    others = [sample("html_gne", HARMLESS), sample("kept", "drugs", half="report")]
    assert unlearned([*learned, *others]) == others
    assert not {one for sets in SETTLED_GROUPS.values() for one in sets} & set(LICENSED)
    assert SETTLED_MOST.keys() == SETTLED_GROUPS.keys()
    assert not any(
        name.startswith("kept") for name in (*SETTLED_FOUND, *(one for sets in SETTLED_GROUPS.values() for one in sets))
    )


def test_no_harmless_page_is_blocked_to_find_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knots, "KICKS", 3)
    pages = odds([("html_gne", HARMLESS, 1.0), ("zh_gambling_pages", "gambling", 0.5), ("zh_gambling_pages", "gambling", 3.0)])
    chosen = pages.knots()
    assert 1.5 < chosen[0] <= 3.0  # above the margin of real pages
    assert pages.blocked(chosen).tolist() == [False, False, True]
    unseen = odds([("zh_gambling_pages", "gambling", 3.0), ("html_gne", HARMLESS, FAR)])
    assert unseen.blocked(np.full(len(chosen), -5.0)).tolist() == [True, False]


def test_what_words_and_reading_do_not_confirm_is_spared_and_a_sign_blocks() -> None:
    judge, model = bundled_classifier(), TextModel.load(WORDS / TEXT_MODEL_FILE)
    assert model is not None
    board = sample("zh_gambling_pages", "gambling")._replace(page=text_page("号码\n赔率\n金额\n" * 9))
    mail = sample("en_enron1", HARMLESS)._replace(page=text_page("please download the invoice file"))
    lowest = np.full(KINDS * len(CATEGORIES), -50.0)
    fine = Odds.read([board, mail], judge, replace(model, bias=np.full(1 + len(CATEGORIES), -9.0)))
    assert (fine.odds > FAR).all()
    assert fine.blocked(lowest).tolist() == [True, False]
    assert fine.blocked(-lowest).tolist() == [True, False]
    harmful = Odds.read([board, mail], judge, replace(model, bias=np.full(1 + len(CATEGORIES), 9.0)))
    assert harmful.blocked(lowest).tolist() == [True, True]
    assert harmful.blocked(-lowest).tolist() == [True, False]


def test_a_half_has_whole_sites() -> None:
    site = [sample("fourth", "drugs", number // 5, "report") for number in range(500)]
    pages = Odds(site, np.zeros(500), np.zeros(500, np.intp))
    half = pages.half(3)
    assert 0.3 < half.mean() < 0.7
    assert (half.reshape(100, 5).std(axis=1) == 0).all()
    assert (half != pages.half(4)).any()
