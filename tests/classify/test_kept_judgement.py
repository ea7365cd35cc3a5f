"""The last judgement is kept for the same page alone."""

from dataclasses import replace

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.interfaces import Page

WORDS = WordFile("gambling", words={"casino": 12.0, "roulette": 12.0}, min_words=2, limit=20.0)
HTML = {"content-type": "text/html; charset=utf-8"}


def test_other_pages_are_judged_by_themselves() -> None:
    classifier = PageClassifier(Lexicon.of([WORDS]))
    harmful = Page("http://a.test/", "http://a.test/", 200, HTML, b"<p>casino roulette</p>")
    harmless = replace(harmful, body=b"<p>a garden</p>")
    again = replace(harmful, ignored="casino roulette")
    for page, category, words in (
        (harmful, "gambling", "casino"),
        (harmless, "", "garden"),
        (again, "", ""),
        (harmful, "gambling", "casino"),
    ):
        assert classifier.classify_page(page).category == category
        assert words in classifier.text_of(page)
        assert classifier.explain(page).classification == classifier.classify_page(page)


def test_the_text_of_a_page_is_the_same_before_and_after_its_judgement() -> None:
    body = "<p>赌场 casino roulette 你好</p>".encode("gb18030")
    page = Page("http://a.test/", "http://a.test/", 200, {"content-type": "text/html; charset=windows-1252"}, body)
    classifier = PageClassifier(Lexicon.of([WORDS]))
    before = classifier.text_of(page)
    classifier.classify_page(page)
    assert classifier.text_of(page) == before


def test_a_large_page_is_not_kept() -> None:
    classifier = PageClassifier(Lexicon.of([WORDS]))
    for size, kept in ((400_000, True), (600_000, False)):
        page = Page("http://a.test/", "http://a.test/", 200, {"content-type": "text/html"}, b"<p>a casino</p>".ljust(size))
        assert classifier.classify_page(page) == classifier.classify_page(page)
        assert (classifier._last is not None) is kept
