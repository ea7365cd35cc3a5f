"""Pages that want the classifier to fail: each gets a verdict. `tests` has no clock; the suite's time limit bounds them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.interfaces import Page
from tests.case_tables import all_cases

BAD = "<p>Free spins at our online casino: slot machines, roulette, live dealers. Deposit now for your bonus, join now.</p>"
CALM = "The garden in spring wants water, and beans want poles. "
SIZE = 2_000_000


def judged(classifier: PageClassifier, html: str | bytes, kind: str = "text/html") -> str:
    body = html if isinstance(html, bytes) else html.encode()
    return classifier.classify_page(Page("http://a.example/", "http://a.example/", 200, {"content-type": kind}, body)).category


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff" * SIZE,
        bytes(range(256)) * 4000,
        random.Random(1).randbytes(SIZE),
        b"casino" * (SIZE // 6),
        b"casino " * (SIZE // 7),
        "赌".encode() * (SIZE // 3),
        "赌·".encode() * (SIZE // 5),
        b"p.o.r.n " * (SIZE // 8),
        b"c4s1n0 " * (SIZE // 7),
        b"<p>" * (SIZE // 3),
        b"<" * SIZE,
        b"<a " + b"x=1 " * (SIZE // 4) + b">",
        b"<!--" * (SIZE // 4),
        b"<div style='" + b"display :" * (SIZE // 9),
        b"&#" * (SIZE // 2),
        "\u200b".encode() * (SIZE // 3),
        "a\u0301".encode() * (SIZE // 3),
        b"\x1b$" * (SIZE // 2),
        b"\x81" * SIZE,
        b"<title>" + b"casino " * (SIZE // 7),
    ],
    ids=range(21),
)
def test_two_megabytes_of_anything_get_a_verdict(classifier: PageClassifier, body: bytes) -> None:
    for kind in ("text/html", "text/plain; charset=big5", "image/png"):
        assert isinstance(judged(classifier, body, kind), str)


@given(st.binary(max_size=600), st.sampled_from(["", "text/html", "text/html; charset=gbk", "text/plain", "application/json"]))
def test_any_bytes_get_a_verdict(classifier: PageClassifier, body: bytes, kind: str) -> None:
    assert isinstance(judged(classifier, body, kind), str)


@all_cases(
    "hidden",
    [
        "<!-- {} -->",
        "<script>var words = '{}'</script>",
        "<style>/* {} */</style>",
        "<div style='display:none'>{}</div>",
        "<div sTyLe='DISPLAY : nOnE'>{}</div>",
        "<div hidden>{}</div>",
        "<template>{}</template>",
        "<input type=hidden value='{}'>",
        "<noscript><!-- {} --></noscript>",
    ],
)
def test_words_that_nobody_sees_get_no_page_blocked(classifier: PageClassifier, hidden: str) -> None:
    words = "free spins online casino roulette jackpot bonus " * 3
    assert not judged(classifier, f"<title>Garden</title><p>{CALM * 20}</p>{hidden.format(words)}")


def test_comments_of_readers_do_not_outweigh_an_article(classifier: PageClassifier) -> None:
    spam = "<div class=comment><a href=/u>great online casino free spins</a></div>"
    assert not judged(classifier, f"<title>Garden</title><main><p>{CALM * 60}</p></main><aside>{spam * 3}</aside>")


@all_cases("copies", [0, 100, 1800])
@all_cases("before", [False, True])
def test_a_benign_twin_around_it_does_not_hide_an_offer(classifier: PageClassifier, copies: int, *, before: bool) -> None:
    """The same page with up to 100 KB of harmless prose around it."""
    padding = f"<p>{CALM * 3}</p>" * (copies // 3)
    html = f"<title>Notes</title>{padding if before else ''}{BAD}{'' if before else padding}"
    assert judged(classifier, html) == "gambling"


def test_rules_that_contradict_each_other_have_an_order() -> None:
    files = [
        WordFile("gambling", words={"casino": 30.0}, context={"casino": 30.0}, min_words=1, limit=10.0),
        WordFile("games", words={"casino": 30.0}, removed=["casino"], min_words=1, limit=10.0),
        WordFile("none", words={"casino": 30.0}, exceptions=["casino"], removed=["casino"]),
    ]
    for chosen in (files[:1], files[:2], files[:1] + files[2:], files):
        found = PageClassifier(Lexicon.of(chosen)).classify_text("casino")
        assert found == PageClassifier(Lexicon.of(chosen)).classify_text("casino")
        assert found.score >= 0


@all_cases("phrase", ["(a+)+$", "(x|x)*y", "[", "\\", ".*.*.*=.*", "a{1,99999}"])
def test_expressions_in_words_are_plain_text(phrase: str) -> None:
    classifier = PageClassifier(Lexicon.of([WordFile("test", words={phrase: 30.0}, min_words=1)]))
    assert classifier.classify_text(f"x {phrase} x").harmful
    assert not classifier.classify_text("a" * 50_000).harmful
