"""The evidence of a review task: its text cut at the words, their arithmetic, facts about its host."""

from dataclasses import replace

import pytest

from gatewayfilter.model import HOST_ZONE, Classification, Evidence, ReviewKind, ReviewTask
from gatewayfilter.use_cases.review.review_evidence import Piece, grouped, host_facts, marked_text, terms_of


def hit(word: str, weight: float = 1.0, zone: str = "main", category: str = "gambling") -> Evidence:
    return Evidence(word, category, weight, zone, 0)


def task(*evidence: Evidence, category: str = "gambling", number: int = 0, group: int = 0) -> ReviewTask:
    judged = Classification(category, 42.0, 20.0, {}, evidence)
    return ReviewTask(number, ReviewKind.PAGE, "http://a.example/", "a.example/", "gambling", judged, True, 1.0, group_id=group)


BET, WIN, A = hit("bet"), hit("win"), hit("a")


@pytest.mark.parametrize(
    ("text", "evidence", "pieces"),
    [
        ("", [BET], []),
        ("", [], []),
        ("bet", [], [Piece("bet")]),
        ("bet", [BET], [Piece("bet", BET)]),
        ("a Bet, a win", [BET, WIN], [Piece("a "), Piece("Bet", BET), Piece(", a "), Piece("win", WIN)]),
        ("betbet x", [BET], [Piece("bet", BET), Piece("bet", BET), Piece(" x")]),
        ("a bet", [A, hit("bet", zone=HOST_ZONE)], [Piece("a bet")]),  # too short; no word of the page
        ("Better bet", [BET, hit("better")], [Piece("Better", hit("better")), Piece(" "), Piece("bet", BET)]),
        (
            "win or bet*",
            [hit(" bet* + win ")],
            [Piece("win", hit(" bet* + win ")), Piece(" or "), Piece("bet", hit(" bet* + win ")), Piece("*")],
        ),
        ("bet", [BET, hit("bet", 9.0)], [Piece("bet", BET)]),
        ("(bet", [BET], [Piece("("), Piece("bet", BET)]),
        ("go bet", [hit("go")], [Piece("go", hit("go")), Piece(" bet")]),
    ],
)
def test_a_text_is_cut_at_its_words(text: str, evidence: list[Evidence], pieces: list[Piece]) -> None:
    found = marked_text(text, evidence)
    assert found == tuple(pieces)
    assert "".join(piece.text for piece in found) == text


def test_words_of_the_category_count_with_their_zones_factor() -> None:
    found = terms_of(
        task(
            hit("a1", 3.0, "title"),
            hit("b1", 6.0),
            hit("c1", -3.0, "title"),
            hit("d1", 9.0, "main", "ads"),
            hit("e1", 7.0, HOST_ZONE),
        )
    )
    assert [(term.hit.word, term.base, term.factor) for term in found] == [
        ("b1", 6.0, 1.0),
        ("a1", 1.0, 3.0),
        ("c1", -3.0, 1.0),
    ]
    doubtful = task(hit("a1"), category="")
    assert [term.hit.word for term in terms_of(doubtful)] == ["a1"]  # the task's own category
    assert terms_of(task(hit("a1"), category="ads")) == ()
    ((light,), (none,)) = (terms_of(task(hit("a1", weight, "title"))) for weight in (0.75, 0.0))
    assert ((light.base, light.factor), (none.base, none.factor)) == ((0.25, 3.0), (0.0, 1.0))
    assert [term.hit.word for term in terms_of(task(hit("x1", category="ads"), category="ads"))] == ["x1"]


def test_facts_about_the_host_stand_apart() -> None:
    fact = hit("young", 2.0, HOST_ZONE)
    assert host_facts(task(hit("bet"), fact)) == (fact,)


def test_tasks_by_likeness() -> None:
    one, two, three, four = (task(number=number, group=group) for number, group in ((1, 0), (2, 1), (3, 0), (4, 3)))
    assert grouped([two, three, one, four]) == [[two, one], [three, four]]
    assert grouped([replace(one, task_id=9)]) == [[replace(one, task_id=9)]]
