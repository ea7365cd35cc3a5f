"""The densest passage of a long page, and that other text around or hidden beside an offer does not hide it."""

import html
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import PageClassifier
from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.match_filter import Meaning, Role
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.passages import LEAST_SHARE, LETTERS, Passage, densest
from gatewayfilter.classify.score import Judgement, ZoneHits
from gatewayfilter.classify.score_adjustment import PASSAGE_CERTAINTY, with_passage
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Evidence
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases
from tests.classify.synthetic_pages import sites

CATEGORIES = Lexicon.of([WordFile("gambling", limit=20.0, words={"jackpot": 10.0, "slots": 9.0})]).categories
FILLER = "The library lends books, maps and music, and its reading room is open until eight in the evening.\n"

CHINESE = "图书馆的阅览室每天开放到晚上八点。读者可以在这里借阅小说、地图和乐谱。周末还有读书会。\n"


def hits(text: str, weights: dict[str, float], zone: str = "main", role: Role = Role.WORD, *, placed: bool = True) -> ZoneHits:
    found = {
        Meaning(word, "gambling", role, weight): (text.index(word), text.index(word) + len(word))
        for word, weight in weights.items()
    }
    return ZoneHits(zone, text, placed, found)


def test_the_passage_is_the_lines_in_which_the_words_stand() -> None:
    text = FILLER * 30 + "Here is the jackpot\nand the slots are loose.\n" + FILLER * 30
    found = densest([hits(text, {"jackpot": 10.0, "slots": 9.0})], CATEGORIES, ideographic=False)
    assert found == Passage("main", 30 * len(FILLER), "Here is the jackpot\nand the slots are loose.")


def test_words_far_apart_make_no_passage() -> None:
    text = "jackpot " + FILLER * 30 + "slots"
    assert len(text) > LETTERS
    assert densest([hits(text, {"jackpot": 10.0, "slots": 9.0})], CATEGORIES, ideographic=False) is None
    assert densest([hits(text, {"jackpot": LEAST_SHARE * 20.0})], CATEGORIES, ideographic=False) is not None


@all_cases(
    "other",
    [
        hits("jackpot slots", {"jackpot": 10.0, "slots": 9.0}, zone="url"),
        hits("jackpot slots", {"jackpot": 10.0, "slots": 9.0}, placed=False),
        hits("jackpot slots", {"jackpot": 10.0, "slots": 9.0}, role=Role.CONTEXT),
        hits("jackpot slots", {"jackpot": -10.0, "slots": -9.0}),
    ],
)
def test_only_words_that_visitors_see_make_a_passage(other: ZoneHits) -> None:
    assert densest([other], CATEGORIES, ideographic=False) is None


@settings(max_examples=30)
@given(
    places=st.lists(st.tuples(st.integers(0, 9_000), st.sampled_from([1.0, 8.0, 20.0])), max_size=30), ideographic=st.booleans()
)
def test_a_passage_stands_in_its_zone_and_is_bounded(*, places: list[tuple[int, float]], ideographic: bool) -> None:
    text = FILLER * 100
    found = {Meaning(f"w{number}", "gambling", Role.WORD, weight): (at, at + 2) for number, (at, weight) in enumerate(places)}
    passage = densest([ZoneHits("rest", text, True, found)], CATEGORIES, ideographic=ideographic)
    heaviest = max((weight for _, weight in places), default=0.0)
    assert passage is not None or heaviest < LEAST_SHARE * 20.0
    if passage is not None:
        assert text[passage.start : passage.start + len(passage.text)] == passage.text
        assert 0 < len(passage.text) <= 1.5 * LETTERS


def test_a_passage_beyond_doubt_makes_the_page_certain() -> None:
    whole = Judgement("", 3.0, 20.0, {"gambling": 3.0}, (), certainty=0.1)
    hit = Evidence("jackpot", "gambling", 10.0, "main", 7)
    alone = Judgement("gambling", 40.0, 20.0, {"gambling": 40.0}, (hit,), certainty=0.9999)
    found = with_passage(whole, alone, Passage("rest", 500, "the jackpot"), Strictness.STANDARD)
    assert (found.category, found.score, found.certainty, found.doubt) == ("gambling", 40.0, PASSAGE_CERTAINTY, "")
    assert found.evidence == (replace(hit, zone="rest", position=507),)
    in_doubt = with_passage(whole, alone, Passage("rest", 500, "the jackpot"), Strictness.RELAXED)
    assert (in_doubt.category, in_doubt.certainty, in_doubt.doubt) == ("", PASSAGE_CERTAINTY, "gambling")
    for other in (replace(alone, certainty=None), replace(alone, category="")):
        assert with_passage(whole, other, Passage("rest", 500, "the jackpot"), Strictness.STANDARD) is whole


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(
    ("writer", "filler", "least"), [("fourth-en", FILLER, 0.4), ("fourth-zh", CHINESE, 0.2), ("trade-en", FILLER, 0.7)]
)
def test_other_text_does_not_hide_an_offer(
    in_use: PageClassifier, writer: str, filler: str, least: float, *, hidden: bool
) -> None:
    """Ten times as much harmless text, before the offer, or hidden beside it; docs/classification.md has the figures."""
    found = []
    for site in list(sites(writer, "report"))[::3]:
        offer = "".join(f"<p>{html.escape(part)}</p>" for part in (site.title, *site.parts))
        other = f"<p>{filler}</p>" * (10 * len(offer) // len(filler))
        other = f'<div style="display:none">{other}</div>' if hidden else other
        found.append(judged(in_use, f"<title>{html.escape(site.title)}</title><body>{other}{offer}</body>"))
    assert sum(found) >= least * len(found)


def judged(classifier: PageClassifier, markup: str) -> bool:
    url = "http://site.example/"
    return classifier.classify_page(Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, markup.encode())).harmful
