"""What the certainty of the text model does to a verdict of the words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gatewayfilter.classify import Category, Lexicon, PageClassifier, load_classifier, words_version
from gatewayfilter.classify.imitated_services import SERVICES_FILE
from gatewayfilter.classify.models.text_reading import LEAST_OF_BOTH, LEAST_OWN, Reading
from gatewayfilter.classify.score_adjustment import HINTED, OVER, SIGN_CERTAINTY, UNCONFIRMED, UNDER, with_certainty
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Strictness
from tests.classify.models.text_models import NAMES, made

LEXICON = Lexicon(
    {
        name: Category(name, limit=20.0, min_words=2, words={f"{name} shop": 6.0, f"{name} offer": 30.0, f"{name} sale": 30.0})
        for name in (*NAMES, "violence")
    }
)
HARMFUL, DOUBTFUL, FINE = 3.0, 0.5, -3.0
UNCLEAR = Reading(*[0.0] * 8)


@pytest.mark.parametrize(
    ("text", "reading", "strictness", "category", "doubt"),
    [
        ("gambling shop", HARMFUL, Strictness.STANDARD, "gambling", ""),  # too few words for a verdict
        ("gambling shop", 1.5, Strictness.STANDARD, "gambling", ""),
        ("gambling shop", 1.5, Strictness.RELAXED, "", "gambling"),
        ("gambling shop", DOUBTFUL, Strictness.STANDARD, "", "gambling"),
        ("gambling shop", DOUBTFUL, Strictness.STRICT, "gambling", ""),
        ("gambling shop", FINE, Strictness.STRICT, "", ""),
        ("roulette", HARMFUL, Strictness.STRICT, "", ""),  # no page is harmful by statistics alone
        ("drugs offer drugs sale", HARMFUL, Strictness.STANDARD, "drugs", ""),
        ("drugs offer drugs sale", DOUBTFUL, Strictness.STANDARD, "", "drugs"),
        ("drugs offer drugs sale", FINE, Strictness.STANDARD, "", ""),
        ("drugs offer drugs sale gambling offer gambling sale", FINE, Strictness.STANDARD, "", ""),
        ("violence offer violence sale", FINE, Strictness.STANDARD, "violence", ""),  # not calibrated
    ],
)
def test_certainty_decides(tmp_path: Path, text: str, reading: float, strictness: Strictness, category: str, doubt: str) -> None:
    classifier = PageClassifier(LEXICON, texts=made(tmp_path, bias=reading), strictness=strictness)
    words = PageClassifier(LEXICON).classify_text(text)
    found = classifier.classify_text(text)
    assert (found.category, found.doubt) == (category, doubt)
    assert (found.score > found.limit) == bool(category)
    if category == words.category:
        assert found.evidence == words.evidence
    else:
        assert found.score == pytest.approx((OVER if category else UNDER) * found.limit)
        assert sum(hit.weight for hit in found.evidence) == pytest.approx(sum(found.scores.values()))


@pytest.mark.parametrize(("reading", "category"), [(2.5, ""), (3.5, "drugs")])
def test_a_passage_must_be_more_certain_than_a_page(tmp_path: Path, reading: float, category: str) -> None:
    page = Page("http://site.example/", "http://site.example/", 200, {"content-type": "text/plain"}, b"drugs offer drugs sale")
    text, found, _ = PageClassifier(LEXICON).by_words(page)
    model = made(tmp_path, bias=reading)
    assert with_certainty(found, LEXICON, text, model, Strictness.RELAXED).category == "drugs"
    assert with_certainty(found, LEXICON, text, model).category == category


def test_certainty_is_named_in_the_evidence(tmp_path: Path) -> None:
    model = made(tmp_path, roulette=3.0, museum=-3.0)
    found = PageClassifier(LEXICON, texts=model).classify_text("gambling shop: roulette")
    assert found.evidence[0].word.startswith("reads like gambling (")
    assert found.evidence[0].word.endswith(": roulette")
    freed = PageClassifier(LEXICON, texts=model).classify_text("drugs offer drugs sale museum")
    assert freed.evidence[-1].word.startswith("reads harmless (")
    assert freed.evidence[-1].word.endswith(": museum")


def test_words_that_hardly_hint_are_not_read(tmp_path: Path) -> None:
    lexicon = Lexicon({"gambling": Category("gambling", limit=20.0, min_words=2, words={"casino": HINTED * 20.0 - 0.1})})
    found = PageClassifier(lexicon, texts=made(tmp_path, bias=HARMFUL)).classify_text("casino")
    assert (found.category, found.doubt, found.certainty) == ("", "", 0.0)
    assert PageClassifier(lexicon).classify_text("casino").certainty is None


def test_a_sign_decides_where_the_words_hint_at_betting(tmp_path: Path) -> None:
    board = "赔率\n金额\n" * 3
    judge = PageClassifier(LEXICON, texts=made(tmp_path, bias=FINE))
    assert not judge.classify_text(board).harmful
    assert not judge.classify_text(f"drugs shop\n{board}").harmful
    found = judge.classify_text(f"gambling shop\n{board}")
    assert (found.category, found.certainty) == ("gambling", SIGN_CERTAINTY)
    assert found.evidence[0].word == "takes bets: a stake beside 3 prices"


@pytest.mark.parametrize(
    ("text", "own", "harmful", "category", "doubt"),
    [
        ("drugs shop", LEAST_OWN, 0.0, "drugs", ""),
        ("drugs shop", LEAST_OWN - 0.1, 0.0, "", "drugs"),
        ("drugs shop", LEAST_OWN - 0.1, LEAST_OF_BOTH - LEAST_OWN + 0.2, "drugs", ""),  # clearly harmful
        ("drugs offer drugs sale", LEAST_OWN - 0.1, 0.0, "drugs", ""),  # a verdict of the words confirms
    ],
)
def test_without_a_verdict_a_page_must_read_like_its_category(
    tmp_path: Path, text: str, own: float, harmful: float, category: str, doubt: str
) -> None:
    model = made(tmp_path)
    scale = replace(model.calibration, knots=model.calibration.knots - 9.0)
    model = replace(model, bias=np.array([harmful, own, own]), calibration=scale)
    found = PageClassifier(LEXICON, texts=model).classify_text(text)
    assert (found.category, found.doubt) == (category, doubt)
    assert found.certainty == UNCONFIRMED if doubt else (found.certainty or 0) > UNCONFIRMED
    assert PageClassifier(LEXICON, texts=model, strictness=Strictness.STRICT).classify_text(text).category == "drugs"


def test_a_verdict_stands_where_the_operator_has_words(tmp_path: Path) -> None:
    (tmp_path / "bundled").mkdir()
    (tmp_path / "own").mkdir()
    text = 'category = "drugs"\nlimit = 20.0\nmin_words = 1\n[words]\n25 = ["drugs offer"]\n'
    (tmp_path / "bundled" / "drugs.toml").write_text(text)
    made(tmp_path / "bundled", museum=-9.0)
    folders = [tmp_path / "bundled", tmp_path / "own"]
    page = "drugs offer in the museum"
    assert not load_classifier(folders).classify_text(page).harmful
    assert load_classifier(folders, topics=False).classify_text(page).harmful
    (tmp_path / "own" / "drugs.toml").write_text('category = "drugs"\n[words]\n1 = ["other"]\n')
    assert load_classifier(folders).classify_text(page).harmful


def test_a_verdict_of_the_operators_words_stands_beside_one_that_is_withdrawn(tmp_path: Path) -> None:
    (tmp_path / "bundled").mkdir()
    (tmp_path / "own").mkdir()
    text = 'category = "drugs"\nlimit = 20.0\nmin_words = 1\n[words]\n50 = ["drugs offer"]\n'
    (tmp_path / "bundled" / "drugs.toml").write_text(text)
    made(tmp_path / "bundled", museum=-9.0)
    (tmp_path / "own" / "games.toml").write_text('category = "games"\nlimit = 20.0\nmin_words = 1\n[words]\n25 = ["arena"]\n')
    judge = load_classifier([tmp_path / "bundled", tmp_path / "own"])
    assert judge.classify_text("drugs offer in the museum").category == ""
    found = judge.classify_text("drugs offer in the museum, arena")
    assert (found.category, found.score, found.certainty, found.doubt) == ("games", found.scores["games"], None, "")
    assert found.scores["drugs"] < 20.0


def test_another_model_or_strictness_is_another_version(tmp_path: Path) -> None:
    made(tmp_path)
    versions = [words_version([tmp_path]), words_version([tmp_path], topics=False)]
    versions += [words_version([tmp_path], strictness=strictness) for strictness in (Strictness.RELAXED, Strictness.STRICT)]
    assert len(set(versions)) == len(versions)


def test_other_imitated_services_are_another_version(tmp_path: Path) -> None:
    folder = tmp_path / "words"
    folder.mkdir()
    made(folder)
    before = words_version([folder])
    (tmp_path / SERVICES_FILE).write_text("Name = name.example\n")
    assert words_version([folder]) != before
