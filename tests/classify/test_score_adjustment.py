"""What statistics do to the verdict of the words, branch by branch, with a model whose readings are given."""

from dataclasses import replace
from math import exp
from typing import Any

import pytest

from gatewayfilter.classify.lexicon.lexicon import Category, Lexicon
from gatewayfilter.classify.models.calibration import BLOCKED_FROM, DOUBT, Candidate
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from gatewayfilter.classify.page_form import form_of
from gatewayfilter.classify.passages import Passage
from gatewayfilter.classify.score import UNPLACED, Judgement, Sum
from gatewayfilter.classify.score_adjustment import (
    OVER,
    PASSAGE_CERTAINTY,
    SIGN_CERTAINTY,
    UNCONFIRMED,
    UNDER,
    candidate_of,
    with_certainty,
    with_opinion,
    with_passage,
)
from gatewayfilter.classify.zones import PageText, plain_text
from gatewayfilter.model import Evidence
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases

LEXICON = Lexicon({name: Category(name, 10.0, 2) for name in ("gambling", "drugs", "games", "malware")})
KNOWN = ("gambling", "drugs", "malware")
SUM = Sum(6.0, 3.0, 2.0, 1.0, 1.0, 10.0, 3, 2)
HIT = Evidence("chips", "gambling", 6.0, "main", 0)
CONFIRMED = NOTHING_READ._replace(own_top=0.0)


class Model:
    """A text model that gives one certainty, and notes what it was asked to read."""

    def __init__(self, certainty: float, reading: Reading = CONFIRMED, additive: tuple[str, ...] = ()) -> None:
        self.calibration: Any = self
        self.categories, self.additive = KNOWN, frozenset(additive)
        self._certainty, self._reading = certainty, reading
        self.read_as: list[str] = []

    def read(self, text: str, category: str) -> Reading:
        self.read_as.append(f"beginning of {text!r} for {category}")
        return self._reading

    def read_parts(self, text: str, category: str) -> Reading:
        self.read_as.append(f"all of {text!r} for {category}")
        return self._reading

    def certainty(self, page: Candidate, reading: Reading) -> float:
        assert reading is self._reading
        self.page = page
        return self._certainty

    def certainty_of_passages(self, page: Candidate) -> float:
        return 0.6 if page.category == "gambling" else 2.0

    def telling(self, text: str, category: str, *, harmful: bool) -> tuple[str, ...]:
        return text.strip(), category, str(harmful)


def judged(category: str = "", **scores: float) -> Judgement:
    """Returns a judgement by words: scores by category, all with the same sum."""
    first = max(scores, key=lambda name: scores[name], default="")
    return Judgement(category, scores.get(first, 0.0), 10.0, scores, (HIT,), dict.fromkeys(scores, SUM))


def weighed(found: Judgement, model: Any, strictness: Strictness | None = Strictness.STANDARD, text: str = "text") -> Judgement:
    return with_certainty(found, LEXICON, plain_text(text), model, strictness)


@pytest.mark.parametrize(("category", "additive"), [("games", ()), ("gambling", ("gambling",))])
def test_a_verdict_that_the_model_does_not_judge_stands(category: str, additive: tuple[str, ...]) -> None:
    found = judged(category, **{category: 12.0, "drugs": 9.0})
    model = Model(0.0, additive=additive)
    assert weighed(found, model) is found
    assert model.read_as == []
    other = judged("drugs", gambling=8.0, drugs=12.0)
    assert weighed(other, Model(0.99, additive=additive)) == replace(other, certainty=0.99)


def test_without_a_hint_nothing_is_certain() -> None:
    found = judged(games=9.0)
    assert weighed(found, Model(0.99)) == replace(found, certainty=0.0)
    assert weighed(judged(), Model(0.99)) == replace(judged(), certainty=0.0)


def test_the_certainty_from_which_on_a_page_is_blocked_or_in_doubt() -> None:
    found = judged(gambling=5.0)
    blocked = weighed(found, Model(BLOCKED_FROM[Strictness.STANDARD]))
    assert (blocked.category, blocked.doubt, blocked.certainty) == ("gambling", "", 0.9)
    less = weighed(found, Model(0.8999444))
    assert less == replace(found, certainty=0.8999, doubt="gambling")
    assert weighed(found, Model(DOUBT)) == replace(found, certainty=DOUBT, doubt="gambling")
    assert weighed(found, Model(DOUBT - 0.01)) == replace(found, certainty=0.29)
    assert weighed(found, Model(DOUBT), Strictness.STRICT).category == "gambling"
    passage = weighed(found, Model(0.6), None)
    assert passage.category == "gambling"
    assert weighed(found, Model(0.599), None).category == ""
    assert weighed(judged(drugs=5.0), Model(1.0), None).category == ""
    both = weighed(judged("gambling", gambling=12.0), Model(0.95))
    assert both == replace(judged("gambling", gambling=12.0), certainty=0.95)


def test_a_page_that_reads_like_its_category_is_taken_over_the_limit() -> None:
    found = judged(gambling=5.0, drugs=2.0)
    shifted = weighed(found, Model(0.953))
    assert (shifted.category, shifted.score, shifted.limit) == ("gambling", OVER * 10, 10.0)
    assert list(shifted.scores.items()) == [("gambling", OVER * 10), ("drugs", 2.0)]
    said = Evidence("reads like gambling (95%): text · gambling · True", "gambling", 7.5, "main", UNPLACED)
    assert shifted.evidence == (said, HIT)
    assert shifted.sums == found.sums
    over = replace(judged(gambling=14.0), sums={"gambling": replace(SUM, words=1)})  # of too few words
    again = weighed(over, Model(0.95))
    assert (again.category, again.score, again.evidence[0].weight) == ("gambling", 14.0, 0.0)
    other = weighed(judged("drugs", gambling=30.0, drugs=12.0), Model(0.95))
    assert (other.category, other.score) == ("gambling", 30.0)
    assert other.evidence[0].category == "gambling"
    below = replace(judged(gambling=5.0), sums={"gambling": replace(SUM, limit=6.0)})  # of a short page
    short = weighed(below, Model(0.95))
    assert (short.score, short.limit, short.evidence[0].weight) == (OVER * 6, 6.0, 2.5)
    odd = weighed(replace(below, sums={"gambling": replace(SUM, limit=6.0001)}), Model(0.95))
    assert (odd.score, odd.scores, odd.evidence[0].weight) == (7.5, {"gambling": 7.5}, 2.5)


def test_a_page_that_reads_harmless_is_taken_under_the_limits() -> None:
    found = judged("gambling", gambling=12.0, drugs=11.0, malware=10.0, games=3.0)
    freed = weighed(found, Model(0.2))
    assert (freed.category, freed.doubt, freed.certainty, freed.score) == ("", "", 0.2, 10.0)
    assert list(freed.scores.items()) == [("malware", 10.0), ("gambling", UNDER * 10), ("drugs", UNDER * 10), ("games", 3.0)]
    assert freed.evidence[0] == HIT
    assert [(hit.word, hit.category, hit.weight) for hit in freed.evidence[1:]] == [
        ("reads harmless (80%): text · gambling · False", "gambling", -4.5),
        ("reads harmless (80%): text · gambling · False", "drugs", -3.5),
    ]


@all_cases(
    ("words", "category", "certainty"), [({"games": 2, "drugs": 2}, "games", None), ({"games": 1, "drugs": 2}, "drugs", None),
    ({"games": 1, "drugs": 1}, "", 0.4)],
)  # fmt: skip
def test_verdicts_of_words_that_the_model_does_not_judge_stand_beside(
    words: dict[str, int], category: str, certainty: float | None
) -> None:
    found = judged("gambling", gambling=15.0, games=13.0, drugs=12.0)
    sums = found.sums | {name: replace(SUM, words=count) for name, count in words.items()}
    freed = weighed(replace(found, sums=sums), Model(0.4, additive=("drugs",)))
    assert (freed.category, freed.certainty, freed.doubt) == (category, certainty, "" if category else "gambling")
    assert freed.scores == {"games": 13.0, "drugs": 12.0, "gambling": UNDER * 10}
    assert freed.score == freed.scores[category or "games"]
    said = Evidence("reads harmless (60%): text · gambling · False", "gambling", -7.5, "main", UNPLACED)
    assert freed.evidence == ((said, HIT) if category else (HIT, said))


def test_how_much_of_a_text_is_read() -> None:
    for found, how in ((judged(gambling=5.0), "beginning"), (judged("gambling", gambling=12.0), "all")):
        model = Model(0.5)
        weighed(found, model)
        assert model.read_as == [f"{how} of '\\ntext\\n' for gambling"]


def test_what_does_not_read_like_its_category_is_less_certain() -> None:
    for found, reading, certainty in (
        (judged(gambling=5.0), NOTHING_READ, UNCONFIRMED), (judged(gambling=5.0), CONFIRMED, 0.97),
        (judged("gambling", gambling=12.0), NOTHING_READ, 0.97),
    ):  # fmt: skip
        assert weighed(found, Model(0.97, reading)).certainty == certainty
    assert weighed(judged(gambling=5.0), Model(0.4, NOTHING_READ)).certainty == 0.4


BOARD = "赔率\n金额\n" * 3


def test_a_sign_counts_where_words_and_reading_are_less_certain() -> None:
    found = weighed(judged(gambling=5.0), Model(0.1), text=BOARD)
    assert (found.category, found.certainty) == ("gambling", SIGN_CERTAINTY)
    assert found.evidence[0].word == "takes bets: a stake beside 3 prices"
    for certainty in (SIGN_CERTAINTY, 0.99):
        sure = weighed(judged(gambling=5.0), Model(certainty), text=BOARD)
        assert sure.certainty == certainty
        assert sure.evidence[0].word.startswith("reads like gambling (")
    assert weighed(judged(drugs=5.0), Model(0.1), text=BOARD).category == ""


def test_a_passage_stands_in_its_page() -> None:
    whole = judged(gambling=5.0, drugs=1.0)
    hits = (HIT, replace(HIT, word="reads", position=UNPLACED), replace(HIT, position=7))
    passage = replace(judged("drugs", drugs=12.0), evidence=hits, certainty=0.99, limit=8.0)
    found = with_passage(whole, passage, Passage("rest", 100, "x"), Strictness.STANDARD)
    assert (found.category, found.score, found.limit, found.doubt) == ("drugs", 12.0, 8.0, "")
    assert (found.scores, found.sums, found.certainty) == ({"gambling": 5.0, "drugs": 12.0}, whole.sums, PASSAGE_CERTAINTY)
    assert [(hit.word, hit.zone, hit.position) for hit in found.evidence] == [
        ("chips", "rest", 100), ("reads", "main", UNPLACED), ("chips", "rest", 107),
    ]  # fmt: skip
    relaxed = with_passage(whole, passage, Passage("rest", 100, "x"), Strictness.RELAXED)
    assert relaxed == replace(whole, certainty=PASSAGE_CERTAINTY, doubt="drugs")
    for none in (replace(passage, category=""), replace(passage, certainty=None)):
        assert with_passage(whole, none, Passage("rest", 100, "x"), Strictness.STANDARD) is whole


def test_the_candidate_is_the_nearest_of_those_that_are_judged() -> None:
    found = judged(games=90.0, gambling=4.0, drugs=6.0)
    page = PageText("", {"main": "赌 场" * 30})
    nearest = candidate_of(found, LEXICON, KNOWN, page)
    assert nearest is not None
    assert (nearest.category, nearest.ratio, nearest.second) == ("drugs", 0.6, 0.4)
    assert (nearest.ideographic, nearest.length) == (True, page.length())
    assert nearest.form == form_of(page.visible(), ideographic=True) != form_of(page.visible(), ideographic=False)
    assert candidate_of(judged(games=90.0), LEXICON, KNOWN, page) is None
    short = replace(found, sums=found.sums | {"gambling": replace(SUM, limit=5.0)})
    assert getattr(candidate_of(short, LEXICON, KNOWN, page), "category", "") == "gambling"


@all_cases(
    ("fraud", "betting", "length", "category"),
    [(8.0, 4.0, 10, "gambling"), (8.0, 3.9, 10, "fraud"), (4.0, 2.0, 4_000, "gambling"), (3.8, 1.9, 4_000, "fraud"),
    (8.0, 4.0, 90_000, "fraud"), (10.0, 5.0, 90_000, "gambling")],
)  # fmt: skip
def test_betting_takes_the_place_of_payments_where_it_is_hinted_at(
    fraud: float, betting: float, length: int, category: str
) -> None:
    found = candidate_of(judged(fraud=fraud, gambling=betting), LEXICON, ("fraud", "gambling"), plain_text("x" * length))
    assert found is not None
    assert found.category == category
    assert found.second == pytest.approx((fraud if category == "gambling" else betting) / 10)


def test_a_second_opinion_moves_each_score_in_the_grey_zone() -> None:
    found = replace(judged(gambling=9.0, drugs=6.0, games=2.0), certainty=0.5, doubt="drugs", evidence=(HIT, HIT))
    moved = with_opinion(found, LEXICON, 99.0)
    assert list(moved.scores.items()) == [("gambling", 14.0), ("drugs", 11.0), ("games", 2.0)]
    assert (moved.category, moved.score, moved.limit, moved.certainty, moved.doubt) == ("gambling", 14.0, 10.0, None, "")
    said = [Evidence("second opinion 100%", name, 5.0, "main", UNPLACED) for name in ("gambling", "drugs")]
    assert moved.evidence == (HIT, HIT, *said)
    fewer = with_opinion(replace(found, evidence=(HIT, replace(HIT, weight=-6.0))), LEXICON, 99.0)
    assert (fewer.category, fewer.score, fewer.certainty, fewer.doubt) == ("", 14.0, 0.5, "drugs")
    none = with_opinion(replace(found, evidence=(HIT, replace(HIT, weight=0.0))), LEXICON, 99.0)
    assert none.category == ""
    light = with_opinion(replace(found, evidence=(HIT, replace(HIT, weight=0.5))), LEXICON, 99.0)
    assert light.category == "gambling"
    down = with_opinion(replace(found, scores={"gambling": 5.0, "drugs": 5.0002}), LEXICON, -99.0)
    assert (down.category, down.scores, down.certainty) == ("", {}, 0.5)
    little = with_opinion(replace(found, scores={"gambling": 5.0, "drugs": 5.5}), LEXICON, -99.0)
    assert little.scores == {"drugs": 0.5}
    half = with_opinion(found, LEXICON, 1.0)
    chance = 1 / (1 + exp(-1.0))
    assert half.scores["gambling"] == pytest.approx(9.0 + 10 * (chance - 0.5), abs=1e-3)
    assert (half.evidence[-1].word, half.evidence[-1].weight) == ("second opinion 73%", 2.311)


def test_a_second_opinion_withdraws_no_verdict_for_too_few_words_and_none_that_is_clear() -> None:
    found = replace(judged("drugs", gambling=14.0, drugs=12.0), certainty=0.95, evidence=())
    stays = with_opinion(found, LEXICON, 1.0)
    assert (stays.category, stays.certainty, stays.doubt) == ("drugs", 0.95, "")
    assert stays.score == stays.scores["drugs"] < stays.scores["gambling"]
    withdrawn = with_opinion(found, LEXICON, -99.0)
    assert (withdrawn.category, withdrawn.certainty, withdrawn.doubt) == ("", None, "drugs")
    assert (withdrawn.scores, withdrawn.score) == ({"gambling": 9.0, "drugs": 7.0}, 9.0)
    limited = Judgement("", 6.0, 10.0, {"gambling": 6.0}, (HIT, HIT), {"gambling": replace(SUM, limit=4.0)})
    alike = with_opinion(limited, LEXICON, 0.0)
    assert (alike.category, alike.limit, alike.evidence) == ("gambling", 4.0, (HIT, HIT))
    bare = with_opinion(replace(limited, sums={}), LEXICON, 0.0)
    assert (bare.category, bare.limit) == ("", 10.0)
