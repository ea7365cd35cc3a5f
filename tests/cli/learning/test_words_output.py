"""What `gatewayfilter words` prints, and what it asks for: `gatewayfilter.cli.learning.words_commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.classify.highlight import Segment
from gatewayfilter.errors import FetchError, UnknownCategoryError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, Evidence, ScoreBreakdown
from gatewayfilter.use_cases.learning.word_sandbox import JudgedPage, MarkedZone
from gatewayfilter.use_cases.learning.words import (
    BadLine,
    CategoryWords,
    ImportOptions,
    NewPhrases,
    RemovedPhrases,
    WordCategory,
    WordImport,
    WordRow,
)
from tests.cli.test_command_doubles import SETTINGS, Doubled, called, table, texts

WORDS = "gatewayfilter.use_cases.learning.words"
RUNNING = "A running filter applies this within a second, for the pages that it judges from then on."
HIT = Evidence("casino", "gambling", 4.5, "main", 5)
HARMLESS = Classification("", 3.0, 20.0)


def test_phrases_are_added_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def add(settings: object, new: NewPhrases, *, new_category: bool) -> int:
        asked.append((settings, new, new_category))
        return len(new.phrases)

    monkeypatch.setattr(f"{WORDS}.add_phrases", add)
    context = Doubled()
    told = f"1 phrase of ads added or changed. {RUNNING}\n"
    assert texts(context, "words", "add", "--category", "ads", "buy now") == (0, told, "")
    assert [(change.action, change.subject) for change in context.recorded] == [("words.added", "buy now")]
    arguments = ("a", "b", "--weight", "8", "--new-category", "--context", "--exception", "--json")
    assert called(Doubled(), "words", "add", "--category", "ads", *arguments).json == {"category": "ads", "changed": 2}
    assert asked == [
        (SETTINGS, NewPhrases("ads", ("buy now",), 5.0), False),
        (SETTINGS, NewPhrases("ads", ("a", "b"), 8.0, context=True, exception=True), True),
    ]


def test_a_category_that_is_not_known_is_hinted_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, joint in (("there is no category 'adz'; did you mean ads?", " Otherwise"), ("there is no category 'adz'", ";")):

        def refuse(*_: object, words: str = words, **__: object) -> int:
            raise UnknownCategoryError(words)

        monkeypatch.setattr(f"{WORDS}.add_phrases", refuse)
        sentence = called(Doubled(), "words", "add", "--category", "adz", "x").complains()
        assert sentence == f"{words}{joint} --new-category makes it"


def test_phrases_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [RemovedPhrases(2, ())]
    asked: list[object] = []

    def remove(*arguments: object) -> RemovedPhrases:
        asked.append(arguments)
        return found[0]

    monkeypatch.setattr(f"{WORDS}.remove_phrases", remove)
    told = f"2 phrases of ads removed. {RUNNING}\n"
    assert texts(Doubled(), "words", "remove", "--category", "ads", "a", "b") == (0, told, "")
    assert asked == [(SETTINGS, "ads", ("a", "b"))]
    found[0] = RemovedPhrases(1, ("b",))
    told = f"1 phrase of ads removed. {RUNNING}\n"
    missing = "gatewayfilter: ads has no phrase 'b'\n"
    assert texts(Doubled(), "words", "remove", "--category", "ads", "a", "b") == (1, told, missing)
    answer = called(Doubled(), "words", "remove", "--category", "ads", "b", "--json")
    assert (answer.code, answer.json, answer.err) == (1, {"removed": 1, "missing": ["b"]}, "")


def test_categories_and_the_words_of_one_are_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    categories = [WordCategory("ads", 9, 2, 1, 20.0, 0.25, 3)]
    words = CategoryWords("ads", None, None, None, (WordRow("word", "buy", 2.50), WordRow("exception", "buyer", None)))
    found = [words]
    asked: list[bool] = []

    def read(settings: object, category: str, *, only_own: bool) -> CategoryWords:
        assert (settings, category) == (SETTINGS, "ads")
        asked.append(only_own)
        return found[0]

    monkeypatch.setattr(f"{WORDS}.word_categories", lambda _settings: categories)
    monkeypatch.setattr(f"{WORDS}.category_words", read)
    assert table(texts(Doubled(), "words", "show")[1]) == [
        ["category", "words", "context", "combinations", "limit", "short_share", "min_words"],
        ["ads", "9", "2", "1", "20.0", "0.25", "3"],
    ]
    assert called(Doubled(), "words", "show", "--json").json[0]["combinations"] == 1
    assert table(texts(Doubled(), "words", "show", "ads")[1]) == [
        ["kind", "phrase", "weight"],
        ["word", "buy", "2.5"],
        ["exception", "buyer"],
    ]
    assert called(Doubled(), "words", "show", "ads", "--own", "--json").json["words"][1]["weight"] is None
    found[0] = CategoryWords("ads", None, None, None, ())
    assert texts(Doubled(), "words", "show", "ads") == (0, "There are no words of ads.\n", "")
    assert texts(Doubled(), "words", "show", "ads", "--own") == (0, "There are no own words of ads.\n", "")
    assert asked == [False, True, False, True]


def test_an_import_names_the_first_five_bad_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes(b"casino\n")
    found = [WordImport("ads", 1_000, 1, 0, ())]
    asked: list[object] = []

    def imported(*arguments: object) -> WordImport:
        asked.append(arguments)
        return found[0]

    monkeypatch.setattr(f"{WORDS}.import_phrases", imported)
    read = f"1,000 phrases read, 1 of ads new or changed. {RUNNING}\n"
    assert texts(Doubled(), "words", "import", file, "--category", "ads") == (0, read, "")
    arguments = ("--new-category", "--weight", "7", "--scale", "0.5", "--charset", "big5", "--json")
    assert called(Doubled(), "words", "import", file, *arguments).json["read"] == 1_000
    assert asked == [
        (SETTINGS, b"casino\n", str(file), ImportOptions("ads", False, 5.0, 0.2, "")),
        (SETTINGS, b"casino\n", str(file), ImportOptions("", True, 7.0, 0.5, "big5")),
    ]
    for bad, more in ((5, ""), (6, "gatewayfilter: 6 bad lines in all\n"), (1_000, "gatewayfilter: 1,000 bad lines in all\n")):
        found[0] = WordImport("ads", 1_000, 1, bad, tuple(BadLine(line, "no weight") for line in range(1, min(bad, 20) + 1)))
        named = "".join(f"gatewayfilter: {file}:{line}: no weight\n" for line in range(1, 6))
        assert texts(Doubled(), "words", "import", file) == (0, read, named + more)


def test_words_are_exported_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{WORDS}.exported_words", lambda _settings, category, *, only_own: f"{category} {only_own}\n")
    assert texts(Doubled(), "words", "export", "ads") == (0, "ads False\n", "")
    assert texts(Doubled(), "words", "export", "ads", "--own") == (0, "ads True\n", "")


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The judgement of `words test`, and the pages that were judged."""
    holder: dict[str, Any] = {"found": JudgedPage(HARMLESS, None, (), 1), "pages": []}

    def judge(settings: object, page: Page) -> JudgedPage:
        assert settings == SETTINGS
        holder["pages"].append(page)
        found: JudgedPage = holder["found"]
        return found

    monkeypatch.setattr("gatewayfilter.use_cases.learning.word_sandbox.judge_page", judge)
    return holder


def test_a_text_is_marked_and_judged(judged: dict[str, Any]) -> None:
    harmless = "HARMLESS: nearest to a limit with a score of 3.0 (limit 20.0)\n"
    assert texts(Doubled(), "words", "test", "free", "spins") == (0, harmless, "")
    segments = (Segment("the "), Segment("casino", HIT), Segment(" here"))
    breakdown = ScoreBreakdown("v1", "gambling", 42.0, 0.0, 0.0, 0.0, 0.0, 0.0, 42.0, 20.0, 3, 3)
    classification = Classification("gambling", 42.0, 20.0)
    judged["found"] = JudgedPage(classification, breakdown, (MarkedZone("main", segments),), 1)
    code, out, _ = texts(Doubled(), "words", "test", "x")
    assert (code, out.splitlines()[:4]) == (1, ["the [casino] here", "", f"GAMBLING: {classification.summary()}", ""])
    assert out.splitlines()[4].startswith("score breakdown")
    answer = called(Doubled(), "words", "test", "x", "--json")
    assert (answer.code, answer.json["category"]) == (1, "gambling")
    judged["found"] = JudgedPage(classification, None, (MarkedZone("title", segments), MarkedZone("main", segments[:1])), 2)
    assert texts(Doubled(), "words", "test", "x")[1].splitlines()[:4] == ["title: the [casino] here", "", "main: the ", ""]


def test_what_is_far_from_a_hit_is_left_out(judged: dict[str, Any]) -> None:
    hit = Segment("casino", HIT)
    short, long = "a" * 120, "b" * 60 + "-" + "c" * 60
    for segments, shown in (
        ((Segment(short), hit, Segment(short)), f"{short}[casino]{short}"),
        ((Segment(long), hit), f" … {'c' * 60}[casino]"),
        ((hit, Segment(long)), f"[casino]{'b' * 60} … "),
        ((hit, Segment(long), hit), f"[casino]{'b' * 60} … {'c' * 60}[casino]"),
        ((Segment(long),), " … "),
        ((Segment("a\x07"), hit), "a\ufffd[casino]"),
    ):
        judged["found"] = JudgedPage(HARMLESS, None, (MarkedZone("main", segments),), 1)
        assert texts(Doubled(), "words", "test", "x")[1].splitlines()[0] == shown


def test_a_page_is_a_text_a_file_standard_input_or_fetched(
    judged: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<p>file")
    fetched = Page("http://a.example/", "http://a.example/", 200, {}, b"fetched")
    monkeypatch.setattr("gatewayfilter.use_cases.learning.single_page.judge_now", lambda _settings, url: (fetched, url))
    for arguments in (("one", "text"), (file,), ("http://a.example/",), ("https://a.example/",), ("http://a.example/", "text")):
        assert texts(Doubled(), "words", "test", *arguments)[0] == 0
    assert called(Doubled(), "words", "test", "-", stdin=b"input").code == 0
    assert texts(Doubled(), "words", "test", "a\0b")[0] == 0
    assert texts(Doubled(), "words", "test", "x" * 5_000)[0] == 0
    bodies = [page.body for page in judged["pages"]]
    assert [body[:7] for body in bodies] == [
        b"one tex",
        b"<p>file",
        b"fetched",
        b"fetched",
        b"http://",
        b"input",
        b"a\0b",
        b"xxxxxxx",
    ]

    def refuse(*_: object) -> None:
        raise FetchError("refused")

    monkeypatch.setattr("gatewayfilter.use_cases.learning.single_page.judge_now", refuse)
    assert called(Doubled(), "words", "test", "http://a.example/").complains() == "http://a.example/ was not fetched: refused"
    assert called(Doubled(), "words", "test", "http://[").complains().startswith("'http://[' is no URL: ")
