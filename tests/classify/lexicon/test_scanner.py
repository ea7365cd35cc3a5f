# ruff: noqa: RUF001  the texts are Chinese, and look-alikes are what is tested
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier, highlight
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.normalize.views import normal_view, squashed_view
from gatewayfilter.interfaces import Page
from tests.case_tables import all_cases

WORDS = WordFile(
    "bad",
    limit=10.0,
    min_words=2,
    words={
        "casino": 6.0,
        "online casino": 8.0,
        "口交": 6.0,
        "黄片": 6.0,
        "porn*": 6.0,
        "*tube": 6.0,
        "赌博": 6.0,
        "topic": 2.0,
        "theme": 4.0,
        "subject": 4.0,
    },
    context={"news": 5.0},
    exceptions=["路口交通", "三黄片", "casino royale"],
    combinations={("red", "blue"): 7.0, ("casino", "green"): 5.0, ("white", "black"): -4.0},
)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.of([WORDS])


@all_cases(
    ("text", "found"),
    [
        ("casino", {"casino"}),
        ("casinos", set()),
        ("acasino", set()),
        ("玩casino吧", {"casino"}),
        ("casino_x casino2", {"casino"}),
        ("online casino", {"online casino"}),
        ("online casino and casino", {"online casino", "casino"}),
        ("casino royale", set()),
        ("casino royales", {"casino"}),
        ("casino royale, casino", {"casino"}),
        ("路口交通", set()),
        ("路口交通 口交", {"口交"}),
        ("三黄片", set()),
        ("看黄片", {"黄片"}),
        ("porntube pornography", {"porn*", "*tube"}),
        ("éporn", set()),
        ("", set()),
    ],
)
def test_words_and_exceptions(lexicon: Lexicon, text: str, found: set[str]) -> None:
    hits = Scanner(lexicon).scan(normal_view(text))
    assert {meaning.phrase for meaning in hits if meaning.weight} == found


def naive(words: list[str], text: str) -> set[str]:
    return {word for word in words if re.search(rf"(?<![a-z]){word}(?![a-z])", text)}


@settings(max_examples=30)
@given(
    st.lists(st.text("ab ", min_size=1, max_size=4).map(str.strip).filter(bool), unique=True, min_size=1),
    st.text("ab ", max_size=40),
)
def test_the_automaton_finds_what_a_naive_search_finds(words: list[str], text: str) -> None:
    categories = [WordFile(f"c{number}", words={word: 1.0}) for number, word in enumerate(words)]
    text = normal_view(text)
    hits = Scanner(Lexicon.of(categories)).scan(text)
    assert {meaning.phrase for meaning in hits} == naive([normal_view(word) for word in words], text)


@all_cases(
    ("written", "meant"),
    [
        ("c.a.s.i.n.o", "casino"),
        ("c a s i n o", "casino"),
        ("cas1n0", "casino"),
        ("c\u0430sin\u043e", "casino"),
        ("ca\u200bsi\u00adno", "casino"),
        ("ＣＡＳＩＮＯ", "casino"),
        ("ca*si~no", "casino"),
        ("cásinö", "casino"),
        ("赌.博", "赌博"),
        ("赌 * 博", "赌博"),
        ("赌\u200b博", "赌博"),
        ("賭博", "赌博"),
        ("赌-博", "赌博"),
    ],
)
def test_evasions_are_undone(written: str, meant: str) -> None:
    assert squashed_view(normal_view(f"x, {written}, y")) == f"x, {meant}, y"


@all_cases("text", ["开赌，博物馆", "开赌。博物馆", "开赌\n博物馆", "mp3 2024", "казино", "a, b, c", "end. begin"])
def test_words_that_stand_side_by_side_are_not_joined(text: str) -> None:
    squashed = squashed_view(normal_view(text))
    assert "赌博" not in squashed
    assert "казино" not in text or squashed == "казино"


def test_arithmetic(lexicon: Lexicon) -> None:
    classifier = PageClassifier(lexicon)
    assert classifier.classify_text("casino casino casino").score == 6.0
    assert not classifier.classify_text("casino").harmful
    assert classifier.classify_text("casino 赌博").score == 12.0
    assert classifier.classify_text("casino 赌博").harmful
    assert classifier.classify_text("casino 赌博 news").score == 7.0
    assert classifier.classify_text("red and blue").score == 7.0
    assert classifier.classify_text("casino green").score == 11.0
    assert classifier.classify_text("casino royale green").score == 0.0
    assert classifier.classify_text("casino white black").score == 2.0
    assert classifier.classify_text("topic theme subject").score == 5.0  # weak words fill half the limit
    assert classifier.classify_text("casino news news white black").score == pytest.approx(1.2)  # context takes 80 % at most
    assert classifier.classify_text("nothing").limit == 10.0


def test_zones(lexicon: Lexicon) -> None:
    html = "<title>Casino</title><p>casino " + "text " * 100 + "</p>" + "<ul>" + "<li><a href=/>赌博</a>" * 5 + "</ul>"
    found = PageClassifier(lexicon).classify_page(Page("http://x.example/", "http://x.example/porn-tube", 200, {}, html.encode()))
    assert {(hit.word, hit.zone, round(hit.weight, 2)) for hit in found.evidence} == {
        ("casino", "title", 18.0),
        ("porn*", "url", 6.0),
        ("*tube", "url", 6.0),
        ("赌博", "rest", 1.8),
    }
    assert found.evidence[0].position == 0
    assert found.harmful
    assert found.title == "Casino"
    assert found.charset == "utf-8"
    assert len(found.text_digest) == 16


@all_cases(
    ("content_type", "harmful"),
    [
        ("text/html", True),
        ("", True),
        ("text/plain", True),
        ("application/json", True),
        ("image/png", False),
        ("application/octet-stream", False),
    ],
)
def test_only_text_is_judged(lexicon: Lexicon, content_type: str, harmful: bool) -> None:  # noqa: FBT001
    page = Page("http://x.example/", "http://x.example/", 200, {"content-type": content_type}, "online casino 赌博".encode())
    assert PageClassifier(lexicon).classify_page(page).harmful is harmful


def test_hidden_words_condemn_nobody(lexicon: Lexicon) -> None:
    html = (
        f"<p>{'innocent text ' * 50}</p><div style='display:none'>online casino 赌博</div><!-- casino --><script>casino</script>"
    )
    assert (
        PageClassifier(lexicon).classify_page(Page("http://x.example/", "http://x.example/", 200, {}, html.encode())).scores == {}
    )


def test_highlight(lexicon: Lexicon) -> None:
    text = "An  Online Casino, c.a.s.i.n.o; 赌博"
    segments = highlight(text, PageClassifier(lexicon).classify_text(text))
    assert "".join(segment.text for segment in segments) == normal_view(text)
    assert [segment.text for segment in segments if segment.evidence] == ["online casino", "赌博"]


@settings(max_examples=30)
@given(st.binary(max_size=2000), st.sampled_from(["text/html", "text/html; charset=gbk", "text/plain", ""]), st.text(max_size=50))
def test_any_bytes_are_judged(body: bytes, content_type: str, url: str) -> None:
    found = PageClassifier(Lexicon.of([WORDS])).classify_page(Page(url, url, 200, {"content-type": content_type}, body))
    assert found.score >= 0


@settings(max_examples=30)
@given(st.text(max_size=500))
def test_any_text_is_judged_and_highlighted(text: str) -> None:
    classifier = PageClassifier(Lexicon.of([WORDS]))
    segments = highlight(text, classifier.classify_text(text))
    assert "".join(segment.text for segment in segments) == normal_view(text)


def test_an_empty_lexicon() -> None:
    assert PageClassifier(Lexicon.of([])).classify_text("casino").scores == {}
