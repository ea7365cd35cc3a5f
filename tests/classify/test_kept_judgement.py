"""The last judgement is kept for the same page alone, and those that reviews ask about when a batch has been judged."""

from collections.abc import Iterable
from dataclasses import replace

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify.score import Judge, Judgement, ZoneHits
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


class CountingJudge:
    """Counts judgements of words."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.judged = 0

    def judge(self, found: Iterable[ZoneHits], length: int) -> Judgement:
        """Adds up the hits."""
        self.judged += 1
        return self._judge.judge(found, length)


def counted(classifier: PageClassifier) -> CountingJudge:
    """Has the judgements of a classifier counted."""
    judge = CountingJudge(classifier._judge)
    classifier._judge = judge  # type: ignore[assignment]
    return judge


def page_of(number: int, text: str, size: int = 0) -> Page:
    """Returns a page of its own."""
    url = f"http://a.test/{number}"
    return Page(url, url, 200, HTML, f"<p>{text}</p>".encode().ljust(size))


def test_a_review_asks_for_no_second_judgement_of_a_page_in_a_batch() -> None:
    classifier = PageClassifier(Lexicon.of([WORDS]))
    judge = counted(classifier)
    pages = [page_of(number, "casino roulette" if number % 2 else "a garden") for number in range(8)]
    found = [classifier.classify_page(page) for page in pages]
    explained = [classifier.explain(page) for page in pages[1::2]]
    assert judge.judged == 8
    assert [one.classification for one in explained] == found[1::2]
    assert all(one.sums["gambling"].score > 20 and one.zones["main"] == "casino roulette" for one in explained)


def test_an_explanation_of_what_was_kept_is_that_of_a_fresh_judgement() -> None:
    pages = [page_of(number, f"casino roulette {number}") for number in range(3)]
    classifier = PageClassifier(Lexicon.of([WORDS]))
    for page in pages:
        classifier.classify_page(page)
    assert [classifier.explain(page) for page in pages] == [PageClassifier(Lexicon.of([WORDS])).explain(page) for page in pages]


def test_so_many_bytes_of_pages_are_kept_the_newest_first() -> None:
    classifier = PageClassifier(Lexicon.of([WORDS]))
    judge = counted(classifier)
    pages = [page_of(number, "casino roulette", 200_000) for number in range(4)]
    for page in pages:
        classifier.classify_page(page)
    for page in pages[2:]:
        classifier.explain(page)
    assert judge.judged == 4
    classifier.explain(pages[1])
    assert judge.judged == 5
