"""What a classifier asks beside the words: whether a page may be a clone, how a score came about, and the scale of certainty."""

from math import exp, log
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify import classifier as classifier_module
from gatewayfilter.classify.imitated_services import ImitatedServices
from gatewayfilter.classify.lexicon.word_file import write_word_file
from gatewayfilter.classify.models.calibration import KINDS, Calibration, Candidate
from gatewayfilter.classify.models.decision_trees import DecisionTrees
from gatewayfilter.classify.page_form import PLAIN
from gatewayfilter.classify.passages import Passage
from gatewayfilter.classify.reloading_classifier import ReloadingClassifier, load_classifier
from gatewayfilter.classify.score import UNPLACED, Judgement
from gatewayfilter.classify.score_adjustment import PASSAGE_CERTAINTY, with_opinion, with_passage
from gatewayfilter.classify.score_breakdown import breakdown_of
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases

WORDS = WordFile("c", limit=10.0, min_words=1, words={"casino": 12.0, "bonus": 4.0})
LOGIN = "<input type=password>"


def page_of(html: str, content_type: str = "text/html", url: str = "https://a.example/") -> Page:
    return Page(url, url, 200, {"content-type": content_type}, html.encode())


def test_which_pages_may_be_clones(monkeypatch: pytest.MonkeyPatch) -> None:
    services = ImitatedServices(["PayBank = paybank.com"])
    lexicon = Lexicon.of([WORDS])
    judge = PageClassifier(lexicon, services=services, remembers=2)
    monkeypatch.setattr(classifier_module, "MAX_CLONE_LENGTH", 10)

    def may_be(html: str, content_type: str = "text/html", by: PageClassifier = judge) -> bool:
        page = page_of(html, content_type)
        return by._may_be_clone(page, by._read(page)[0])

    assert may_be(LOGIN) is True
    assert may_be(f"<p>aaaaaaaaaa</p>{LOGIN}") is True
    assert may_be(f"<p>aaaaaaaaaaa</p>{LOGIN}") is False
    assert may_be(LOGIN, "text/plain") is False
    assert may_be("<input name=q>") is False
    assert may_be(LOGIN, by=PageClassifier(lexicon)) is False


def test_a_judgement_that_may_differ_elsewhere_is_not_kept() -> None:
    judge = PageClassifier(Lexicon.of([WORDS]), services=ImitatedServices(["PayBank = paybank.com"]), remembers=2)
    known = judge._known
    assert known is not None
    for html, kept in ((LOGIN, 0), ("<p>casino</p>", 1), ("<p>other</p>", 2)):
        first = judge.classify_page(page_of(html))
        assert judge.classify_page(page_of(html, url="https://b.example/")) == first
        assert len(known._judged) == kept
    judge.classify_page(page_of("<p>new</p>", url="https://casino.example/"))
    assert len(known._judged) == 2
    assert judge.classify_page(page_of("<p>casino</p>")).category == "c"


def test_how_a_score_came_about_by_the_words_of_now(tmp_path: Path) -> None:
    write_word_file(tmp_path / "c.toml", WORDS)
    judge = ReloadingClassifier([tmp_path], lambda: 0.0, topics=False)
    page = page_of("<p>casino bonus</p>")
    expected = breakdown_of(load_classifier([tmp_path], topics=False).explain(page), judge.words_version(), "c")
    assert expected is not None
    assert judge.breakdown_of(page, "c") == expected
    assert judge.breakdown_of(page, "none") is None
    assert judge.text_of(page).strip() == "casino bonus"
    assert judge.classify_text("casino").category == "c"


def calibration() -> Calibration:
    knots = np.array([[1.0] * 2 * KINDS, [2.0] * 2 * KINDS, [4.0] * 2 * KINDS])
    return Calibration(("c", "d"), cast("DecisionTrees", SimpleNamespace()), knots, np.arange(2.0 * KINDS))


@all_cases(
    ("odds", "logit"),
    [
        (1.0, log(0.3 / 0.7)), (0.25, log(0.3 / 0.7) - 0.75), (2.0, log(9)), (4.0, log(99)), (5.5, log(99) + 1.5),
        (3.0, (log(9) + log(99)) / 2),
        (-99.0, -30.0), (99.0, 30.0),
    ],
)  # fmt: skip
def test_the_scale_goes_on_beyond_its_knots(odds: float, logit: float) -> None:
    assert calibration().scaled(odds, 3) == pytest.approx(1 / (1 + exp(-logit)))


@all_cases(
    ("category", "ideographic", "length", "column"),
    [
        ("c", False, 1_500, 0),
        ("c", False, 1_501, 1),
        ("c", True, 9, 2),
        ("c", True, 9_999, 3),
        ("d", False, 9, 4),
        ("d", True, 9_999, 7),
    ],
)
def test_each_kind_of_page_has_a_column(category: str, length: int, column: int, *, ideographic: bool) -> None:
    page = Candidate(
        category, 1, 1, 1, 1, 1, 1, enough=True, verdict=True, second=0, length=length, ideographic=ideographic, form=PLAIN
    )
    assert calibration().column(page) == column
    assert calibration().certainty_of_passages(page) == calibration().scaled(float(column), column)


@all_cases(
    ("score", "logit", "moved", "category"),
    [
        (12.0, -99.0, 7.0, ""), (12.0, 0.0, 12.0, "c"), (8.0, 99.0, 13.0, "c"), (8.0, 0.0, 8.0, ""), (4.9, 99.0, 4.9, ""),
        (15.1, -99.0, 15.1, "c"), (5.0, 99.0, 10.0, ""),
        (15.0, -99.0, 10.0, ""), (5.001, 99.0, 10.001, "c"),
    ],
)  # fmt: skip
def test_a_second_opinion_moves_what_is_not_clear(score: float, logit: float, moved: float, category: str) -> None:
    judged = PageClassifier(Lexicon.of([WORDS]))
    lexicon = judged.lexicon
    found: Judgement = judged._judge.judge(judged._hits(judged._read(page_of("<p>casino bonus</p>"))[0]), 2_000)
    found = found.__class__(
        **{name: getattr(found, name) for name in found.__slots__}
        | {"score": score, "scores": {"c": score}, "category": "c" if score > 10 else ""}
    )
    after = with_opinion(found, lexicon, logit)
    assert after.scores["c"] == pytest.approx(moved)
    assert after.category == category
    spoken = [hit for hit in after.evidence if hit.word.startswith("second opinion")]
    assert [(hit.category, hit.zone, hit.position) for hit in spoken] == ([("c", "main", UNPLACED)] if moved != score else [])


@all_cases(("whole", "certainty"), [(None, PASSAGE_CERTAINTY), (0.2, PASSAGE_CERTAINTY), (0.95, 0.95)])
def test_a_passage_makes_a_page_no_less_certain(whole: float | None, certainty: float) -> None:
    found = Judgement("", 1.0, 10.0, {"c": 1.0}, (), {}, certainty=whole)
    judged = Judgement("c", 12.0, 10.0, {"c": 12.0}, (), {}, certainty=0.99)
    for strictness, category in ((Strictness.RELAXED, ""), (Strictness.STANDARD, "c")):
        after = with_passage(found, judged, Passage("main", 0, ""), strictness)
        assert (after.certainty, after.category) == (certainty, category)
