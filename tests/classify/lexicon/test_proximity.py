"""Pairs of phrases that count where they stand near each other."""

from pathlib import Path

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.custom_words import CustomWords
from gatewayfilter.classify.lexicon.phrase_list import PhraseList
from gatewayfilter.classify.lexicon.proximity import Proximity
from gatewayfilter.classify.lexicon.word_file import WordFile, format_word_file, parse_word_file
from gatewayfilter.errors import ClassifyError
from tests.case_tables import all_cases

HARM = Proximity("harm", 5.0, ("hurt", "burn*", "打"), ("boss", "car", "wife", "老板"))


def classifier(*more: WordFile) -> PageClassifier:
    return PageClassifier(Lexicon.of([WordFile("violence", limit=9.0, min_words=2, short_share=0.5, near=[HARM]), *more]))


@all_cases(
    ("text", "found"),
    [
        ("hurt your boss", ["hurt your boss"]),
        ("the car that they burned down", ["car that they burn"]),
        ("hurt. The boss came", []),  # another sentence
        ("hurt\nboss", []),
        ("it hurt so that for a long, long time there was no boss", []),  # too far
        ("hurt boss, hurt wife, burn car, burn wife", ["hurt boss", "hurt wife", "burn car"]),  # three at most
        ("hurt boss; hurt boss; hurt boss", ["hurt boss"]),  # the same counts once
        ("hurt boss wife", ["hurt boss"]),  # no phrase in two places
        ("boss, wife", []),
        ("unhurt boss", []),  # ends of words, as everywhere
        ("打你的老板", ["打你的老板"]),
        ("打了一个很长很长的电话以后老板", []),
    ],
)
def test_places(text: str, found: list[str]) -> None:
    assert sorted(hit.word for hit in classifier().classify_text(text).evidence) == sorted(found)


def test_pairs_do_not_lower_a_limit() -> None:
    found = classifier().classify_text("hurt boss, burn car")
    assert (found.score, found.limit, found.harmful) == (10.0, 9.0, True)
    assert classifier().classify_text("hurt boss").limit == 9.0


def test_an_exception_covers_a_side() -> None:
    covering = WordFile("any", exceptions=["car boss"])
    assert classifier(covering).classify_text("burn the car boss").evidence == ()


def test_a_later_file_replaces_or_removes_a_pair() -> None:
    other = WordFile("violence", near=[Proximity("harm", 2.0, ("x1",), ("x2",))])
    assert classifier(other).classify_text("hurt boss, x1 x2").score == 2.0
    assert classifier(WordFile("violence", removed=["harm"])).classify_text("hurt boss").evidence == ()


def test_a_file_reads_back() -> None:
    file = WordFile("violence", short_share=0.5, near=[HARM, Proximity("two", 2.5, ("a b",), ('c"d',))])
    assert parse_word_file(format_word_file(file), "x") == file


@all_cases(
    ("table", "complaint"),
    [
        ("name = 'a'\nweight = 1\none = ['x']", "must have the keys"),
        ("name = ''\nweight = 1\none = ['x']\nother = ['y']", "'name' must be"),
        ("name = 'a'\nweight = 0\none = ['x']\nother = ['y']", "near\\[0\\].weight"),
        ("name = 'a'\nweight = 1\none = []\nother = ['y']", "must not be empty"),
        ("name = 'a'\nweight = 1\none = ['x']\nother = ['!']", "has no letter or digit"),
        (
            "name = 'a'\nweight = 1\none = ['x']\nother = ['y']\n[[near]]\nname = 'a'\nweight = 1\none=['x']\nother=['y']",
            "of its own",
        ),
    ],
)
def test_wrong_pairs_are_named(table: str, complaint: str) -> None:
    with pytest.raises(ClassifyError, match=complaint):
        parse_word_file(f"category = 'a'\n[[near]]\n{table}", "a.toml")


def test_pairs_of_an_imported_file_are_kept_and_removed_by_name(tmp_path: Path) -> None:
    own = CustomWords(tmp_path)
    assert own.add_all("violence", PhraseList(near=[HARM])) == 1
    assert own.add_all("violence", PhraseList(near=[HARM])) == 0
    assert Lexicon.load([tmp_path]).categories["violence"].near["harm"].one == HARM.one
    assert own.remove("violence", "harm", Lexicon.load([tmp_path]))
    assert Lexicon.load([tmp_path]).categories["violence"].near == {}
