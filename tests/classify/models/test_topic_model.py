"""What a text reads like: the model that comes with the words, what it moves, and files that are none."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from gatewayfilter.classify import Category, Lexicon, PageClassifier, load_classifier, words_version
from gatewayfilter.classify.models.topic_model import (
    BITS,
    MAX_CHARACTERS,
    MAX_TERM,
    MOST_TERMS,
    TOPICS_FILE,
    Reading,
    TopicModel,
    pack,
    terms_of,
)
from gatewayfilter.classify.score import Judgement
from gatewayfilter.classify.score_adjustment import (
    CLEAR,
    HINTED,
    OVER,
    READS_HARMFUL,
    READS_HARMLESS,
    UNDER,
    asks_for_reading,
    with_reading,
)
from gatewayfilter.errors import ClassifyError
from tests.classify.synthetic_pages import pages_of, sites

BUNDLED = Path(__file__).parents[3] / "lists" / "words"
NAMES = ("", "gambling", "drugs")


def made(tmp_path: Path, **words: dict[str, float]) -> TopicModel:
    """Returns a model in which some words say something of a category, and all else that a text is harmless."""
    weights = np.zeros((len(NAMES), 1 << BITS))
    for category, said in words.items():
        for word, weight in said.items():
            weights[NAMES.index(category.replace("harmless", "")), terms_of(word).places[0]] = weight
    pack(tmp_path / TOPICS_FILE, NAMES, weights, np.array([1.0, 0.0, 0.0]))
    model = TopicModel.load(tmp_path / TOPICS_FILE)
    assert model is not None
    return model


@pytest.fixture(scope="module")
def bundled() -> TopicModel:
    model = TopicModel.load(BUNDLED / TOPICS_FILE)
    assert model is not None
    return model


def test_terms_are_words_pairs_and_ideographs() -> None:
    terms = terms_of("no paperwork, 收款")
    assert terms.words == ["no", "paperwork", "收", "款"]
    assert [terms.shown(index) for index in range(len(terms.places))] == [
        "no", "paperwork", "收", "款", "no paperwork", "paperwork收", "收款",
    ]  # fmt: skip
    assert len(terms_of("").places) == len(terms_of("!?").places) == 0
    assert len(terms_of("a").places) == 1


def test_a_trick_does_not_change_what_a_text_reads_like(bundled: TopicModel) -> None:
    plain = "discreet shipping of white powder, pay with bitcoin"
    assert (
        terms_of("d1screet shipping of whi*te powder, pay with b.i.t.c.o.i.n").places.tolist() == terms_of(plain).places.tolist()
    )
    assert bundled.read(plain).category == "drugs"


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("pistols and revolvers shipped in parts, no papers, no questions, pay in monero, ghost guns, untraceable", "violence"),
        ("you have won! claim your prize now, confirm your card to pay the small delivery fee, only today", "fraud"),
        ("uncut cocaine and heroin from our lab, stealth shipping, vacuum sealed, escrow accepted", "drugs"),
        ("现货手枪带子弹,全国发货,货到付款,不要证件", "violence"),
        ("高薪兼职日结,刷单返佣金,先垫付后返现,联系客服微信", "fraud"),
    ],
)
def test_harmful_texts_read_like_what_they_are(bundled: TopicModel, text: str, category: str) -> None:
    reading = bundled.read(text)
    assert reading.category == category
    assert reading.harmful > READS_HARMFUL
    assert 0 < len(bundled.telling(text, category)) <= MOST_TERMS


@pytest.mark.parametrize(
    "text",
    [
        "the library is open from monday to saturday; new novels and picture books stand beside the entrance",
        "police warn of callers who ask for passwords; hang up and ring your bank on the number that you know",
        "我们的面包每天早上新鲜出炉,欢迎预订生日蛋糕,周日休息",
        "",
    ],
)
def test_harmless_texts_read_harmless(bundled: TopicModel, text: str) -> None:
    assert bundled.read(text).harmful < READS_HARMFUL


@pytest.mark.slow
def test_both_together_find_more_than_words_alone() -> None:
    """On sites that took no part in anything; docs/classification.md has the figures of all."""
    words, both = PageClassifier(Lexicon.load([BUNDLED])), load_classifier([BUNDLED])
    found = [0, 0]
    for language in ("en", "zh"):
        for site in list(sites(f"pages-{language}", "report"))[::6]:
            html = next(iter(pages_of(site)))[1].encode()
            for index, classifier in enumerate((words, both)):
                found[index] += classifier.classify_page(_page(html)).category == site.category
    assert found[1] >= found[0]
    assert found[1] >= 28, found  # of 30


def _page(html: bytes) -> Any:
    from gatewayfilter.interfaces import Page  # noqa: PLC0415

    return Page("http://a.example/", "http://a.example/", 200, {"content-type": "text/html; charset=utf-8"}, html)


class _Fixed(TopicModel):
    """A model that reads any text alike."""

    reading: Reading

    def read(self, text: str) -> Reading:
        return self.reading


LEXICON = Lexicon(
    {
        name: Category(name, limit=20.0, min_words=2, words={f"{name} shop": 6.0, f"{name} offer": 30.0})
        for name in ("gambling", "drugs", "violence")
    }
)


def judgement(scores: dict[str, float], category: str = "") -> Judgement:
    first = category or max(scores, key=lambda name: scores[name], default="")
    return Judgement(category, scores.get(first, 0.0), 20.0, scores, ())


@pytest.mark.parametrize(
    ("scores", "category", "reading", "expected"),
    [
        ({"drugs": 6.0}, "", Reading(READS_HARMFUL, "drugs"), "drugs"),
        ({"drugs": 6.0}, "", Reading(READS_HARMFUL - 0.01, "drugs"), ""),
        ({"drugs": 6.0}, "", Reading(0.99, "gambling"), ""),  # no word speaks of it
        ({"drugs": 6.0, "gambling": HINTED * 20.0}, "", Reading(0.99, "gambling"), "gambling"),
        ({"drugs": 6.0, "gambling": HINTED * 19.0}, "", Reading(0.99, "gambling"), ""),
        ({"drugs": 25.0, "gambling": 30.0}, "", Reading(0.99, "drugs"), "drugs"),  # too few words for a verdict
        ({"drugs": 21.0}, "drugs", Reading(READS_HARMLESS, "drugs"), ""),
        ({"drugs": 21.0, "gambling": 30.0}, "gambling", Reading(0.0, "drugs"), ""),
        ({"drugs": 21.0}, "drugs", Reading(READS_HARMLESS + 0.01, "drugs"), "drugs"),
        ({"drugs": CLEAR * 20.0, "gambling": 21.0}, "gambling", Reading(0.0, "drugs"), "gambling"),  # one is clear
        ({"violence": 21.0}, "violence", Reading(0.0, "violence"), "violence"),  # a person has words in it
    ],
)
def test_a_reading_moves_what_is_not_clear(
    tmp_path: Path, scores: dict[str, float], category: str, reading: Reading, expected: str
) -> None:
    model = made(tmp_path)
    topics = _Fixed(model.categories, model.rows, model.weights, model.bias, frozenset({"violence"}))
    object.__setattr__(topics, "reading", reading)
    before = judgement(scores, category)
    after = with_reading(before, LEXICON, "a", topics)
    assert after.category == expected
    assert (after.score > after.limit) == bool(expected)
    if expected != category:
        moved = sum(after.scores.values()) - sum(before.scores.values())
        assert sum(hit.weight for hit in after.evidence) == pytest.approx(moved)
        assert after.score == pytest.approx((OVER if expected else UNDER) * 20.0)
    else:
        assert after == before


def test_a_reading_is_asked_for_where_words_are_not_clear() -> None:
    assert not asks_for_reading(judgement({}), LEXICON, 1_000)
    assert asks_for_reading(judgement({"drugs": 2.0}), LEXICON, 1_000)
    assert not asks_for_reading(judgement({"drugs": 1.9}), LEXICON, 1_000)
    assert asks_for_reading(judgement({"drugs": CLEAR * 20.0 - 1.0}, "drugs"), LEXICON, 1_000)
    assert not asks_for_reading(judgement({"drugs": CLEAR * 20.0}, "drugs"), LEXICON, 1_000)


@pytest.mark.parametrize(("length", "least"), [(0, 2.0), (2_000, 2.0), (4_000, 4.0), (10_000, 10.0), (1_000_000, 10.0)])
def test_a_long_text_needs_more_than_a_word(length: int, least: float) -> None:
    assert asks_for_reading(judgement({"drugs": least}), LEXICON, length)
    assert not asks_for_reading(judgement({"drugs": least - 0.1}), LEXICON, length)


def test_no_page_is_harmful_by_statistics_alone(tmp_path: Path) -> None:
    model = made(tmp_path, gambling={"roulette": 9.0})
    classifier = PageClassifier(LEXICON, topics=model)
    assert model.read("roulette").harmful > READS_HARMFUL
    assert not classifier.classify_text("roulette roulette").harmful
    found = classifier.classify_text("gambling shop: roulette")
    assert found.category == "gambling"
    assert found.evidence[0].word == "reads like gambling (95%): roulette"
    assert found.score == OVER * found.limit


def test_a_verdict_that_reads_harmless_is_taken_back_unless_a_person_has_words(tmp_path: Path) -> None:
    (tmp_path / "bundled").mkdir()
    (tmp_path / "own").mkdir()
    text = 'category = "drugs"\nlimit = 20.0\nmin_words = 1\n[words]\n25 = ["drugs offer"]\n'
    (tmp_path / "bundled" / "drugs.toml").write_text(text)
    made(tmp_path / "bundled", harmless={"museum": 20.0})
    folders = [tmp_path / "bundled", tmp_path / "own"]
    page = "drugs offer in the museum"
    assert not load_classifier(folders).classify_text(page).harmful
    assert load_classifier(folders).classify_text(page).evidence[-1].word.startswith("reads harmless (")
    assert load_classifier(folders, topics=False).classify_text(page).harmful
    (tmp_path / "own" / "drugs.toml").write_text('category = "drugs"\n[words]\n1 = ["other"]\n')
    assert load_classifier(folders).classify_text(page).harmful


def test_harmless_text_before_a_harmful_one_hides_nothing(tmp_path: Path) -> None:
    model = made(tmp_path, drugs={"offer": 40.0}, harmless={"museum": 40.0})
    before = judgement({"drugs": 30.0}, "drugs")
    assert with_reading(before, LEXICON, "museum " * 900, model).category == ""
    assert with_reading(before, LEXICON, "museum " * 900 + "offer " * 90, model) == before
    assert with_reading(before, LEXICON, "museum " * 9_000, model) == before  # too long to be read whole
    assert model.most_harmful("") == 0.0


def test_words_have_another_name_with_and_without_the_model(tmp_path: Path) -> None:
    made(tmp_path)
    assert words_version([tmp_path]) != words_version([tmp_path], topics=False)


def arrays(**changed: Any) -> dict[str, Any]:
    right: dict[str, Any] = {
        "version": np.array([1, BITS]),
        "categories": np.array(NAMES),
        "places": np.array([1, 7], np.uint32),
        "weights": np.zeros((3, 2), np.int8),
        "scales": np.ones(3, np.float32),
        "bias": np.zeros(3, np.float32),
    }
    return {name: value for name, value in (right | changed).items() if value is not None}


@pytest.mark.parametrize(
    "changed",
    [
        {"version": np.array([2, BITS])},
        {"version": None},
        {"categories": np.array(["drugs", "gambling", "other"])},
        {"categories": np.array(["", "drugs", "drugs"])},
        {"categories": np.array([1, 2, 3])},
        {"places": np.array([7, 1], np.uint32)},
        {"places": np.array([1, 1 << BITS], np.uint32)},
        {"places": np.array([1, 7], np.float64)},
        {"weights": np.zeros((3, 3), np.int8)},
        {"weights": np.zeros((3, 2), np.float64)},
        {"scales": np.array([1, np.nan, 1], np.float32)},
        {"bias": np.array([np.inf, 0, 1], np.float32)},
        {"weights": np.array([[{}, 1], [2, 3], [4, 5]], dtype=object)},  # would be unpickled
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    np.savez(tmp_path / TOPICS_FILE, **arrays(**changed))
    with pytest.raises(ClassifyError, match="is no model of this program"):
        TopicModel.load(tmp_path / TOPICS_FILE)


def test_a_right_model_is_taken_and_none_is_none(tmp_path: Path) -> None:
    assert TopicModel.load(tmp_path / TOPICS_FILE) is None
    np.savez(tmp_path / TOPICS_FILE, **arrays())
    assert TopicModel.load(tmp_path / TOPICS_FILE) is not None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", bytes(20_000_000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TOPICS_FILE).write_bytes(content)
    with pytest.raises(ClassifyError):
        TopicModel.load(tmp_path / TOPICS_FILE)


def test_a_file_with_any_byte_damaged_is_refused_or_read(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays())
    path, good = tmp_path / TOPICS_FILE, content.getvalue()
    refused = 0
    for index in range(0, len(good), 3):
        path.write_bytes(good[:index] + bytes([good[index] ^ 0x55]) + good[index + 1 :])
        try:
            TopicModel.load(path)
        except ClassifyError:
            refused += 1
    assert refused > len(good) // 6


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays(weights=np.zeros((3, 20_000_000), np.int8)))
    (tmp_path / TOPICS_FILE).write_bytes(content.getvalue())
    with pytest.raises(ClassifyError, match="too large"):
        TopicModel.load(tmp_path / TOPICS_FILE)


@limits(max_examples=50)
@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_text_is_read(bundled: TopicModel, text: str) -> None:
    assert 0.0 <= bundled.read(text).harmful <= 1.0


def test_a_long_text_is_bounded(bundled: TopicModel) -> None:
    assert len(terms_of("a " * 1_000_000).words) <= MAX_CHARACTERS
    assert all(len(term) <= MAX_TERM for term in bundled.telling("x" * 1_000_000, "drugs"))
