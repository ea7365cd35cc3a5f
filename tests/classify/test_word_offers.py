"""Topic words beside an offer, context that all categories share, and how length and decisive context count."""

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.word_file import WordFile, parse_word_file
from gatewayfilter.errors import ClassifyError
from tests.case_tables import all_cases

FILES = (
    WordFile(
        "gambling",
        limit=10.0,
        min_words=2,
        words={"slots": 4.0, "poker": 4.0, "dice": 4.0, "jackpot": 10.0},
        context={"law": 12.0},
    ),
    WordFile("any", offers=["sign up", "order now", "加微信"], context={"police": 3.0}, exceptions=["dice salad"]),
)
PADDING = " and so on, as people say when they have nothing to add" * 400


@pytest.fixture(scope="module")
def words() -> PageClassifier:
    return PageClassifier(Lexicon.of(FILES))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("slots, poker, dice", 5.0),  # a topic: half the limit
        ("slots, poker, dice: sign up", 7.5),
        ("slots, poker, dice: sign up, order now", 10.0),
        ("slots, poker, dice: sign up, order now, 加微信", 12.0),  # no more than they weigh
        ("sign up, order now, 加微信", 0.0),
        ("slots, poker, dice salad: sign up, order now", 8.0),
        ("slots, poker, dice: sign up. police", 4.5),
        ("slots, poker, dice" + PADDING, 1.5),
        ("jackpot" + PADDING, 10.0),  # what says an offer by itself does not shrink
        ("jackpot. law", 1.5),  # 12 or more, read by visitors: up to 85 %
        ("police", 0.0),
    ],
)
def test_scores(words: PageClassifier, text: str, score: float) -> None:
    found = words.classify_text(text)
    assert found.score == pytest.approx(score, abs=0.3 if len(text) > 1000 else 0.01)
    assert found.harmful == (score > 10.0)


@all_cases(
    ("filler", "limit"),
    [(0, 10.0), (80, 10.0), (381, 15.0), (1_490, 20.0), (100_000, 20.0)],
)
def test_a_page_of_few_words_has_a_lower_limit(filler: int, limit: float) -> None:
    words = WordFile("gambling", limit=20.0, short_share=0.5, min_words=2, words={"jackpot": 10.0, "dice": 1.0})
    found = PageClassifier(Lexicon.of([words])).classify_text("jackpot, dice" + "." * filler)
    assert found.score == pytest.approx(11.0)
    assert found.limit == pytest.approx(limit, abs=0.1)
    assert found.harmful == (limit < 11.0)


def test_nothing_but_topic_words_keeps_the_whole_limit() -> None:
    words = WordFile("gambling", limit=20.0, short_share=0.5, min_words=2, words={"slots": 4.0, "poker": 4.0, "dice": 4.0})
    found = PageClassifier(Lexicon.of([words])).classify_text("slots, poker, dice")
    assert (found.score, found.limit, found.harmful) == (10.0, 20.0, False)


def test_any_is_no_category() -> None:
    lexicon = Lexicon.of(FILES)
    assert set(lexicon.categories) == {"gambling"}
    assert set(PageClassifier(lexicon).classify_text("slots, police").scores) <= {"gambling"}
    with pytest.raises(ClassifyError, match="'words' cannot stand in a file of the category 'any'"):
        parse_word_file('category = "any"\n[words]\n5 = ["x"]', "any.toml")


def test_offers_and_shared_context_can_be_removed() -> None:
    removed = Lexicon.of([*FILES, WordFile("any", removed=["sign up", "police", "dice salad"])])
    assert "sign up" not in removed.offers
    assert not removed.context
    assert not removed.exceptions
