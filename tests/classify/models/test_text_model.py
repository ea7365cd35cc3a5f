"""The text model: its readings, its calibration, what certainty does to a verdict, and files that hold no model."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gatewayfilter.classify import Category, Lexicon, PageClassifier, load_classifier, words_version
from gatewayfilter.classify.imitated_services import SERVICES_FILE
from gatewayfilter.classify.models.calibration import (
    BLOCKED_FROM,
    DOUBT,
    INPUTS,
    KINDS,
    LONG_TEXT,
    OWN_SHARE,
    Calibration,
    Candidate,
    inputs_of,
)
from gatewayfilter.classify.models.decision_trees import DEPTH, INNER, LEAVES, DecisionTrees
from gatewayfilter.classify.models.text_model import (
    BITS,
    MAX_CHARACTERS,
    MAX_TERM,
    MOST_PARTS,
    MOST_TERMS,
    TEXT_MODEL_FILE,
    WINDOW,
    TextModel,
    packed,
    save,
    terms_of,
    windows_of,
)
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from gatewayfilter.classify.page_form import PLAIN, Form, form_of
from gatewayfilter.classify.score_adjustment import HINTED, OVER, UNDER, with_certainty
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Strictness
from tests.classify.synthetic_pages import pages_of, sites

BUNDLED = Path(__file__).parents[3] / "lists" / "words"
NAMES = ("gambling", "drugs")
STEPS = np.arange(-6.0, 6.0, 0.1)


def trees(**changed: Any) -> DecisionTrees:
    """Returns trees whose sum is the mean reading, in steps of 0.1."""
    inputs = np.full((len(STEPS), INNER), list(INPUTS).index("mean"), np.int16)
    limits = np.full((len(STEPS), INNER), np.inf, np.float32)
    limits[:, 0] = STEPS
    leaves = np.zeros((len(STEPS), LEAVES), np.float32)
    leaves[:, LEAVES // 2] = 0.1
    return replace(DecisionTrees(-6.0, inputs, limits, leaves), **changed)


def calibration(**changed: Any) -> Calibration:
    """Returns one in which the mean reading alone counts, with knots at 0, 1 and 2."""
    knots = np.repeat([[0.0], [1.0], [2.0]], KINDS * len(NAMES), axis=1)
    return replace(Calibration(NAMES, trees(), knots, knots[2] + 1.0), **changed)


def made(folder: Path, bias: float = 0.0, **words: float) -> TextModel:
    """Writes and returns a model in which some words say that a text is harmful, or harmless if below zero.

    They say half as much of the first category, and nothing of the second.
    """
    weights = np.zeros((1 + len(NAMES), 1 << BITS))
    rarity = np.zeros(1 << BITS, np.uint8)
    for word, weight in words.items():
        weights[0, terms_of(word).places[0]] = weight
        weights[1, terms_of(word).places[0]] = weight / 2
        rarity[terms_of(word).places[0]] = 255
    save(packed(weights, rarity, np.array([bias, bias / 2, 0.0]), calibration()), folder / TEXT_MODEL_FILE)
    model = TextModel.load(folder / TEXT_MODEL_FILE)
    assert model is not None
    return model


@pytest.fixture(scope="module")
def bundled() -> TextModel:
    model = TextModel.load(BUNDLED / TEXT_MODEL_FILE)
    assert model is not None
    return model


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


def candidate(**changed: Any) -> Candidate:
    return Candidate("drugs", 1.0, 1.0, 0.5, 0.0, 0.0, 3, True, True, 0.0, 400, False, PLAIN)._replace(**changed)


def test_the_scale_passes_through_its_knots() -> None:
    scale = calibration()
    found = [scale.scaled(odds, 0) for odds in (0.0, 1.0, 2.0)]
    assert found == pytest.approx(list(BLOCKED_FROM.values()))
    assert pytest.approx(min(BLOCKED_FROM.values())) == DOUBT
    rising = [scale.scaled(odds, 0) for odds in np.linspace(-60, 60, 121)]
    assert rising == sorted(rising)
    assert 0 < rising[0] < 1e-9 < 1 - 1e-9 < rising[-1] <= 1
    read = [scale.certainty(candidate(), NOTHING_READ._replace(mean=mean)) for mean in (-0.05, 1.05, 2.05)]
    assert read[0] == pytest.approx(BLOCKED_FROM[Strictness.STRICT], abs=0.03)
    assert read[1] >= BLOCKED_FROM[Strictness.STANDARD] > read[0]
    assert read[2] >= BLOCKED_FROM[Strictness.RELAXED] > read[1]


def test_a_tree_is_followed_as_it_was_grown() -> None:
    chance = np.random.default_rng(3)
    grown = trees(
        start=0.5,
        inputs=chance.integers(0, len(INPUTS), (40, INNER)).astype(np.int16),
        limits=chance.normal(size=(40, INNER)).astype(np.float32),
        leaves=chance.normal(size=(40, LEAVES)).astype(np.float32),
    )
    for _ in range(20):
        values = chance.normal(size=len(INPUTS)).astype(np.float32)
        total = grown.start
        for tree in range(40):
            node = 0
            for _ in range(DEPTH):
                node = 2 * node + 1 + int(values[grown.inputs[tree, node]] > grown.limits[tree, node])
            total += float(grown.leaves[tree, node - INNER])
        assert grown.sum_of(values.tolist()) == pytest.approx(total, abs=1e-4)


def test_trees_of_a_category_count_beside_those_of_all() -> None:
    own = replace(trees(), start=trees().start + 10.0)
    scale = calibration(own={NAMES.index("drugs"): own})
    for loaded in (scale, Calibration.of(scale.arrays())):
        drugs, gambling = (loaded.odds(candidate(category=name), UNCLEAR) for name in ("drugs", "gambling"))
        assert gambling == pytest.approx(calibration().odds(candidate(), UNCLEAR))
        assert drugs - gambling == pytest.approx(10.0 * OWN_SHARE)


def test_the_bundled_certainty_rises_with_the_words_and_the_reading(bundled: TextModel) -> None:
    scale = bundled.calibration
    for ideographic in (False, True):
        page = candidate(ideographic=ideographic)
        read = [scale.odds(page, Reading(*[mean] * 8)) for mean in np.linspace(-3, 3, 25).tolist()]
        assert read == sorted(read)
        assert read[0] < read[-1]
        said = [scale.odds(page._replace(ratio=ratio, strong=ratio), UNCLEAR) for ratio in np.linspace(0, 5, 21)]
        assert said == sorted(said)


def test_the_form_of_a_text() -> None:
    prose = form_of(
        "The library is open from Monday to Saturday, and new novels stand beside the entrance.\n" * 3, ideographic=False
    )
    menu = form_of("home\nslots\n12:30\n88.50\n" * 3, ideographic=False)
    assert prose.short == 0 < menu.short <= 1
    assert prose.line > menu.line > 0
    assert prose.digits == 0 < menu.digits < 1
    assert form_of("图书馆周一到周六开放", ideographic=True).latin == 0 < menu.latin == 1
    assert form_of("", ideographic=False) == form_of("\n\n", ideographic=True) == PLAIN


@limits(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), max_size=300), st.booleans())
def test_any_text_has_a_form(text: str, ideographic: bool) -> None:  # noqa: FBT001  given by position
    form = form_of(text, ideographic=ideographic)
    assert np.isfinite(form).all()
    assert len(inputs_of(candidate(form=form), 0, UNCLEAR)) == len(INPUTS) == 12 + len(Reading._fields) + len(Form._fields)


def test_each_kind_of_page_has_knots_of_its_own() -> None:
    columns = [
        calibration().column(candidate(category=name, ideographic=ideographic, length=length))
        for name in NAMES
        for ideographic in (False, True)
        for length in (LONG_TEXT, LONG_TEXT + 1)
    ]
    assert columns == list(range(KINDS * len(NAMES)))


RARITY = np.tile(np.array([0, 255], np.uint8), 1 << BITS - 1)
"""Every second term is known."""


def arrays(**changed: Any) -> dict[str, Any]:
    right: dict[str, Any] = {
        "version": np.array([4, BITS]),
        "weights": np.zeros((1 + len(NAMES), len(RARITY) // 2), np.int8),
        "rarity": RARITY,
        "numbers": np.array([[0.1] * 3, [0.0] * 3]),
        **calibration().arrays(),
    }
    return {name: value for name, value in (right | changed).items() if value is not None}


@pytest.mark.parametrize(
    "changed",
    [
        {"version": np.array([1, BITS])},
        {"version": None},
        {"weights": np.zeros(7, np.int8)},
        {"weights": np.zeros((len(NAMES), len(RARITY) // 2), np.int8)},
        {"weights": np.zeros((1 + len(NAMES), len(RARITY)), np.int8)},  # more than there are known terms
        {"weights": np.zeros((1 + len(NAMES), len(RARITY) // 2), np.float32)},
        {"weights": np.array([{}, 1], dtype=object)},  # would be unpickled
        {"rarity": RARITY.astype(np.int8)},
        {"rarity": np.zeros(1 << BITS, np.uint8)},
        {"rarity": RARITY[: 1 << 19]},
        {"numbers": np.array([[np.nan] * 3, [0.0] * 3])},
        {"numbers": np.array([0.1, 0.0])},
        {"categories": np.array(["drugs", "drugs"])},
        {"categories": np.array([1, 2])},
        {"categories": np.array(["drugs"])},
        {"start": np.zeros(2)},
        {"start": np.array([np.nan])},
        {"inputs": None},
        {"inputs": np.array(0, np.int16)},
        {"inputs": np.zeros((0, INNER), np.int16)},
        {"inputs": np.full((len(STEPS), INNER), len(INPUTS), np.int16)},  # no such input
        {"inputs": np.full((len(STEPS), INNER), -1, np.int16)},
        {"inputs": np.zeros((len(STEPS), INNER), np.int32)},
        {"limits": np.zeros((len(STEPS), LEAVES), np.float32)},
        {"limits": np.full((len(STEPS), INNER), np.nan, np.float32)},
        {"leaves": np.zeros((7, LEAVES), np.float32)},
        {"leaves": np.full((len(STEPS), LEAVES), np.inf, np.float32)},
        {"knots": np.zeros((3, 8))},  # not ascending
        {"knots": np.zeros((2, 8))},
        {"passages": np.zeros(3)},
        {"passages": np.full(8, np.inf)},
        {"drugs_start": np.array([0.0])},  # trees of a category that lack all else
        {f"drugs_{name}": array[:1] if name == "limits" else array for name, array in trees().arrays().items()},
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    np.savez_compressed(tmp_path / TEXT_MODEL_FILE, **arrays(**changed))
    with pytest.raises(ClassifyError, match="is no model of this program"):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)


def test_a_right_model_is_taken_and_none_is_none(tmp_path: Path) -> None:
    assert TextModel.load(tmp_path / TEXT_MODEL_FILE) is None
    told = np.arange(3 * (len(RARITY) // 2)).reshape(3, -1).astype(np.int8)
    np.savez_compressed(tmp_path / TEXT_MODEL_FILE, **arrays(weights=told))
    model = TextModel.load(tmp_path / TEXT_MODEL_FILE)
    assert model is not None
    assert (model.weights[:, 1::2] == told).all()
    assert not model.weights[:, ::2].any()


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    model = made(tmp_path, offer=1.0)
    save(model, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / TEXT_MODEL_FILE).read_bytes()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", bytes(20_000_000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TEXT_MODEL_FILE).write_bytes(content)
    with pytest.raises(ClassifyError):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)


def test_a_file_with_any_byte_damaged_is_refused_or_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays())
    path, good = tmp_path / TEXT_MODEL_FILE, content.getvalue()
    refused = 0
    for index in range(0, len(good), 31):
        path.write_bytes(good[:index] + bytes([good[index] ^ 0x55]) + good[index + 1 :])
        try:
            TextModel.load(path)
        except ClassifyError:
            refused += 1
    assert refused > len(good) // 62


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays(weights=np.zeros(60_000_000, np.int8)))
    (tmp_path / TEXT_MODEL_FILE).write_bytes(content.getvalue())
    with pytest.raises(ClassifyError, match="too large"):
        TextModel.load(tmp_path / TEXT_MODEL_FILE)


@limits(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_text_is_read(bundled: TextModel, text: str) -> None:
    reading = bundled.read(text, "gambling")
    assert np.isfinite(reading).all()
    assert reading.mean <= reading.top <= reading.most
    assert reading.own_mean <= reading.own_top <= reading.own_most


def test_a_long_text_is_bounded(bundled: TextModel) -> None:
    assert len(terms_of("a " * 1_000_000).words) <= MAX_CHARACTERS
    assert all(len(term) <= MAX_TERM for term in bundled.telling("x" * 1_000_000, "gambling", harmful=True))
