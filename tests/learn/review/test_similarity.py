import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.learn.review.similarity import (
    ALIKE_BITS,
    MAX_CHARACTERS,
    are_alike,
    distance,
    simhash,
    title_pairs,
    title_similarity,
)

_CHOSEN = random.Random(3)
ENGLISH = " ".join("".join(_CHOSEN.choices("abcdefghijklmnoprstuvw", k=_CHOSEN.randint(2, 9))) for _ in range(400))
CHINESE = "".join(chr(_CHOSEN.randint(0x4E00, 0x9FA0)) for _ in range(1500))


def edited(text: str, share: float) -> str:
    chosen = random.Random(7)
    return "".join("#" if chosen.random() < share else character for character in text)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_few_changes_leave_pages_alike(text: str) -> None:
    fingerprint = simhash(text)
    assert distance(fingerprint, simhash(edited(text, 0.01))) <= ALIKE_BITS
    assert distance(fingerprint, simhash(text.upper().replace(" ", "\n  "))) == 0
    assert are_alike("A title", fingerprint, "A title!", simhash(edited(text, 0.01)))


def test_other_texts_and_other_titles_are_not_alike() -> None:
    assert distance(simhash(ENGLISH), simhash(CHINESE)) > ALIKE_BITS
    assert not are_alike("A title", simhash(ENGLISH), "A title", simhash(CHINESE))
    assert not are_alike("Casino bonus", simhash(ENGLISH), "Weather report", simhash(ENGLISH))


@pytest.mark.parametrize(
    ("title", "other", "bits", "alike"),
    [
        ("abcd", "abcd", 0, True),
        ("abcd", "abcd", ALIKE_BITS, True),
        ("abcd", "abcd", ALIKE_BITS + 1, False),
        ("abcd", "abce", 0, True),  # two pairs of four in common
        ("abcd", "abxy", 0, False),  # one of five
        ("", "", 0, True),
    ],
)
def test_the_bounds_of_likeness(title: str, other: str, bits: int, *, alike: bool) -> None:
    assert are_alike(title, (1 << 63) | 1, other, ((1 << 63) | 1) ^ (((1 << bits) - 1) << 20)) is alike
    assert not are_alike(title, 0, other, 1)
    assert not are_alike(title, 1, other, 0)


@pytest.mark.parametrize("short", ["", "abc", "  \n a b c d"])
def test_what_is_too_short_is_like_nothing(short: str) -> None:
    assert simhash(short) == 0
    assert not are_alike("", simhash(short), "", simhash(short))


def test_repetition_does_not_count() -> None:
    assert simhash(ENGLISH + "casino bonus " * 500) == simhash(ENGLISH + "casino bonus " * 400)


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Best Casino", "best casino!", 1, 1),
        ("", "", 1, 1),
        ("", "x", 0, 0),
        ("赌场 大全", "赌场大全", 1, 1),
        ("abc", "xyz", 0, 0),
        ("a", "a", 1, 1),
    ],
)
def test_titles(one: str, other: str, least: float, most: float) -> None:
    assert least <= title_similarity(one, other) <= most


@pytest.mark.parametrize(
    ("title", "pairs"), [("", set()), ("?!", set()), ("A", {"a"}), ("Ab", {"ab"}), ("a b-c", {"ab", "bc"}), ("赌场", {"赌场"})]
)
def test_pairs_of_neighbouring_letters(title: str, pairs: set[str]) -> None:
    assert title_pairs(title) == pairs


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_within_bounds(one: str, other: str) -> None:
    assert title_similarity(one, other) == title_similarity(other, one)
    assert 0 <= title_similarity(one, other) <= 1
    assert 0 <= simhash(one) < 2**64


def test_the_shortest_text_that_is_like_another() -> None:
    assert simhash("abcd") == 0
    assert simhash("a b c d e") == simhash("ABCDE") != 0
    assert are_alike("", simhash("abcde"), "", simhash("abcde"))


@pytest.mark.parametrize(
    ("text", "fingerprint"),
    [
        ("abcde", 0xA09C_B802_E9BD_0ABB),
        ("The house of cards opens its doors.", 0xC96F_61F7_93CD_6271),
        ("金沙娱乐 在线玩一下", 0x79E2_2425_4997_4F24),
        ("aaaaaa bbbbbb", 0x2894_840A_CA50_8360),  # six distinct runs: a bit that half of them have is not set
    ],
)
def test_hashes_that_are_stored_with_tasks_stay_comparable(text: str, fingerprint: int) -> None:
    assert simhash(text) == fingerprint


def test_the_first_characters_of_a_long_text_count() -> None:
    space = " " * (MAX_CHARACTERS - 5)
    assert simhash(f"{space}abcdefgh") == simhash("abcde") != simhash(f"{space[1:]}abcdefgh")
