"""The parts of a judgement at their edges: passages, form, zones, ignored words, marked hits, and how a score came about."""

from math import log1p

import pytest

from gatewayfilter.classify import passages, zones
from gatewayfilter.classify.classifier import Explained
from gatewayfilter.classify.highlight import Segment, highlight_zone
from gatewayfilter.classify.ignored_words import IgnoredWords
from gatewayfilter.classify.lexicon.lexicon import Category
from gatewayfilter.classify.lexicon.match_filter import Meaning, Role
from gatewayfilter.classify.page_form import PLAIN, READ, form_of
from gatewayfilter.classify.passages import IDEOGRAPHS, LETTERS, _closest, densest
from gatewayfilter.classify.score import UNPLACED, Sum, ZoneHits
from gatewayfilter.classify.score_breakdown import breakdown_of
from gatewayfilter.classify.zones import PageText, page_text, plain_text, url_words
from gatewayfilter.model import Classification, Evidence
from tests.case_tables import all_cases


@all_cases(
    ("places", "size", "closest"),
    [
        ([], 5, (0.0, 0, 0)), ([(3, 2.0)], 5, (2.0, 3, 3)), ([(0, 1.0), (5, 1.0)], 5, (2.0, 0, 5)), ([(0, 1.0),
        (6, 1.0)], 5, (1.0, 0, 0)),
        ([(0, 1.0), (6, 2.0), (11, 2.0), (12, 1.0)], 5, (4.0, 6, 11)), ([(0, 3.0), (9, 3.0)], 5, (3.0, 0, 0)), ([(0, 1.0),
        (1, 1.0), (20, 4.0)], 5, (4.0, 20, 20)),
    ],
)  # fmt: skip
def test_the_most_weight_within_some_characters(
    places: list[tuple[int, float]], size: int, closest: tuple[float, int, int]
) -> None:
    assert _closest(places, size) == closest


def category(limit: float) -> Category:
    return Category("c", limit, 1)


def hits(
    text: str,
    places: list[tuple[int, float]],
    zone: str = "main",
    role: Role = Role.WORD,
    name: str = "c",
    *,
    placed: bool = True,
) -> ZoneHits:
    found = {Meaning(f"w{number}", name, role, weight): (start, 1) for number, (start, weight) in enumerate(places)}
    return ZoneHits(zone, text, placed, found)


def test_what_a_passage_is_made_of() -> None:
    known = {"c": category(4.0)}
    text = "x" * 5_000
    assert densest([hits(text, [(2_000, 3.0)])], known, ideographic=False) == (
        "main",
        2_000 - LETTERS // 4,
        "x" * (2 * (LETTERS // 4)),
    )
    assert densest([hits(text, [(2_000, 3.0)])], known, ideographic=True) == (
        "main",
        2_000 - IDEOGRAPHS // 4,
        "x" * (2 * (IDEOGRAPHS // 4)),
    )
    assert densest([hits(text, [(2_000, 2.9)])], known, ideographic=False) is None
    lines = "a\n" + "b" * 50 + "\nccc word ddd\n" + "e" * 50
    at = lines.index("word")
    assert densest([hits(lines, [(at, 4.0)], "rest")], known, ideographic=False) == ("rest", lines.index("ccc"), "ccc word ddd")
    assert densest([hits("word ddd", [(0, 4.0)])], known, ideographic=False) == ("main", 0, "word ddd")
    assert densest([hits("\nword x", [(1, 4.0)])], known, ideographic=False) == ("main", 1, "word x")
    assert densest([hits("a\nbc", [(0, 4.0)])], known, ideographic=False) == ("main", 0, "a")
    far = "x" * 500 + "\n" + "y" * 5_000
    assert densest([hits(far, [(0, 4.0)])], known, ideographic=False) == ("main", 0, "x" * (LETTERS // 4))
    assert densest([hits(text, [(2_000, 0.5)])], {"c": category(0.5)}, ideographic=False) is not None
    passed_over = hits(text, [(9, 4.0)], placed=False)
    assert densest([passed_over, hits("word", [(0, 4.0)])], known, ideographic=False) == ("main", 0, "word")
    for odd in (
        hits(text, [(9, 4.0)], "title"), hits(text, [(9, 4.0)], placed=False), hits(text, [(9, 4.0)], role=Role.CONTEXT),
        hits(text, [(9, -4.0)]),
        hits(text, [(9, 4.0)], name="other"),
    ):  # fmt: skip
        assert densest([odd], known, ideographic=False) is None


def test_the_densest_passage_is_taken_as_a_share_of_its_limit() -> None:
    known = {"c": category(4.0), "d": category(8.0)}
    text = "x" * 9_000
    first, second = hits(text, [(1_000, 3.5)]), hits(text, [(7_000, 6.5)], "rest", name="d")
    assert (densest([first, second], known, ideographic=False) or [""])[0] == "main"
    assert (densest([first, hits(text, [(7_000, 7.5)], "rest", name="d")], known, ideographic=False) or [""])[0] == "rest"
    assert passages.LEAST_SHARE * 4.0 == 3.0
    few = Meaning("few", "d", Role.WORD, 1.0)
    beside = first._replace(hits={few: (10, 11), **first.hits})
    assert (densest([beside], known, ideographic=False) or [""])[0] == "main"  # one category comes to little


@all_cases(
    ("text", "ideographic", "short"),
    [
        ("a" * 40, False, 1.0),
        ("a" * 41, False, 0.0),
        ("字" * 16, True, 1.0),
        ("字" * 17, True, 0.0),
        ("a" * 40 + "\n" + "b" * 60, False, 0.4),
    ],
)
def test_lines_are_short_up_to_a_length(text: str, short: float, *, ideographic: bool) -> None:
    assert form_of(text, ideographic=ideographic).short == pytest.approx(short)


def test_the_form_of_a_text() -> None:
    found = form_of("ab1\n\n2字" + "\n" + "c" * 40, ideographic=False)
    assert found.line == pytest.approx(log1p(0.4 * 45 / 3))
    assert found.digits == pytest.approx(2 / 48)
    assert found.latin == pytest.approx(47 / 48)
    assert form_of("\n\n", ideographic=False) == PLAIN
    assert form_of("a" * READ + "1", ideographic=False).digits == 0
    assert form_of("字", ideographic=True).line == pytest.approx(log1p(1.0))


@all_cases(
    ("ignored", "text", "left"),
    [
        ("casino", "a casino x", "a   x"), ("ca.sino", "casino", " "), ("in casino", "sin in at", "    at"),
        ("the casino", "cas he", "  he"), ("casino", "ino in", "  in"),
        ("赌场", "赌场开 赌", "  开 赌"), ("赌场开", "场开赌", "  赌"), ("赌场", "场赌", "场赌"),
        ("赌 场", "赌场", "  "), ("a\nb", "ab", "ab"),
        ("", "x 赌", "x 赌"),
        ("赌场\n开户", "场开", "场开"), ("赌", "赌 赌场", "  赌场"), ("赌场开户", "x赌场y", "x  y"), ("abc", "abc赌", " 赌"),
    ],
)  # fmt: skip
def test_ignored_words(ignored: str, text: str, left: str) -> None:
    assert IgnoredWords(ignored).taken_out_of(text) == left


def judged(*evidence: Evidence, category: str = "", scores: dict[str, float] | None = None) -> Classification:
    return Classification(category, 0.0, 0.0, scores or {}, evidence)


def hit(word: str, position: int, zone: str = "main") -> Evidence:
    return Evidence(word, "c", 1.0, zone, position)


@all_cases(
    ("text", "evidence", "marked"),
    [
        ("ab cd", [hit("ab", 0)], [("ab", 1), (" cd", 0)]), ("ab cd", [hit("cd", 3)], [("ab ", 0), ("cd", 1)]),
        ("ab", [], [("ab", 0)]), ("", [], []),
        ("abcd", [hit("ab", 0), hit("cd", 2)], [("ab", 1), ("cd", 1)]), ("abcd", [hit("abc", 0), hit("cd", 2)], [("abc", 1),
        ("d", 0)]),
        ("abcd", [hit("ab", 0), hit("abcd", 0)], [("abcd", 1)]), ("abcd", [hit("*bc*", 1)], [("a", 0), ("bc", 1), ("d", 0)]),
        ("ab", [hit("ab", 0, "rest")], [("ab", 0)]),
        ("ab cd", [hit("xy", 0), hit("cd", 3)], [("ab ", 0), ("cd", 1)]), ("ab", [hit("xy", 0)], [("ab", 0)]),
        ("ab", [hit("ab", UNPLACED)], [("ab", 0)]), ("a b", [hit("ab", 5)], [("a b", 0)]),
    ],
)  # fmt: skip
def test_marked_hits(text: str, evidence: list[Evidence], marked: list[tuple[str, int]]) -> None:
    found = highlight_zone(text, "main", judged(*evidence))
    assert [(segment.text, int(segment.evidence is not None)) for segment in found] == marked
    assert "".join(segment.text for segment in found) == text
    assert all(isinstance(segment, Segment) for segment in found)


def test_zones_are_cut_at_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "MAX_ZONE", 9)
    monkeypatch.setattr(zones, "MAX_HEAD_ZONE", 4)
    assert zones._bounded("main", "abcdefghi") == "abcdefghi"
    assert zones._bounded("rest", "abcdefghij") == "abcde\nhij"
    assert zones._bounded("title", "abcdef") == "abcd"
    assert len(zones._bounded("main", "x" * 100)) == 9
    assert url_words("http://a.b.cdef") == "a b"


def test_what_is_written_in_ideographs() -> None:
    for text, ideographic in (
        ("字" + "a" * 6, True),
        ("字" + "a" * 7, False),
        ("字", True),
        ("", False),
        ("a" * 1_000 + "字" * 900, False),
        ("あ" * 2, True),
    ):
        assert PageText("", {"main": text}).is_ideographic() is ideographic, text


def test_pages_of_little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "LITTLE_TEXT", 10)
    link, image = "<p><a href=x>{}</a></p>", "<img alt=cat>"
    for html, main, rest in (
        ("<p>abcdefghi</p>" + link.format("l") + image, "abcdefghi\nl", "cat"),
        ("<p>abcdefgh</p>" + link.format("l") + image, "abcdefgh\nl\ncat", ""),
        ("<p>abcdefghij</p>" + link.format("l") + image, "abcdefghij", "l\ncat"),
        ("<p>abcdefghi</p>" + image, "abcdefghi\ncat", ""),
        ("<p>abcdefghij</p>" + image * 2, "abcdefghij", "cat"), ("<p>abcdefghij</p><p hidden>klmnopqrst</p>", "abcdefghij", ""),
        ("<p>abcdefghij</p><p hidden>klmnopqrstu</p>", "abcdefghij", "klmnopqrstu"),
    ):  # fmt: skip
        found = page_text(html).zones
        assert (found.get("main", ""), found.get("rest", "")) == (main, rest), html


def test_zones_that_a_rule_names() -> None:
    html = "<title>T</title><meta name=keywords content=k><p>one</p><p>two</p><p>three</p>"
    found = page_text(html, named={"main": "one\ntwo", "title": "other", "keywords": ""}).zones
    assert found == {"title": "other", "keywords": "k", "main": "one\ntwo", "rest": "three"}
    assert page_text(html, named={"title": "other"}).zones == {"title": "other", "keywords": "k", "main": "one\ntwo\nthree"}


def test_lengths_and_titles() -> None:
    assert PageText("Casino", {"main": "a casino", "title": "casino"}).without("casino") == PageText(
        "Casino", {"main": "a  ", "title": " "}
    )
    assert plain_text("ab", title="字c").length() == 6
    assert plain_text("ab", title="t" * 400).title == "t" * 300
    assert plain_text("ab", "http://x.example/cd?e_f").zones == {"url": "x example cd e f", "main": "ab"}
    assert plain_text("ab", title="t").visible() == "t\nab\n"
    assert len(plain_text("a").digest()) == 16


def test_how_a_score_came_about() -> None:
    total = Sum(3.00049, 2.00051, 1.00049, 0.50051, 0.25049, limit=8.0, words=3, min_words=2)
    other = Sum(3.0, 0.0, 0.0, 0.0, 0.0, limit=4.0, words=1, min_words=1)
    explained = Explained(judged(scores={"c": 5.0, "d": 3.0}), {}, {"c": total, "d": other, "e": other})
    found = breakdown_of(explained, "v", "c")
    assert found is not None
    assert (found.words_version, found.category, found.strong, found.topic, found.topic_counted) == ("v", "c", 3.0, 2.001, 1.0)
    assert (found.context, found.context_counted, found.opinion, found.score) == (0.501, 0.25, 1.25, 5.0)
    assert (found.limit, found.words, found.min_words) == (8.0, 3, 2)
    nearest = breakdown_of(explained, "v")
    assert nearest is not None
    assert nearest.category == "d"
    assert breakdown_of(Explained(judged(category="c", scores={"c": 5.0}), {}, {"c": total, "d": other}), "v") == breakdown_of(
        Explained(judged(scores={"c": 5.0}), {}, {"c": total}), "v", "c"
    )
    unscored = breakdown_of(explained, "v", "e")
    assert unscored is not None
    assert (unscored.score, unscored.opinion) == (0.0, -3.0)
    assert breakdown_of(explained, "v", "none") is None
    assert breakdown_of(Explained(judged(), {}, {}), "v") is None
