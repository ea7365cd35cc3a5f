"""The classifier step by step: which text is judged, what it is judged by, in which order, and what is kept of it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify import classifier as classifier_module
from gatewayfilter.classify.imitated_services import ImitatedServices
from gatewayfilter.classify.models.text_reading import NOTHING_READ, Reading
from gatewayfilter.classify.passages import LONG_PAGE
from gatewayfilter.classify.zones import PageText, page_text, plain_text
from gatewayfilter.documents.page_parts import PageParts, parts_of
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Strictness
from tests.case_tables import all_cases

URL = "https://site.example/"
LEXICON = Lexicon.of(
    [
        WordFile("gambling", limit=10.0, min_words=2, words={"casino": 6.0, "roulette": 6.0, "赌场": 6.0, "老虎机": 6.0}),
        WordFile("fraud", limit=8.0, min_words=1, words={"prize": 3.0}),
    ]
)
HARMFUL, HARMLESS = "casino roulette", "a garden"
LOGIN = "<title>PayBank</title><form action=x.php><input type=password></form>"
SERVICES = ImitatedServices(["PayBank = paybank.com"])


def page(body: str | bytes, kind: str = "text/html; charset=utf-8", url: str = URL, **more: Any) -> Page:
    return Page(url, url, 200, {"content-type": kind}, body if isinstance(body, bytes) else body.encode(), **more)


@pytest.fixture(scope="module")
def judge() -> PageClassifier:
    return PageClassifier(LEXICON)


class Texts:
    """A text model of one certainty for pages, and another for passages."""

    def __init__(self, certainty: float, of_passages: float = 0.0) -> None:
        self.calibration: Any = self
        self.categories, self.additive = ("gambling",), frozenset[str]()
        self._certainty, self._of_passages = certainty, of_passages

    def read(self, *_: str) -> Reading:
        return NOTHING_READ._replace(own_top=0.0)

    read_parts = read

    def certainty(self, asked: Any, _: Reading) -> float:
        return self._of_passages if asked.length <= LONG_PAGE else self._certainty

    def certainty_of_passages(self, _: Any) -> float:
        return 0.5

    def telling(self, *_: str, harmful: bool) -> tuple[str, ...]:
        return (str(harmful),)


class Rules:
    """A book of one rule, for one site."""

    def __init__(self, host: str = "ruled.example", **zones: str) -> None:
        self._host, self._zones = host, zones

    def rule_for(self, url: str) -> Any:
        return self if self._host in url else None

    def read(self, asked: Page) -> Any:
        if self._host not in asked.final_url:
            return None
        return SimpleNamespace(zones=lambda: self._zones, kept=lambda: {"price": ("9",)})


def ruled(**more: Any) -> PageClassifier:
    return PageClassifier(LEXICON, rules=Rules(main="casino", title="roulette"), **more)  # type: ignore[arg-type]


RULED = "https://ruled.example/"


@pytest.mark.parametrize(
    ("body", "kind", "zones"),
    [
        ("<title>t</title><p>casino", "text/html", {"title": "t", "main": "casino"}),
        ("<p>casino", "", {"main": "casino"}), ("<p>casino", "application/xhtml+xml", {"main": "casino"}),
        ("<p>casino", "text/plain", {"main": "<p>casino"}), ('["casino"]', "application/json", {"main": '["casino"]'}),
        ("<html><p>casino", "text/plain", {"main": "<html><p>casino"}), ("<html><p>casino", "application/json", {"main":
        "<html><p>casino"}),
        ("<html><p>casino", "image/png", {"main": "casino"}), ("<p>casino", "image/png", {}), ("casino", "audio/mpeg", {}),
    ],
)  # fmt: skip
def test_which_text_is_judged(judge: PageClassifier, body: str, kind: str, zones: dict[str, str]) -> None:
    asked = page(body, kind)
    found = judge.explain(asked)
    assert found.zones == {"url": "site example"} | zones
    assert found.classification.charset == ("utf-8" if zones else "")
    text, by_words, lexicon = judge.by_words(page(body, kind))
    assert (text.zones, by_words.scores, lexicon) == (found.zones, found.classification.scores, LEXICON)
    assert judge.text_of(page(body, kind)) == judge.text_of(asked) == text.visible()
    assert judge.text_of(asked).strip().replace("\n", " ") == " ".join(zones[zone] for zone in ("title", "main") if zone in zones)


def test_a_pdf_file_is_judged_by_its_text(judge: PageClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier_module, "pdf_text", lambda body: ("prize", body.decode().upper()))
    monkeypatch.setattr(classifier_module, "is_pdf", lambda kind, body: kind == "text/html" and body.startswith(b"%"))
    found = judge.explain(page("%casino", "text/html"))
    assert found.zones == {"url": "site example", "title": "prize", "main": "%casino"}
    assert found.classification.charset == ""
    assert found.classification.title == "prize"
    assert judge.classify_with_parts(page("%casino", "text/html"))[0].scores == found.classification.scores


def test_bodies_are_read_up_to_a_bound(judge: PageClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier_module, "MAX_BODY", 10)
    for body, kind, score in (
        ("abc casino", "text/plain", 6.0), ("abcd casino", "text/plain", None), ("<p>casino x", "text/html", 6.0),
        ("<p>a casino", "text/html", None),
    ):  # fmt: skip
        assert judge.classify_page(page(body, kind)).scores.get("gambling") == score
        assert judge.classify_with_parts(page(body, kind))[0].scores.get("gambling") == score


@all_cases(
    "asked",
    [
        page(f"<title>T</title><p>{HARMFUL}</p><a href=/x>prize</a>"), page(f"<p>{HARMFUL}", "text/plain"),
        page("x", "image/png"), page(f"<p>{HARMFUL}</p>", ignored="roulette"), page(f"<p>{HARMFUL}</p>", url=RULED), page(LOGIN),
        page(LOGIN, url=RULED),
        page("<p>赌场 casino roulette 你好</p>".encode("gb18030"), "text/html; charset=windows-1252"),
        page(f"<html><p>{HARMFUL}", "image/png"), page(HARMLESS, "application/xml"),
    ],
)  # fmt: skip
def test_a_page_is_judged_alike_with_its_parts(asked: Page) -> None:
    found, parts = ruled(services=SERVICES).classify_with_parts(asked)
    assert found == ruled(services=SERVICES).classify_page(asked) == ruled(services=SERVICES).explain(asked).classification
    assert isinstance(parts, PageParts)
    assert parts == parts_of(asked)


def test_rules_name_zones_and_fields() -> None:
    for found in (ruled().classify_page(page("<p>x", url=RULED)), ruled().classify_with_parts(page("<p>x", url=RULED))[0]):
        assert found.category == "gambling"
        assert list(found.fields) == ["price"]
    for found in (ruled().classify_page(page("<p>x")), PageClassifier(LEXICON).classify_page(page("<p>x", url=RULED))):
        assert (found.category, found.fields) == ("", {})


def test_what_is_ignored_does_not_count(judge: PageClassifier) -> None:
    asked = page(f"<p>{HARMFUL}", ignored="casino")
    for found in (judge.classify_page(asked), judge.classify_with_parts(asked)[0]):
        assert found.scores == {"gambling": 6.0}
    assert "casino" not in judge.text_of(asked)
    assert judge.classify_text(HARMFUL).category == "gambling"


@all_cases(
    ("services", "html", "kind", "clone"),
    [
        (SERVICES, LOGIN, "text/html", True), (None, LOGIN, "text/html", False), (SERVICES, LOGIN, "text/plain", False),
        (SERVICES, f"{LOGIN}{HARMFUL}", "text/html", False), (SERVICES, LOGIN.replace("password", "text"), "text/html", False),
    ],
)  # fmt: skip
def test_a_login_clone_is_found_where_words_find_nothing(
    services: ImitatedServices | None, html: str, kind: str, *, clone: bool
) -> None:
    judge = PageClassifier(LEXICON, services=services)
    for found in (judge.classify_page(page(html, kind)), judge.classify_with_parts(page(html, kind))[0]):
        assert (found.category == "fraud") is clone
        assert any("in the name of PayBank" in hit.word for hit in found.evidence) is clone
    without = PageClassifier(Lexicon.of([WordFile("gambling", words={"casino": 6.0})]), services=services)
    assert without.classify_page(page(html, kind)).category != "fraud"


def test_a_page_of_much_text_is_no_login_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = PageClassifier(LEXICON, services=SERVICES)
    monkeypatch.setattr(classifier_module, "MAX_CLONE_LENGTH", 20)
    for count, clone in ((20 - len("paybank"), True), (21 - len("paybank"), False)):
        html = f"{LOGIN}<p>{'a' * count}"
        assert judge.by_words(page(html))[0].length() == count + len("paybank")
        assert judge.classify_page(page(html)).harmful is clone


def test_a_label_that_shows_harmful_text_counts() -> None:
    judge = PageClassifier(LEXICON)
    kind = "text/html; charset=gb18030"
    noise = "é".encode() * 400
    hidden = page(b"<p>" + "赌场 老虎机".encode("gb18030") + noise, kind)
    labelled = [judge.classify_page(hidden), judge.classify_with_parts(hidden)[0]]
    assert [found.category for found in labelled] == ["gambling"] * 2
    assert {found.charset for found in labelled} == {"gb18030"}
    harmless = page("<p>a garden é".encode("latin-1"), "text/html; charset=gb18030")
    assert not judge.classify_page(harmless).harmful


@all_cases(
    ("of_page", "of_passage", "length", "category", "certainty", "doubt"),
    [
        (0.95, 0.0, 3_000, "gambling", 0.95, ""), (0.2, 0.6, 3_000, "gambling", 0.9, ""), (0.2, 0.4, 3_000, "", 0.2, ""),
        (0.4, 0.4, 3_000, "", 0.4, "gambling"), (0.2, 0.2, LONG_PAGE, "", 0.2, ""), (0.0, 0.95, LONG_PAGE, "gambling", 0.95, ""),
    ],
)  # fmt: skip
def test_a_long_page_has_a_passage(
    of_page: float, of_passage: float, length: int, category: str, certainty: float, doubt: str
) -> None:
    judge = PageClassifier(LEXICON, texts=Texts(of_page, of_passage))  # type: ignore[arg-type]
    text = f"{HARMFUL}\n".ljust(length - 1, "x")
    assert plain_text(text).length() == length - 1
    found = judge.classify_text(f"{text}x")
    assert (found.category, found.certainty, found.doubt) == (category, certainty, doubt)


def test_only_a_long_page_has_a_passage_by_words(judge: PageClassifier) -> None:
    text = plain_text(f"{HARMFUL}\n".ljust(LONG_PAGE + 1, "x"))
    found = judge.passage_by_words(text)
    assert found is not None
    assert (found[0], found[1].category) == (PageText("", {"main": HARMFUL}), "gambling")
    assert judge.passage_by_words(plain_text(f"{HARMFUL}\n".ljust(LONG_PAGE, "x"))) is None
    assert judge.passage_by_words(plain_text("x" * 3_000)) is None
    one_word = Lexicon.of([WordFile("gambling", limit=10.0, min_words=2, words={"casino": 8.0})])
    assert PageClassifier(one_word).passage_by_words(plain_text("casino\n".ljust(3_000, "x"))) is None
    ideographs = "赌场" + "。\n" * 1_000 + "老虎机"
    assert judge.passage_by_words(plain_text(ideographs)) is None  # too far apart for ideographs, near enough for letters
    assert judge.passage_by_words(plain_text("赌场" + "。" * 400 + "老虎机" + "\n。" * 900)) is not None


def test_words_that_only_the_squashed_view_shows_count_once_and_have_no_place(judge: PageClassifier) -> None:
    found = judge.classify_text("casino\nr0ulette\nc4sino")
    assert [(hit.word, hit.position) for hit in found.evidence] == [("casino", 0), ("roulette", -1)]
    assert found.category == "gambling"


@all_cases(("logit", "text", "category", "asked"), [(9.0, "prize prize", "", 0), (9.0, "casino", "", 1), (-9.0,
    HARMFUL, "", 1), (9.0, HARMFUL, "gambling", 1)])  # fmt: skip
def test_a_second_opinion_is_asked_where_words_are_not_clear(logit: float, text: str, category: str, asked: int) -> None:
    texts: list[str] = []

    def opinion(seen: str) -> float:
        texts.append(seen)
        return logit

    judge = PageClassifier(LEXICON, SimpleNamespace(logit=opinion))  # type: ignore[arg-type]
    assert judge.classify_text(text).category == category
    assert texts == [f"\n{text}\n"] * asked


def test_what_a_classification_holds() -> None:
    judge = PageClassifier(LEXICON, texts=Texts(0.4), strictness=Strictness.STRICT)  # type: ignore[arg-type]
    asked = page(f"<title>A Title</title><p>{HARMFUL}" + " x" * LONG_PAGE)
    found = judge.classify_page(asked)
    text = page_text(asked.body.decode(), URL)
    assert (found.category, found.title, found.charset) == ("gambling", "A Title", "utf-8")
    assert (found.text_digest, found.certainty, found.doubt) == (text.digest(), 0.4, "")
    explained = judge.explain(asked)
    assert explained.sums["gambling"].words == 2
    assert (found.score, found.limit, found.scores) == (12.0, 10.0, {"gambling": 12.0})
    assert judge.lexicon is LEXICON


def judged_of(judge: PageClassifier, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which the bodies are added that are judged from now on."""
    judged: list[str] = []
    plain = judge._read

    def read(asked: Page, *more: Any) -> Any:
        judged.append(asked.body.decode())
        return plain(asked, *more)

    monkeypatch.setattr(judge, "_read", read)
    return judged


def test_so_much_is_kept_of_the_last_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = PageClassifier(LEXICON)
    monkeypatch.setattr(classifier_module, "_MOST_KEPT", 60)
    judged = judged_of(judge, monkeypatch)

    def asked(*pages: Page) -> list[str]:
        judged.clear()
        for one in pages:
            judge.explain(one)
        return judged[:]

    at_most, too_large = page(HARMLESS.ljust(60)), page(HARMLESS.ljust(61))
    assert asked(at_most, at_most) == [HARMLESS.ljust(60)]
    assert asked(too_large, too_large) == [HARMLESS.ljust(61)] * 2
    fine, first, second = page(HARMLESS), page(HARMFUL.ljust(20)), page(HARMFUL.ljust(40))
    assert len(asked(fine, first, fine)) == 3  # a harmless one is only kept as the last
    assert asked(second, first, second) == [HARMFUL.ljust(40)]
    third = page(HARMFUL.ljust(21))
    assert asked(third, second) == [HARMFUL.ljust(21), HARMFUL.ljust(40)]
    assert asked(first, second) == [HARMFUL.ljust(20)]
    doubtful = PageClassifier(LEXICON, texts=Texts(0.0, 0.4))  # type: ignore[arg-type]
    judged = judged_of(doubtful, monkeypatch)
    for one in (first, fine, third, page(HARMLESS), first, fine):
        assert not doubtful.explain(one).classification.harmful
    assert len(judged) == 5


def test_which_judgements_are_used_for_other_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = ruled(remembers=9)
    judged = judged_of(judge, monkeypatch)
    first = judge.classify_page(page("<p>x"))
    assert judge.classify_page(page("<p>x", url="https://other.example/")) is first
    assert judged == ["<p>x"]
    for other in (
        page("<p>x", ignored="y"),
        page("<p>x", url=RULED),
        page("<p>x", url="https://casino.example/"),
    ):
        judged.clear()
        judge.classify_page(other)
        judge.classify_page(replace(other))
        assert judged == ["<p>x"] * 2
