"""Words in their files, lists of others, phrases near each other, and the operator's own words: each kind at its edges."""

import os
from pathlib import Path

import pytest

from gatewayfilter.classify.lexicon import phrase_list
from gatewayfilter.classify.lexicon.custom_words import CustomWords
from gatewayfilter.classify.lexicon.lexicon import Lexicon
from gatewayfilter.classify.lexicon.phrase_list import PhraseList, parse_phrase_list
from gatewayfilter.classify.lexicon.proximity import MAX_GAP, MAX_GAP_HAN, MOST, ONE, OTHER, Proximity, places
from gatewayfilter.classify.lexicon.word_file import (
    MAX_PHRASE,
    WordFile,
    check_phrase,
    format_word_file,
    parse_word_file,
    write_word_file,
)
from gatewayfilter.documents.encoding.charset import Decoded
from gatewayfilter.errors import ClassifyError
from tests.case_tables import all_cases


@all_cases(
    ("text", "found", "beside"),
    [
        ("aaa bbb", [(0, 3, ONE), (4, 7, OTHER)], [(0, 7)]), ("aaa bbb", [(0, 3, OTHER), (4, 7, ONE)], [(0, 7)]),
        ("aaa bbb", [(0, 3, ONE), (4, 7, ONE)], []),
        ("aaabbb", [(0, 3, ONE), (3, 6, OTHER)], [(0, 6)]), ("aaabbb", [(0, 4, ONE), (3, 6, OTHER)], []),
        ("aaa. bbb", [(0, 3, ONE), (5, 8, OTHER)], []),
        ("aaa" + " " * MAX_GAP + "bbb", [(0, 3, ONE), (3 + MAX_GAP, 6 + MAX_GAP, OTHER)], [(0, 6 + MAX_GAP)]),
        ("aaa" + " " * (MAX_GAP + 1) + "bbb", [(0, 3, ONE), (4 + MAX_GAP, 7 + MAX_GAP, OTHER)], []),
        ("赌" + "x" * MAX_GAP_HAN + "赌", [(0, 1, ONE), (1 + MAX_GAP_HAN, 2 + MAX_GAP_HAN, OTHER)], [(0, 2 + MAX_GAP_HAN)]),
        ("赌" + "x" * (MAX_GAP_HAN + 1) + "赌", [(0, 1, ONE), (2 + MAX_GAP_HAN, 3 + MAX_GAP_HAN, OTHER)], []),
        ("赌" + "x" * (MAX_GAP_HAN + 1) + "a", [(0, 1, ONE), (2 + MAX_GAP_HAN, 3 + MAX_GAP_HAN, OTHER)], [(0, 3 + MAX_GAP_HAN)]),
        ("a" + "x" * (MAX_GAP_HAN + 1) + "赌", [(0, 1, ONE), (2 + MAX_GAP_HAN, 3 + MAX_GAP_HAN, OTHER)], [(0, 3 + MAX_GAP_HAN)]),
        ("\u2e80" + "x" * (MAX_GAP_HAN + 1) + "\u2e80", [(0, 1, ONE), (2 + MAX_GAP_HAN, 3 + MAX_GAP_HAN, OTHER)], []),
        ("aaa bbb aaa", [(0, 3, ONE), (4, 7, OTHER), (8, 11, ONE)], [(0, 7)]), ("a a b", [(0, 1, ONE), (2, 3, ONE),
        (4, 5, OTHER)], [(2, 5)]),
        ("a b a b", [(0, 1, ONE), (2, 3, OTHER), (4, 5, ONE), (6, 7, OTHER)], [(0, 3)]), ("a b a c", [(0, 1, ONE),
        (2, 3, OTHER), (4, 5, ONE), (6, 7, OTHER)], [(0, 3), (4, 7)]),
        ("a b c b", [(0, 1, ONE), (2, 3, OTHER), (4, 5, ONE), (6, 7, OTHER)], [(0, 3), (4, 7)]),
        ("a. b a", [(0, 1, ONE), (3, 4, OTHER), (5, 6, ONE)], [(3, 6)]), ("", [], []),
    ],
)  # fmt: skip
def test_phrases_near_each_other(text: str, found: list[tuple[int, int, int]], beside: list[tuple[int, int]]) -> None:
    assert places(text, found) == beside


def test_no_more_places_than_the_bound() -> None:
    text = " ".join(f"a{number} b{number}" for number in range(MOST + 2))
    found = [(at, at + 2, side) for number in range(MOST + 2) for at, side in ((6 * number, ONE), (6 * number + 3, OTHER))]
    assert places(text, iter(found)) == [(6 * number, 6 * number + 5) for number in range(MOST)]


def test_a_phrase_has_a_length() -> None:
    assert check_phrase("x" * MAX_PHRASE) == "x" * MAX_PHRASE
    with pytest.raises(ValueError, match="is longer than"):
        check_phrase("x" * (MAX_PHRASE + 1))
    assert check_phrase(f"*{'x' * MAX_PHRASE}*") == f"*{'x' * MAX_PHRASE}*"


NEAR = "[[near]]\nname = {}\nweight = 3\none = {}\nother = {}\n"
WHOLE = WordFile(
    "c", "en", 12.5, 3, ["ex é\x7f"], ["gone"], {"one": 5.0, "two": 9.0, "three": 5.0}, {"con": 2.0}, {("p", "q"): 4.0, ("r",
    "s"): -4.0}, ["offer"], 0.5,
    [Proximity("n", 7.0, ("o",), ("p", "q"))],
)  # fmt: skip


def test_a_file_reads_back_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = format_word_file(WHOLE)
    assert parse_word_file(text, "f") == WHOLE
    assert text.index('"9"') < text.index('"5"'), "the heaviest first"
    assert "é" in text
    assert "\x7f" not in text
    assert parse_word_file(format_word_file(WordFile("c")), "f") == WordFile("c")
    synced = list[str]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.pread(descriptor, 10_000, 0).decode()))
    path = tmp_path / "a" / "b" / "c.toml"
    for _ in range(2):
        write_word_file(path, WHOLE)
        assert path.read_text() == text
    assert synced == [text, text]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@all_cases(
    ("line", "value"),
    [
        ("min_words = 1", 1),
        ("min_words = 100", 100),
        ("min_words = 2", 2),
        ("min_words = 0", None),
        ("min_words = 101", None),
        ("min_words = true", None),
    ],
)
def test_how_many_words_a_category_needs(line: str, value: int | None) -> None:
    if value is None:
        with pytest.raises(ClassifyError, match="min_words"):
            parse_word_file(f"category = 'c'\n{line}", "f")
    else:
        assert parse_word_file(f"category = 'c'\n{line}", "f").min_words == value


@all_cases(("count", "is_taken"), [(1, False), (2, True), (8, True), (9, False)])
def test_parts_of_a_combination(count: int, *, is_taken: bool) -> None:
    parts = [f"p{number}" for number in range(count)]
    text = f"category = 'c'\n[combinations]\n'-3' = [{parts}]"
    if is_taken:
        assert parse_word_file(text, "f").combinations == {tuple(parts): -3.0}
    else:
        with pytest.raises(ClassifyError, match="2 to 8 phrases"):
            parse_word_file(text, "f")


@all_cases(
    ("text", "says"),
    [
        ("categories = 'c'", "unknown key 'categories'; did you mean 'category'\\?$"), ("zzz = 1", "unknown key 'zzz'$"),
        ("category = 'C'", "'category' must be lower-case"),
        ("category = 'c'\n[words]\n'0' = ['x']", "above 0"), ("category = 'c'\n[words]\n'-1' = ['x']", "above 0"),
        ("category = 'c'\n[words]\n'x' = ['x']", "is no weight"),
        ("category = 'c'\n[words]\n'1' = 'x'", "must be a list$"), ("category = 'c'\n[words.1]\n5 = ['x']", "stands in quotes"),
        ("category = 'c'\nlimit = true", "weight"),
        ("category = 'c'\nnear = [1]", "must have the keys"), ("category = 'c'\n[[near]]\nname = 'n'", "must have the keys"),
        (NEAR.format("''", "['a']", "['b']"), "a text of its own"), (NEAR.format("1", "['a']", "['b']"), "a text of its own"),
        (NEAR.format("'n'", "['a']", "['b']") * 2, "a text of its own"), (NEAR.format("'n'", "[]", "['b']"), "must not be empty"),
        (NEAR.format("'n'", "['a']", "[]"), "must not be empty"), ("exceptions = [1]\n", "must be text"),
        ("category = 'c'\n[words]\n'1' = ['x', 'x']", "stands twice"), ("category = 'c'\nlanguage = 1", "must be a str"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named(text: str, says: str) -> None:
    with pytest.raises(ClassifyError, match=says):
        parse_word_file(text if text.startswith(("categ", "zzz")) else f"category = 'c'\n{text}", "f")


def test_what_is_removed_may_be_anything() -> None:
    assert parse_word_file("category = 'c'\nremoved = [1, 'x', '**']", "f").removed == ["x", "**"]


def test_lists_of_others() -> None:
    data = (
        b'#listcategory: "Bad words"\n.Include\nplain\n< x >< y ><20>\n<z><-5>\n<only>\n<7>\n< a >< b >\n<c><0>\n<>\n<12345678>\n'
    )
    found = parse_phrase_list(data, weight=4.0, scale=0.5)
    assert found.title == "Bad words"
    assert found.words == {"plain": 4.0, "*z*": -2.5, "*only*": 4.0, "*7*": 4.0, "*12345678*": 4.0}
    assert found.combinations == {("x", "y"): 10.0, ("a", "b"): 4.0}
    assert (found.rejected, [number for number, _ in found.samples]) == (2, [9, 10])
    assert found.samples[0][1] == "a weight of 0 in '<c><0>'"
    for weight in (0.0, float("inf")):
        assert parse_phrase_list(b"<x>", weight=weight).rejected == 1
    assert parse_phrase_list(b"<x>", weight=1.0).words == {"*x*": 1.0}


def test_samples_of_bad_lines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrase_list, "_MAX_SAMPLES", 2)
    found = parse_phrase_list(b"<>\n" * 4)
    assert (found.rejected, len(found.samples)) == (4, 2)


def test_where_a_phrase_of_others_ends() -> None:
    found = parse_phrase_list("<赌x>\n<x赌>\n<赌>\n< ab>\n<cd >\n< ef >".encode())
    assert set(found.words) == {"赌x*", "*x赌", "赌", "ab*", "*cd", "ef"}


def test_the_charset_of_a_list_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def decoded(data: bytes, content_type: str) -> Decoded:
        asked.append(content_type)
        return Decoded(data.decode(), "utf-8")

    monkeypatch.setattr(phrase_list, "decode", decoded)
    for charset in ("big5", ""):
        assert parse_phrase_list(b"word", charset=charset).words == {"word": phrase_list.PLAIN_WEIGHT}
    assert asked == ["charset=big5", ""]


def test_own_words_are_added_and_changed(tmp_path: Path) -> None:
    words = CustomWords(tmp_path)
    assert words.add("c", "Casino") is True
    assert words.add("c", "casino") is False
    assert words.add("c", "casino", 0.5) is True
    assert words.read("c").words == {"casino": 0.5}
    assert words.add("c", "casino", -1.0) is True
    assert (words.read("c").words, words.read("c").context) == ({}, {"casino": 1.0})
    assert words.add("c", "casino", 1.0) is True
    assert (words.read("c").words, words.read("c").context) == ({"casino": 1.0}, {})
    for weight in (0.0, 1e9):
        with pytest.raises(ClassifyError, match="a weight must not be 0"):
            words.add("c", "x", weight)
    assert words.add_exception("c", "casino royale") is True
    assert words.add_exception("c", "Casino Royale") is False
    assert words.read("c").exceptions == ["casino royale"]


def test_own_combinations_and_pairs_replace_earlier_ones(tmp_path: Path) -> None:
    words = CustomWords(tmp_path)
    one, other = Proximity("n", 5.0, ("a",), ("b",)), Proximity("m", 5.0, ("a",), ("b",))
    assert words.add_all("c", PhraseList(combinations={("x", "y"): 3.0}, near=[one, other])) == 3
    assert words.add_all("c", PhraseList(combinations={("x", "y"): 3.0}, near=[one])) == 0
    changed = Proximity("n", 6.0, ("a",), ("b",))
    assert words.add_all("c", PhraseList(combinations={("x", "y"): 4.0}, near=[changed])) == 2
    assert words.read("c").combinations == {("x", "y"): 4.0}
    assert words.read("c").near == [other, changed]


def test_own_words_are_removed_each_by_itself(tmp_path: Path) -> None:
    words = CustomWords(tmp_path)
    words.add_all(
        "c", PhraseList(words={"one": 5.0, "two": 5.0, "con": -2.0, "pro": -2.0}, combinations={("p", "q"): 3.0, ("r", "s"): 3.0})
    )
    words.add_exception("c", "ex one")
    words.add_exception("c", "ex two")
    words.add_all("c", PhraseList(near=[Proximity("n", 5.0, ("a",), ("b",)), Proximity("m", 5.0, ("a",), ("b",))]))
    for phrase in ("one", "con", "p + q", "ex one", "n"):
        assert words.remove("c", phrase, Lexicon.load([tmp_path])) is True
    left = words.read("c")
    assert (left.words, left.context, left.combinations) == ({"two": 5.0}, {"pro": 2.0}, {("r", "s"): 3.0})
    assert (left.exceptions, [near.name for near in left.near]) == (["ex two"], ["m"])
    assert left.removed == ["one", "con", "p + q", "ex one", "n"]
    assert words.remove("c", "none", Lexicon.load([tmp_path])) is False
    words.add("c", "one")
    words.add_exception("c", "ex one")
    assert words.read("c").removed == ["con", "p + q", "n"]


def test_a_lexicon_is_of_all_files(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    write_word_file(
        first / "c.toml",
        WordFile(
            "c",
            limit=9.0,
            short_share=0.5,
            words={"one": 5.0, "two": 6.0},
            context={"con": 2.0},
            combinations={("p", "q"): 3.0, ("t", "u"): 3.0},
            offers=["o one", "o two"],
        ),
    )
    write_word_file(first / "d.toml", WordFile("d", words={"three": 5.0}, near=[Proximity("n", 5.0, ("a",), ("b",))]))
    both = Lexicon.load([first])
    assert (both.category("c").limit, both.category("c").short_share, both.word_count()) == (9.0, 0.5, 6)
    assert both.offers == {"o one", "o two"}
    assert [each.short_share for each in both.categories.values()] == [0.5, 1.0]
    write_word_file(
        second / "c.toml", WordFile("c", removed=["con", "p + q", "o one"], offers=["o three"], combinations={("r", "s"): 3.0})
    )
    merged = Lexicon.load([first, second])
    assert (merged.category("c").context, set(merged.category("c").combinations)) == ({}, {("r", "s"), ("t", "u")})
    assert merged.offers == {"o two", "o three"}
    assert merged.category("c").short_share == 0.5
    assert set(merged.category("d").near) == {"n"}
    write_word_file(second / "d.toml", WordFile("d", removed=["n"]))
    assert merged.category("d").words == {"three": 5.0}
    assert Lexicon.load([first, second]).category("d").near == {}
