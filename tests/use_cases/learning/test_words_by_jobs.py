"""Words as the dashboard shows, changes, exports and tries them, by a child process; and what the audit log keeps of it."""

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Actor, Via
from gatewayfilter.store import Store
from gatewayfilter.use_cases.learning import word_jobs
from gatewayfilter.use_cases.learning.word_work import WordWork
from tests.use_cases.learning.own_process import OwnProcess
from tests.use_cases.small_program import small_program

ANNA = Actor("anna", Via.SESSION)


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    small_program(tmp_path / "bundled", monkeypatch)
    return settings


def find(settings: Settings, **query: Any) -> dict[str, Any]:
    wanted: dict[str, Any] = {"text": "", "kind": "", "language": "", "own": False, "after": 0, "limit": 50} | query
    return word_jobs.find_words(settings, "gambling", **wanted)


def phrases(settings: Settings, **query: Any) -> list[str]:
    return [row["phrase"] for row in find(settings, **query)["rows"]]


def test_a_category_is_summed_up(settings: Settings) -> None:
    assert word_jobs.categories(settings) == [
        {
            "category": "gambling",
            "words": 4,
            "context": 1,
            "combinations": 2,
            "limit": 20.0,
            "short_share": 0.5,
            "min_words": 2,
        }
    ]
    word_jobs.add(settings, category="gambling", phrases=("big wheel",))
    assert word_jobs.categories(settings)[0]["words"] == 5, "words that were added since"


def test_words_are_found_heaviest_first(settings: Settings) -> None:
    found = find(settings)
    assert [(row["kind"], row["phrase"], row["weight"]) for row in found["rows"]] == [
        ("word", "free spins", 10.0),
        ("word", "online casino", 10.0),
        ("combination", "deposit + bonus code", 8.0),
        ("near", "money put in", 4.0),
        ("word", "jackpot", 3.0),
        ("word", "网上赌场", 3.0),
        ("context", "gambling commission", -6.0),
        ("exception", "casino royale", None),
    ]
    assert (found["category"], found["limit"], found["total"], found["own"]) == ("gambling", 20.0, 8, 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"text": " CASINO "}, ["online casino", "casino royale"]),
        ({"kind": "exception"}, ["casino royale"]),
        ({"language": "zh"}, ["网上赌场"]),
        ({"language": "other", "kind": "word"}, ["free spins", "online casino", "jackpot"]),
        ({"after": 1, "limit": 2}, ["online casino", "deposit + bonus code"]),
        ({"own": True}, []),
        ({"text": "nothing"}, []),
    ],
)
def test_words_are_searched(query: dict[str, Any], found: list[str], settings: Settings) -> None:
    assert phrases(settings, **query) == found


def test_the_total_counts_what_a_page_leaves_out(settings: Settings) -> None:
    assert (find(settings, limit=2)["total"], find(settings, kind="word", after=3)["total"]) == (8, 4)


def test_own_words_are_told_from_those_of_the_program(settings: Settings) -> None:
    assert word_jobs.add(settings, category="gambling", phrases=("big wheel", "jackpot"), weight=7.0) == 2
    rows = {row["phrase"]: row["own"] for row in find(settings)["rows"]}
    assert (rows["big wheel"], rows["jackpot"], rows["free spins"]) == (True, True, False)
    assert (phrases(settings, own=True), find(settings)["own"]) == (["big wheel", "jackpot"], 2)
    assert "big wheel" in word_jobs.export(settings, "gambling", own=True)
    assert "free spins" not in word_jobs.export(settings, "gambling", own=True)
    assert "free spins" in word_jobs.export(settings, "gambling", own=False)


def test_what_is_removed_does_not_count(settings: Settings) -> None:
    word_jobs.add(settings, category="gambling", phrases=("big wheel",))
    assert word_jobs.remove(settings, "gambling", ["big wheel", "jackpot", "none"]) == {"removed": 2, "missing": ("none",)}
    assert phrases(settings, text="wheel") == []
    assert phrases(settings, kind="removed", own=True) == ["big wheel", "jackpot"]


def test_a_text_is_judged_with_its_hits_in_their_places(settings: Settings) -> None:
    found = word_jobs.judge(settings, "Free spins at our online casino", html=False, url="")
    assert (found["category"], found["limit"], found["doubt"]) == ("gambling", 10.0, ""), "few words need half the score"
    assert found["scores"]["gambling"] == found["score"] > 10.0
    assert {hit["word"] for hit in found["evidence"]} == {"free spins", "online casino"}
    (zone,) = found["zones"]
    assert [piece["text"] for piece in zone["pieces"] if piece["hit"]] == ["free spins", "online casino"]
    assert "".join(piece["text"] for piece in zone["pieces"]).strip() == "free spins at our online casino"
    assert found["breakdown"]["category"] == "gambling"


def test_a_harmless_text_has_no_breakdown_and_shows_its_first_zone(settings: Settings) -> None:
    found = word_jobs.judge(settings, "The library opens on Sundays", html=False, url="")
    assert (found["category"], found["breakdown"], found["evidence"]) == ("", None, [])
    assert [[piece["text"].strip() for piece in zone["pieces"]] for zone in found["zones"]] == [["the library opens on sundays"]]


def test_a_page_is_judged_zone_by_zone(settings: Settings) -> None:
    html = "<title>Free spins</title><body><p>online casino</p></body>"
    found = word_jobs.judge(settings, html, html=True, url="http://a.example/")
    assert found["title"] == "Free spins"
    assert {zone["name"] for zone in found["zones"]} >= {"title"}
    assert "<p>" not in str(found["zones"])


def test_what_stands_far_from_a_hit_is_left_out(settings: Settings) -> None:
    text = "a " * 300 + "free spins online casino " + "b " * 100
    pieces = word_jobs.judge(settings, text, html=False, url="")["zones"][0]["pieces"]
    first, last = pieces[0]["text"], pieces[-1]["text"]
    assert (first[:200], first[200:203], len(first)) == ("a " * 100, " … ", 403)
    assert "…" not in last


def test_a_file_of_words_brings_exceptions_and_names_its_category(settings: Settings) -> None:
    file = b'category = "gambling"\nexceptions = ["bingo wings"]\n[words]\n5 = ["big wheel"]\n[context]\n3 = ["museum"]\n'
    done = word_jobs.import_file(settings, file, "mine.toml", "", 5.0)
    assert (done["category"], done["read"], done["changed"], done["rejected"]) == ("gambling", 3, 3, 0)
    rows = {row["phrase"]: (row["kind"], row["weight"]) for row in find(settings, own=True)["rows"]}
    assert rows == {"big wheel": ("word", 5.0), "museum": ("context", -3.0), "bingo wings": ("exception", None)}
    assert word_jobs.import_file(settings, file, "mine.toml", "", 5.0)["changed"] == 0
    for content, name, category, sentence in (
        (b"big wheel\n", "mine.txt", "", "name the category"),
        (b"# nothing\n", "mine.txt", "gambling", r"mine\.txt holds no usable word; line 1: nothing but comments"),
        (b"<>\n", "mine.txt", "gambling", r"mine\.txt holds no usable word; line 1: "),
    ):
        with pytest.raises(ClassifyError, match=sentence):
            word_jobs.import_file(settings, content, name, category, 5.0)


def test_words_of_categories_that_allow(settings: Settings) -> None:
    assert word_jobs.add(settings, category="bank", phrases=("online banking",)) == 1
    with pytest.raises(ClassifyError, match="either context or an exception"):
        word_jobs.add(settings, category="gambling", phrases=("x y",), context=True, exception=True)
    assert word_jobs.add(settings, category="gambling", phrases=("museum",), weight=4.0, context=True) == 1
    assert find(settings, own=True)["rows"][0]["weight"] == -4.0
    assert word_jobs.add(settings, category="gambling", phrases=("a + b + c", "a + b + c"), weight=4.0) == 1
    assert find(settings, kind="combination", own=True)["rows"][0]["phrase"] == "a + b + c"


def test_changes_are_recorded(settings: Settings, store: Store) -> None:
    work = WordWork(OwnProcess(), settings, store, lambda: 1_800_000_000.0)
    assert work.add(ANNA, "gambling", ["big wheel", "x" * 90], weight=4.0) == 2
    assert work.remove(ANNA, "gambling", ["big wheel"])["removed"] == 1
    done = work.import_file(ANNA, "gambling", b"lucky wheel\n<>\n", "mine.txt", 3.0)
    assert (done["read"], done["changed"], done["rejected"]) == (1, 1, 1)
    assert work.find("gambling", text="lucky", kind="", language="", own=True, after=0, limit=9)["rows"][0]["weight"] == 3.0
    assert "lucky wheel" in work.export("gambling", own=True)
    assert work.categories()[0]["category"] == "gambling"
    assert work.judge("free spins", html=False, url="")["evidence"]
    entries = store.audit.page()[::-1]
    assert [(entry.action, entry.subject, entry.at) for entry in entries] == [
        ("words.added", "gambling", 1_800_000_000.0),
        ("words.removed", "gambling", 1_800_000_000.0),
        ("words.imported", "gambling", 1_800_000_000.0),
    ]
    assert [entry.detail for entry in entries] == [f"big wheel, {'x' * 90}", "big wheel", "1 of 1"]
    with pytest.raises(ClassifyError):
        work.add(ANNA, "gambling", ["x" * 1000] * 9)
    assert len(store.audit.page()) == 3, "what is refused is not recorded"


@pytest.mark.parametrize(("html", "kind", "url"), [(True, "text/html", "http://a.example/"), (False, "text/plain", "")])
def test_what_is_judged_is_a_page_that_came(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, kind: str, url: str, *, html: bool
) -> None:
    pages: list[Page] = []

    def judge_page(_: Settings, page: Page) -> object:
        pages.append(page)
        raise ClassifyError("noted")

    monkeypatch.setattr(word_jobs, "judge_page", judge_page)
    with pytest.raises(ClassifyError, match="noted"):
        word_jobs.judge(settings, "<p>caf\u00e9 \ud800", html=html, url="http://a.example/")
    (page,) = pages
    assert (page.url, page.final_url, page.status, page.content_type) == (url, url, 200, kind)
    assert page.body.decode() == "<p>caf\u00e9 ?"
