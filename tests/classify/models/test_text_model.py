"""The text model: terms, windows, readings of each category, and the terms that tell."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier, load_classifier
from gatewayfilter.classify.models.text_model import (
    BITS,
    MAX_CHARACTERS,
    MAX_TERM,
    MOST_PARTS,
    MOST_TERMS,
    WINDOW,
    TextModel,
    packed,
    terms_of,
    windows_of,
)
from gatewayfilter.classify.models.text_reading import NOTHING_READ
from gatewayfilter.interfaces import Page
from tests.classify.models.text_models import BUNDLED, NAMES, calibration, made
from tests.classify.synthetic_pages import pages_of, sites


def test_terms_are_words_pairs_triples_and_ideographs() -> None:
    terms = terms_of("no paperwork, 收款")
    assert terms.words == ["no", "paperwork", "收", "款"]
    assert [terms.shown(index) for index in range(len(terms.places))] == [
        "no", "paperwork", "收", "款", "no paperwork", "paperwork收", "收款", "nopaperwork收", "paperwork收款",
    ]  # fmt: skip
    assert [len(terms_of(text).places) for text in ("", "!?", "a", "a b", "a b c")] == [0, 0, 1, 3, 6]


def test_a_trick_does_not_change_the_terms() -> None:
    plain = terms_of("discreet shipping of white powder, pay with bitcoin")
    assert terms_of("d1screet shipping of whi*te powder, pay with b.i.t.c.o.i.n").places.tolist() == plain.places.tolist()


def test_a_long_text_is_read_in_windows() -> None:
    words = [f"w{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(3 * WINDOW)]
    terms = terms_of(" ".join(words))
    assert terms.count == 3
    windows = windows_of(terms)
    assert len(windows) == 3
    assert all((np.diff(window.astype(np.int64)) > 0).all() for window in windows)
    assert {int(place) for window in windows for place in window} == set(terms.places.tolist())


def test_a_reading_is_of_each_window(tmp_path: Path) -> None:
    model = made(tmp_path, offer=4.0, museum=-4.0)
    one = model.read("offer", NAMES[0])
    assert one.mean == one.top == one.most == one.joint == pytest.approx(4.0, abs=0.05)
    both = model.read("offer " * WINDOW + "museum " * 2 * WINDOW, NAMES[0])
    assert both.most == pytest.approx(4.0, abs=0.05)
    assert both.mean < both.top <= both.most
    assert both.joint == pytest.approx(0.0, abs=0.05)  # each of both words counts once
    assert model.read("unknown words only", NAMES[0]).mean == 0.0
    assert model.read("", NAMES[0]) == NOTHING_READ


def test_a_text_is_read_for_a_category(tmp_path: Path) -> None:
    model = made(tmp_path, offer=4.0, bias=1.0)
    first, second = (model.read("offer", name) for name in NAMES)
    assert first[:4] == second[:4] == pytest.approx([5.0] * 4, abs=0.05)
    assert first[4:] == pytest.approx([2.5] * 4, abs=0.05)
    assert second[4:] == (0.0,) * 4
    assert first.total == pytest.approx(7.5, abs=0.1)


def test_harmless_text_before_the_subject_does_not_hide_it(tmp_path: Path) -> None:
    model = made(tmp_path, offer=4.0, museum=-4.0)
    assert model.read_parts("museum " * 2_000, NAMES[0]).mean < 0
    assert model.read_parts("museum " * 2_000 + "offer " * 600, NAMES[0]).mean > 0
    end = model.read_parts("museum " * MAX_CHARACTERS * MOST_PARTS + "offer " * MAX_CHARACTERS, NAMES[0])
    assert end.mean > 0
    assert model.read_parts("", NAMES[0]) == NOTHING_READ


@pytest.mark.parametrize(
    ("text", "harmful"),
    [
        ("pistols and revolvers shipped in parts, no papers, no questions, pay in monero, ghost guns, untraceable", True),
        ("you have won! claim your prize now, confirm your card to pay the small delivery fee, only today", True),
        ("uncut cocaine and heroin from our lab, stealth shipping, vacuum sealed, escrow accepted", True),
        ("现货手枪带子弹,全国发货,货到付款,不要证件", True),
        ("高薪兼职日结,刷单返佣金,先垫付后返现,联系客服微信", True),
        ("the library is open from monday to saturday; new novels and picture books stand beside the entrance", False),
        ("police warn of callers who ask for passwords; hang up and ring your bank on the number that you know", False),
        ("the trial of three men who sold cocaine in the city began on monday; prosecutors asked for six years in prison", False),
        ("我们的面包每天早上新鲜出炉,欢迎预订生日蛋糕,周日休息", False),
        ("民警提醒:凡是要求先转账再返利的刷单兼职都是诈骗,请及时报警", False),
    ],
)
def test_the_bundled_model_tells_offers_from_reports(bundled: TextModel, text: str, *, harmful: bool) -> None:
    assert (bundled.read(text, "fraud").mean > 0) == harmful
    assert 0 < len(bundled.telling(text, "fraud", harmful=harmful)) <= MOST_TERMS


def test_telling_terms_are_those_of_the_category() -> None:
    weights, rarity = np.zeros((3, 1 << BITS)), np.zeros(1 << BITS, np.uint8)
    chips, pills, news = terms_of("chips pills news").places[:3].tolist()
    weights[0, [chips, pills, news]] = 1.0, 1.0, -1.0
    weights[1, [chips, pills]] = 2.0, -2.0
    weights[2, [chips, pills]] = -2.0, 2.0
    model = packed(weights, rarity, np.zeros(3), calibration())
    for category, term, other in (("gambling", "chips", "pills"), ("drugs", "pills", "chips")):
        assert model.telling("chips pills news", category, harmful=True) == (term,)
        assert set(model.telling("chips pills news", category, harmful=False)) == {other, "news"}


@limits(max_examples=30)
@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_text_is_read(bundled: TextModel, text: str) -> None:
    reading = bundled.read(text, "gambling")
    assert np.isfinite(reading).all()
    assert reading.mean <= reading.top <= reading.most
    assert reading.own_mean <= reading.own_top <= reading.own_most


def test_a_long_text_is_bounded(bundled: TextModel) -> None:
    assert len(terms_of("a " * 1_000_000).words) <= MAX_CHARACTERS
    assert all(len(term) <= MAX_TERM for term in bundled.telling("x" * 1_000_000, "gambling", harmful=True))


@pytest.mark.slow
def test_both_together_find_more_than_words_alone() -> None:
    """On sites that took no part in anything; docs/classification.md has the figures of all."""
    words, both = PageClassifier(Lexicon.load([BUNDLED])), load_classifier([BUNDLED])
    found = [0, 0]
    for language in ("en", "zh"):
        for site in list(sites(f"pages-{language}", "report"))[::6]:
            html = next(iter(pages_of(site)))[1]
            page = Page(
                "http://a.example/", "http://a.example/", 200, {"content-type": "text/html; charset=utf-8"}, html.encode()
            )
            for index, classifier in enumerate((words, both)):
                found[index] += classifier.classify_page(page).category == site.category
    assert found[1] >= found[0]
    assert found[1] >= 28, found  # of 30
