"""Exception phrases are proposed from what stands around words on harmless pages."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.learn.review import phrase_suggestions
from gatewayfilter.learn.review.phrase_suggestions import propose
from gatewayfilter.model import Classification, Evidence, ReviewKind, ReviewTask


def task(text: str, *words: str) -> ReviewTask:
    evidence = tuple(Evidence(word, "gambling", 10.0, "main", 0) for word in words)
    judged = Classification("gambling", 30.0, 20.0, {}, evidence)
    return ReviewTask(
        1, ReviewKind.PAGE, "http://a.example/", "a.example/", "gambling", judged, blocked=True, created_at=0.0, text=text
    )


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("The casino royale film was long.", "casino", ["casino royale", "the casino royale", "casino royale film"]),
        ("We went to the casino and then on.", "casino", []),  # function words alone would cover it nearly everywhere
        ("In 2021 casino 300.", "casino", []),
        ("casino", "casino", []),
        ("一部老虎机博物馆的介绍", "老虎机", ["部老虎机", "老虎机博", "老虎机博物"]),
        ("在老虎机的", "老虎机", []),
    ],
)
def test_what_is_proposed(text: str, word: str, expected: list[str]) -> None:
    proposed = [item.phrase for item in propose([task(text, word)], [])]
    assert all(word in phrase and phrase != word for phrase in proposed)
    if expected:
        assert set(expected) & set(proposed)
    else:
        assert proposed == []


def test_a_phrase_of_a_harmful_page_or_one_that_is_there_is_not_proposed() -> None:
    rejected = [task("casino royale film", "casino")]
    assert "casino royale" in [item.phrase for item in propose(rejected, [])]
    assert propose(rejected, [replace(rejected[0])]) == []
    assert "casino royale" not in [item.phrase for item in propose(rejected, [], known={"casino royale"})]


def test_no_phrase_covers_a_second_word() -> None:
    assert all(
        "roulette" not in item.phrase
        for item in propose([task("casino roulette museum", "casino", "roulette")], [])
        if item.word == "casino"
    )


def test_the_most_useful_comes_first_and_three_for_a_word() -> None:
    rejected = [task("casino royale film", "casino"), task("the casino royale novel", "casino")]
    proposed = propose(rejected, [])
    assert (proposed[0].phrase, proposed[0].pages) == ("casino royale", 2)
    assert len(proposed) == 3
    assert len(propose(rejected, [], limit=1)) == 1


SENTENCES = st.lists(st.sampled_from(["the casino", "casino royale", "film", "bar", "老虎机", "博物馆", "\n"]), max_size=12).map(
    " ".join
)


@settings(max_examples=60)
@given(st.lists(SENTENCES, max_size=4), st.lists(SENTENCES, max_size=4))
def test_no_proposed_phrase_stands_on_an_approved_page(rejected: list[str], approved: list[str]) -> None:
    """The pass over all harmful texts at once finds what looking for each phrase finds."""
    harmless, harmful = ([task(text, "casino", "老虎机") for text in texts] for texts in (rejected, approved))
    everything = propose(harmless, [], limit=1000)
    left = propose(harmless, harmful, limit=1000)
    assert all(item.phrase not in text for item in left for text in approved)
    assert all(any(item.phrase in " ".join(text.split()) for text in rejected) for item in left)
    # What three better phrases kept from being proposed may come in; nothing that was fine is lost.
    assert {item for item in everything if not any(item.phrase in text for text in approved)} <= set(left)


def test_what_was_met_most_often_is_kept_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrase_suggestions, "MAX_COUNTED", 40)
    pages = [task(f"word{number} casino word{number + 1}", "casino") for number in range(100)]
    often = [task("casino royale", "casino")] * 5
    assert propose([*often, *pages, *often], [])[0] == phrase_suggestions.ProposedPhrase(
        "casino", "gambling", "casino royale", 10
    )


@pytest.mark.parametrize(
    ("line", "word", "phrases"),
    [
        (
            "one two three casino four five six",
            "casino",
            {
                "two three casino", "two three casino four", "two three casino four five", "three casino",
                "three casino four", "three casino four five", "casino four", "casino four five",
            },
        ),
        ("two. Casino, three", "casino", set()),
        ("甲乙老虎机丙", "老虎机", {"老虎机丙", "乙老虎机", "乙老虎机丙", "甲乙老虎机", "甲乙老虎机丙"}),
        ("甲。老虎机丙", "老虎机", {"老虎机丙"}),
        (
            "一二三四老虎机五六七八",
            "老虎机",
            {"一二三四"[4 - before :] + "老虎机" + "五六七八"[:after] for before in range(4) for after in range(4)} - {"老虎机"},
        ),
        (f"casino {'x' * 200}", "casino", {f"casino {'x' * 79}"}),  # 80 characters behind a word are looked at
    ],
)  # fmt: skip
def test_every_phrase_around_a_word(line: str, word: str, phrases: set[str]) -> None:
    found = {item.phrase for item in propose([task(line, word)], [], limit=100)}
    assert set(phrase_suggestions._around(word, line.lower())) == phrases
    assert found <= phrases
    assert len(found) == min(len(phrases), 3)


def test_a_page_counts_once_for_a_phrase_and_lines_stand_alone() -> None:
    text = "Grand casino hall\nthe casino hall of casino hall"
    found = {item.phrase: item.pages for item in propose([task(text, "casino"), task("a casino hall", "casino")], [], limit=100)}
    assert found == {"casino hall": 2, "grand casino": 1, "a casino hall": 1}


def test_words_that_count_for_nothing_propose_nothing() -> None:
    rejected = task("casino royale film", "casino")
    for weight, category in ((-1.0, "gambling"), (0.0, "gambling"), (10.0, "ads")):
        hit = Evidence("casino", category, weight, "main", 0)
        other = replace(rejected, classification=replace(rejected.classification, evidence=(hit,)))
        assert propose([other], []) == []


def test_words_count_however_little_they_weigh() -> None:
    light = tuple(Evidence(word, "gambling", 0.5, "main", 0) for word in ("casino", "slots"))
    found = task("casino slots museum", "casino")
    found = replace(found, classification=replace(found.classification, evidence=light))
    assert {(item.word, item.phrase) for item in propose([found], [])} == {("slots", "slots museum")}


def test_the_occurrences_that_are_looked_at_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrase_suggestions, "MAX_OCCURRENCES", 2)
    found = list(phrase_suggestions._around("casino", "red casino\nblue casino\ngreen casino"))
    assert found == ["red casino", "blue casino"]


def test_each_occurrence_of_a_word_is_looked_at() -> None:
    found = {item.phrase for item in propose([task("甲赌赌乙", "赌")], [])}
    assert found == {"甲赌", "赌乙"}
    assert propose([task("casino hall casino", "casino")], [])[0].phrase == "casino hall"
    assert "casino hall casino" not in {item.phrase for item in propose([task("casino hall casino", "casino")], [], limit=100)}


@pytest.mark.parametrize(("pages", "kept"), [(4, 4), (5, 2), (6, 3)])
def test_half_of_what_may_be_counted_is_kept_when_it_is_more(monkeypatch: pytest.MonkeyPatch, pages: int, kept: int) -> None:
    monkeypatch.setattr(phrase_suggestions, "MAX_COUNTED", 4)
    rejected = [task(f"red word{number}", f"word{number}") for number in range(pages)]
    assert len(propose(rejected, [])) == kept


def test_pages_of_others_are_not_read_where_nothing_can_be_proposed() -> None:
    approved = iter([task("casino royale", "casino")])
    assert propose([task("casino", "casino")], approved) == []
    assert len(list(approved)) == 1
    assert propose([task("casino royale", "casino")], approved, known={"casino royale"}) == []
